package picker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Options of one run.
type Options struct {
	Color      bool   // else no colour is used: bold, dim and reverse remain
	Generation uint64 // to begin with; 0: the newest good one
	Environ    []string
	Home       string // shown as ~
	Attaches   bool   // going to a pane is attaching to it, and said so
}

// Run shows the picker on a terminal until the person has chosen. The terminal is put back on
// every way out; a context that ends is a choice to leave.
func Run(ctx context.Context, src Source, o Options, in, out *os.File) (Choice, error) {
	m := &model{ctx: ctx, src: src, color: o.Color, home: o.Home, attaches: o.Attaches, generation: o.Generation, folded: map[string]bool{}, preview: true, busy: true, beat: beat}
	profile := colorprofile.ANSI
	if !o.Color {
		profile = colorprofile.ASCII
	}
	// Asked of nothing: an answer that comes when we have left would be typed into the shell. With
	// SSH_TTY set and WT_SESSION not, the library sends no query but to terminals that it knows.
	env := slices.DeleteFunc(slices.Clone(o.Environ), func(kv string) bool { return strings.HasPrefix(kv, "WT_SESSION=") })
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(),
		tea.WithEnvironment(append(env, "SSH_TTY=none")), tea.WithColorProfile(profile))
	if _, err := p.Run(); err != nil {
		if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
			return Choice{}, nil
		}
		return Choice{}, fmt.Errorf("pick: %w", err)
	}
	return m.choice, m.err
}

// screen is what is shown.
type screen int

const (
	theList screen = iota
	theHistory
	theAgents
	theHelp
)

type model struct {
	ctx  context.Context
	src  Source
	w, h int

	color      bool
	home       string
	attaches   bool
	generation uint64 // asked for
	busy       bool   // it is being read
	data       *Data
	problem    string // why the last thing that was asked for could not be read

	screen  screen
	preview bool
	folded  map[string]bool
	rows    []row
	at, top int // in rows

	filter    string
	filtering bool

	confirm *Choice // asked about

	history    []Generation
	allHistory bool // nothing is below the last
	loading    bool // more of it is being read
	hat, htop  int

	agents []Agent
	aat    int

	words map[string]string // by terminal; what stands there

	beat  time.Duration
	pulse string // of the data that is shown
	quiet bool   // it is being read, and nobody asked
	stale bool   // what was read so did not come

	choice Choice
	err    error
}

// Messages of what was read.
type (
	gotData struct {
		d          *Data
		err        error
		generation uint64
		pulse      string
		soft       bool
	}
	gotHistory struct {
		list []Generation
		most int
		err  error
	}
	gotAgents struct {
		list []Agent
		err  error
	}
	gotWords struct{ terminal, text string }
	gotPulse struct{ pulse string }
)

// beat is how often it is asked whether what is shown still holds.
const beat = 2 * time.Second

func (m *model) Init() tea.Cmd { return tea.Batch(m.read(m.generation), m.feel()) }

func (m *model) read(generation uint64) tea.Cmd { return m.readAs(generation, false) }

// readAs reads the data; soft: nobody asked for it, and what is shown stays where it cannot be read.
func (m *model) readAs(generation uint64, soft bool) tea.Cmd {
	return func() tea.Msg {
		pulse := m.src.Pulse(m.ctx) // before, so that what changes meanwhile is read again
		d, err := m.src.Data(m.ctx, generation)
		return gotData{d, err, generation, pulse, soft}
	}
}

// feel asks in a while whether what is shown still holds.
func (m *model) feel() tea.Cmd {
	return tea.Tick(m.beat, func(time.Time) tea.Msg { return gotPulse{m.src.Pulse(m.ctx)} })
}

// felt reads anew where something has changed: a server that ended or was started, a save, an agent
// that came to want a person. Of what is looked at, it looks again.
func (m *model) felt(pulse string) tea.Cmd {
	if m.data == nil || m.busy || m.quiet {
		return nil
	}
	if pulse != m.pulse || m.stale {
		m.quiet = true
		return m.readAs(m.generation, true)
	}
	if p := m.current(); p != nil && m.screen == theList {
		return m.lookAgain(p.Terminal)
	}
	return nil
}

func (m *model) readHistory() tea.Cmd {
	if m.loading || m.allHistory {
		return nil
	}
	m.loading = true
	below := uint64(0)
	if n := len(m.history); n > 0 {
		below = m.history[n-1].Number
	}
	most := max(m.listHeight(), 10)
	return func() tea.Msg {
		list, err := m.src.Generations(m.ctx, below, most)
		return gotHistory{list, most, err}
	}
}

// look reads what stands on the terminal of the line that is chosen, once.
func (m *model) look() tea.Cmd {
	p := m.current()
	if p == nil || p.Terminal == "" || !m.preview {
		return nil
	}
	t := p.Terminal
	if _, known := m.words[t]; known {
		return nil
	}
	if m.words == nil {
		m.words = map[string]string{}
	}
	m.words[t] = ""
	return m.lookAgain(t)
}

func (m *model) lookAgain(t string) tea.Cmd {
	if t == "" || !m.preview || m.previewHeight() == 0 {
		return nil
	}
	return func() tea.Msg {
		text, err := m.src.Words(m.ctx, t)
		if err != nil {
			return nil // what stood there is shown on
		}
		return gotWords{t, text}
	}
}

func (m *model) current() *Pane {
	if m.data == nil || m.at >= len(m.rows) {
		return nil
	}
	return m.data.pane(m.rows[m.at])
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.keep()
	case gotData:
		if msg.soft {
			m.quiet = false
		}
		if msg.generation != m.generation || msg.soft && m.busy {
			return m, nil // another one was asked for since
		}
		m.busy = false
		switch {
		case msg.err == nil:
		case msg.soft:
			m.stale = true
			m.problem = "what is shown is no longer certain: " + msg.err.Error()
			return m, nil
		case m.data == nil:
			m.err = msg.err
			return m, tea.Quit
		default:
			m.problem = msg.err.Error()
			return m, nil
		}
		if !msg.soft || m.stale {
			m.problem = ""
		}
		if !msg.soft {
			m.words = nil
		}
		m.pulse, m.stale = msg.pulse, false
		m.take(msg.d)
		return m, m.look()
	case gotPulse:
		return m, tea.Batch(m.felt(msg.pulse), m.feel())
	case gotHistory:
		m.loading = false
		if msg.err != nil {
			m.problem, m.screen = msg.err.Error(), theList
			return m, nil
		}
		m.history = append(m.history, msg.list...)
		m.allHistory = len(msg.list) < msg.most
		if m.hat == 0 && m.data != nil {
			for i, g := range m.history {
				if g.Number == m.data.Generation {
					m.hat = i
				}
			}
		}
		m.keep()
	case gotAgents:
		m.agents, m.aat = msg.list, 0
		if msg.err != nil || len(msg.list) == 0 {
			m.screen, m.problem = theList, "no agent can be launched"
			if msg.err != nil {
				m.problem = msg.err.Error()
			}
		}
	case gotWords:
		if m.words == nil {
			m.words = map[string]string{}
		}
		m.words[msg.terminal] = msg.text
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.filtering {
			m.filter += printable(msg.Content)
			m.lay()
		}
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			return m, m.move(-3)
		case tea.MouseWheelDown:
			return m, m.move(3)
		}
	case tea.MouseClickMsg:
		if msg.Button == tea.MouseLeft {
			return m, m.click(msg.Y)
		}
	}
	return m, nil
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// take shows other data; the chosen line stays the one that it was, where it is still there.
func (m *model) take(d *Data) {
	key, had := "", m.data != nil && m.at < len(m.rows)
	if had {
		key = m.data.key(m.rows[m.at])
	}
	m.data = d
	m.rows = d.rows(m.filter, m.folded)
	if i := slices.IndexFunc(m.rows, func(r row) bool { return d.key(r) == key }); had && i >= 0 {
		m.top += i - m.at // it stays where it stands
		m.at = i
	}
	m.keep()
}

// lay lays the list out anew; the chosen line stays where it can.
func (m *model) lay() {
	var was row
	had := m.at < len(m.rows)
	if had {
		was = m.rows[m.at]
	}
	m.rows = m.data.rows(m.filter, m.folded)
	if i := slices.Index(m.rows, was); had && i >= 0 {
		m.at = i
	}
	m.keep()
}

// keep keeps what is chosen within the list, and in sight.
func (m *model) keep() {
	within := func(at, top *int, n int) {
		*at = max(min(*at, n-1), 0)
		height := max(m.listHeight(), 1)
		*top = max(min(*top, *at), *at-height+1, 0)
		*top = min(*top, max(n-height, 0))
	}
	within(&m.at, &m.top, len(m.rows))
	within(&m.hat, &m.htop, len(m.history))
}

func (m *model) move(n int) tea.Cmd {
	switch m.screen {
	case theHistory:
		m.hat += n
		m.keep()
		if m.hat >= len(m.history)-3 {
			return m.readHistory()
		}
	case theAgents:
		m.aat = max(min(m.aat+n, len(m.agents)-1), 0)
	case theList:
		m.at += n
		m.keep()
		return m.look()
	}
	return nil
}

// click chooses the line under the pointer; what is chosen already is done.
func (m *model) click(y int) tea.Cmd {
	i := y - headHeight
	if m.confirm != nil || i < 0 || i >= m.listHeight() {
		return nil
	}
	at, top, n := &m.at, m.top, len(m.rows)
	switch m.screen {
	case theHistory:
		at, top, n = &m.hat, m.htop, len(m.history)
	case theAgents:
		at, top, n = &m.aat, 0, len(m.agents)
	case theHelp:
		m.screen = theList
		return nil
	}
	if i += top; i >= n {
		return nil
	}
	if *at == i {
		return m.enter()
	}
	*at = i
	m.keep()
	return m.look()
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.screen == theHelp {
		m.screen = theList
		return nil
	}
	if m.confirm != nil {
		c := *m.confirm
		m.confirm = nil
		if name == "y" || name == "enter" {
			return m.done(c)
		}
		return nil
	}
	if m.filtering {
		return m.filterKey(k, name)
	}
	page := max(m.listHeight()-1, 1)
	switch name {
	case "up", "k", "ctrl+p":
		return m.move(-1)
	case "down", "j", "ctrl+n":
		return m.move(1)
	case "pgup", "ctrl+b":
		return m.move(-page)
	case "pgdown", "ctrl+f", "space":
		return m.move(page)
	case "home", "g":
		return m.move(-1 << 30)
	case "end", "G":
		return m.move(1 << 30)
	case "enter":
		return m.enter()
	case "q":
		if m.screen == theList {
			return tea.Quit
		}
		m.screen = theList
	case "esc":
		switch {
		case m.screen != theList:
			m.screen = theList
		case m.filter != "":
			m.filter = ""
			m.lay()
		default:
			return tea.Quit
		}
	case "?":
		m.screen = theHelp
	}
	if m.screen != theList || m.data == nil {
		return nil
	}
	m.problem = ""
	switch name {
	case "/":
		m.filtering = true
	case "tab", "shift+tab":
		return m.nextSession(name == "tab")
	case "left", "h":
		m.fold(true)
	case "right", "l":
		m.fold(false)
	case "p":
		m.preview = !m.preview
		m.keep()
		return m.look()
	case "a":
		if n, _ := m.data.comeBack(); n == 0 {
			m.problem = "there is nothing to restore"
			return nil
		}
		m.confirm = &Choice{Act: RestoreAll, Generation: m.data.Generation}
	case "s":
		if m.at < len(m.rows) {
			s := &m.data.Sessions[m.rows[m.at].session]
			if s.Action != "create" {
				m.problem = s.cannot()
				return nil
			}
			m.confirm = &Choice{Act: RestoreSession, Generation: m.data.Generation, Session: s.Name, As: s.As}
		}
	case "o":
		m.screen, m.history, m.allHistory, m.hat, m.htop = theHistory, nil, false, 0, 0
		return m.readHistory()
	case "n":
		m.screen, m.agents = theAgents, nil
		return func() tea.Msg {
			list, err := m.src.Agents(m.ctx)
			return gotAgents{list, err}
		}
	case "w":
		return m.nextWanting()
	case "r":
		m.busy = true
		return m.read(m.generation)
	}
	return nil
}

func (s *Session) cannot() string {
	if s.There {
		return "session " + s.Name + " is here already"
	}
	if s.Reason != "" {
		return s.Reason
	}
	return "session " + s.Name + " cannot be restored"
}

func (m *model) filterKey(k tea.KeyPressMsg, name string) tea.Cmd {
	switch name {
	case "enter", "down", "up":
		m.filtering = false
	case "esc":
		m.filtering, m.filter = false, ""
	case "backspace", "ctrl+h":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case "ctrl+u":
		m.filter = ""
	default:
		m.filter += printable(k.Text)
	}
	m.lay()
	return m.look()
}

// nextWanting goes to the next agent that waits for a person, or is done; after the last comes the first.
func (m *model) nextWanting() tea.Cmd {
	for i := 1; i <= len(m.rows); i++ {
		at := (m.at + i) % len(m.rows)
		if p := m.data.pane(m.rows[at]); p != nil && p.wants() {
			return m.move(at - m.at)
		}
	}
	m.problem = "no agent waits for you"
	return nil
}

// nextSession goes to the next session's line, or the one before.
func (m *model) nextSession(forward bool) tea.Cmd {
	step := 1
	if !forward {
		step = -1
	}
	for i := m.at + step; i >= 0 && i < len(m.rows); i += step {
		if m.rows[i].head() {
			return m.move(i - m.at)
		}
	}
	return nil
}

func (m *model) fold(shut bool) {
	if m.at >= len(m.rows) {
		return
	}
	s := m.rows[m.at].session
	m.folded[m.data.Sessions[s].Name] = shut
	if shut {
		for i, r := range m.rows {
			if r.session == s && r.head() {
				m.at = i
			}
		}
	}
	m.lay()
}

// enter does what the chosen line says.
func (m *model) enter() tea.Cmd {
	switch m.screen {
	case theHelp:
		m.screen = theList
		return nil
	case theHistory:
		if m.hat >= len(m.history) {
			return nil
		}
		m.generation, m.busy, m.screen = m.history[m.hat].Number, true, theList
		return m.read(m.generation)
	case theAgents:
		if m.aat >= len(m.agents) {
			return nil
		}
		c := Choice{Act: Launch, Agent: m.agents[m.aat].ID}
		c.Session, c.Dir = m.place()
		return m.done(c)
	}
	if m.data == nil || m.at >= len(m.rows) {
		return nil
	}
	c := m.data.chosen(m.rows[m.at])
	if c.Act == Nothing {
		m.problem = "there is nothing to do with this one"
		if p := m.current(); p != nil && p.Reason != "" {
			m.problem = p.Reason
		} else if s := &m.data.Sessions[m.rows[m.at].session]; p == nil {
			m.problem = s.cannot()
		}
		return nil
	}
	return m.done(c)
}

// place is where a new agent goes: into the session of the chosen line, if it is there, and its
// directory.
func (m *model) place() (session, dir string) {
	if m.data == nil || m.at >= len(m.rows) {
		return "", ""
	}
	if s := &m.data.Sessions[m.rows[m.at].session]; s.There {
		session = s.Name
	}
	if p := m.current(); p != nil {
		dir = p.Dir
	}
	return session, dir
}

func (m *model) done(c Choice) tea.Cmd {
	c.Asked = m.data != nil && m.data.Asked
	m.choice = c
	return tea.Quit
}
