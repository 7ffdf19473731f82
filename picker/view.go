package picker

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// Sizes, in cells.
const (
	headHeight = 2 // above the list
	footHeight = 2 // below everything: a line of words, a line of keys
	leastWide  = 36
	leastHigh  = 7
	mostWide   = 400
)

// previewHeight is how many lines the preview has: none where the list would get too short for it.
func (m *model) previewHeight() int {
	if !m.preview || m.screen != theList || m.h < 16 {
		return 0
	}
	return min(max(m.h/3, 6), 12)
}

func (m *model) listHeight() int {
	n := m.h - headHeight - footHeight
	if p := m.previewHeight(); p > 0 {
		n -= p + 1
	}
	return max(n, 0)
}

// Looks. Nothing is told by a colour alone.
const (
	plain   = ""
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	reverse = "\x1b[7m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	red     = "\x1b[31m"
	off     = "\x1b[m"
)

// look puts text between a look and its end.
func (m *model) dress(how, text string) string {
	if how == plain || text == "" || !m.color && (how == green || how == yellow || how == red) {
		return text
	}
	return how + text + off
}

func (m *model) View() tea.View {
	var v tea.View
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.SetContent(strings.Join(m.lines(), "\n"))
	return v
}

// lines is the whole screen, one element a line, each at most as wide as the window.
func (m *model) lines() []string {
	if m.w == 0 || m.h == 0 {
		return nil
	}
	if m.w < leastWide || m.h < leastHigh {
		return m.tooSmall()
	}
	out := []string{m.title(), m.subtitle()}
	switch m.screen {
	case theHistory:
		out = append(out, m.historyLines()...)
	case theAgents:
		out = append(out, m.agentLines()...)
	case theHelp:
		out = append(out, m.helpLines()...)
	default:
		out = append(out, m.listLines()...)
		if n := m.previewHeight(); n > 0 {
			out = append(out, m.dress(dim, strings.Repeat("─", m.w)))
			out = append(out, fill(m.previewLines(n), n)...)
		}
	}
	return append(out, m.foot(), m.dress(dim, ui.Clip(m.keys(), m.w)))
}

func (m *model) tooSmall() []string {
	lines := ui.Wrap(fmt.Sprintf("%d×%d is too small: the picker needs %d×%d. q leaves; phux-agent pick --list needs no room.", m.w, m.h, leastWide, leastHigh), max(m.w, 1))
	for i := range lines {
		lines[i] = ui.Clip(lines[i], m.w)
	}
	return lines[:min(len(lines), m.h)]
}

// short writes the home directory as people do.
func (m *model) short(dir string) string {
	if rest, ok := strings.CutPrefix(dir, m.home); ok && m.home != "" && m.home != "/" && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return dir
}

// shorten does so wherever a path stands in a text.
func (m *model) shorten(text string) string {
	if m.home == "" || m.home == "/" {
		return text
	}
	return strings.ReplaceAll(text, m.home+"/", "~/")
}

// fill makes n lines of some.
func fill(lines []string, n int) []string {
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines[:n]
}

// ends puts one text at the left and one at the right of a line; the left one is cut.
func (m *model) ends(left, right, look string) string {
	right = ui.Clip(ui.Escape(right), m.w-1)
	left = ui.Clip(ui.Escape(left), max(m.w-ui.Width(right)-2, 0))
	gap := max(m.w-ui.Width(left)-ui.Width(right), 0)
	return m.dress(look, left) + strings.Repeat(" ", gap) + right
}

func (m *model) title() string {
	server := ""
	if m.data != nil {
		server = " · " + m.data.Server
	}
	right := ""
	switch {
	case m.busy:
		right = "reading…"
	case m.data == nil:
	case m.data.Generation == 0:
		right = "nothing is saved"
	default:
		right = fmt.Sprintf("generation %d, saved %s", m.data.Generation, m.data.Saved)
		if m.w < 60 {
			right = fmt.Sprintf("gen %d, %s", m.data.Generation, m.data.Saved)
		}
	}
	name := "phux-agent pick"
	if server != "" && ui.Width(name+server)+2+ui.Width(right) > m.w {
		name, server = "pick", " · "+m.data.Server
	}
	return m.ends(name+server, right, bold)
}

func (m *model) subtitle() string {
	switch m.screen {
	case theHistory:
		return m.dress(dim, ui.Clip("An older generation: choose one to see what it would bring back.", m.w))
	case theAgents:
		session, dir := m.place()
		text := "A new agent"
		if session != "" {
			text += " in session " + session
		}
		if dir != "" {
			text += ", in " + m.short(dir)
		}
		return m.dress(dim, ui.Clip(ui.Escape(text)+":", m.w))
	case theHelp:
		return ""
	}
	switch {
	case m.filtering:
		return ui.ClipLeft("/"+ui.Escape(m.filter)+"▏", m.w)
	case m.filter != "":
		return ui.Clip("/"+ui.Escape(m.filter)+"  (esc shows everything)", m.w)
	case m.data != nil && len(m.data.Notes) > 0:
		more := ""
		if n := len(m.data.Notes) - 1; n > 0 {
			more = fmt.Sprintf("  (+%d: restore --plan)", n)
		}
		return m.dress(dim, ui.Clip(ui.Escape(m.data.Notes[0]), m.w-ui.Width(more))+more)
	}
	return ""
}

// foot is what has gone wrong, or what is asked.
func (m *model) foot() string {
	if c := m.confirm; c != nil {
		what := "session " + c.Session
		if c.Act == RestoreAll {
			what = everything(m.data.comeBack())
		}
		return m.dress(bold, ui.Clip(ui.Escape("restore "+what+"? y restores, any other key does not"), m.w))
	}
	if m.problem != "" {
		return m.dress(yellow, ui.Clip("! "+ui.Escape(m.problem), m.w))
	}
	if m.screen == theList && m.data != nil && m.at < len(m.rows) {
		does := m.data.willDo(m.rows[m.at])
		if rest, ok := strings.CutPrefix(does, "go to pane"); ok && m.attaches {
			does = "attach to pane" + rest
		}
		return ui.Clip("enter: "+ui.Escape(does), m.w)
	}
	return ""
}

// willDo says what choosing a line does.
func (d *Data) willDo(r row) string {
	c, s := d.chosen(r), &d.Sessions[r.session]
	switch c.Act {
	case Jump:
		if p := d.pane(r); p != nil && p.Verdict == "pending" {
			return "go to pane " + c.Pane.Terminal + ", which waits: Enter there tries again"
		}
		return "go to pane " + c.Pane.Terminal
	case RestoreSession:
		return "restore session " + s.Name
	case RestorePane:
		return "restore session " + s.Name + " with this agent; others in it wait for Enter"
	case Resume:
		return "resume it in a new window of session " + s.Name
	}
	return "nothing"
}

func (m *model) keys() string {
	switch {
	case m.confirm != nil:
		return "y yes · n no"
	case m.filtering:
		return "type to filter · enter keeps it · esc shows everything"
	case m.screen == theHistory:
		return "enter look at it · esc back"
	case m.screen == theAgents:
		return "enter launch · esc back"
	case m.screen == theHelp:
		return "any key back"
	case m.w < 44:
		return "enter · s · a · o · n · / · ? help"
	case m.w < 72:
		return "enter · s session · a all · / · ? help · q"
	}
	return "enter do · s session · a all · o older · n new · / filter · ? help · q quit"
}

// window cuts n lines out of a list, and marks the chosen one.
func (m *model) window(n, at, top, height int, line func(i int) (text, look string)) []string {
	out := make([]string, 0, height)
	for i := top; i < n && len(out) < height; i++ {
		text, look := line(i)
		mark := "  "
		if i == at {
			mark, look = "> ", reverse
		}
		text = ui.Clip(mark+text, m.w)
		if i == at {
			text += strings.Repeat(" ", max(m.w-ui.Width(text), 0))
		}
		out = append(out, m.dress(look, text))
	}
	return fill(out, height)
}

func (m *model) listLines() []string {
	height := m.listHeight()
	if m.data == nil {
		return fill([]string{"  reading what runs and what was saved…"}, height)
	}
	if len(m.rows) == 0 {
		text := "  there is nothing: no session runs, and nothing is saved"
		if m.filter != "" {
			text = "  nothing matches"
		}
		return fill([]string{text}, height)
	}
	cols := m.columns()
	return m.window(len(m.rows), m.at, m.top, height, func(i int) (string, string) { return m.line(m.rows[i], cols) })
}

// columns are as wide as what is in them, within bounds.
func (m *model) columns() [3]int {
	var c [3]int
	for _, r := range m.rows {
		if p := m.data.pane(r); p != nil {
			for i, s := range m.cells(r, p) {
				c[i] = max(c[i], ui.Width(s))
			}
		}
	}
	for i, most := range []int{8, max(m.w/5, 11), max(m.w/4, 16)} {
		c[i] = min(c[i], most)
	}
	return c
}

func (m *model) cells(r row, p *Pane) [3]string {
	return [3]string{
		fmt.Sprintf("%d.%d", m.data.Sessions[r.session].Windows[r.window].Index, p.Index),
		ui.Escape(p.what()), ui.Escape(p.word()),
	}
}

func (m *model) line(r row, cols [3]int) (text, look string) {
	s := &m.data.Sessions[r.session]
	p := m.data.pane(r)
	if p == nil {
		n := 0
		for _, w := range s.Windows {
			n += len(w.Panes)
		}
		mark := "▾ "
		if m.folded[s.Name] && m.filter == "" {
			mark = "▸ "
		}
		return mark + ui.Escape(s.Name) + "  " + s.word() + ", " + plural(n, "pane"), bold
	}
	var b strings.Builder
	b.WriteString("  ")
	for i, cell := range m.cells(r, p) {
		cell = ui.Clip(cell, cols[i])
		b.WriteString(cell + strings.Repeat(" ", cols[i]-ui.Width(cell)+2))
	}
	room := m.w - 2 - ui.Width(b.String())
	rest := ui.Escape(m.short(p.Dir))
	if name := s.Windows[r.window].Name; name != "" && room > 40 {
		rest = ui.Clip(ui.Escape(name), 16) + "  " + rest
	}
	if room > 3 {
		b.WriteString(ui.ClipLeft(rest, room))
	}
	return strings.TrimRight(b.String(), " "), m.tone(p)
}

func (m *model) tone(p *Pane) string {
	switch w := p.word(); {
	case strings.Contains(w, "waiting"):
		return yellow
	case p.Terminal != "" && strings.HasPrefix(w, "running"), p.Terminal == "" && len(p.Would) > 0:
		return green
	case p.Agent == "":
		return dim
	case p.Terminal == "" && p.Verdict != "ended" && p.Verdict != "shell":
		return red
	}
	return plain
}

// previewLines says of the chosen line what is known, and what would happen.
func (m *model) previewLines(n int) []string {
	if m.data == nil || m.at >= len(m.rows) {
		return nil
	}
	r := m.rows[m.at]
	s := &m.data.Sessions[r.session]
	var out []string
	say := func(name, text string) {
		if text == "" {
			return
		}
		text = ui.Escape(m.shorten(text))
		for i, line := range ui.Wrap(text, max(m.w-12, 20)) {
			if i > 0 {
				name = ""
			}
			out = append(out, m.dress(dim, fmt.Sprintf("%-11s", name))+ui.Clip(" "+line, m.w-11))
		}
	}
	p := m.data.pane(r)
	if p == nil {
		say("session", s.Name)
		if say("", s.Reason); s.There {
			say("", "it is here, and a restore leaves it as it is")
		}
		count := map[string]int{}
		var words []string
		for _, w := range s.Windows {
			for i := range w.Panes {
				word := w.Panes[i].word()
				if count[word]++; count[word] == 1 {
					words = append(words, word)
				}
			}
		}
		for i, w := range words {
			words[i] = fmt.Sprintf("%d %s", count[w], w)
		}
		say("panes", strings.Join(words, ", "))
		return out
	}
	verdict := p.word()
	if p.Terminal != "" && p.Verdict != "" && p.Verdict != "already-live" && p.Verdict != verdict {
		verdict += "; " + p.Verdict
	}
	if p.Reason != "" {
		verdict += ": " + p.Reason
	}
	say("verdict", verdict)
	say("hint", p.Hint)
	say("would run", strings.Join(p.Would, " "))
	id := p.ID
	if id != "" && p.Age != "" {
		id += ", " + p.Age
	}
	say("talk", id)
	say("before it", strings.Join(p.Previous, ", "))
	say("directory", m.short(p.Dir))
	if p.Terminal == "" {
		say("title", p.Title)
	}
	if p.Agent == "" && p.Terminal == "" {
		say("ran", p.Command)
	}
	if words := strings.TrimRight(m.words[p.Terminal], "\n "); p.Terminal != "" && words != "" {
		last := strings.Split(words, "\n")
		room := max(n-len(out), 0)
		for _, line := range last[max(len(last)-room, 0):] {
			out = append(out, m.dress(dim, "│ ")+ui.Clip(ui.Escape(line), m.w-2))
		}
	}
	return out
}

func (m *model) historyLines() []string {
	height := m.listHeight()
	if len(m.history) == 0 {
		text := "  reading…"
		if m.allHistory {
			text = "  nothing was saved yet"
		}
		return fill([]string{text}, height)
	}
	return m.window(len(m.history), m.hat, m.htop, height, func(i int) (string, string) {
		g := m.history[i]
		text := fmt.Sprintf("%5d  %-16s %-12s %s", g.Number, g.Saved, g.State, everythingSaved(g))
		if g.Name != "" {
			text += "  named " + g.Name
		}
		if g.Reason != "" {
			text += "  " + g.Reason
		}
		look := plain
		if g.State != "good" {
			look = dim
		}
		return ui.Escape(text), look
	})
}

func everythingSaved(g Generation) string {
	return plural(g.Sessions, "session") + ", " + plural(g.Conversations, "conversation")
}

func (m *model) agentLines() []string {
	height := m.listHeight()
	if len(m.agents) == 0 {
		return fill([]string{"  reading…"}, height)
	}
	top := max(m.aat-height+1, 0)
	return m.window(len(m.agents), m.aat, top, height, func(i int) (string, string) {
		a := m.agents[i]
		text, look := fmt.Sprintf("%-14s %s", a.ID, a.Name), plain
		if a.Note != "" {
			text, look = text+"  ("+a.Note+")", dim
		}
		return ui.Escape(text), look
	})
}

var help = []string{
	"enter     what the line above the keys says: go to a pane that is here,",
	"          restore an agent or a session, resume in a new window",
	"s         restore the session of this line",
	"a         restore everything; it asks first",
	"o         older generations: look at one, then restore from it",
	"n         launch a new agent, in this line's session and directory",
	"/         filter by words; esc shows everything again",
	"p         show or hide the preview",
	"w         the next agent that waits for you, or is done",
	"r         read everything again; what changes is read by itself",
	"j k       down and up, as the arrows; also page up and down, g and G",
	"tab       the next session; shift-tab the one before",
	"h l       fold and unfold a session, as left and right",
	"mouse     the wheel moves, a click chooses, a second one does it",
	"q esc     leave, and change nothing",
}

func (m *model) helpLines() []string {
	height := m.listHeight()
	var out []string
	for _, h := range help {
		out = append(out, ui.Clip("  "+h, m.w))
	}
	return fill(out, height)
}
