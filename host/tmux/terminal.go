package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

type metaKey = metadata.Key

// inToken says which values stand in the birth token.
func inToken(k metaKey) bool { return k == metadata.KeyAgentSession || k == metadata.KeyAgentLaunch }

// lastRaw is a pane as it was seen last: what a swap compares with, without a look of its own.
type lastRaw struct {
	command string
	options [len(options)]string
	pid     int
}

func (h *Host) remember(rows []row) {
	if len(rows) == 0 {
		return
	}
	life := strconv.Itoa(rows[0].pid) + "." + rows[0].start
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life != life || len(h.panes) > 4096 {
		h.life = life
		clear(h.panes)
	}
	for i := range rows {
		r := &rows[i]
		h.panes[r.paneID] = lastRaw{command: r.startCommand(), options: r.options(), pid: r.panePID}
	}
}

func (h *Host) recall(t host.Terminal) (lastRaw, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life != strconv.Itoa(t.Instance.PID)+"."+t.Instance.Start {
		return lastRaw{}, false
	}
	r, ok := h.panes[t.ID]
	return r, ok
}

func (h *Host) forget(t host.Terminal) {
	h.mu.Lock()
	delete(h.panes, t.ID)
	h.mu.Unlock()
}

// sameLife refuses what can be told to be stale without asking the server.
func (h *Host) sameLife(t host.Terminal) error {
	if boot, err := proc.BootID(); t.Instance.Kind != Kind || err == nil && t.Instance.Boot != boot {
		return host.ErrStale
	}
	if !plain(t.Instance.Start) {
		return host.ErrStale
	}
	return nil
}

// sameServer is a format that is 1 in the server life of the instance.
func sameServer(i host.Instance) string {
	return "#{==:#{pid}.#{start_time}," + strconv.Itoa(i.PID) + "." + i.Start + "}"
}

// guarded runs a list on a terminal, in one command list with the check that it is that of the
// server life that is meant. What stands before the list is set up outside of the check.
func (h *Host) guarded(ctx context.Context, t host.Terminal, l list, before ...string) ([]byte, error) {
	if !validID(t.ID, '%') {
		return nil, host.ErrNoTerminal
	}
	if err := h.sameLife(t); err != nil {
		return nil, err
	}
	m := newMark()
	inner := append(append(list{"display-message -p " + m + "ok"}, l...), "display-message -p "+m+"done")
	var there list
	there.add("if-shell", "-F", "-t", t.ID, "#{==:#{pane_id},"+t.ID+"}", inner.String(), "display-message -p "+m+"gone")
	var outer list
	outer.add("if-shell", "-F", "-t", nowhere(m), sameServer(t.Instance), there.String(), "display-message -p "+m+"stale")
	out, err := h.tool.script(ctx, append(before, outer.String()))
	switch {
	case bytes.Contains(out, []byte(m+"stale")):
		return nil, host.ErrStale
	case bytes.Contains(out, []byte(m+"gone")):
		return nil, host.ErrNoTerminal
	case bytes.Contains(out, []byte(m+"done")):
		// Whatever the client's status is: a hook of the user's may have failed beside us.
	case errors.Is(err, host.ErrNoServer):
		return out, fmt.Errorf("%w: %w", host.ErrStale, err)
	case err != nil:
		return out, err
	default:
		return out, errListing
	}
	_, out, _ = bytes.Cut(out, []byte(m+"ok\n"))
	out, _, _ = bytes.Cut(out, []byte(m+"done\n"))
	return out, nil
}

// Kill ends a terminal.
func (h *Host) Kill(ctx context.Context, t host.Terminal) error {
	var l list
	// 3.4 dies of killing a zoomed window.
	l.add("if-shell", "-F", "-t", t.ID, "#{window_zoomed_flag}", "resize-pane -Z -t "+t.ID)
	l.add("kill-pane", "-t", t.ID)
	_, err := h.guarded(ctx, t, l)
	h.forget(t)
	var e *CommandError
	if errors.As(err, &e) && e.Stderr == "server exited unexpectedly" {
		return nil // it was the last pane
	}
	if err != nil {
		return fmt.Errorf("kill: %s: %w", t.ID, err)
	}
	return nil
}

// ErrHidden is a value that was stored and cannot be read: the server has an option of that
// name. Its text ends with the command that takes it away.
var ErrHidden = errors.New("an option of the server hides the pane's own")

// Swap replaces one metadata value if it is still old; the comparison is the server's.
func (h *Host) Swap(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
	if err := h.swap(ctx, t, k, old, new); err != nil {
		return fmt.Errorf("swap: %s: %w", t.ID, err)
	}
	return nil
}

func (h *Host) swap(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
	if err := host.CheckValue(k, new); err != nil {
		return err
	}
	at := slices.IndexFunc(options[:], func(o struct {
		key  metadata.Key
		name string
	},
	) bool {
		return o.key == k
	})
	if at < 0 {
		_, err := optionOf(k)
		return err
	}
	if !validID(t.ID, '%') {
		return host.ErrNoTerminal
	}
	if err := h.sameLife(t); err != nil {
		return err
	}
	raw, cached := h.recall(t)
	for {
		if !cached {
			var err error
			if raw, err = h.look(ctx, t); err != nil {
				return err
			}
		}
		err := h.swapSeen(ctx, t, at, raw, old, new)
		if !cached || !errors.Is(err, host.ErrConflict) {
			return err
		}
		// What was remembered may be old itself.
		cached = false
	}
}

// look reads one pane.
func (h *Host) look(ctx context.Context, t host.Terminal) (lastRaw, error) {
	rows, err := h.list(ctx, "-t", t.ID)
	if errors.Is(err, host.ErrNoServer) {
		return lastRaw{}, fmt.Errorf("%w: %w", host.ErrStale, err)
	}
	if err != nil {
		// Not there: in this life of the server, or in another?
		if p, perr := h.probe(ctx); perr == nil && p.instance != t.Instance {
			return lastRaw{}, host.ErrStale
		}
		return lastRaw{}, err
	}
	for i := range rows {
		r := &rows[i]
		if instance(r.socket(), r.pid, r.start) != t.Instance {
			return lastRaw{}, host.ErrStale
		}
		if r.paneID == t.ID {
			h.remember(rows)
			return lastRaw{command: r.startCommand(), options: r.options(), pid: r.panePID}, nil
		}
	}
	return lastRaw{}, host.ErrNoTerminal
}

func (h *Host) swapSeen(ctx context.Context, t host.Terminal, at int, raw lastRaw, old, new []byte) error {
	id := judge(t.ID, raw.command, raw.options, h.program(), alive)
	owner := id.nonce
	if id.pid != 0 {
		owner = binding(id.pid, id.start)
	}
	if !bytes.Equal(id.meta[options[at].key], old) {
		return host.ErrConflict
	}
	if owner == "" {
		if len(old) == 0 && len(new) == 0 {
			return nil
		}
		return fmt.Errorf("%w: the terminal holds no values of ours", host.ErrConflict)
	}
	value := encodeOption(owner, t.ID, new)
	m := newMark()
	seen := "@phux-" + m
	name := options[at].name
	cond := "#{==:#{" + name + "},#{" + seen + "}}"
	if id.birth.nonce != "" {
		cond = "#{&&:" + cond + ",#{m:* " + id.birth.nonce + " *,#{pane_start_command}}}"
	}
	var l, yes list
	yes.add("set-option", "-p", "-t", t.ID, name, value)
	// What the server itself was given under this name is shown in place of every pane's own.
	yes.add("if-shell", "-F", "-t", t.ID, "#{==:#{"+name+"},"+value+"}", "display-message -p "+m+"swapped", "display-message -p "+m+"hidden")
	l.add("if-shell", "-F", "-t", t.ID, cond, yes.String(), "display-message -p "+m+"conflict")
	var before list
	before.add("set-option", "-g", seen, raw.options[at])
	var after list
	after.add("set-option", "-gu", seen)
	// The variable goes away in the same list.
	out, err := h.guarded(ctx, t, append(l, after...), before.String())
	switch {
	case err != nil:
		h.forget(t)
		return err
	case bytes.Contains(out, []byte(m+"swapped")):
		h.mu.Lock()
		if r, ok := h.panes[t.ID]; ok {
			r.options[at] = value
			h.panes[t.ID] = r
		}
		h.mu.Unlock()
		return nil
	case bytes.Contains(out, []byte(m+"hidden")):
		h.forget(t)
		return fmt.Errorf("%w: tmux set-option -su %s", ErrHidden, name)
	default:
		h.forget(t)
		return host.ErrConflict
	}
}

// Bind stores values that are bound to a process which we did not start. Values of ours that
// the terminal held are given up.
func (h *Host) Bind(ctx context.Context, t host.Terminal, pid int, start uint64, meta map[metadata.Key][]byte) error {
	if err := h.bind(ctx, t, pid, start, meta); err != nil {
		return fmt.Errorf("bind: %s: %w", t.ID, err)
	}
	return nil
}

func (h *Host) bind(ctx context.Context, t host.Terminal, pid int, start uint64, meta map[metadata.Key][]byte) error {
	if pid <= 0 {
		return fmt.Errorf("%w: process %d", host.ErrRequest, pid)
	}
	for k, v := range meta {
		if _, err := optionOf(k); err != nil {
			return err
		}
		if err := host.CheckValue(k, v); err != nil {
			return err
		}
	}
	var l list
	for _, o := range options {
		if v := meta[o.key]; len(v) > 0 {
			l.add("set-option", "-p", "-t", t.ID, o.name, encodeOption(binding(pid, start), t.ID, v))
		} else {
			l.add("set-option", "-pu", "-t", t.ID, o.name)
		}
	}
	_, err := h.guarded(ctx, t, l)
	h.forget(t)
	return err
}

// LastWords returns the end of the terminal's text, of at most its last 1000 lines, without
// controls and trailing blanks, and without the line that tmux itself writes below a program that
// has ended.
func (h *Host) LastWords(ctx context.Context, t host.Terminal, max int) (string, error) {
	m := newMark()
	var l list
	l.add("capture-pane", "-p", "-t", t.ID, "-S", "-1000")
	l.add("display-message", "-p", "-t", t.ID, m+"#{pane_dead}#{E:remain-on-exit-format}")
	out, err := h.guarded(ctx, t, l)
	if err != nil {
		return "", fmt.Errorf("last words: %s: %w", t.ID, err)
	}
	text, dead, _ := strings.Cut(string(out), m)
	if said, ok := strings.CutPrefix(strings.TrimSpace(dead), "1"); ok {
		text = withoutObituary(text, said)
	}
	return tail(text, max), nil
}

var styles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#\[[^\]]*\]`) })

// withoutObituary cuts the last line where it is what tmux was to write there, or as much of it as
// the pane is wide. 3.2a has fixed words for it.
func withoutObituary(text, said string) string {
	text = strings.TrimRight(text, " \n")
	at := strings.LastIndexByte(text, '\n') + 1
	last := strings.TrimSpace(text[at:])
	said = strings.TrimSpace(styles().ReplaceAllString(said, ""))
	if said == "" {
		said = last
		if !strings.HasPrefix(last, "Pane is dead (") {
			return text
		}
	}
	if last == "" || !strings.HasPrefix(said, last) {
		return text
	}
	return text[:at]
}

func tail(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	s = strings.Trim(strings.Join(lines, "\n"), "\n")
	if max <= 0 {
		return ""
	}
	if len(s) > max {
		s = s[len(s)-max:]
		for s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// Focus selects the terminal's window and pane, and shows the session to the client that was
// used last, if there is one.
func (h *Host) Focus(ctx context.Context, t host.Terminal) error {
	m := newMark()
	var l list
	l.add("select-window", "-t", t.ID)
	l.add("select-pane", "-t", t.ID)
	l.add("list-clients", "-F", m+"<#{client_activity} #{client_control_mode} #{client_name}"+m+">")
	out, err := h.guarded(ctx, t, l)
	if err != nil {
		return fmt.Errorf("focus: %s: %w", t.ID, err)
	}
	var latest int64 = -1
	client := ""
	for _, part := range strings.Split(string(out), m+"<")[1:] {
		part, _, _ = strings.Cut(part, m+">")
		f := strings.SplitN(part, " ", 3)
		if len(f) != 3 || f[1] == "1" {
			continue
		}
		if at, err := strconv.ParseInt(f[0], 10, 64); err == nil && at > latest {
			latest, client = at, f[2]
		}
	}
	if client == "" {
		return nil
	}
	var show list
	show.add("switch-client", "-c", client, "-t", t.ID)
	if _, err := h.guarded(ctx, t, show); err != nil {
		return fmt.Errorf("focus: %s: %w", t.ID, err)
	}
	return nil
}

// labelOption is where a status line finds the label: #{@phux-agent-status} costs no process, and
// tmux does not expand what it holds once more.
const labelOption = "@phux-agent-status"

// Label stores the text where the server's status lines can show it.
func (h *Host) Label(ctx context.Context, text string) error {
	if strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "#") || len(text) > 1024 {
		return fmt.Errorf("label: %w: %q", host.ErrRequest, text)
	}
	if _, err := h.tool.run(ctx, "", "set-option", "-g", labelOption, text); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	return nil
}

// Here is the pane that this process was called from.
type Here struct {
	Terminal  host.Terminal
	SessionID string
	Session   string // name
}

// Caller is the pane that this process runs in, by $TMUX and $TMUX_PANE: on this server, in this
// life of it, and with one of our own ancestors as its process. Otherwise an environment that
// was handed on (by a server started in a pane, by a popup, through nohup) would name a pane
// that we are not in. host.ErrNoTerminal where we are in none.
func (h *Host) Caller(ctx context.Context) (Here, error) {
	here, err := h.caller(ctx)
	if err != nil {
		return Here{}, fmt.Errorf("caller: %w", err)
	}
	return here, nil
}

func (h *Host) caller(ctx context.Context) (Here, error) {
	f := strings.Split(h.opt.Getenv("TMUX"), ",")
	pane := h.opt.Getenv("TMUX_PANE")
	if len(f) != 3 || !validID(pane, '%') {
		return Here{}, host.ErrNoTerminal
	}
	rows, err := h.list(ctx, "-a", "-f", "#{==:#{pane_id},"+pane+"}")
	if err != nil {
		return Here{}, err
	}
	var found *row
	for i := range rows {
		r := &rows[i]
		if r.paneID != pane || strconv.Itoa(r.pid) != f[1] {
			continue
		}
		// A pane may be shown in several sessions; the one that it was born in is preferred.
		if found == nil || r.sessionID == "$"+f[2] {
			found = r
		}
	}
	if found == nil || !ancestor(found.panePID) {
		return Here{}, host.ErrNoTerminal
	}
	return Here{
		Terminal:  host.Terminal{Instance: instance(found.socket(), found.pid, found.start), ID: pane},
		SessionID: found.sessionID, Session: found.sessionName(),
	}, nil
}

// ancestor says whether the process is this one, or one that it descends from.
func ancestor(pid int) bool {
	for at, n := selfPID(), 0; at > 1 && n < 1024; n++ {
		if at == pid {
			return true
		}
		i, err := proc.Stat(at)
		if err != nil {
			// Where it cannot be told, the environment is believed.
			return errors.Is(err, proc.ErrUnsupported)
		}
		at = i.PPID
	}
	return false
}

// Environ is the environment that the server gives to its next pane, but for what tmux sets
// itself (TMUX, TMUX_PANE, TERM, SHELL) and for PATH, which is that of whoever makes the pane.
func (h *Host) Environ(ctx context.Context) ([]string, error) {
	out, err := h.tool.run(ctx, "", "show-environment", "-g", "-s")
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return parseEnviron(string(out)), nil
}

// parseEnviron reads NAME="VALUE"; export NAME; lines, in which '$', '`', '"' and '\' have a
// backslash before them.
func parseEnviron(s string) []string {
	var out []string
	for s != "" {
		name, rest, ok := strings.Cut(s, `="`)
		if !ok {
			break
		}
		// Lines that unset a name stand before it.
		if i := strings.LastIndexByte(name, '\n'); i >= 0 {
			name = name[i+1:]
		}
		var v strings.Builder
		i := 0
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			}
			v.WriteByte(rest[i])
		}
		if i == len(rest) {
			break
		}
		out = append(out, name+"="+v.String())
		_, s, _ = strings.Cut(rest[i:], "\n")
	}
	return out
}
