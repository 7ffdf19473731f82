package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// Options are how a Host finds its server, and starts one.
type Options struct {
	Name    string // of the server; empty is DefaultName
	Socket  string // absolute path; SocketPath says where
	Log     string // absolute path of the log of a server that is started; empty is none
	Version string // of the program, for Info where no server runs
	// Command starts a server in the foreground (server run); it must call Announce.
	Command []string
	Environ []string
	Getenv  func(string) string // of the caller, for Caller
	// Attach is the command that attaches, its %s between single quotes; see host.Info.
	Attach string
}

// Host is a client of one server, by its name. Each call has a connection of its own, so that no
// state is kept, and a terminal's life is told by the server that answers.
type Host struct{ opt Options }

var (
	_ host.Host      = (*Host)(nil)
	_ host.Reader    = (*Host)(nil)
	_ host.Focuser   = (*Host)(nil)
	_ host.Binder    = (*Host)(nil)
	_ host.Environer = (*Host)(nil)
)

// New returns a host; nothing is started by that.
func New(opt Options) (*Host, error) {
	if opt.Name == "" {
		opt.Name = DefaultName
	}
	if err := CheckName(opt.Name); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(opt.Socket) {
		return nil, fmt.Errorf("the socket %q is not an absolute path", opt.Socket)
	}
	if len(opt.Socket) >= maxSocket {
		return nil, &PathError{opt.Socket}
	}
	if opt.Getenv == nil {
		opt.Getenv = func(string) string { return "" }
	}
	return &Host{opt}, nil
}

func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}

// Dial connects to the server, or is host.ErrNoServer.
func (h *Host) Dial(ctx context.Context) (*Client, error) { return Dial(ctx, h.opt.Socket) }

// Start starts a server where none runs, and returns when clients can come.
func (h *Host) Start(ctx context.Context) error {
	return failed("start", begin(ctx, h.opt.Command, h.opt.Environ, h.opt.Log, h.opt.Socket))
}

// with runs f on a connection of its own.
func (h *Host) with(ctx context.Context, op string, f func(*Client) error) error {
	c, err := h.Dial(ctx)
	if err != nil {
		return failed(op, err)
	}
	defer c.Close()
	return failed(op, f(c))
}

// Info probes the server. Whether it stores a record inside the spawn is tried out as ADR-0068
// §6 says: a server on which anybody can write a result's name is an older one.
func (h *Host) Info(ctx context.Context) (host.Info, error) {
	info := host.Info{
		Kind: Kind, Version: h.opt.Version, Server: h.ServerName(), Attach: h.opt.Attach, AtomicRecord: true,
	}
	if info.Version == "" {
		info.Version = "unknown"
	}
	err := h.with(ctx, "info", func(c *Client) error {
		info.Running, info.Instance = true, c.Instance
		if c.Program != "" {
			info.Version = c.Program
		}
		var err error
		info.AtomicRecord, err = c.probe(ctx)
		return err
	})
	if errors.Is(err, host.ErrNoServer) {
		info.Running, info.Instance = false, host.Instance{}
		return info, nil
	}
	return info, err
}

// probe tries to write a name that is reserved. What an older server lets it write is removed.
func (c *Client) probe(ctx context.Context) (current bool, err error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return false, err
	}
	key := createdPrefix + "probe-" + hex.EncodeToString(b[:])
	_, err = c.call(ctx, fields{keyKind: kindSet, metaKey: key, metaValue: []byte("probe")})
	switch {
	case errors.Is(err, ErrReserved):
		return true, nil
	case err != nil:
		return false, err
	}
	_, err = c.call(ctx, fields{keyKind: kindDelete, metaKey: key})
	return false, err
}

// Snapshot returns one consistent view; see host.Host.
func (h *Host) Snapshot(ctx context.Context) (w *host.Workspace, err error) {
	err = h.with(ctx, "snapshot", func(c *Client) (err error) {
		w, err = c.Snapshot(ctx)
		return err
	})
	return w, err
}

// Create makes a session whole, and starts a server where none runs; see host.Host.
func (h *Host) Create(ctx context.Context, s host.CreateSession) (out *host.Created, err error) {
	if err := s.Check(); err != nil {
		return nil, failed("create", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, failed("create", err)
	}
	// A server that ends at this very moment has made nothing, and another can be started.
	for range 3 {
		var begun bool
		err = h.with(ctx, "create", func(c *Client) (err error) {
			begun = true
			out, err = c.Create(ctx, s)
			return err
		})
		var refused *RemoteError
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, host.ErrNoServer), begun && !errors.As(err, &refused):
			return nil, err
		}
		if err := h.Start(ctx); err != nil {
			return nil, failed("create", err)
		}
	}
	return nil, err
}

// Spawn adds one terminal with its record; see host.Host.
func (h *Host) Spawn(ctx context.Context, s host.Spawn) (out *host.Started, err error) {
	if err := s.Check(); err != nil {
		return nil, failed("spawn", err)
	}
	err = h.with(ctx, "spawn", func(c *Client) (err error) {
		out, err = c.Spawn(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Swap replaces one value if it is still old; the comparison is the server's.
func (h *Host) Swap(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
	if err := host.CheckValue(k, new); err != nil {
		return failed("swap", err)
	}
	return h.with(ctx, "swap", func(c *Client) error {
		if err := c.mine(t); err != nil {
			return err
		}
		if t.ID == "" {
			return host.ErrNoTerminal
		}
		_, err := c.call(ctx, fields{keyKind: kindSwap, metaScope: t.ID, metaKey: string(k), metaOld: old, metaValue: new})
		return err
	})
}

// Kill ends a terminal.
func (h *Host) Kill(ctx context.Context, t host.Terminal) error {
	return h.with(ctx, "kill", func(c *Client) error { return c.Kill(ctx, t) })
}

// ServerName is Info.Server, which is known before the server is asked.
func (h *Host) ServerName() string { return Kind + "-" + h.opt.Name }

// Focus brings a terminal to the front of its session.
func (h *Host) Focus(ctx context.Context, t host.Terminal) error {
	return h.with(ctx, "focus", func(c *Client) error { return c.Focus(ctx, t) })
}

// Bind stores values that are bound to a process which we did not start; see host.Binder.
func (h *Host) Bind(ctx context.Context, t host.Terminal, pid int, start uint64, meta map[metadata.Key][]byte) error {
	for k, v := range meta {
		if err := host.CheckValue(k, v); err != nil {
			return failed("bind", err)
		}
	}
	return h.with(ctx, "bind", func(c *Client) error {
		return c.on(ctx, t, kindBind, fields{
			bindPID: pid, bindStart: start, bindRecord: meta[metadata.KeyAgentSession], bindMeta: metaFields(meta),
		})
	})
}

// LastWords returns the end of the terminal's text, without controls and trailing blanks.
func (h *Host) LastWords(ctx context.Context, t host.Terminal, most int) (text string, err error) {
	err = h.with(ctx, "last words", func(c *Client) error {
		s, err := c.Read(ctx, t, 1000)
		text = tail(s.Text, most)
		return err
	})
	return text, err
}

func tail(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Trim(s, "\n")
	if most <= 0 {
		return ""
	}
	if len(s) > most {
		s = s[len(s)-most:]
		for s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// Environ is the environment that the server gives to its next terminal.
func (h *Host) Environ(ctx context.Context) (environ []string, err error) {
	err = h.with(ctx, "environment", func(c *Client) error {
		f, err := c.call(ctx, fields{keyKind: kindEnviron})
		m := reading{fields: f}
		environ = m.words(environValues)
		if err == nil {
			err = m.err
		}
		return err
	})
	return environ, err
}

// Here is the terminal that this process was called from.
type Here struct {
	Terminal host.Terminal
	Session  string // name
}

// Caller is the terminal that this process runs in, by its environment: on this server, and with
// one of our own ancestors as its process. host.ErrNoTerminal where we are in none.
func (h *Host) Caller(ctx context.Context) (Here, error) {
	id := h.opt.Getenv(EnvTerminal)
	if id == "" || h.opt.Getenv(EnvSocket) != h.opt.Socket {
		return Here{}, failed("caller", host.ErrNoTerminal)
	}
	w, err := h.Snapshot(ctx)
	if err != nil {
		return Here{}, err
	}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if p.Terminal.ID == id && ancestor(p.PID) {
					return Here{p.Terminal, s.Name}, nil
				}
			}
		}
	}
	return Here{}, failed("caller", host.ErrNoTerminal)
}

// ancestor says whether the process is this one, or one that it descends from.
func ancestor(pid int) bool {
	self, err := proc.Self()
	if err != nil {
		return errors.Is(err, proc.ErrUnsupported) // where it cannot be told, the environment is believed
	}
	for at, n := self.PID, 0; at > 1 && n < 1024; n++ {
		if at == pid {
			return true
		}
		i, err := proc.Stat(at)
		if err != nil {
			return false
		}
		at = i.PPID
	}
	return false
}
