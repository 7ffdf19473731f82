package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/phux-agent/phux-agent/metadata"
)

// Decode reads schema 1 and 2 (ours and phux's), with limits on size, depth and counts, and
// validates every field. An unknown schema is a *VersionError, whatever else the file says, and
// nothing is guessed; anything else that is wrong is a *FormatError.
//
// Names are case sensitive, a repeated one is refused, strings are valid UTF-8 without lone
// surrogates, integers are integers, null stands only where a value may be absent, and nothing
// follows. Unknown members are skipped everywhere but in agent_session.
func Decode(b []byte) (*Archive, error) {
	a, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode archive: %w", err)
	}
	return a, nil
}

func decode(b []byte) (*Archive, error) {
	if len(b) > MaxSize {
		return nil, &FormatError{Reason: fmt.Sprintf("%d bytes, at most %d", len(b), MaxSize)}
	}
	// The schema decides how the rest is read, and a later one may have another shape: it is
	// looked for first, in whatever place it stands. Ours stands first.
	v, err := newReader(bytes.NewReader(b)).version()
	if err != nil {
		return nil, err
	}
	r := newReader(bytes.NewReader(b))
	r.schema = v
	a, err := r.archive()
	if err != nil {
		return nil, err
	}
	return a, r.end()
}

// decodeHead reads what stands before the sessions, and nothing more of the file. It is for our
// own generations, which are written in that order; a file in another order gives less.
func decodeHead(in io.Reader) (*Archive, error) {
	r := newReader(io.LimitReader(in, MaxSize))
	r.schema, r.headOnly = SchemaVersion, true
	a, err := r.archive()
	if err != nil {
		return nil, err
	}
	if a.SchemaVersion != SchemaVersion {
		return nil, &VersionError{a.SchemaVersion}
	}
	return a, nil
}

// reader reads exactly, counting.
type reader struct {
	d              *jsontext.Decoder
	schema         int
	headOnly       bool
	windows, panes int
}

func newReader(in io.Reader) *reader { return &reader{d: jsontext.NewDecoder(in)} }

func (r *reader) fail(format string, args ...any) error {
	return &FormatError{Pointer: string(r.d.StackPointer()), Reason: fmt.Sprintf(format, args...)}
}

func (r *reader) syntax(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &FormatError{Err: err}
}

func (r *reader) token() (jsontext.Token, error) {
	t, err := r.d.ReadToken()
	if err != nil {
		return t, r.syntax(err)
	}
	return t, nil
}

func (r *reader) end() error {
	_, err := r.d.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return r.syntax(err)
	}
	return &FormatError{Reason: "something follows the archive"}
}

// expect reads one token of a kind.
func (r *reader) expect(k jsontext.Kind, what string) (jsontext.Token, error) {
	t, err := r.token()
	if err != nil {
		return t, err
	}
	if t.Kind() != k {
		return t, r.fail("%s, not %s", kindName(t.Kind()), what)
	}
	return t, nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{', '}':
		return "an object"
	}
	return "an array"
}

// null consumes a null, if that is what comes.
func (r *reader) null() (bool, error) {
	if r.d.PeekKind() != 'n' {
		return false, nil
	}
	_, err := r.token()
	return true, err
}

var errStop = errors.New("stop")

// object calls member for every one; member consumes the value.
func (r *reader) object(member func(name string) error) error {
	if _, err := r.expect('{', "an object"); err != nil {
		return err
	}
	for r.d.PeekKind() != '}' {
		t, err := r.token()
		if err != nil {
			return err
		}
		if err := member(t.String()); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

// array calls element for every one; element consumes it.
func (r *reader) array(element func() error) error {
	if _, err := r.expect('[', "an array"); err != nil {
		return err
	}
	for r.d.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

// skip consumes any value, bounded in depth.
func (r *reader) skip() error {
	depth := r.d.StackDepth()
	for {
		if _, err := r.token(); err != nil {
			return err
		}
		switch d := r.d.StackDepth(); {
		case d <= depth:
			return nil
		case d > MaxDepth:
			return r.fail("nested more than %d deep", MaxDepth)
		}
	}
}

func (r *reader) text(most int) (string, error) {
	t, err := r.expect('"', "a string")
	if err != nil {
		return "", err
	}
	s := t.String()
	if len(s) > most {
		return "", r.fail("%d bytes, at most %d", len(s), most)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", r.fail("a NUL character, which no host can hold")
	}
	return s, nil
}

func (r *reader) optionalText(to *string, most int) error {
	null, err := r.null()
	if !null && err == nil {
		*to, err = r.text(most)
	}
	return err
}

func (r *reader) dir(to *string) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	s, err := r.text(MaxPath)
	if err != nil {
		return err
	}
	if s != "" && !path.IsAbs(s) {
		return r.fail("%q is not an absolute directory", clip(s))
	}
	*to = s
	return nil
}

func (r *reader) texts(to *[]string, count, most int) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	var out []string
	err := r.array(func() error {
		if len(out) == count {
			return r.fail("more than %d", count)
		}
		s, err := r.text(most)
		out = append(out, s)
		return err
	})
	*to = out
	return err
}

func (r *reader) bool(to *bool) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	switch t.Kind() {
	case 't':
		*to = true
	case 'f':
		*to = false
	default:
		return r.fail("%s, not a boolean", kindName(t.Kind()))
	}
	return nil
}

// integer reads a number that is written as one: 2.0 and 2e0 are not.
func (r *reader) integer(least, most int64) (int, error) {
	t, err := r.expect('0', "an integer")
	if err != nil {
		return 0, err
	}
	s := t.String()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s == "-0" {
		return 0, r.fail("%s is not an integer from %d to %d", clip(s), least, most)
	}
	if n < least || n > most {
		return 0, r.fail("%d is not from %d to %d", n, least, most)
	}
	return int(n), nil
}

func (r *reader) number(to *uint64) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	t, err := r.expect('0', "an integer")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(t.String(), 10, 64)
	if err != nil {
		return r.fail("%s is not a whole number", clip(t.String()))
	}
	*to = n
	return nil
}

// seconds is a time that has passed: no more than a time.Duration holds.
func (r *reader) seconds(to *int64) error {
	var n uint64
	if err := r.number(&n); err != nil {
		return err
	}
	if n > math.MaxInt64/uint64(time.Second) {
		return r.fail("%d seconds", n)
	}
	*to = int64(n)
	return nil
}

func (r *reader) time(to *time.Time) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	s, err := r.text(64)
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return r.fail("%q is not a time as in RFC 3339", clip(s))
	}
	*to = fitTime(t)
	return nil
}

func (r *reader) version() (int, error) {
	v, found := 0, false
	err := r.object(func(name string) error {
		if name != "schema_version" {
			return r.skip()
		}
		var err error
		v, err = r.integer(math.MinInt32, math.MaxInt32)
		found = true
		if err != nil {
			return err
		}
		return errStop
	})
	switch {
	case errors.Is(err, errStop):
	case err != nil:
		return 0, err
	case !found:
		return 0, r.fail("schema_version is missing")
	}
	if v != 1 && v != SchemaVersion {
		return 0, &VersionError{v}
	}
	return v, nil
}

func (r *reader) archive() (*Archive, error) {
	a := &Archive{}
	var sessions bool
	err := r.object(func(name string) (err error) {
		switch name {
		case "schema_version":
			a.SchemaVersion, err = r.integer(math.MinInt32, math.MaxInt32)
			return err
		case "saved_at":
			return r.time(&a.SavedAt)
		case "generation":
			return r.number(&a.Generation)
		case "prev":
			return r.digest(&a.Prev)
		case "host":
			return r.host(&a.Host)
		case "held":
			return r.held(&a.Held)
		case "content":
			return r.digest(&a.Content)
		case "distinct":
			return r.digest(&a.Distinct)
		case "counts":
			return r.counts(&a.Counts)
		case "sessions":
			if r.headOnly {
				return errStop
			}
			sessions = true
			return r.sessions(a)
		}
		return r.skip()
	})
	switch {
	case errors.Is(err, errStop):
	case err != nil:
		return nil, err
	case !sessions:
		return nil, &FormatError{Reason: "sessions is missing"}
	}
	return a, nil
}

func (r *reader) digest(to *string) error {
	if err := r.optionalText(to, MaxWord); err != nil {
		return err
	}
	if *to != "" && !isDigest(*to) {
		return r.fail("%q is not a digest", clip(*to))
	}
	return nil
}

func (r *reader) host(h *Host) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	return r.object(func(name string) error {
		switch name {
		case "kind":
			return r.optionalText(&h.Kind, MaxName)
		case "version":
			return r.optionalText(&h.Version, MaxName)
		case "server":
			return r.optionalText(&h.Server, MaxName)
		case "instance":
			return r.optionalText(&h.Instance, MaxName)
		case "boot":
			return r.optionalText(&h.Boot, MaxName)
		case "machine":
			return r.optionalText(&h.Machine, MaxName)
		}
		return r.skip()
	})
}

func (r *reader) held(to **Held) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	h := &Held{}
	*to = h
	err := r.object(func(name string) error {
		switch name {
		case "state":
			return r.optionalText(&h.State, MaxWord)
		case "reason":
			return r.optionalText(&h.Reason, MaxText)
		case "against":
			return r.number(&h.Against)
		case "uptime":
			return r.seconds(&h.Uptime)
		}
		return r.skip()
	})
	if err == nil && h.State == "" {
		return r.fail("state is missing")
	}
	return err
}

func (r *reader) counts(to **Counts) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	c := &Counts{}
	*to = c
	return r.object(func(name string) (err error) {
		switch name {
		case "live":
			c.Live, err = r.integer(0, math.MaxInt32)
		case "pending":
			c.Pending, err = r.integer(0, math.MaxInt32)
		case "carried":
			c.Carried, err = r.integer(0, math.MaxInt32)
		default:
			return r.skip()
		}
		return err
	})
}

func (r *reader) sessions(a *Archive) error {
	a.Sessions = []Session{}
	names := map[string]bool{}
	return r.array(func() error {
		if len(a.Sessions) == MaxSessions {
			return r.fail("more than %d sessions", MaxSessions)
		}
		s, err := r.session()
		if err != nil {
			return err
		}
		if names[s.Name] {
			return r.fail("a second session named %q", clip(s.Name))
		}
		names[s.Name] = true
		a.Sessions = append(a.Sessions, s)
		return nil
	})
}

func (r *reader) session() (s Session, err error) {
	named := false
	s.Windows = []Window{}
	err = r.object(func(name string) (err error) {
		switch name {
		case "name":
			named = true
			if s.Name, err = r.text(MaxName); err == nil && strings.TrimSpace(s.Name) == "" {
				err = r.fail("blank")
			}
			return err
		case "active":
			return r.bool(&s.Active)
		case "cwd":
			return r.dir(&s.Cwd)
		case "command":
			return r.texts(&s.Command, MaxArgs, MaxArg)
		case "pending":
			return r.pending(&s.Pending)
		case "windows":
			return r.array(func() error {
				if r.windows++; r.windows > MaxWindows {
					return r.fail("more than %d windows", MaxWindows)
				}
				w, err := r.window()
				s.Windows = append(s.Windows, w)
				return err
			})
		}
		return r.skip()
	})
	if err == nil && !named {
		err = r.fail("name is missing")
	}
	return s, err
}

func (r *reader) pending(to **Pending) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	p := &Pending{}
	*to = p
	return r.object(func(name string) error {
		switch name {
		case "since":
			return r.time(&p.Since)
		case "from":
			return r.number(&p.From)
		case "waited":
			return r.seconds(&p.Waited)
		case "name":
			return r.optionalText(&p.Name, MaxName)
		}
		return r.skip()
	})
}

func (r *reader) window() (w Window, err error) {
	named := false
	w.Index, w.Panes = -1, []Pane{}
	err = r.object(func(name string) (err error) {
		switch name {
		case "name":
			named = true
			w.Name, err = r.text(MaxName)
			return err
		case "index":
			if null, err := r.null(); null || err != nil {
				return err
			}
			w.Index, err = r.integer(0, MaxIndex)
			return err
		case "active":
			return r.bool(&w.Active)
		case "zoomed":
			return r.optionalBool(&w.Zoomed)
		case "automatic_name":
			return r.optionalBool(&w.AutomaticName)
		case "layout":
			if null, err := r.null(); null || err != nil {
				return err
			}
			nodes := 0
			w.Layout, err = r.layout(1, &nodes)
			return err
		case "cells":
			return r.optionalText(&w.Cells, MaxCells)
		case "panes":
			return r.array(func() error {
				if len(w.Panes) == MaxWindowPanes {
					return r.fail("more than %d panes", MaxWindowPanes)
				}
				if r.panes++; r.panes > MaxPanes {
					return r.fail("more than %d panes in all", MaxPanes)
				}
				p, err := r.pane()
				w.Panes = append(w.Panes, p)
				return err
			})
		}
		return r.skip()
	})
	if err == nil && !named {
		err = r.fail("name is missing")
	}
	return w, err
}

func (r *reader) optionalBool(to *bool) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	return r.bool(to)
}

// layout reads phux's tree as phux does: every field of the node's kind, of its type, and no
// more than that. Whether it fits the panes is for who uses it (Layout.Check).
func (r *reader) layout(depth int, nodes *int) (*Layout, error) {
	if depth > MaxLayoutDepth {
		return nil, r.fail("nested more than %d deep", MaxLayoutDepth)
	}
	if *nodes++; *nodes > 2*MaxWindowPanes {
		return nil, r.fail("more than %d nodes", 2*MaxWindowPanes)
	}
	l := &Layout{}
	var pane, ratio bool
	err := r.object(func(name string) (err error) {
		switch name {
		case "kind":
			l.Kind, err = r.text(MaxWord)
			return err
		case "pane":
			pane = true
			l.Pane, err = r.integer(0, math.MaxInt32)
			return err
		case "dir":
			l.Dir, err = r.text(MaxWord)
			return err
		case "ratio":
			ratio = true
			l.Ratio, err = r.float()
			return err
		case "left":
			l.Left, err = r.layout(depth+1, nodes)
			return err
		case "right":
			l.Right, err = r.layout(depth+1, nodes)
			return err
		}
		return r.skip()
	})
	switch {
	case err != nil:
		return nil, err
	case l.Kind == KindPane && pane:
		return &Layout{Kind: KindPane, Pane: l.Pane}, nil
	case l.Kind == KindPane:
		return nil, r.fail("pane is missing")
	case l.Kind == "":
		return nil, r.fail("kind is missing")
	case l.Kind != KindSplit:
		return nil, r.fail("kind %q is neither pane nor split", clip(l.Kind))
	case l.Dir != Horizontal && l.Dir != Vertical:
		return nil, r.fail("dir %q is neither horizontal nor vertical", clip(l.Dir))
	case !ratio || l.Left == nil || l.Right == nil:
		return nil, r.fail("a split needs ratio, left and right")
	}
	l.Pane = 0
	return l, nil
}

func (r *reader) float() (float64, error) {
	t, err := r.expect('0', "a number")
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(t.String(), 64)
	if g := float64(float32(f)); err == nil && !math.IsInf(g, 0) {
		return g, nil
	}
	return 0, r.fail("%s is not a number of single precision", clip(t.String()))
}

func (r *reader) pane() (p Pane, err error) {
	err = r.object(func(name string) (err error) {
		switch name {
		case "active":
			return r.bool(&p.Active)
		case "title":
			return r.optionalText(&p.Title, MaxText)
		case "cwd":
			return r.dir(&p.Cwd)
		case "cwd_error":
			return r.optionalText(&p.CwdError, MaxText)
		case "command":
			return r.texts(&p.Command, MaxArgs, MaxArg)
		case "program":
			return r.optionalText(&p.Program, MaxText)
		case "process":
			return r.process(&p.Process)
		case "cols":
			p.Cols, err = r.integer(0, MaxSide)
			return err
		case "rows":
			p.Rows, err = r.integer(0, MaxSide)
			return err
		case "agent_session":
			return r.record(&p.AgentSession)
		case "agent":
			return r.agent(&p.Agent)
		}
		return r.skip()
	})
	return p, err
}

func (r *reader) process(to **Process) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	q := &Process{Args: []string{}}
	err := r.object(func(name string) error {
		switch name {
		case "program":
			return r.word(&q.Program)
		case "args":
			return r.array(func() error {
				s, err := r.text(MaxProcess)
				q.Args = append(q.Args, s)
				if err == nil && len(q.Args) > MaxProcessArgs {
					err = r.fail("more than %d", MaxProcessArgs)
				}
				return err
			})
		}
		return r.skip()
	})
	if err == nil && !q.fits() {
		return r.fail("not a program's name with arguments of at most %d bytes", MaxProcess)
	}
	*to = q
	return err
}

// record hands the exact value to the room that knows records.
func (r *reader) record(to **metadata.AgentSession) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	if k := r.d.PeekKind(); k != '{' {
		return r.fail("a record is an object")
	}
	if r.schema == 1 {
		return r.fail("schema 1 has no records")
	}
	v, err := r.d.ReadValue()
	if err != nil {
		return r.syntax(err)
	}
	// The bound of a record is one of its own bytes; how a file indents or escapes it is not
	// its business, and phux reads it in place likewise.
	v = v.Clone()
	if err := v.Canonicalize(); err != nil {
		return r.syntax(err)
	}
	s, err := metadata.DecodeAgentSession(v)
	if err != nil {
		return &FormatError{Pointer: string(r.d.StackPointer()), Err: err}
	}
	*to = &s
	return nil
}

func (r *reader) agent(to **Agent) error {
	if null, err := r.null(); null || err != nil {
		return err
	}
	g := &Agent{}
	*to = g
	return r.object(func(name string) error {
		switch name {
		case "key":
			return r.word(&g.Key)
		case "plugin_id":
			return r.id(&g.PluginID)
		case "integration_id":
			return r.id(&g.IntegrationID)
		case "profile":
			return r.word(&g.Profile)
		case "launch_cwd":
			return r.dir(&g.LaunchCwd)
		case "store":
			return r.word(&g.Store)
		case "durability":
			return r.word(&g.Durability)
		case "state":
			return r.word(&g.State)
		case "confirmed_at":
			return r.time(&g.ConfirmedAt)
		case "unconfirmed":
			return r.optionalText(&g.Unconfirmed, MaxText)
		case "previous":
			if err := r.texts(&g.Previous, metadata.MaxPrevious, metadata.MaxNativeID); err != nil {
				return err
			}
			for _, id := range g.Previous {
				if err := metadata.CheckNativeID("previous", id); err != nil {
					return &FormatError{Pointer: string(r.d.StackPointer()), Err: err}
				}
			}
			return nil
		case "not_preserved":
			return r.texts(&g.NotPreserved, MaxArgs, MaxArg)
		case "record_error":
			return r.optionalText(&g.RecordError, MaxText)
		}
		return r.skip()
	})
}

func (r *reader) word(to *string) error {
	if err := r.optionalText(to, MaxWord); err != nil {
		return err
	}
	if *to != "" && !isWord(*to) {
		return r.fail("%q is not a word: control characters or white space around it", clip(*to))
	}
	return nil
}

func (r *reader) id(to *string) error {
	if err := r.word(to); err != nil || *to == "" {
		return err
	}
	if err := metadata.CheckID("id", *to); err != nil {
		return &FormatError{Pointer: string(r.d.StackPointer()), Err: err}
	}
	return nil
}

// clip keeps an error readable.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
