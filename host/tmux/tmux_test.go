package tmux

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
)

func TestWhichServer(t *testing.T) {
	tmp := t.TempDir()
	if r, err := filepath.EvalSymlinks(tmp); err == nil {
		tmp = r
	}
	dir := filepath.Join(tmp, "tmux-"+strconv.Itoa(os.Getuid()))
	for name, c := range map[string]struct {
		opt            Options
		env            map[string]string
		socket, server string
		attach         string
	}{
		"default":     {env: map[string]string{"TMUX_TMPDIR": tmp}, socket: dir + "/default", server: "tmux-default", attach: "tmux attach-session -t '=%s'"},
		"-L":          {opt: Options{Name: "work"}, env: map[string]string{"TMUX_TMPDIR": tmp}, socket: dir + "/work", server: "tmux-L-work", attach: "tmux -L work attach-session -t '=%s'"},
		"-L odd":      {opt: Options{Name: "a b%"}, env: map[string]string{"TMUX_TMPDIR": tmp}, socket: dir + "/a b%", server: "tmux-L-a%20b%25", attach: "tmux -L 'a b%%' attach-session -t '=%s'"},
		"-S":          {opt: Options{Path: "/x/y"}, socket: "/x/y", server: "tmux-S-", attach: "tmux -S /x/y attach-session -t '=%s'"},
		"-S over -L":  {opt: Options{Path: "/x/y", Name: "work"}, socket: "/x/y", server: "tmux-S-"},
		"inside":      {env: map[string]string{"TMUX": dir + "/work,12,3", "TMUX_TMPDIR": tmp}, socket: dir + "/work", server: "tmux-L-work"},
		"inside -L":   {opt: Options{Name: "other"}, env: map[string]string{"TMUX": dir + "/work,12,3", "TMUX_TMPDIR": tmp}, socket: dir + "/other", server: "tmux-L-other"},
		"no such tmp": {env: map[string]string{"TMUX_TMPDIR": tmp + "/absent"}, socket: "/tmp/tmux-" + strconv.Itoa(os.Getuid()) + "/default", server: "tmux-default"},
		"no TMUX":     {env: map[string]string{"TMUX": "relative,1,2", "TMUX_TMPDIR": tmp}, socket: dir + "/default", server: "tmux-default"},
	} {
		c.opt.Tmux = testTmux(t)
		c.opt.Getenv = func(k string) string { return c.env[k] }
		h, err := New(c.opt)
		if err != nil {
			t.Fatal(name, err)
		}
		if h.socket != c.socket || h.server[:min(len(h.server), len(c.server))] != c.server || c.attach != "" && h.attach() != c.attach {
			t.Errorf("%s: %s, %s, %s", name, h.socket, h.server, h.attach())
		}
	}
	for _, o := range []Options{{Name: "a/b"}, {Self: "relative"}, {Tmux: tmp + "/absent"}} {
		if o.Tmux == "" {
			o.Tmux = testTmux(t)
		}
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestVersion(t *testing.T) {
	for s, want := range map[string]version{
		"3.3a": {3, 3, 'a'}, "tmux 3.2a\n": {3, 2, 'a'}, "next-3.8": {3, 8, 0}, "3.5-rc2": {3, 5, 0}, "2.9": {2, 9, 0}, "3.10": {3, 10, 0},
		"openbsd-7.5": {3, 99, 0}, "master": {3, 99, 0}, "": {3, 99, 0},
	} {
		if got := parseVersion(s); got != want {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

func TestSessionNames(t *testing.T) {
	old, late := parseVersion("3.6b"), parseVersion("3.7c")
	for name, want := range map[string][2]string{
		"plain": {"plain", "plain"}, "a.b:c": {"a_b_c", "a.b:c"}, "": {"_", "_"}, "a\tb\n": {"a_b_", "a_b_"}, "a\xffb": {"a_b", "a_b"},
		`a\b$HOME`: {`a\b$HOME`, `a\b$HOME`}, " x ": {" x ", " x "}, "ünï漢": {"ünï漢", "ünï漢"}, "\u0085": {"_", "_"},
	} {
		if got := [2]string{sessionName(name, old), sessionName(name, late)}; got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
	for s, want := range map[string]string{`a\\b`: `a\b`, `\$x`: `$x`, `\\$x`: `\$x`, `a\tb`: `a\tb`, `\`: `\`, `\\`: `\`, "x": "x"} {
		if got := heldName(s); got != want {
			t.Errorf("%q is %q, not %q", s, got, want)
		}
	}
	s := newStage(t)
	s.start()
	var name *NameError
	bad := victim("shells", s.dir)
	bad.Name = "a.b"
	_, err := s.host.Create(t.Context(), bad)
	if s.version().freeNames() {
		if err != nil {
			t.Error(err)
		}
	} else if !errors.As(err, &name) || !errors.Is(err, host.ErrName) || name.Nearest != "a_b" || s.host.SessionName("a.b") != "a_b" {
		t.Error(err)
	}
}

func TestUnescape(t *testing.T) {
	m := testMark
	for s, want := range map[string]string{
		`a\033b`: "a\x1bb", `\377`: "\xff", m + "b033": `\033`, m + "d" + "HOME": "$HOME", `\r\n`: "\r\n", m + "b" + m + "b": `\\`, `x\`: `x\`,
	} {
		if got := unescapeOutput(s, m); got != want {
			t.Errorf("%q is %q, not %q", s, got, want)
		}
	}
}

func TestErrorsOfTmux(t *testing.T) {
	for s, want := range map[string]error{
		"no server running on /tmp/x":                               host.ErrNoServer,
		"error connecting to /tmp/x (No such file or directory)":    host.ErrNoServer,
		"error connecting to /tmp/x (Connection refused)":           host.ErrNoServer,
		"server exited unexpectedly":                                host.ErrNoServer,
		"lost server":                                               host.ErrNoServer,
		"duplicate session: x":                                      host.ErrSessionExists,
		"no space for new pane":                                     host.ErrNoSpace,
		"create pane failed: pane too small":                        host.ErrNoSpace,
		"size or position no space for a new pane":                  host.ErrNoSpace,
		"can't find pane: %9":                                       host.ErrNoTerminal,
		"can't find session: x":                                     host.ErrNoSession,
		"error connecting to /tmp/x (Permission denied)":            nil,
		"words\nduplicate session: y":                               host.ErrSessionExists,
		"error creating /tmp/x/default (No such file or directory)": nil,
	} {
		err := commandError(1, s)
		for _, e := range []error{host.ErrNoServer, host.ErrSessionExists, host.ErrNoSpace, host.ErrNoTerminal, host.ErrNoSession} {
			if errors.Is(err, e) != (e == want) {
				t.Errorf("%q: %v", s, err)
			}
		}
	}
}

// TestSocketWithoutPermission: that is no missing server.
func TestSocketWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may enter everything")
	}
	s := newStage(t)
	s.start()
	if err := os.Chmod(s.socket, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.host.Snapshot(t.Context()); err == nil || errors.Is(err, host.ErrNoServer) {
		t.Error(err)
	}
}

// TestOlderTmux is refused before anything is made.
func TestOlderTmux(t *testing.T) {
	s := newStage(t)
	fake := filepath.Join(s.dir, "tmux")
	script := "#!/bin/sh\ncase \"$*\" in *-V) echo 'tmux 3.1c' ;; *) echo \"no server running on x\" >&2; exit 1 ;; esac\n"
	if err := os.WriteFile(fake, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Tmux: fake, Path: s.socket, Self: s.host.opt.Self, RuntimeDir: s.runtime})
	if err != nil {
		t.Fatal(err)
	}
	i, err := h.Info(t.Context())
	if err != nil || i.AtomicRecord || i.Version != "3.1c" || i.Running {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := h.Create(t.Context(), victim("agents", s.dir)); !errors.Is(err, host.ErrOlderHost) {
		t.Error(err)
	}
}

func TestEnviron(t *testing.T) {
	got := parseEnviron("A=\"1\"; export A;\nunset B;\nC=\"a\nX=\\\"y\\\"; export X;\n\\$\\`\\\\\"; export C;\nD=\"\"; export D;\n")
	if d := cmp.Diff([]string{"A=1", "C=a\nX=\"y\"; export X;\n$`\\", "D="}, got); d != "" {
		t.Error(d)
	}
}
