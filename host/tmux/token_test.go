package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

const (
	nonceA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	nonceB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func meta(kv ...string) map[metadata.Key][]byte {
	out := make(map[metadata.Key][]byte)
	for i := 0; i < len(kv); i += 2 {
		out[metadata.Key(kv[i])] = []byte(kv[i+1])
	}
	return out
}

var (
	ks = string(metadata.KeyAgentSession)
	kl = string(metadata.KeyAgentLaunch)
	ka = string(metadata.KeyAgent)
)

func TestToken(t *testing.T) {
	for _, m := range []map[metadata.Key][]byte{
		meta(), meta(ks, "r"), meta(kl, "l"), meta(ks, "\x00\xff;", kl, strings.Repeat("x", 9000)),
	} {
		got, err := decodeToken(encodeToken(m))
		if err != nil || !cmp.Equal(got, m) {
			t.Errorf("%v %s", err, cmp.Diff(m, got))
		}
	}
	for _, s := range []string{
		"", "v1", "v1.", "v1.a", "v1..;", "v2..", "v1...", "v1.A.", "v1.QQ==.", "v1.QR.", "v1.QQ\n.", "v1. QQ.", "V1.QQ.", "v1.-.", "v1.Q Q.",
		"v1." + b64.EncodeToString(bytes.Repeat([]byte("x"), metadata.MaxRecord+1)) + ".",
	} {
		if got, err := decodeToken(s); err == nil {
			t.Errorf("%q is %q", s, got)
		}
	}
}

func TestStartCommand(t *testing.T) {
	b := birth{nonce: nonceA, meta: meta(ks, "r"), dir: "/run/x"}
	ours := strings.Join(b.args(), " ")
	after := b
	after.after = true
	for s, want := range map[string]bool{
		"phux-agent " + ours:                                        true,
		"/usr/bin/phux-agent " + ours:                               true,
		`"/usr/b in/phux-agent" ` + ours:                            true,
		`'/usr/b"in/phux-agent' ` + ours:                            true,
		"/x/phux-agent " + strings.Join(after.args(), " "):          true,
		"/x/phux-agent " + verb + " v1.. " + nonceA + ` "/run/a b"`: true,
		"/opt/phux-agent-linux-amd64 " + ours:                       true, // renamed since
		"/opt/phux-agent_1.2 " + ours:                               true,
		// A shell command with the same text is one word.
		`"/usr/bin/phux-agent ` + ours + `"`:                         false,
		"sh -c '/usr/bin/phux-agent " + ours + "'":                   false,
		"echo /usr/bin/phux-agent " + ours:                           false,
		"/usr/bin/phux-agentx " + ours:                               false,
		"/usr/bin/phux-agent " + ours + " x":                         false,
		"/usr/bin/phux-agent x " + ours:                              false,
		"/usr/bin/phux-agent  " + ours:                               false,
		"/usr/bin/phux-agent " + ours + " ":                          false,
		"/usr/bin/phux-agent pane-exec v1.. " + nonceA:               false,
		"/usr/bin/phux-agent pane-exec v1.. short /run":              false,
		"/usr/bin/phux-agent pane-exec v1.. " + nonceA + " relative": false,
		"/usr/bin/phux-agent pane-exec v2.. " + nonceA + " /run":     false,
		"/usr/bin/phux-agent --after " + ours:                        false,
		"":                                                           false, "phux-agent": false, "phux-agent pane-exec": false,
	} {
		got, ok := parseStartCommand(s, "phux-agent")
		if ok != want {
			t.Errorf("%q: %v", s, ok)
		}
		if ok && got.nonce != nonceA {
			t.Errorf("%q: %+v", s, got)
		}
	}
}

func TestOption(t *testing.T) {
	for _, o := range []option{
		{owner: nonceA}, {owner: nonceA, value: []byte("x")}, {owner: nonceA, value: []byte(";\x00\xff'")}, {owner: binding(7, 99), value: []byte("y")}, {owner: binding(7, 99)},
	} {
		got, ok := decodeOption(metadata.KeyAgentLaunch, "%4", encodeOption(o.owner, "%4", o.value))
		if !ok || !reflect.DeepEqual(got, o) {
			t.Errorf("%+v is %+v", o, got)
		}
	}
	for _, s := range []string{"", ".", nonceA, nonceA + ".", "short.QQ", nonceA + ".QQ=", nonceA + ".QQ.QQ", "p1.QQ", "p1-.QQ", "p01-1.QQ", "p1-01.QQ", "p-1-1.QQ", "p0-1.QQ", "p1-1-1.QQ", "p+1-1.QQ"} {
		owner, value, _ := strings.Cut(s, ".")
		if o, ok := decodeOption(metadata.KeyAgentLaunch, "%4", owner+"%4."+value); ok {
			t.Errorf("%q is %+v", s, o)
		}
	}
	for _, s := range []string{nonceA + ".QQ", nonceA + "%5.QQ", nonceA + "%44.QQ", nonceA + "%4%4.QQ", "%4.QQ", nonceA + "%4", thisPane + ".QQ"} {
		if o, ok := decodeOption(metadata.KeyAgentLaunch, "%4", s); ok {
			t.Errorf("%q is %+v", s, o)
		}
	}
}

func TestJudge(t *testing.T) {
	b := birth{nonce: nonceA, meta: meta(ks, "record", kl, "facts"), dir: "/run/x"}
	after := b
	after.after = true
	ours, ended := "/x/phux-agent "+strings.Join(b.args(), " "), "/x/phux-agent "+strings.Join(after.args(), " ")
	enc := func(owner, v string) string { return encodeOption(owner, "%4", []byte(v)) }
	other := func(owner, v string) string { return encodeOption(owner, "%5", []byte(v)) }
	here, gone := binding(7, 1), binding(8, 1)
	isAlive := func(pid int, start uint64) bool { return pid == 7 && start == 1 }
	for name, c := range map[string]struct {
		command string
		opts    [3]string
		origin  host.Origin
		nonce   string
		meta    map[metadata.Key][]byte
	}{
		"foreign":                     {"vim", [3]string{}, host.Foreign, "", meta()},
		"foreign with nonsense":       {"vim", [3]string{"x", "y.z", ";"}, host.Foreign, "", meta()},
		"born":                        {ours, [3]string{}, host.Ours, nonceA, b.meta},
		"swapped":                     {ours, [3]string{enc(nonceA, "new")}, host.Ours, nonceA, meta(ks, "new", kl, "facts")},
		"forgotten":                   {ours, [3]string{enc(nonceA, "")}, host.Ours, nonceA, meta(kl, "facts")},
		"with more":                   {ours, [3]string{"", "", enc(nonceA, "agent")}, host.Ours, nonceA, meta(ks, "record", kl, "facts", ka, "agent")},
		"nonsense beside":             {ours, [3]string{"x.y.z"}, host.Ours, nonceA, b.meta},
		"one option of another nonce": {ours, [3]string{enc(nonceB, "evil"), enc(nonceA, "new")}, host.Ours, nonceA, meta(ks, "record", kl, "new")},
		"only of another nonce":       {ours, [3]string{enc(nonceB, "other")}, host.Ours, nonceA, b.meta},
		"copied from a bound pane":    {ours, [3]string{other(here, "evil")}, host.Ours, nonceA, b.meta},
		"copied to a shell":           {"zsh", [3]string{other(here, "evil"), other(nonceB, "evil")}, host.Foreign, "", meta()},
		"ended":                       {ended, [3]string{enc(nonceA, "new")}, host.Ended, nonceA, meta(ks, "new", kl, "facts")},
		"replaced":                    {"vim", [3]string{enc(nonceA, "record")}, host.Replaced, nonceA, meta(ks, "record")},
		"replaced and forgotten":      {"vim", [3]string{enc(nonceA, "")}, host.Replaced, nonceA, meta()},
		"bound":                       {"zsh", [3]string{enc(here, "r")}, host.Bound, "", meta(ks, "r")},
		"bound gone":                  {"zsh", [3]string{enc(gone, "r")}, host.BoundGone, "", meta(ks, "r")},
		"bound in the shell after":    {ended, [3]string{enc(here, "r")}, host.Bound, "", meta(ks, "r")},
		"gone in the shell after":     {ended, [3]string{enc(gone, "r")}, host.BoundGone, "", meta(ks, "r")},
		"gone in a program of ours":   {ours, [3]string{enc(gone, "r")}, host.Ours, nonceA, b.meta},
		"bound, and an older value":   {"zsh", [3]string{enc(here, "r"), enc(nonceA, "old")}, host.Bound, "", meta(ks, "r")},
	} {
		got := judge("%4", c.command, c.opts, "phux-agent", isAlive)
		if got.origin != c.origin || got.nonce != c.nonce || !cmp.Equal(got.meta, c.meta) {
			t.Errorf("%s: origin %d, nonce %q, %s", name, got.origin, got.nonce, cmp.Diff(c.meta, got.meta))
		}
	}
}

// TestLookalikes: what merely looks like a pane of ours to a careless eye is a foreign one.
func TestLookalikes(t *testing.T) {
	s := newStage(t)
	s.start()
	b := birth{nonce: nonceA, meta: meta(ks, "stolen"), dir: "/run/x"}
	text := s.host.opt.Self + " " + strings.Join(b.args(), " ")
	s.tmux("new-window", "-d", "-t", "mine:", "sleep 1000; "+text)
	s.tmux("new-window", "-d", "-t", "mine:", ": "+text+"; sleep 1000")
	s.tmux("new-window", "-d", "-t", "mine:", "sh", "-c", "sleep 1000", s.host.opt.Self, verb, encodeToken(b.meta), nonceA, "/run/x")
	s.tmux(append([]string{"new-window", "-d", "-t", "mine:", "sleep", "1000", ";", "set-option", "-p", "-t", "mine:{end}.", "remain-on-exit", "on", ";", "respawn-pane", "-k", "-t", "mine:{end}.", "/bin/echo"}, b.args()...)...)
	w, err := s.host.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, win := range w.Sessions[0].Windows {
		for _, p := range win.Panes {
			n++
			if p.Origin != host.Foreign || len(p.Meta) > 0 {
				t.Errorf("%+v", p)
			}
		}
	}
	if n != 5 {
		t.Errorf("%d panes", n)
	}
}

// TestOptionsOfOthers: what is called like our options, but was given to another pane, to a
// window, a session or the server, is none of a pane's own, and hides no session.
func TestOptionsOfOthers(t *testing.T) {
	s := newStage(t)
	s.start()
	first := s.spawn(logged(s.dir, "record"))
	second := s.spawn(logged(s.dir, "other"))
	s.tmux("new-window", "-d", "-t", "mine:")
	here, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	// %99 stands for a pane that the values were made for.
	values := map[string][]string{
		options[0].name: {
			s.tmux("show-options", "-pv", "-t", first.Terminal.ID, options[0].name),
			encodeOption(nonceB, "%99", []byte("evil")),
			encodeOption(binding(here.PID, here.Start), "%99", []byte("evil")),
		},
		txOption: {"x", "$9.x"},
	}
	want := map[string]string{first.Terminal.ID: "record", second.Terminal.ID: "other"}
	see := func(how string) {
		w, err := s.host.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, session := range w.Sessions {
			for _, win := range session.Windows {
				for _, p := range win.Panes {
					n++
					if got := string(p.Meta[metadata.KeyAgentSession]); got != want[p.Terminal.ID] || (p.Origin == host.Ours) != (got != "") {
						t.Errorf("%s: pane %s, of origin %d, holds %q", how, p.Terminal.ID, p.Origin, got)
					}
				}
			}
		}
		if n != 4 {
			t.Errorf("%s: %d panes", how, n)
		}
	}
	see("nothing set")
	for name, list := range values {
		for _, v := range list {
			for _, level := range [][]string{{"-s"}, {"-g"}, {"-gw"}, {"-t", "mine:"}, {"-w", "-t", second.Terminal.ID}, {"-w", "-t", "mine:{end}"}, {"-p", "-t", "mine:{end}."}} {
				s.tmux(append(append([]string{"set-option"}, level...), name, v)...)
				see(fmt.Sprintf("%v %s %s", level, name, v))
				s.tmux(append(append([]string{"set-option", "-u"}, level...), name)...)
			}
		}
	}

	// What would not be read again is no swap that was done.
	s.tmux("set-option", "-s", options[0].name, "x")
	if err := s.host.Swap(t.Context(), second.Terminal, metadata.KeyAgentSession, []byte("other"), []byte("new")); !errors.Is(err, ErrHidden) {
		t.Errorf("a hidden value is stored: %v", err)
	}
}

// TestUndoSparesOthers: the session that is taken away is the one that was marked, whatever was
// copied from it to others.
func TestUndoSparesOthers(t *testing.T) {
	s := newStage(t)
	s.start()
	const id = "phux-0123456789abcdef"
	s.tmux("new-session", "-d", "-s", "zz")
	s.tmux("new-session", "-d", "-s", id)
	s.tmux("set-option", "-F", "-t", id, madeOption, sessionValue(id))
	s.tmux("set-option", "-g", madeOption, s.tmux("show-options", "-v", "-t", id, madeOption))
	s.tmux("set-option", "-w", "-t", "mine:", madeOption, s.tmux("show-options", "-v", "-t", id, madeOption))
	if !removeBuilding(t.Context(), s.host.tool, id) {
		t.Error("it is not removed")
	}
	if got := s.tmux("list-sessions", "-F", "#{session_name}"); got != "mine\nzz" {
		t.Errorf("left: %q", got)
	}
}

func FuzzStartCommand(f *testing.F) {
	b := birth{nonce: nonceA, meta: meta(ks, "r", kl, "l"), dir: "/run/x"}
	f.Add("/x/phux-agent " + strings.Join(b.args(), " "))
	f.Add(`"/x y/phux-agent" pane-exec --after v1.. ` + nonceA + ` '/a\\b'`)
	f.Add(`\`)
	f.Add(`"\400`)
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseStartCommand(s, "phux-agent")
		if !ok {
			return
		}
		if !validNonce(got.nonce) || len(got.meta[metadata.KeyAgentSession]) > metadata.MaxRecord {
			t.Fatalf("%+v", got)
		}
		again, err := parseBirth(got.args()[1:])
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v is %+v, %v", got, again, err)
		}
	})
}

func FuzzOption(f *testing.F) {
	f.Add(encodeOption(nonceA, "%4", []byte("x")))
	f.Add(encodeOption(binding(1, 2), "%4", nil))
	f.Add("p1-2.QQ.")
	f.Fuzz(func(t *testing.T, s string) {
		if o, ok := decodeOption(metadata.KeyAgentLaunch, "%4", s); ok && encodeOption(o.owner, "%4", o.value) != s {
			t.Fatalf("%q is %+v", s, o)
		}
	})
}

// FuzzWord: what tmux's parser would read from a word is the word: here by a model of the
// parser's quotes; TestHost does it with tmux itself.
func FuzzWord(f *testing.F) {
	f.Add("a'b\\\n;#{pid}")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "\x00") {
			t.Skip()
		}
		w := word(s)
		if strings.ContainsAny(w, "\n\r") {
			t.Fatalf("%q is not one line", w)
		}
		words, ok := splitCommand(strings.ReplaceAll(w, " ", "\x00"), 1)
		if strings.Contains(s, "\\") {
			return // in single quotes a backslash is itself, which the model does not know
		}
		if !ok && s != "" || ok && strings.ReplaceAll(words[0], "\x00", " ") != s {
			t.Fatalf("%q is %q, read as %q", s, w, words)
		}
	})
}

// TestWordsByTmux asks tmux itself what it reads.
func TestWordsByTmux(t *testing.T) {
	s := newStage(t)
	s.start()
	all := make([]byte, 0, 255)
	for c := byte(1); c != 0; c++ {
		all = append(all, c)
	}
	for i, text := range []string{string(all), "a\\\nb", "\\\n", "'\\''", "$HOME ${HOME} ~ `id`", "#{pid}", "x;", ";", "", "-", "--", "%if 1", "{", "}", "\t", "ünï\xff"} {
		var l list
		l.add("new-window", "-d", "-t", "mine:", "--", "/bin/sh", "-c", `printf %s "$0" >"$1.tmp"; mv "$1.tmp" "$1"; exec sleep 1000`, text, s.dir+"/out"+string(rune('a'+i)))
		var outer list
		outer.add("if-shell", "-F", "1", l.String())
		if _, err := s.host.tool.script(t.Context(), []string{outer.String()}); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		s.until(func() string {
			got, err := exec.Command("cat", s.dir+"/out"+string(rune('a'+i))).Output()
			if err != nil {
				return "it does not run: " + text
			}
			if string(got) != text {
				t.Fatalf("%q is read as %q", text, got)
			}
			return ""
		})
	}
}
