package tmux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Kind is what this body calls itself.
const Kind = "tmux"

// Options say which server, and who we are.
type Options struct {
	Tmux       string // the binary; empty looks tmux up in PATH, once
	Name       string // as tmux -L
	Path       string // as tmux -S; over Name
	Self       string // absolute path of phux-agent, which panes run as "SELF pane-exec"
	RuntimeDir string // private directory of phux-agent, on a tmpfs where there is one; made 0700
	Getenv     func(string) string
	// ServerOf says what a server with a name is called in Info.Server, where that is not told by its
	// name alone: there may be one of that name below another TMUX_TMPDIR. Nil: the name.
	ServerOf func(name, socket string) string
}

// Host is one tmux server, running or not. Safe for concurrent use.
type Host struct {
	tool   tool
	opt    Options
	socket string // absolute, as far as can be told without the server
	server string // Info.Server

	mu      sync.Mutex
	client  string             // the version of our tmux binary, once asked
	version version            // of the server, as seen last
	panes   map[string]lastRaw // what a pane's values were when seen last, by terminal id
	life    string             // the server life that panes belongs to
}

var (
	_ host.Host      = (*Host)(nil)
	_ host.Reader    = (*Host)(nil)
	_ host.Focuser   = (*Host)(nil)
	_ host.Binder    = (*Host)(nil)
	_ host.Namer     = (*Host)(nil)
	_ host.Environer = (*Host)(nil)
	_ host.Looker    = (*Host)(nil)
	_ host.Labeler   = (*Host)(nil)
)

// New resolves which server is meant, as tmux does: -S, -L, $TMUX, then "default" in
// $TMUX_TMPDIR or /tmp. Nothing is started, and no server need be running.
func New(o Options) (*Host, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Tmux == "" {
		o.Tmux = "tmux"
	}
	binary, err := exec.LookPath(o.Tmux)
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err != nil {
		return nil, fmt.Errorf("find tmux: %w", err)
	}
	if o.Self != "" && !filepath.IsAbs(o.Self) {
		return nil, fmt.Errorf("%w: %q is not an absolute path", host.ErrRequest, o.Self)
	}
	h := &Host{opt: o, panes: make(map[string]lastRaw)}
	h.tool = tool{binary: binary, env: clientEnv(os.Environ(), o.Getenv("TMUX_TMPDIR"))}
	base := filepath.Join(labelDir(o.Getenv("TMUX_TMPDIR")), "tmux-"+strconv.Itoa(uid()))
	switch inside, _, _ := strings.Cut(o.Getenv("TMUX"), ","); {
	case o.Path != "":
		if h.socket, err = filepath.Abs(o.Path); err != nil {
			return nil, err
		}
		h.tool.server = []string{"-S", h.socket}
	case o.Name != "":
		if strings.ContainsAny(o.Name, "/\x00") {
			return nil, fmt.Errorf("%w: %q is not the name of a tmux server", host.ErrRequest, o.Name)
		}
		h.socket = filepath.Join(base, o.Name)
		h.tool.server = []string{"-L", o.Name}
	case filepath.IsAbs(inside):
		h.socket = inside
		h.tool.server = []string{"-S", inside}
	default:
		h.socket = filepath.Join(base, "default")
		h.tool.server = []string{"-L", "default"}
	}
	switch dir, name := filepath.Split(h.socket); {
	case filepath.Base(dir) != filepath.Base(base):
		h.server = PathName(h.socket)
		return h, nil
	case name == "default":
		h.server = "tmux-default"
	default:
		h.server = "tmux-L-" + url.PathEscape(name)
	}
	if o.ServerOf != nil {
		h.server = o.ServerOf(h.server, h.socket)
	}
	return h, nil
}

// PathName is the name of a server that is known by the path of its socket.
func PathName(socket string) string {
	sum := sha256.Sum256([]byte(socket))
	return "tmux-S-" + hex.EncodeToString(sum[:8])
}

// Socket is where the server listens, or would: an absolute path.
func (h *Host) Socket() string { return h.socket }

// labelDir is where tmux keeps the sockets that have names.
func labelDir(tmpdir string) string {
	for _, d := range []string{tmpdir, "/tmp"} {
		if d == "" {
			continue
		}
		if r, err := filepath.EvalSymlinks(d); err == nil {
			if r, err = filepath.Abs(r); err == nil {
				return r
			}
		}
	}
	return "/tmp"
}

// probed is what is asked of a server before anything is made.
type probed struct {
	instance   host.Instance
	version    version
	text       string // the version
	manual     bool   // the global window-size
	unattached bool   // sessions without a client are destroyed
	baseIndex  int
	sessions   map[string]string // id by name
}

// probeFormat asks for global options: its target names nothing, so that no window's own option
// answers instead.
func probeFormat(m string) string {
	return m + "{" + strings.Join([]string{"#{version}", "#{pid}", "#{start_time}", "#{window-size}", "#{destroy-unattached}", "#{base-index}", "#{socket_path}"}, m) + m + "}"
}

func probeWords(m string) []string {
	return []string{"display-message", "-p", "-t", nowhere(m), probeFormat(m)}
}

func nowhere(m string) string { return "=" + m + ":" }

func parseProbe(out []byte, m string) (probed, error) {
	s := string(out)
	_, s, ok := strings.Cut(s, m+"{")
	s, _, end := strings.Cut(s, m+"}")
	f := strings.Split(s, m)
	if !ok || !end || len(f) != 7 {
		return probed{}, errListing
	}
	p := probed{text: f[0], version: parseVersion(f[0]), manual: f[3] == "manual"}
	p.unattached = f[4] != "" && f[4] != "0" && f[4] != "off"
	pid, err := strconv.Atoi(f[1])
	if err != nil || f[2] == "" {
		return probed{}, errListing
	}
	p.baseIndex, _ = strconv.Atoi(f[5])
	p.instance = instance(f[6], pid, f[2])
	return p, nil
}

func instance(socket string, pid int, start string) host.Instance {
	boot, _ := proc.BootID()
	return host.Instance{Kind: Kind, Socket: socket, PID: pid, Start: start, Boot: boot}
}

// probe asks the server who it is and which sessions it holds.
func (h *Host) probe(ctx context.Context) (probed, error) {
	m := newMark()
	out, err := h.tool.run(ctx, "", append(probeWords(m), then, "list-sessions", "-F", m+"<#{session_id} #{session_name}"+m+">")...)
	p, perr := parseProbe(out, m)
	if err != nil && (perr != nil || errors.Is(err, host.ErrNoServer)) {
		return probed{}, err
	}
	if perr != nil {
		return probed{}, perr
	}
	p.sessions = make(map[string]string)
	rest := string(out)
	for {
		_, after, ok := strings.Cut(rest, m+"<")
		row, next, end := strings.Cut(after, m+">")
		if !ok || !end {
			break
		}
		rest = next
		id, name, _ := strings.Cut(row, " ")
		p.sessions[heldName(unescapeDollar(name, p.version))] = id
	}
	h.saw(p.version)
	return p, nil
}

func (h *Host) saw(v version) {
	h.mu.Lock()
	h.version = v
	h.mu.Unlock()
}

func (h *Host) seenVersion() version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// likelyVersion is the server's where it was seen, else the client's.
func (h *Host) likelyVersion() version {
	if v := h.seenVersion(); v.known() {
		return v
	}
	v := parseVersion(h.clientVersion(context.Background()))
	h.saw(v)
	return v
}

// clientVersion asks our own tmux binary, once: where no server runs, every question comes down
// to it.
func (h *Host) clientVersion(ctx context.Context) string {
	h.mu.Lock()
	known := h.client
	h.mu.Unlock()
	if known != "" {
		return known
	}
	out, err := tool{binary: h.tool.binary, env: h.tool.env}.run(ctx, "", "-V")
	if err != nil {
		return ""
	}
	v := strings.TrimPrefix(strings.TrimSpace(string(out)), "tmux ")
	h.mu.Lock()
	h.client = v
	h.mu.Unlock()
	return v
}

// Info probes the server.
func (h *Host) Info(ctx context.Context) (host.Info, error) {
	p, err := h.probe(ctx)
	switch {
	case errors.Is(err, host.ErrNoServer):
		i := host.Info{Kind: Kind, Server: h.server, Attach: h.attach(), Version: h.clientVersion(ctx)}
		i.AtomicRecord = parseVersion(i.Version).supported()
		return i, nil
	case err != nil:
		return host.Info{}, fmt.Errorf("operation %q: %w", "info", err)
	}
	return h.about(p), nil
}

// ServerName is Info.Server.
func (h *Host) ServerName() string { return h.server }

// about is the Info of a server that answered.
func (h *Host) about(p probed) host.Info {
	i := host.Info{
		Kind: Kind, Server: h.server, Attach: h.attach(),
		Running: true, Version: p.text, Instance: p.instance, AtomicRecord: p.version.supported(),
	}
	if !p.version.supported() {
		i.Warnings = append(i.Warnings, "tmux "+p.text+" is older than 3.2a: sessions cannot be made on it")
	}
	if p.manual && p.version.manualKills() {
		i.Warnings = append(i.Warnings, "window-size is manual: any new session or window would kill this server (tmux "+p.text+")")
	}
	if p.unattached {
		i.Warnings = append(i.Warnings, "destroy-unattached is on: sessions that nobody is attached to are destroyed")
	}
	return i
}

func (h *Host) attach() string {
	words := []string{"tmux"}
	if h.server != "tmux-default" || h.tool.server[0] == "-S" {
		words = append(words, h.tool.server...)
	}
	for i, w := range words {
		if !plain(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words[i] = strings.ReplaceAll(words[i], "%", "%%")
	}
	return strings.Join(words, " ") + " attach-session -t '=%s'"
}

// AttachArgv is the program and arguments that show a terminal to a person who is outside of every
// tmux: its session, with its window and itself selected. Another client that looks is left alone.
func (h *Host) AttachArgv(session string, window int, t host.Terminal) []string {
	target := fmt.Sprintf("=%s:%d.%s", session, window, t.ID)
	return slices.Concat([]string{h.tool.binary}, h.tool.server, []string{"attach-session", "-t", target})
}

// older is the refusal of a tmux that cannot do what is asked, or would die of it.
func (p probed) refuse() error {
	if !p.version.supported() {
		return fmt.Errorf("%w: tmux %s, where 3.2a or later is needed", host.ErrOlderHost, p.text)
	}
	if p.manual && p.version.manualKills() {
		return fmt.Errorf("%w: window-size is manual, and tmux %s dies of any new window then", host.ErrDangerous, p.text)
	}
	return nil
}
