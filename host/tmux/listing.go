package tmux

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errListing is a listing that is not the answer to the format that was asked.
var errListing = errors.New("tmux answered something else than it was asked")

// newMark is what separates fields: 60 random bits, so that no name, title or path can hold it.
func newMark() string { return strings.ToLower(rand.Text()[:12]) }

// numbers are the fields without free text, joined by one space each. An empty one leaves two
// spaces.
const numbers = "#{pid} #{start_time} #{version} #{session_id} #{session_attached} #{session_last_attached} #{session_created} " +
	"#{window_id} #{window_index} #{window_active} #{window_zoomed_flag} #{automatic-rename} #{window_linked} #{window_layout} " +
	"#{pane_id} #{pane_index} #{pane_active} #{pane_pid} #{pane_width} #{pane_height} #{pane_dead} #{pane_dead_status} #{pane_dead_signal} #{pane_tty}"

// texts are the fields that others write.
var texts = [...]string{
	"socket_path", "session_name", "session_group", "session_path", txOption, "window_name",
	"pane_title", "pane_current_path", "pane_current_command", "pane_start_command",
	options[0].name, options[1].name, options[2].name, asideOption,
}

// rowFormat is the one format of every listing. With exact, backslashes and dollars are written
// as marks of their own, for a tmux that escapes what it prints so that it cannot be undone.
func rowFormat(m string, exact bool) string {
	var b strings.Builder
	b.WriteString(m + "<" + numbers)
	for _, t := range texts {
		b.WriteString(m + ",")
		if exact {
			b.WriteString(`#{s|[\]|` + m + `b|;s|[$]|` + m + `d|:` + t + `}`)
		} else {
			b.WriteString("#{" + t + "}")
		}
	}
	b.WriteString(m + ">")
	return b.String()
}

// row is one pane of one session, as printed.
type row struct {
	pid               int
	start, version    string
	sessionID         string
	attached          int
	lastAttached      int64
	created           int64
	windowID          string
	windowIndex       int
	windowActive      bool
	zoomed, automatic bool
	linked            bool
	layout            string
	paneID            string
	paneIndex         int
	paneActive        bool
	panePID           int
	cols, rows        int
	dead              bool
	status, signal    string
	tty               string
	text              [len(texts)]string
}

func (r *row) socket() string         { return r.text[0] }
func (r *row) sessionName() string    { return r.text[1] }
func (r *row) group() string          { return r.text[2] }
func (r *row) sessionPath() string    { return r.text[3] }
func (r *row) building() string       { return onSession(r.sessionID, r.text[4]) }
func (r *row) windowName() string     { return r.text[5] }
func (r *row) title() string          { return r.text[6] }
func (r *row) currentPath() string    { return r.text[7] }
func (r *row) currentCommand() string { return r.text[8] }
func (r *row) startCommand() string   { return r.text[9] }
func (r *row) aside() bool            { return onSession(r.sessionID, r.text[13]) != "" }
func (r *row) options() [len(options)]string {
	return [len(options)]string{r.text[10], r.text[11], r.text[12]}
}

// parseRows reads a listing. What stands outside the rows (the words of a hook) is skipped; a
// row that is not whole is an error.
func parseRows(out, m string, exact bool) ([]row, error) {
	var rows []row
	for {
		_, after, ok := strings.Cut(out, m+"<")
		if !ok {
			return rows, nil
		}
		body, rest, ok := strings.Cut(after, m+">")
		if !ok {
			return nil, fmt.Errorf("%w: a row does not end", errListing)
		}
		out = rest
		var r row
		if err := r.parse(body, m, exact); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
}

func (r *row) parse(body, m string, exact bool) error {
	fields := strings.SplitN(body, m+",", len(texts)+2)
	if len(fields) != len(texts)+1 {
		return fmt.Errorf("%w: %d fields", errListing, len(fields))
	}
	n := strings.Split(fields[0], " ")
	if len(n) != 24 {
		return fmt.Errorf("%w: %d numbers", errListing, len(n))
	}
	var bad bool
	num := func(s string) int {
		v, err := strconv.Atoi(s)
		bad = bad || err != nil
		return v
	}
	long := func(s string) int64 {
		if s == "" {
			return 0
		}
		v, err := strconv.ParseInt(s, 10, 64)
		bad = bad || err != nil
		return v
	}
	id := func(s, sigil string) string {
		_, err := strconv.ParseUint(strings.TrimPrefix(s, sigil), 10, 32)
		bad = bad || err != nil || !strings.HasPrefix(s, sigil)
		return s
	}
	flag := func(s string) bool { return s != "" && s != "0" && s != "off" }
	r.pid, r.start, r.version = num(n[0]), n[1], n[2]
	r.sessionID, r.attached = id(n[3], "$"), num(n[4])
	r.lastAttached, r.created = long(n[5]), long(n[6])
	r.windowID, r.windowIndex, r.windowActive = id(n[7], "@"), num(n[8]), flag(n[9])
	r.zoomed, r.automatic, r.linked, r.layout = flag(n[10]), flag(n[11]), flag(n[12]), n[13]
	r.paneID, r.paneIndex, r.paneActive = id(n[14], "%"), num(n[15]), flag(n[16])
	r.panePID, r.cols, r.rows = int(long(n[17])), num(n[18]), num(n[19])
	r.dead, r.status, r.signal, r.tty = flag(n[20]), n[21], n[22], n[23]
	if bad || r.start == "" {
		return fmt.Errorf("%w: %.200q", errListing, fields[0])
	}
	copy(r.text[:], fields[1:])
	v := parseVersion(r.version)
	if v.escapesOutput() {
		for i, s := range r.text {
			if exact {
				s = unescapeOutput(s, m)
			}
			r.text[i] = s
		}
	}
	r.text[1], r.text[2], r.text[5] = heldName(r.text[1]), heldName(r.text[2]), heldName(r.text[5])
	if v.escapesTitles() {
		r.text[6] = heldName(r.text[6])
	}
	return nil
}

// needsExact reports that a listing without marks for backslashes cannot be trusted.
func needsExact(rows []row) bool {
	for i := range rows {
		if !parseVersion(rows[i].version).escapesOutput() {
			return false
		}
		for n, s := range rows[i].text {
			// A start command is read for its token alone, which has none.
			if n != 9 && strings.Contains(s, `\`) {
				return true
			}
		}
	}
	return false
}

// unescapeOutput undoes what tmux 3.4 and 3.5a do to what they print: every backslash that is
// still there was put there by the printing.
func unescapeOutput(s, m string) string {
	if strings.Contains(s, `\`) {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] != '\\' || i+1 == len(s) {
				b.WriteByte(s[i])
				continue
			}
			if n, c := octal(s[i+1:]); n == 3 {
				b.WriteByte(c)
				i += 3
				continue
			}
			i++
			if at := strings.IndexByte(`abfnrtvs0`, s[i]); at >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v \x00"[at])
			} else {
				b.WriteByte(s[i])
			}
		}
		s = b.String()
	}
	if strings.Contains(s, m) {
		s = strings.ReplaceAll(strings.ReplaceAll(s, m+"b", `\`), m+"d", "$")
	}
	return s
}

// unescapeDollar is for a name that was printed without marks.
func unescapeDollar(s string, v version) string {
	if !v.escapesOutput() || v.atLeast(3, 5) {
		return s
	}
	return strings.ReplaceAll(s, `\\$`, `\$`)
}
