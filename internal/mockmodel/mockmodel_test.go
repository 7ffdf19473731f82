package mockmodel_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/phux-agent/phux-agent/internal/mockmodel"
)

func start(t *testing.T, reply func(mockmodel.Request) string) *mockmodel.Server {
	t.Helper()
	s, err := mockmodel.Start(reply)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func post(t *testing.T, s *mockmodel.Server, path, body string, header ...string) (code int, kind, answer string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n+1 < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(b)
}

// TestProtocols sends each protocol the same conversation, and wants to find it whole in what the
// server kept, and the answer in what it sent.
func TestProtocols(t *testing.T) {
	conversation := []mockmodel.Message{{"user", "one"}, {"assistant", "first"}, {"user", "two more"}}
	tests := []struct {
		name, path, body string
		protocol         mockmodel.Protocol
		stream           bool
		model            string
		tools            int
		want             []mockmodel.Message
		parts            []string // of the answer, in order
	}{
		{
			"anthropic", "/v1/messages",
			`{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"text","text":"first"}]},{"role":"user","content":[{"type":"text","text":"two"},{"type":"text","text":" more"}]}],"tools":[{"name":"a"},{"name":"b"}]}`,
			mockmodel.Anthropic, false, "m", 2, conversation,
			[]string{`"type":"text"`, `"stop_reason":"end_turn"`},
		},
		{
			"anthropic stream", "/v1/messages",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"first"},{"role":"user","content":"two more"}]}`,
			mockmodel.Anthropic, true, "m", 0, conversation,
			[]string{"event: message_start\n", "event: content_block_delta\n", "text_delta", "event: message_stop\n"},
		},
		{
			"responses", "/v1/responses",
			`{"model":"m","stream":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"first"}]},{"type":"function_call","name":"x","arguments":"{}"},{"role":"user","content":"two more"}]}`,
			mockmodel.Responses, false, "m", 0, conversation,
			[]string{`"output_text"`, `"status":"completed"`},
		},
		{
			"responses stream", "/v1/responses",
			`{"model":"m","stream":true,"input":[{"role":"user","content":"one"},{"role":"assistant","content":"first"},{"role":"user","content":"two more"}],"tools":[{"type":"function"}]}`,
			mockmodel.Responses, true, "m", 1, conversation,
			[]string{"event: response.created\n", "event: response.output_text.delta\n", "event: response.completed\n"},
		},
		{
			"responses text", "/v1/responses", `{"model":"m","input":"one"}`,
			mockmodel.Responses, false, "m", 0,
			[]mockmodel.Message{{"user", "one"}},
			[]string{`"output_text"`},
		},
		{
			"chat", "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"first"},{"role":"user","content":"two more"}]}`,
			mockmodel.Chat, false, "m", 0, conversation,
			[]string{`"finish_reason":"stop"`},
		},
		{
			"chat stream", "/v1/chat/completions",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"first"},{"role":"user","content":[{"type":"text","text":"two more"}]}]}`,
			mockmodel.Chat, true, "m", 0, conversation,
			[]string{`"chat.completion.chunk"`, `"finish_reason":"stop"`, "data: [DONE]\n"},
		},
		{
			"gemini", "/v1beta/models/g:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"one"}]},{"role":"model","parts":[{"text":"first"}]},{"role":"user","parts":[{"text":"two"},{"text":" more"}]}],"tools":[{"functionDeclarations":[{},{},{}]}]}`,
			mockmodel.Gemini, false, "", 3,
			[]mockmodel.Message{{"user", "one"}, {"model", "first"}, {"user", "two more"}},
			[]string{`"finishReason":"STOP"`},
		},
		{
			"gemini stream", "/v1beta/models/g:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"text":"one"}]}]}`,
			mockmodel.Gemini, true, "", 0,
			[]mockmodel.Message{{"user", "one"}},
			[]string{"data: {", `"finishReason":"STOP"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, nil)
			code, kind, answer := post(t, s, tt.path, tt.body, "x-claude-code-session-id", "sid")
			if code != http.StatusOK {
				t.Fatalf("status %d: %s", code, answer)
			}
			if got := strings.HasPrefix(kind, "text/event-stream"); got != tt.stream {
				t.Errorf("content type %q", kind)
			}
			requests := s.Requests()
			if len(requests) != 1 {
				t.Fatalf("%d requests kept", len(requests))
			}
			path, _, _ := strings.Cut(tt.path, "?")
			last := tt.want[len(tt.want)-1].Text
			want := mockmodel.Request{
				N: 1, Protocol: tt.protocol, Method: "POST", Path: path, Model: tt.model, Stream: tt.stream,
				Tools: tt.tools, Session: "sid", Messages: tt.want, Reply: requests[0].Reply,
			}
			if diff := cmp.Diff(want, requests[0]); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if !strings.HasSuffix(requests[0].Reply, ": "+last) {
				t.Errorf("the reply %q does not end in %q", requests[0].Reply, last)
			}
			rest := answer
			for _, p := range append(tt.parts, "") {
				_, after, ok := strings.Cut(rest, p)
				if !ok {
					t.Errorf("answer has no %q after what came before:\n%s", p, answer)
				}
				rest = after
			}
			if !strings.Contains(answer, requests[0].Reply) {
				t.Errorf("answer does not hold the reply %q:\n%s", requests[0].Reply, answer)
			}
			// The same prompt has the same reply.
			post(t, s, tt.path, tt.body)
			if again := s.Requests()[1].Reply; again != requests[0].Reply {
				t.Errorf("the second reply %q differs from %q", again, requests[0].Reply)
			}
		})
	}
}

// TestEvents wants every stream to be one event a paragraph, for that is what clients split.
func TestEvents(t *testing.T) {
	s := start(t, func(mockmodel.Request) string { return "a\nb\r\n\nc" })
	for path, body := range map[string]string{
		"/v1/messages":                      `{"stream":true}`,
		"/v1/responses":                     `{"stream":true}`,
		"/v1/chat/completions":              `{"stream":true}`,
		"/models/x:streamGenerateContent":   `{}`,
		"/v1beta/m/x:streamGenerateContent": `{}`,
	} {
		_, _, answer := post(t, s, path, body)
		for _, p := range strings.Split(strings.TrimSuffix(answer, "\n\n"), "\n\n") {
			lines := strings.Split(p, "\n")
			if !strings.HasPrefix(lines[len(lines)-1], "data: ") || len(lines) > 2 {
				t.Errorf("%s: an event is %q", path, p)
			}
		}
	}
}

func TestBesides(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct{ path, want string }{
		{"/v1/messages/count_tokens", `{"input_tokens":10}`},
		{"/v1beta/models/g:countTokens", `{"totalTokens":10}`},
	} {
		if code, _, answer := post(t, s, tt.path, `{}`); code != http.StatusOK || strings.TrimSpace(answer) != tt.want {
			t.Errorf("%s: %d %s", tt.path, code, answer)
		}
	}
	for path, code := range map[string]int{"/": 200, "/v1/models": 200, "/v1/unheard/of": 404} {
		res, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != code {
			t.Errorf("GET %s: %d, want %d", path, res.StatusCode, code)
		}
	}
	for _, r := range s.Requests() {
		if r.Protocol != mockmodel.Other || r.Reply != "" {
			t.Errorf("%s %s was taken for a turn: %+v", r.Method, r.Path, r)
		}
	}
}

// TestRouter: where JSON is asked for, JSON comes, and the request says so.
func TestRouter(t *testing.T) {
	s := start(t, nil)
	_, _, answer := post(t, s, "/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"route"}]}],"generationConfig":{"responseMimeType":"application/json"}}`)
	if !strings.Contains(answer, "next_speaker") || !s.Requests()[0].JSON {
		t.Errorf("answer %s, request %+v", answer, s.Requests()[0])
	}
}

func TestEncodings(t *testing.T) {
	s := start(t, nil)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"messages":[{"role":"user","content":"packed"}]}`))
	_ = z.Close()
	if code, _, answer := post(t, s, "/v1/messages", b.String(), "Content-Encoding", "gzip"); code != http.StatusOK {
		t.Errorf("gzip: %d %s", code, answer)
	}
	if got := s.Requests()[0].Users(); !cmp.Equal(got, []string{"packed"}) {
		t.Errorf("gzip: users %q", got)
	}
	// What cannot be read is refused and kept as such: a test must not take it for an empty history.
	for n, tt := range []struct {
		body string
		enc  string
		code int
	}{
		{"not gzip", "gzip", 400}, {"{}", "zstd", 415}, {"{", "", 400}, {`{"input":3}`, "", 400},
	} {
		code, _, _ := post(t, s, "/v1/responses", tt.body, "Content-Encoding", tt.enc)
		if got := s.Requests()[n+1]; code != tt.code || got.Err == "" || got.Reply != "" {
			t.Errorf("%q as %q: %d, kept %+v", tt.body, tt.enc, code, got)
		}
	}
}

func TestAwait(t *testing.T) {
	s := start(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(chan mockmodel.Request, 1)
	go func() {
		r, _ := s.Await(ctx, func(r mockmodel.Request) bool { return strings.Contains(strings.Join(r.Users(), ""), "awaited") })
		got <- r
	}()
	post(t, s, "/v1/messages", `{"messages":[{"role":"user","content":"another"}]}`)
	post(t, s, "/v1/messages", `{"messages":[{"role":"user","content":"awaited"}]}`)
	if r := <-got; r.N != 2 {
		t.Errorf("awaited the second, got %+v", r)
	}
	// One that came before is found too.
	if r, err := s.Await(ctx, func(r mockmodel.Request) bool { return r.N == 1 }); err != nil || r.N != 1 {
		t.Errorf("awaited the first: %+v, %v", r, err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Await(gone, func(mockmodel.Request) bool { return false }); err == nil {
		t.Error("no error from a context that has ended")
	}
}

func TestLoopback(t *testing.T) {
	u, err := url.Parse(start(t, nil).URL())
	if err != nil {
		t.Fatal(err)
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		t.Errorf("listens on %s", u.Host)
	}
}
