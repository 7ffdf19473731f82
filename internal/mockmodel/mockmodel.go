// Package mockmodel is a model server for tests: it speaks the protocols that coding agents talk
// to their providers, answers each prompt in a way that the prompt alone decides, and keeps what
// every request held. So a test sees which history a resumed conversation really carried.
//
// It listens on loopback only, knows no keys, and calls nobody.
//
// The protocols, as far as the agents use them: Anthropic Messages, OpenAI Responses, OpenAI Chat
// Completions and Gemini generateContent, each whole and as server-sent events; the counting of
// tokens; and the lists of models.
package mockmodel

import (
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Protocol is how a request was made.
type Protocol string

const (
	Anthropic Protocol = "anthropic" // POST …/messages
	Responses Protocol = "responses" // POST …/responses
	Chat      Protocol = "chat"      // POST …/chat/completions
	Gemini    Protocol = "gemini"    // POST …:generateContent, …:streamGenerateContent
	Other     Protocol = "other"     // lists, counts, and what is not known
)

// Message is one message of a conversation. Role is as the protocol spells it: user, assistant,
// system, developer, model, tool.
type Message struct {
	Role string
	Text string
}

// Request is what one request held.
type Request struct {
	N        int // from 1, in the order of arrival
	Protocol Protocol
	Method   string
	Path     string
	Model    string
	Stream   bool
	// Tools is how many tools the request offers. An agent's own turn offers some; what it asks
	// beside that (a title, a summary, a route) offers none.
	Tools    int
	JSON     bool // the answer is to be JSON
	Session  string
	Messages []Message
	Reply    string // what was answered; empty for Other
	Err      string // why it could not be read
}

// Users returns the texts of the user's messages, oldest first.
func (r Request) Users() []string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			out = append(out, m.Text)
		}
	}
	return out
}

// maxBody bounds one request, decompressed.
const maxBody = 64 << 20

// Server is a running model server. Its methods may be called concurrently.
type Server struct {
	reply func(Request) string
	http  *http.Server
	addr  string

	mu       sync.Mutex
	requests []Request
	changed  chan struct{} // closed and replaced when a request has arrived
}

// Echo is the answer where Start is given none: it says how many messages of the user the request
// held, and the end of the last one.
func Echo(r Request) string {
	users := r.Users()
	last := ""
	if len(users) > 0 {
		last = strings.TrimSpace(users[len(users)-1])
	}
	if runes := []rune(last); len(runes) > 60 {
		last = string(runes[len(runes)-60:])
	}
	return fmt.Sprintf("mock reply to %d: %s", len(users), last)
}

// Start listens on a free port of 127.0.0.1. reply makes each answer from the request; nil is
// Echo. Where an answer must be JSON, it is one object that holds what routers ask for.
func Start(reply func(Request) string) (*Server, error) {
	if reply == nil {
		reply = Echo
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	s := &Server{reply: reply, addr: l.Addr().String(), changed: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func() { _ = s.http.Serve(l) }() // Ends with Close.
	return s, nil
}

// URL is the server's address, without a path and without a slash at its end.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the server and every connection.
func (s *Server) Close() error { return s.http.Close() }

// Requests returns every request so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await returns the first request, of those that came and those that come, for which want holds.
// The error is the context's.
func (s *Server) Await(ctx context.Context, want func(Request) bool) (Request, error) {
	next := 0
	for {
		s.mu.Lock()
		fresh, changed := s.requests[next:], s.changed
		next = len(s.requests)
		s.mu.Unlock()
		for _, r := range fresh {
			if want(r) {
				return r, nil
			}
		}
		select {
		case <-ctx.Done():
			return Request{}, ctx.Err()
		case <-changed:
		}
	}
}

// keep numbers and stores a request, with its answer.
func (s *Server) keep(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.N = len(s.requests) + 1
	if r.Protocol != Other && r.Err == "" {
		r.Reply = s.reply(*r)
		if r.JSON {
			r.Reply = routed
		}
	}
	s.requests = append(s.requests, *r)
	close(s.changed)
	s.changed = make(chan struct{})
}

// routed is what gemini's router and its next-speaker check accept.
const routed = `{"reasoning":"mock","next_speaker":"user","model_choice":"flash","complexity_reasoning":"mock","complexity_score":1}`

func (s *Server) serve(w http.ResponseWriter, h *http.Request) {
	r := Request{Method: h.Method, Path: h.URL.Path, Protocol: protocolOf(h), Session: sessionOf(h.Header)}
	raw, err := body(h)
	var b wire
	if err == nil && h.Method == http.MethodPost && len(raw) > 0 {
		err = json.Unmarshal(raw, &b)
	}
	if err == nil && r.Protocol != Other {
		err = b.fill(&r)
	}
	switch {
	case err != nil:
		r.Err = err.Error()
		s.keep(&r)
		code := http.StatusBadRequest
		if errors.Is(err, errEncoding) {
			code = http.StatusUnsupportedMediaType
		}
		http.Error(w, r.Err, code)
		return
	case r.Protocol == Other:
		s.keep(&r)
		other(w, h)
		return
	}
	if strings.HasSuffix(h.URL.Path, ":streamGenerateContent") {
		r.Stream = true
	}
	s.keep(&r)
	switch r.Protocol {
	case Anthropic:
		answerAnthropic(w, r)
	case Responses:
		answerResponses(w, r)
	case Chat:
		answerChat(w, r)
	case Gemini:
		answerGemini(w, r)
	}
}

func protocolOf(h *http.Request) Protocol {
	if h.Method != http.MethodPost {
		return Other
	}
	switch p := h.URL.Path; {
	case strings.HasSuffix(p, "/messages"):
		return Anthropic
	case strings.HasSuffix(p, "/responses"):
		return Responses
	case strings.HasSuffix(p, "/chat/completions"):
		return Chat
	case strings.HasSuffix(p, ":generateContent"), strings.HasSuffix(p, ":streamGenerateContent"):
		return Gemini
	}
	return Other
}

// sessionOf is what some agents say of themselves; never needed to judge a history.
func sessionOf(h http.Header) string {
	for _, name := range []string{"X-Claude-Code-Session-Id", "Session_id", "Session-Id", "Thread-Id", "Conversation_id"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

var errEncoding = errors.New("content encoding is not read here")

func body(h *http.Request) ([]byte, error) {
	var in io.Reader = h.Body
	switch enc := strings.ToLower(strings.TrimSpace(h.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		in = z
	case "deflate":
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("deflate: %w", err)
		}
		in = z
	default:
		// None of the agents sends zstd or br to a provider of the user's own.
		return nil, fmt.Errorf("%q: %w", enc, errEncoding)
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if len(raw) > maxBody {
		return nil, fmt.Errorf("the body has more than %d bytes", maxBody)
	}
	return raw, nil
}
