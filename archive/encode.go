package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/phux-agent/phux-agent/metadata"
)

// Encode returns the one form that we write: what Decode and phux read back. Fields stand in
// the order of the types, two spaces a level, one newline at the end.
//
// What only describes is made to fit: a text is cut and cleaned of what JSON cannot hold, a
// layout that is not one of the window's panes is left out (as phux does), a size is bounded.
// What identifies is not repaired: a directory that is not absolute UTF-8 is left out and
// cwd_error says why, a record that breaks its bounds is left out and agent.record_error says
// why; a session name that cannot be written, a second session of one name, or more than the
// limits allow is a *FormatError.
func (a *Archive) Encode() ([]byte, error) {
	f, err := fit(a)
	if err != nil {
		return nil, fmt.Errorf("encode archive: %w", err)
	}
	b, err := f.file(f.body())
	if err != nil {
		return nil, fmt.Errorf("encode archive: %w", err)
	}
	return b, nil
}

// Digest of a file's bytes, as prev and the list name it.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	h, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(h) == 64 && strings.Trim(h, "0123456789abcdef") == ""
}

// fitTime is what a file can hold of a time: UTC, milliseconds, four digits of a year.
func fitTime(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

func isWord(s string) bool {
	return strings.TrimSpace(s) == s && strings.IndexFunc(s, unicode.IsControl) < 0
}

// fitText makes a describing text one that a file can hold.
func fitText(s string, most int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func fitWord(s string) string {
	if isWord(s) && len(s) <= MaxWord && utf8.ValidString(s) {
		return s
	}
	return strings.TrimSpace(fitText(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s), MaxWord))
}

// fitDir says why a directory cannot be written. It is never repaired: the repaired one would
// be another directory.
func fitDir(s string) (dir, why string) {
	switch {
	case s == "":
		return "", ""
	case !utf8.ValidString(s):
		return "", "its name is not valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "", "its name holds a NUL character"
	case len(s) > MaxPath:
		return "", fmt.Sprintf("its name has %d bytes, at most %d", len(s), MaxPath)
	case !path.IsAbs(s):
		return "", "it is not absolute"
	}
	return s, ""
}

// fit returns a copy of a that can be written. Nothing that a points to is changed.
func fit(a *Archive) (*Archive, error) {
	f := *a
	f.SchemaVersion, f.SavedAt = SchemaVersion, fitTime(a.SavedAt)
	for _, d := range []*string{&f.Prev, &f.Content, &f.Distinct} {
		if !isDigest(*d) {
			*d = ""
		}
	}
	for _, s := range []*string{&f.Host.Kind, &f.Host.Version, &f.Host.Server, &f.Host.Instance, &f.Host.Boot, &f.Host.Machine} {
		*s = fitText(*s, MaxName)
	}
	if a.Held != nil {
		h := *a.Held
		h.State, h.Reason, h.Uptime = fitWord(h.State), fitText(h.Reason, MaxText), max(h.Uptime, 0)
		f.Held = &h
		if h.State == "" {
			f.Held = nil
		}
	}
	if len(a.Sessions) > MaxSessions {
		return nil, &FormatError{Pointer: "/sessions", Reason: fmt.Sprintf("%d sessions, at most %d", len(a.Sessions), MaxSessions)}
	}
	f.Sessions = slices.Clone(a.Sessions)
	names := map[string]bool{}
	windows, panes := 0, 0
	for i := range f.Sessions {
		s := &f.Sessions[i]
		at := "/sessions/" + strconv.Itoa(i)
		if why := nameTrouble(s.Name); why != "" {
			return nil, &FormatError{Pointer: at + "/name", Reason: why}
		}
		if names[s.Name] {
			return nil, &FormatError{Pointer: at + "/name", Reason: fmt.Sprintf("a second session named %q", clip(s.Name))}
		}
		names[s.Name] = true
		fitSession(s)
		windows += len(s.Windows)
		for j := range s.Windows {
			if n := len(s.Windows[j].Panes); n > MaxWindowPanes {
				return nil, &FormatError{Pointer: at + "/windows/" + strconv.Itoa(j), Reason: fmt.Sprintf("%d panes, at most %d", n, MaxWindowPanes)}
			}
			panes += len(s.Windows[j].Panes)
		}
	}
	if windows > MaxWindows || panes > MaxPanes {
		return nil, &FormatError{Pointer: "/sessions", Reason: fmt.Sprintf("%d windows and %d panes, at most %d and %d", windows, panes, MaxWindows, MaxPanes)}
	}
	return &f, nil
}

func nameTrouble(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "not valid UTF-8"
	case strings.TrimSpace(s) == "":
		return "blank"
	case strings.IndexByte(s, 0) >= 0:
		return "a NUL character, which no host can hold"
	case len(s) > MaxName:
		return fmt.Sprintf("%d bytes, at most %d", len(s), MaxName)
	}
	return ""
}

func fitSession(s *Session) {
	s.Command = nil
	s.Cwd, _ = fitDir(s.Cwd)
	if s.Pending != nil {
		p := *s.Pending
		p.Since, p.Name, p.Waited = fitTime(p.Since), fitText(p.Name, MaxName), max(p.Waited, 0)
		s.Pending = &p
	}
	s.Windows = slices.Clone(s.Windows)
	for j := range s.Windows {
		w := &s.Windows[j]
		w.Name = fitText(w.Name, MaxName)
		if w.Index < 0 || w.Index > MaxIndex {
			w.Index = -1
		}
		if w.Layout != nil && w.Layout.Check(len(w.Panes)) != nil {
			w.Layout = nil
		}
		if len(w.Cells) > MaxCells || !utf8.ValidString(w.Cells) || strings.IndexByte(w.Cells, 0) >= 0 {
			w.Cells = ""
		}
		w.Panes = slices.Clone(w.Panes)
		for k := range w.Panes {
			fitPane(&w.Panes[k])
		}
	}
}

func fitPane(p *Pane) {
	p.Command = nil
	p.Title, p.Program = fitText(p.Title, MaxText), fitText(p.Program, MaxText)
	dir, why := fitDir(p.Cwd)
	p.Cwd, p.CwdError = dir, fitText(p.CwdError, MaxText)
	if why != "" {
		p.CwdError = why
	}
	if q := p.Process; q != nil && !q.fits() {
		p.Process = nil
	}
	p.Cols, p.Rows = min(max(p.Cols, 0), MaxSide), min(max(p.Rows, 0), MaxSide)
	g := p.Agent
	if g != nil {
		c := *g
		g = &c
		fitAgent(g)
	}
	if r := p.AgentSession; r != nil {
		if err := r.Validate(); err != nil {
			p.AgentSession = nil
			if g == nil {
				g = &Agent{}
			}
			g.RecordError = fitText(err.Error(), MaxText)
		}
	}
	p.Agent = g
}

// fits reports arguments that a file can hold exactly: half of a command is another command.
func (q *Process) fits() bool {
	if q.Program == "" || !isWord(q.Program) || len(q.Program) > MaxWord || !utf8.ValidString(q.Program) || len(q.Args) > MaxProcessArgs {
		return false
	}
	size := 0
	for _, a := range q.Args {
		size += len(a) + 1
		if !utf8.ValidString(a) || strings.IndexByte(a, 0) >= 0 {
			return false
		}
	}
	return size <= MaxProcess
}

func fitAgent(g *Agent) {
	for _, s := range []*string{&g.Key, &g.Profile, &g.Store, &g.Durability, &g.State} {
		*s = fitWord(*s)
	}
	for _, s := range []*string{&g.PluginID, &g.IntegrationID} {
		if metadata.CheckID("id", *s) != nil {
			*s = ""
		}
	}
	g.LaunchCwd, _ = fitDir(g.LaunchCwd)
	g.ConfirmedAt = fitTime(g.ConfirmedAt)
	g.Unconfirmed, g.RecordError = fitText(g.Unconfirmed, MaxText), fitText(g.RecordError, MaxText)
	g.Previous = slices.DeleteFunc(slices.Clone(g.Previous), func(id string) bool {
		return metadata.CheckNativeID("previous", id) != nil
	})
	g.Previous = g.Previous[:min(len(g.Previous), metadata.MaxPrevious)]
	g.NotPreserved = slices.Clone(g.NotPreserved[:min(len(g.NotPreserved), MaxArgs)])
	for i := range g.NotPreserved {
		g.NotPreserved[i] = fitText(g.NotPreserved[i], MaxArg)
	}
}

// writer appends the one form to a buffer, and what the two digests are made of to two others.
// It stands on jsontext for the text of a string only: its encoder checks every token again, and
// a save has no time for that.
type writer struct {
	buf   []byte
	depth int
	first bool // nothing stands in the container yet

	content, distinct []byte
	times             bool // what is written now is a time: no digest is made of it
	coarse            bool // what is written now changes by itself: no distinct digest is made of it
}

func (w *writer) feed(b []byte) {
	if w.times {
		return
	}
	w.content = append(w.content, b...)
	if !w.coarse {
		w.distinct = append(w.distinct, b...)
	}
}

// next begins a member or an element.
func (w *writer) next() {
	if !w.first {
		w.buf = append(w.buf, ',')
	}
	w.first = false
	w.line()
}

func (w *writer) line() {
	w.buf = append(w.buf, newline[:1+2*min(w.depth, 2*MaxLayoutDepth)]...)
}

var newline = "\n" + strings.Repeat("    ", MaxLayoutDepth)

func (w *writer) open(c byte) {
	w.buf = append(w.buf, c)
	w.feed([]byte{c})
	w.depth++
	w.first = true
}

func (w *writer) close(c byte) {
	w.depth--
	if !w.first {
		w.line()
	}
	w.first = false
	w.buf = append(w.buf, c)
	w.feed([]byte{c})
}

// name is one of ours, which needs no escape.
func (w *writer) name(s string) {
	w.next()
	from := len(w.buf)
	w.buf = append(append(append(w.buf, '"'), s...), `": `...)
	w.feed(w.buf[from:])
}

func (w *writer) raw(s string) {
	from := len(w.buf)
	w.buf = append(w.buf, s...)
	w.feed(w.buf[from:])
}

func (w *writer) string(s string) {
	from := len(w.buf)
	// It cannot fail: what was made to fit is valid UTF-8.
	w.buf, _ = jsontext.AppendQuote(w.buf, s)
	w.feed(w.buf[from:])
}

func (w *writer) text(name, s string) { w.name(name); w.string(s) }

func (w *writer) optional(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *writer) bool(name string, v bool)     { w.name(name); w.raw(strconv.FormatBool(v)) }
func (w *writer) int(name string, v int)       { w.name(name); w.raw(strconv.Itoa(v)) }
func (w *writer) number(name string, v uint64) { w.name(name); w.raw(strconv.FormatUint(v, 10)) }

func (w *writer) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	w.times = true
	w.text(name, t.Format(time.RFC3339Nano))
	w.times = false
}

// seconds writes a time that has passed, which is a time.
func (w *writer) seconds(name string, n int64) {
	if n <= 0 {
		return
	}
	was := w.times
	w.times = true
	w.number(name, uint64(n))
	w.times = was
}

func (w *writer) texts(name string, s []string) {
	if len(s) == 0 {
		return
	}
	w.name(name)
	w.open('[')
	for _, t := range s {
		w.next()
		w.string(t)
	}
	w.close(']')
}

// fluid writes what changes by itself.
func (w *writer) fluid(write func()) {
	w.coarse = true
	write()
	w.coarse = false
}

// body is a fitted archive's host and sessions, written, with the digests of them.
type body struct {
	host, sessions    []byte
	content, distinct string
}

func (a *Archive) body() body {
	h := writer{depth: 1, buf: make([]byte, 0, 512)}
	h.host(&a.Host)
	panes := 0
	for i := range a.Sessions {
		a.Sessions[i].eachPane(func(*Pane) { panes++ })
	}
	w := writer{depth: 1, buf: make([]byte, 0, 4096+panes*1024), content: make([]byte, 0, 4096+panes*768), distinct: make([]byte, 0, 4096+panes*768)}
	w.content, w.distinct = append(w.content, h.content...), append(w.distinct, h.distinct...)
	w.open('[')
	for i := range a.Sessions {
		w.next()
		w.session(&a.Sessions[i])
	}
	w.close(']')
	return body{h.buf, w.buf, Digest(w.content), Digest(w.distinct)}
}

// file is the archive around its body.
func (a *Archive) file(b body) ([]byte, error) {
	w := writer{buf: make([]byte, 0, len(b.host)+len(b.sessions)+2048), times: true}
	w.open('{')
	w.int("schema_version", a.SchemaVersion)
	if !a.SavedAt.IsZero() {
		w.text("saved_at", a.SavedAt.Format(time.RFC3339Nano))
	}
	w.number("generation", a.Generation)
	w.text("prev", a.Prev)
	w.name("host")
	w.buf = append(w.buf, b.host...)
	if h := a.Held; h != nil {
		w.name("held")
		w.open('{')
		w.text("state", h.State)
		w.text("reason", h.Reason)
		w.number("against", h.Against)
		w.seconds("uptime", h.Uptime)
		w.close('}')
	}
	w.optional("content", a.Content)
	w.optional("distinct", a.Distinct)
	if c := a.Counts; c != nil {
		w.name("counts")
		w.open('{')
		w.int("live", c.Live)
		w.int("pending", c.Pending)
		w.int("carried", c.Carried)
		w.close('}')
	}
	w.name("sessions")
	w.buf = append(w.buf, b.sessions...)
	w.close('}')
	w.buf = append(w.buf, '\n')
	if len(w.buf) > MaxSize {
		return nil, &FormatError{Reason: fmt.Sprintf("%d bytes, at most %d", len(w.buf), MaxSize)}
	}
	return w.buf, nil
}

func (w *writer) host(h *Host) {
	w.open('{')
	w.text("kind", h.Kind)
	w.text("version", h.Version)
	w.text("server", h.Server)
	w.text("instance", h.Instance)
	w.text("boot", h.Boot)
	w.text("machine", h.Machine)
	w.close('}')
}

func (w *writer) session(s *Session) {
	w.open('{')
	w.text("name", s.Name)
	w.fluid(func() { w.bool("active", s.Active) })
	w.optional("cwd", s.Cwd)
	if p := s.Pending; p != nil {
		w.name("pending")
		w.open('{')
		w.time("since", p.Since)
		w.number("from", p.From)
		w.seconds("waited", p.Waited)
		w.optional("name", p.Name)
		w.close('}')
	}
	w.name("windows")
	w.open('[')
	for i := range s.Windows {
		w.next()
		w.window(&s.Windows[i])
	}
	w.close(']')
	w.close('}')
}

func (w *writer) window(v *Window) {
	w.open('{')
	w.coarse = v.AutomaticName
	w.text("name", v.Name)
	w.coarse = false
	if v.Index >= 0 {
		w.int("index", v.Index)
	}
	w.fluid(func() {
		w.bool("active", v.Active)
		w.bool("zoomed", v.Zoomed)
	})
	if v.AutomaticName {
		w.bool("automatic_name", true)
	}
	if v.Layout != nil {
		w.name("layout")
		w.layout(v.Layout)
	}
	w.optional("cells", v.Cells)
	w.name("panes")
	w.open('[')
	for i := range v.Panes {
		w.next()
		w.pane(&v.Panes[i])
	}
	w.close(']')
	w.close('}')
}

func (w *writer) layout(l *Layout) {
	w.open('{')
	w.text("kind", l.Kind)
	if l.Kind == KindPane {
		w.int("pane", l.Pane)
	} else {
		w.text("dir", l.Dir)
		w.name("ratio")
		w.ratio(l.Ratio)
		w.name("left")
		w.layout(l.Left)
		w.name("right")
		w.layout(l.Right)
	}
	w.close('}')
}

// ratio is a single-precision number in its shortest form, with a fraction always, as phux
// writes it.
func (w *writer) ratio(f float64) {
	s := strconv.FormatFloat(f, 'f', -1, 32)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	w.raw(s)
}

func (w *writer) pane(p *Pane) {
	w.open('{')
	w.fluid(func() {
		w.bool("active", p.Active)
		w.optional("title", p.Title)
	})
	w.optional("cwd", p.Cwd)
	w.optional("cwd_error", p.CwdError)
	w.name("command")
	w.raw("null")
	w.fluid(func() {
		w.optional("program", p.Program)
		if q := p.Process; q != nil {
			w.name("process")
			w.open('{')
			w.text("program", q.Program)
			w.name("args")
			w.open('[')
			for _, a := range q.Args {
				w.next()
				w.string(a)
			}
			w.close(']')
			w.close('}')
		}
	})
	w.int("cols", p.Cols)
	w.int("rows", p.Rows)
	if r := p.AgentSession; r != nil {
		w.name("agent_session")
		w.open('{')
		w.text("plugin_id", r.PluginID)
		w.text("integration_id", r.IntegrationID)
		w.text("native_id", r.NativeID)
		w.close('}')
	}
	if g := p.Agent; g != nil {
		w.agent(g)
	}
	w.close('}')
}

func (w *writer) agent(g *Agent) {
	w.name("agent")
	w.open('{')
	w.text("key", g.Key)
	w.optional("plugin_id", g.PluginID)
	w.optional("integration_id", g.IntegrationID)
	w.optional("profile", g.Profile)
	w.optional("launch_cwd", g.LaunchCwd)
	w.optional("store", g.Store)
	w.optional("durability", g.Durability)
	w.optional("state", g.State)
	w.time("confirmed_at", g.ConfirmedAt)
	w.optional("unconfirmed", g.Unconfirmed)
	w.texts("previous", g.Previous)
	w.texts("not_preserved", g.NotPreserved)
	w.optional("record_error", g.RecordError)
	w.close('}')
}
