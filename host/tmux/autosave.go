package tmux

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

var _ host.Autosaver = (*Host)(nil)

// Autosave lives in the server's own hooks and timers. A hook that fires looks at the clock, and
// where nothing is due yet it arms one delayed run-shell: whatever else happens until that runs
// costs one if-shell -F an event. The heartbeat is a delayed run-shell that our call arms anew.
// No process of ours waits.
//
// A delayed run-shell runs a shell command and never a tmux one (-C): that one is appended to the
// queue of the client that was attached when it was armed, and is never run where that client has
// left by then (seen on 3.2a, 3.3a and 3.7c).

// watched are the hooks that tell what a save would write otherwise: window-linked comes with new
// windows and sessions, window-unlinked with those that go, window-layout-changed with splits,
// panes that are gone, zooms and sizes, pane-died with panes that are held.
var watched = [...]string{"window-linked", "window-unlinked", "window-layout-changed", "window-renamed", "session-renamed", "pane-died"}

// autosaveSlot is far from the elements that people use, which count from 0.
const autosaveSlot = "[9731]"

// The server options of autosave. They are the server's, for what it has under a name is shown in
// place of everything that sessions, windows and panes have.
const (
	autoToken = "@phux-auto"       // of the setting, or autoOff
	autoRun   = "@phux-auto-run"   // the words of the call, quoted for a shell
	autoSince = "@phux-auto-since" // when the last call was armed
	autoBeat  = "@phux-auto-beat"  // when the last heartbeat was armed
	autoEvery = "@phux-auto-every" // seconds between two heartbeats
	autoAgain = "@phux-auto-again" // when the last call was armed that looks once more
	autoNow   = "@phux-auto-now"   // strftime's %s
	autoOff   = "off"
)

// within is a format that is 1 from the moment that an option holds until so many seconds after it.
// A clock that was set back is not believed.
func within(option string, d time.Duration) string {
	now := "#{T:" + autoNow + "}"
	then := "#{" + option + "}"
	return "#{&&:#{e|<=:" + then + "," + now + "},#{e|<:" + now + ",#{e|+:" + then + "," + seconds(d) + "}}}"
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(max(int64(d/time.Second), 1), 10)
}

// maxSeconds is more than any time between heartbeats.
const maxSeconds = 1 << 30

// late is how much later than planned a heartbeat may come before it is taken for lost.
const late = time.Minute

// call arms one call of ours. /bin/sh, for run-shell once took the user's own; no output and no
// status, for tmux would show either to the user.
func call(l *list, token, why string, delay time.Duration) {
	l.add("run-shell", "-b", "-d", seconds(delay), `/bin/sh -c '"$0" "$@" >/dev/null 2>&1; exit 0' #{`+autoRun+"} "+token+" "+why)
}

func armBeat(l *list, token string, a host.Autosave) {
	l.add("set-option", "-sF", autoBeat, "#{T:"+autoNow+"}")
	call(l, token, host.BeatTick, a.Heartbeat)
}

// event is what a hook runs.
func event(token string, a host.Autosave) (all, renamed string) {
	var beat, arm, l, r list
	armBeat(&beat, token, a)
	arm.add("set-option", "-sF", autoSince, "#{T:"+autoNow+"}")
	// A heartbeat whose call never came (its program was away) begins again.
	arm.add("if-shell", "-F", within(autoBeat, a.Heartbeat+late), "", beat.String())
	call(&arm, token, host.ChangeTick, a.Debounce)
	l.add("if-shell", "-F", within(autoSince, a.Debounce), "", arm.String())
	// A window that names itself is renamed with every command that somebody types.
	r.add("if-shell", "-F", "#{||:#{automatic-rename},"+within(autoSince, a.Debounce)+"}", "", arm.String())
	return l.String(), r.String()
}

// settings are the lines that make the whole of it. A heartbeat is armed where none was within half
// of its time: a machine that slept has one that is late and one that a change began anew, and only
// one of them goes on.
func settings(token string, a host.Autosave) []string {
	var l, beat list
	words := make([]string, len(a.Command))
	for i, w := range a.Command {
		words[i] = shellWord(w)
	}
	all, renamed := event(token, a)
	l.add("set-option", "-s", autoNow, "%s")
	l.add("set-option", "-s", autoRun, strings.Join(words, " "))
	for _, h := range watched {
		text := all
		if h == "window-renamed" {
			text = renamed
		}
		l.add("set-hook", "-g", h+autosaveSlot, text)
	}
	l.add("set-option", "-s", autoToken, token)
	l.add("set-option", "-s", autoEvery, seconds(a.Heartbeat))
	armBeat(&beat, token, a)
	l.add("if-shell", "-F", within(autoBeat, a.Heartbeat/2), "", beat.String())
	return []string{l.String()}
}

// shellWord quotes for a POSIX shell, and in a way that the shells of others read likewise.
func shellWord(s string) string {
	if plain(s) && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func checkAutosave(a host.Autosave) error {
	if len(a.Command) == 0 || !filepath.IsAbs(a.Command[0]) {
		return fmt.Errorf("%w: a program that is not an absolute path", host.ErrRequest)
	}
	for _, w := range a.Command {
		if strings.ContainsAny(w, "\n\x00") {
			return fmt.Errorf("%w: a line break in %q", host.ErrRequest, w)
		}
	}
	if a.Debounce < time.Second || a.Heartbeat < time.Second {
		return fmt.Errorf("%w: an autosave every %s, %s after a change", host.ErrRequest, a.Heartbeat, a.Debounce)
	}
	return nil
}

// SetAutosave turns autosave on, or sets it anew; see host.Autosaver.
func (h *Host) SetAutosave(ctx context.Context, a host.Autosave) error {
	if err := h.setAutosave(ctx, a); err != nil {
		return fmt.Errorf("turn autosave on: %w", err)
	}
	return nil
}

func (h *Host) setAutosave(ctx context.Context, a host.Autosave) error {
	if err := checkAutosave(a); err != nil {
		return err
	}
	_, taken, err := h.autosave(ctx)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		return &host.TakenError{What: taken}
	}
	token := newNonce()
	anew := list{}
	anew.add("set-option", "-su", autoBeat) // that was another setting's
	if _, err := h.tool.script(ctx, append([]string{anew.String()}, settings(token, a)...)); err != nil {
		return err
	}
	s, _, err := h.autosave(ctx)
	if err == nil && (s.Token != token || s.Present != s.Wanted) {
		err = fmt.Errorf("%w: %d of %d hooks are there", errListing, s.Present, s.Wanted)
	}
	return err
}

// StopAutosave takes it away; see host.Autosaver.
func (h *Host) StopAutosave(ctx context.Context) error {
	_, taken, err := h.autosave(ctx)
	if err != nil {
		return fmt.Errorf("turn autosave off: %w", err)
	}
	var l list
	for _, hook := range watched {
		name := hook + autosaveSlot
		if !contains(taken, name) {
			l.add("set-hook", "-gu", name)
		}
	}
	l = append(l, forgetOptions()...)
	l.add("set-option", "-s", autoToken, autoOff)
	if _, err := h.tool.script(ctx, []string{l.String()}); err != nil {
		return fmt.Errorf("turn autosave off: %w", err)
	}
	return nil
}

func forgetOptions() (l list) {
	for _, o := range []string{autoRun, autoSince, autoBeat, autoEvery, autoAgain, autoNow, autoToken} {
		l.add("set-option", "-su", o)
	}
	return l
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// AutosaveState says what is there; see host.Autosaver.
func (h *Host) AutosaveState(ctx context.Context) (host.AutosaveState, error) {
	s, taken, err := h.autosave(ctx)
	if err != nil {
		return s, fmt.Errorf("look at autosave: %w", err)
	}
	s.Taken = taken
	return s, nil
}

// autosave reads options and hooks in one run. taken are our elements that hold what is not ours.
func (h *Host) autosave(ctx context.Context) (s host.AutosaveState, taken []string, err error) {
	m := newMark()
	words := []string{"display-message", "-p", "-t", nowhere(m), m + "{#{" + autoToken + "}" + m + "#{" + autoRun + "}" + m + "#{" + autoBeat + "}" + m + "#{" + autoSince + "}" + m + "#{" + autoEvery + "}" + m + "}"}
	for _, hook := range watched {
		words = append(words, then, "show-hooks", "-g", hook)
	}
	out, err := h.tool.run(ctx, "", words...)
	_, rest, found := strings.Cut(string(out), m+"{")
	head, hooks, ends := strings.Cut(rest, m+"}")
	f := strings.Split(head, m)
	if !found || !ends || len(f) != 5 {
		if err == nil {
			err = errListing
		}
		return s, nil, err
	}
	s.Wanted = len(watched)
	switch f[0] {
	case "":
	case autoOff:
		s.Setting = host.SettingOff
	default:
		s.Setting, s.Token = host.SettingOn, f[0]
		s.Program = firstWord(f[1])
	}
	for i, text := range f[2:] {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n <= 0:
		case i == 0:
			s.Beat = time.Unix(n, 0)
		case i == 1:
			s.Armed = time.Unix(n, 0)
		default:
			s.Every = time.Duration(min(n, maxSeconds)) * time.Second
		}
	}
	for line := range strings.Lines(hooks) {
		name, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		hook, ours := strings.CutSuffix(name, autosaveSlot)
		switch {
		case !ours || !contains(watched[:], hook):
		case !strings.Contains(text, autoSince):
			taken = append(taken, name)
		case s.Token != "" && strings.Contains(text, s.Token):
			s.Present++
		}
	}
	return s, taken, nil
}

// firstWord undoes shellWord for the first of some words.
func firstWord(s string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
			b.WriteByte(c)
		case c == ' ':
			return b.String()
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Tick is what a call asks first; see host.Autosaver.
func (h *Host) Tick(ctx context.Context, token string, a *host.Autosave) (bool, error) {
	if !validNonce(token) {
		return false, nil
	}
	s, taken, err := h.autosave(ctx)
	if err != nil {
		return false, fmt.Errorf("ask for autosave: %w", err)
	}
	if s.Token != token {
		return false, nil
	}
	if a == nil || len(taken) > 0 || checkAutosave(*a) != nil {
		return true, nil
	}
	// In one list with the check: it may be turned off at this moment.
	var l list
	l.add("if-shell", "-F", "-t", nowhere(token), "#{==:#{"+autoToken+"},"+token+"}", settings(token, *a)[0])
	if _, err := h.tool.script(ctx, []string{l.String()}); err != nil {
		return true, fmt.Errorf("arm the next autosave: %w", err)
	}
	return true, nil
}

// Again is host.Autosaver.
func (h *Host) Again(ctx context.Context, token string, after time.Duration) error {
	if !validNonce(token) {
		return fmt.Errorf("arm another autosave: %w: token %q", host.ErrRequest, token)
	}
	var l, arm list
	arm.add("set-option", "-sF", autoAgain, "#{T:"+autoNow+"}")
	call(&arm, token, host.ChangeTick, after)
	due := "#{&&:#{==:#{" + autoToken + "}," + token + "},#{?" + within(autoAgain, after) + ",0,1}}"
	l.add("if-shell", "-F", "-t", nowhere(token), due, arm.String())
	if _, err := h.tool.script(ctx, []string{l.String()}); err != nil {
		return fmt.Errorf("arm another autosave: %w", err)
	}
	return nil
}
