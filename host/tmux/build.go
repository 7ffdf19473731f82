package tmux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// made is one pane that is to be, on its way through a transaction.
type made struct {
	spec  host.PaneSpec
	plain bool   // tmux itself starts it, as it starts any shell of the user's
	nonce string // of a pane that is not plain
	dir   string // resolved
	birth birth
	batch int

	// What was found after the build.
	pane  string
	pid   int
	meta  map[metadata.Key][]byte
	came  bool
	fault string
}

// newMade decides how a pane is started. tmux starts a shell of which nothing is asked but its
// directory, so that the user's default-command and respawn-pane work; but not in a directory
// that cannot be entered, for tmux would silently take $HOME.
func newMade(spec host.PaneSpec, sessionDir string) *made {
	m := &made{spec: spec, dir: spec.Start.Dir}
	if m.dir == "" {
		m.dir = sessionDir
	}
	s := spec.Start
	m.plain = s.Mode == host.Shell && len(spec.Meta) == 0 && len(s.Argv) == 0 && len(s.Set) == 0 &&
		len(s.Unset) == 0 && len(s.Guard) == 0 && s.AfterExit == "" && s.Preface == "" && enterable(m.dir)
	if !m.plain {
		m.nonce = newNonce()
		m.spec.Start.Dir = m.dir
	}
	return m
}

func enterable(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && unix.Access(dir, unix.X_OK) == nil
}

// argv are the words that end a command which starts the pane; none for a plain one.
func (m *made) argv(self string) []string {
	if m.plain {
		return nil
	}
	return append([]string{"--", self}, m.birth.args()...)
}

// enroll writes the pane's payload and gives it its place in a batch.
func (m *made) enroll(t *transaction, batch int) error {
	if m.plain {
		return nil
	}
	m.batch = batch
	m.birth = birth{nonce: m.nonce, meta: m.spec.Meta, dir: t.dir}
	return t.put(m.nonce, payload{batch: batch, start: m.spec.Start})
}

// settle adds what makes the pane keep its last words, and what happens after exit 0. target may
// be empty in a list whose current pane is meant.
func (m *made) settle(l *list, target, self string) {
	if m.plain {
		return
	}
	at := func(words ...string) []string {
		if target == "" {
			return words
		}
		return append([]string{words[0], words[1], "-t", target}, words[2:]...)
	}
	if s := m.spec.Start; s.Mode != host.Shell || s.Preface == "" {
		l.add(at("set-option", "-p", "remain-on-exit", "on")...)
	} // else it would be plain: such a shell takes its pane along when it ends
	// The values of birth once more, bound to the nonce: they outlive the start command where
	// somebody puts another program into the pane, and tell what it was. A pane without any is
	// marked by a tombstone.
	for _, o := range options {
		if v, ok := m.spec.Meta[o.key]; ok || o.key == metadata.KeyAgent && len(m.spec.Meta) == 0 {
			l.add(at("set-option", "-pF", o.name, encodeOption(m.nonce, thisPane, v))...)
		}
	}
	var after, hook, again list
	// The pane has the hook for itself, which hides everybody else's: it makes room, runs theirs, and
	// comes back where the pane stays dead.
	hook.add("set-hook", "-pu", "pane-died")
	hook.add("if-shell", "-F", takesAway(), "", "set-hook -R pane-died")
	again.add("set-option", "-pF", "pane-died", "#{"+diedOption+"}")
	// An empty status is a signal's, or not known yet: neither is an exit with 0.
	when := "#{==:#{pane_dead_status},0}"
	switch m.spec.Start.AfterExit {
	case "shell-always":
		when = "1"
		fallthrough
	case "shell":
		b := m.birth
		b.after = true
		// The shell is one like any other, and takes its pane along when it ends: pane-exec lets the
		// pane go once it runs. Where it cannot (the program was moved away), the pane stays.
		after.add("set-option", "-pu", diedOption)
		after.add(append([]string{"respawn-pane", "--", self}, b.args()...)...)
	case "close":
		after.add("kill-pane")
	default:
		return
	}
	hook.add("if-shell", "-F", when, after.String(), again.String())
	l.add(at("set-option", "-p", diedOption, hook.String())...)
	l.add(at("set-option", "-pF", "pane-died", "#{"+diedOption+"}")...)
}

// diedOption of a pane holds what its pane-died runs, so that it can be set again.
const diedOption = "@phux-agent-died"

// takesAway is a format that is not 0 where somebody's own pane-died takes panes away or starts them
// anew: that is not run for a pane whose last words and record are to stay. Up to 3.4, tmux shows a
// hook only element by element.
func takesAway() string {
	text := "#{pane-died}"
	for i := range 16 {
		text += " #{pane-died[" + strconv.Itoa(i) + "]}"
	}
	return "#{m/r:(kill|respawn)-?(p|w|s)," + text + "}"
}

// variables hands text to commands whose arguments are formats: as the value of an option, which
// is not expanded again.
type variables struct {
	name string
	last string
	set  bool
}

// put stores the text and returns the format that stands for it.
func (v *variables) put(l *list, text string) string {
	if !v.set || v.last != text {
		l.add("set-option", "-g", v.name, text)
		v.last, v.set = text, true
	}
	return "#{" + v.name + "}"
}

// show adds a command that gives something a name for people to see. Controls are left out, and
// what this tmux cannot hold for another reason (a character that it does not know) fails alone:
// no session is lost for how a window is called.
func (l *list) show(name string, v *variables, command func(format string) []string) {
	ascii := true
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		ascii = ascii && r < unicode.MaxASCII
		return r
	}, name)
	words := command(v.put(l, name))
	if ascii {
		l.add(words...)
		return
	}
	var alone list
	alone.add(words...)
	l.add("if-shell", "-F", "1", alone.String())
}

// slot is the element of a rarely used hook that carries a list on tmux 3.2, where set-hook -R
// takes no other. It is one for all, so it is used under a lock.
const slot = "alert-silence[9731]"

// fire returns the lines that run a list so that no hook of the user's comes between its
// commands: commands that a hook runs run no hooks.
func fire(id string, l list, v version) []string {
	store, run, forget := firing(id, l, v)
	return slices.Concat(store, []string{run}, forget)
}

// firing are the lines that store a list, run it, and forget it.
func firing(id string, l list, v version) (store []string, run string, forget []string) {
	if !v.firesLists() {
		s := word(slot)
		return []string{"set-hook -g " + s + " " + word(l.String())}, "set-hook -R alert-silence", []string{"set-hook -gu " + s}
	}
	name := "@" + id
	parts := chain(name, l)
	for i, p := range parts {
		store = append(store, "set-option -g "+link(name, i)+" "+word(p.String()))
		forget = append(forget, "set-option -gu "+link(name, i))
	}
	return store, "set-hook -R " + name, forget
}

// maxLink is about how long a list is that tmux is given at once, in bytes: it prints each that it
// reads, for its log, in a time that grows with the square of the length.
const maxLink = 16 << 10

// chain cuts a list into parts of which each runs the next one last. So the whole still is one:
// what follows a command that fails is not run, and nothing else comes in between.
func chain(name string, l list) []list {
	var parts []list
	for start, size, i := 0, 0, 0; i < len(l); i++ {
		size += len(l[i])
		if last := i+1 == len(l); last || size > maxLink {
			p := slices.Clone(l[start : i+1])
			if !last {
				p.add("set-hook", "-R", link(name, len(parts)+1))
			}
			parts = append(parts, p)
			start, size = i+1, 0
		}
	}
	return parts
}

// link is the option that holds one part of a chain; the first has the chain's own name.
func link(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(i)
}

// stands says that a window which goes away again makes the session: to new-session its own
// directory and its first pane's are one and the same, and this first pane is a plain shell that
// needs another.
func stands(c host.CreateSession, windows []builtWindow) bool {
	first := windows[0].panes[0]
	return first.plain && first.dir != c.Dir
}

// buildList makes the whole session under the name id.
func buildList(id, self string, c host.CreateSession, windows []builtWindow, v version) list {
	var l list
	dirs := variables{name: "@" + id + "-d"}
	session := "=" + id + ":"
	at := func(index int) string {
		if index == unnumbered {
			return session
		}
		return session + strconv.Itoa(index)
	}
	size := func(w builtWindow) (int, int) { return workSize(w.spec.Layout, len(w.panes)) }

	first, stand := windows[0].panes[0], stands(c, windows)
	cols, rows := size(windows[0])
	open := []string{"new-session", "-d", "-s", id, "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-n", "x", "-c", dirs.put(&l, c.Dir)}
	if stand {
		open = append(open, "--", self, verb)
	} else {
		open = append(open, first.argv(self)...)
	}
	l.add(open...)
	l.add("set-option", "-F", "-t", session, txOption, sessionValue(id))
	l.add("set-option", "-F", "-t", session, madeOption, sessionValue(id))
	l.add("set-option", "-t", session, "renumber-windows", "off")
	// Else the session would end with the client that makes it. The target is none, so that it is
	// the global option that answers.
	l.add("if-shell", "-F", "-t", nowhere(id+"-x"), "#{m/r:^(1|on|keep-.*)$,#{destroy-unattached}}",
		"set-option -t "+word(session)+" destroy-unattached off")
	// By way of an index that nobody uses: a move onto the same one is an error.
	if windows[0].index != unnumbered {
		l.add("move-window", "-s", session+"{end}", "-t", at(farIndex))
	}
	if !stand && windows[0].index != unnumbered {
		l.add("move-window", "-s", at(farIndex), "-t", at(windows[0].index))
	}
	for i, w := range windows {
		if c, r := size(w); c != cols || r != rows {
			cols, rows = c, r
			l.add("set-option", "-t", session, "default-size", fmt.Sprintf("%dx%d", cols, rows))
		}
		target := at(w.index)
		if i > 0 || stand {
			l.add(append([]string{"new-window", "-d", "-t", target, "-n", "x", "-c", dirs.put(&l, w.panes[0].dir)}, w.panes[0].argv(self)...)...)
		}
		// A layout of one pane gives the window its size: a new one is as large as the client that
		// was used last, whatever session that looks at, and on 3.2 as the one that makes it.
		if leaf, err := layoutString(host.Cell{Cols: cols, Rows: rows}, 1); err == nil {
			l.add("select-layout", "-t", target, leaf)
		}
		for n, p := range w.panes[1:] {
			if n > 2 || n > 0 && rows < 24 {
				l.add("select-layout", "-t", target, "tiled")
			}
			l.add(append([]string{"split-window", "-t", target + ".", "-c", dirs.put(&l, p.dir)}, p.argv(self)...)...)
		}
		if len(w.panes) > 1 {
			l.add("select-layout", "-t", target, w.layout)
		}
	}
	if stand {
		l.add("kill-window", "-t", at(farIndex))
	}
	if a := windows[c.Active].spec.Layout; a.Cols != cols || a.Rows != rows {
		l.add("set-option", "-t", session, "default-size", fmt.Sprintf("%dx%d", a.Cols, a.Rows))
	}
	return l
}

// madeOption stays on a session that we made: the one that takes an uncommitted session away
// knows it by that.
const madeOption = "@phux-agent-made"

// farIndex is above host.MaxIndex.
const farIndex = 999999

// unnumbered is the index of a session's only window that stays where tmux puts it.
const unnumbered = -1

// builtWindow is a window that is to be.
type builtWindow struct {
	spec   host.WindowSpec
	index  int
	layout string
	panes  []*made
	id     string
}

// commitList gives the session, by the ids that were read back, its name and its looks. The name
// comes first, for it is what may fail; a zoom last, for a zoomed window must not be killed.
func commitList(id, session, self string, c host.CreateSession, windows []builtWindow) list {
	var l list
	text := variables{name: "@" + id + "-t"}
	l = append(l, asideList(c.Aside, &text)...)
	l.add("rename-session", "-t", session, "--", text.put(&l, c.Name))
	for _, w := range windows {
		if w.spec.Name != "" {
			l.show(w.spec.Name, &text, func(f string) []string { return []string{"rename-window", "-t", w.id, "--", f} })
		}
		if w.spec.AutomaticName {
			l.add("set-option", "-wu", "-t", w.id, "automatic-rename")
			l.add("if-shell", "-F", "-t", w.id, "#{automatic-rename}", "", "set-option -w -t "+w.id+" automatic-rename on")
		}
		for _, p := range w.panes {
			p.settle(&l, p.pane, self)
			if p.spec.Title != "" {
				l.show(p.spec.Title, &text, func(f string) []string { return []string{"select-pane", "-t", p.pane, "-T", f} })
			}
		}
		if len(w.panes) > 1 {
			// Once more: what a hook did to the window since was not asked for.
			l.add("select-layout", "-t", w.id, w.layout)
			l.add("select-pane", "-t", w.panes[w.spec.Active].pane)
		}
	}
	l.add("select-window", "-t", session+":"+windows[c.Active].id)
	l.add("set-option", "-u", "-t", session+":", "renumber-windows")
	l.add("set-option", "-u", "-t", session+":", txOption)
	for _, w := range windows {
		if w.spec.Zoomed && len(w.panes) > 1 {
			l.add("resize-pane", "-Z", "-t", w.panes[w.spec.Active].pane)
		}
	}
	return l
}
