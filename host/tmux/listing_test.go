package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
)

const testMark = "abcdefabcdef"

// rowText is a row as tmux would print it.
func rowText(numbers string, text ...string) string {
	return testMark + "<" + numbers + testMark + "," + strings.Join(text, testMark+",") + testMark + ">\n"
}

const goodNumbers = "12 1700000000 3.3a $1 0  1700000001 @2 3 1 0 1 0 b25d,80x24,0,0,4 %4 0 1 99 80 24 0   /dev/pts/1"

func goodTexts() []string {
	return []string{"/tmp/s", "name", "", "/home", "", "win", "title", "/home", "sh", "", "", "", "", ""}
}

func TestParseRows(t *testing.T) {
	rows, err := parseRows("words of a hook\n"+rowText(goodNumbers, goodTexts()...)+"more", testMark, false)
	if err != nil || len(rows) != 1 || rows[0].paneID != "%4" || rows[0].title() != "title" || rows[0].panePID != 99 {
		t.Fatalf("%+v %v", rows, err)
	}
	for name, s := range map[string]string{
		"cut":             strings.TrimSuffix(rowText(goodNumbers, goodTexts()...), testMark+">\n"),
		"a field less":    rowText(goodNumbers, goodTexts()[1:]...),
		"a field more":    rowText(goodNumbers, append(goodTexts(), "x")...),
		"a number less":   rowText(strings.TrimPrefix(goodNumbers, "12 "), goodTexts()...),
		"no pane id":      rowText(strings.Replace(goodNumbers, "%4", "4", 1), goodTexts()...),
		"no number":       rowText(strings.Replace(goodNumbers, " 99 ", " x ", 1), goodTexts()...),
		"a negative id":   rowText(strings.Replace(goodNumbers, "@2", "@-2", 1), goodTexts()...),
		"nothing between": testMark + "<" + testMark + ">",
	} {
		if _, err := parseRows(s, testMark, false); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzRows(f *testing.F) {
	f.Add(rowText(goodNumbers, goodTexts()...), false)
	f.Add(rowText(strings.Replace(goodNumbers, "3.3a", "3.4", 1), append([]string{`/a\033b`}, goodTexts()[1:]...)...), true)
	f.Add(testMark+"<", true)
	h := &Host{opt: Options{Self: "/x/phux-agent"}, panes: map[string]lastRaw{}}
	f.Fuzz(func(t *testing.T, s string, exact bool) {
		rows, err := parseRows(s, testMark, exact)
		if err != nil || len(rows) == 0 {
			return
		}
		for i := range rows {
			rows[i].panePID = 0 // no look at processes
		}
		w := h.workspace(rows)
		seen := make(map[string]bool)
		for _, s := range w.Sessions {
			for _, win := range s.Windows {
				if win.Layout.Cols > 0 {
					if err := win.Layout.Check(len(win.Panes)); err != nil {
						t.Fatal(err)
					}
				}
				if seen[win.ID] {
					t.Fatalf("window %s twice", win.ID)
				}
				seen[win.ID] = true
			}
		}
	})
}

func FuzzLayout(f *testing.F) {
	f.Add("b25d,80x24,0,0{40x24,0,0,1,39x24,41,0,2}")
	f.Add("b25d,80x24,0,0{40x24,0,0,1,39x24,41,0[39x12,41,0,2,39x11,41,13,3]}<10x5,1,1,9>")
	f.Fuzz(func(t *testing.T, s string) {
		c, ids, err := parseLayout(s)
		if err != nil {
			return
		}
		out, err := layoutString(c, len(ids))
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := parseLayout(out)
		if err != nil || again.String() != flatten(c).String() {
			t.Fatalf("%q becomes %q, %v", s, out, err)
		}
	})
}

// TestChecksum: of a layout that tmux itself wrote.
func TestChecksum(t *testing.T) {
	s := newStage(t)
	s.start()
	for range 3 {
		s.tmux("split-window", "-t", "mine:", "sleep", "1000")
		s.tmux("select-layout", "-t", "mine:", "tiled")
		l := s.tmux("display-message", "-p", "-t", "mine:", "#{window_layout}")
		c, ids, err := parseLayout(l)
		if err != nil {
			t.Fatal(l, err)
		}
		got, err := layoutString(c, len(ids))
		if err != nil {
			t.Fatal(err)
		}
		s.tmux("select-layout", "-t", "mine:", "even-vertical")
		s.tmux("select-layout", "-t", "mine:", got)
		if now := s.tmux("display-message", "-p", "-t", "mine:", "#{window_layout}"); now != l {
			t.Errorf("%s, not %s, by %s", now, l, got)
		}
	}
}

// TestSnapshotIsExact: names, titles and paths with every kind of trouble, seen by a client in the
// C locale.
func TestSnapshotIsExact(t *testing.T) {
	s := newStage(t)
	s.host.tool.env = append(s.host.tool.env, "LC_ALL=C", "LANG=C")
	s.start()
	v := s.version()
	texts := []string{"plain", "a b", "tab\tin", "new\nline", "q'\"`", "$HOME ${x} $", `back\slash`, `\`, `\\`, `\$a`, `\033`, "#{pid} #(id)", "#[fg=red]", ";", "ünï 漢字 🙂", "(deleted)", "end (deleted)", "%end", ",", "{}", "\x1b[31m"}
	var dirs []string
	for _, text := range texts {
		dir := filepath.Join(s.dir, "d", text)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		cmd := exec.Command(testTmux(t), "-u", "-S", s.socket, "new-window", "-d", "-a", "-t", "mine:{end}", "-n", "x", "sleep", "1000")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		// By the indirection that is under test elsewhere; what tmux makes of it is its own.
		s.tmux("set-option", "-g", "@x", argument(text))
		for _, words := range [][]string{{"select-pane", "-t", "mine:{end}", "-T", "#{@x}"}, {"rename-window", "-t", "mine:{end}", "#{@x}"}} {
			out, err := exec.Command(testTmux(t), append([]string{"-u", "-S", s.socket}, words...)...).CombinedOutput()
			if err != nil && !strings.ContainsAny(text, "\t\n\x1b") {
				t.Fatalf("%q: %v %s", text, err, out)
			}
		}
	}
	var first, second *host.Workspace
	for _, to := range []**host.Workspace{&first, &second} {
		w, err := s.host.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		*to = w
	}
	for _, w := range []*host.Workspace{first, second} {
		wins := w.Sessions[0].Windows[1:]
		if len(wins) != len(texts) {
			t.Fatalf("%d windows", len(wins))
		}
		for i, win := range wins {
			p := win.Panes[0]
			if p.Dir != dirs[i] || p.DirGone {
				t.Errorf("directory %q, not %q (gone %v)", p.Dir, dirs[i], p.DirGone)
			}
			if strings.ContainsAny(texts[i], "\t\n\x1b") {
				continue // tmux holds them as escapes, or refuses them
			}
			if win.Name != texts[i] {
				t.Errorf("name %q, not %q", win.Name, texts[i])
			}
			if p.Title != texts[i] {
				t.Errorf("title %q, not %q", p.Title, texts[i])
			}
		}
	}
	if v.escapesOutput() && !s.host.seenVersion().escapesOutput() {
		t.Error("the version was not learnt")
	}
}

// TestSharedWindows: grouped sessions and linked windows show one pane more than once.
func TestSharedWindows(t *testing.T) {
	s := newStage(t)
	s.start()
	s.tmux("new-window", "-d", "-t", "mine:", "sleep", "1000")
	s.tmux("new-session", "-d", "-s", "also", "-t", "mine")
	s.tmux("new-session", "-d", "-s", "another", "sleep", "1000")
	s.tmux("link-window", "-d", "-s", "mine:0", "-t", "another:7")
	w, err := s.host.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names, panes []string
	for _, ses := range w.Sessions {
		names = append(names, ses.Name)
		for _, win := range ses.Windows {
			for _, p := range win.Panes {
				panes = append(panes, ses.Name+p.Terminal.ID)
			}
		}
	}
	if !slices.Equal(names, []string{"also", "another", "mine"}) {
		t.Error(names)
	}
	slices.Sort(panes)
	if !slices.Equal(panes, []string{"another%3", "mine%0", "mine%1"}) {
		t.Error(panes)
	}
	if g := w.Sessions[0].Group; g == "" || g != w.Sessions[2].Group {
		t.Errorf("group %q", g)
	}
	if !w.Sessions[2].Windows[0].Linked {
		t.Error("not said to be linked")
	}
}

// TestSharedOnlyWindow: a session whose only window an older one shows as well keeps it; grouped
// sessions do not take from each other, and nobody's last window is taken.
func TestSharedOnlyWindow(t *testing.T) {
	s := newStage(t)
	s.start()
	s.tmux("new-session", "-d", "-s", "young", "sleep", "1000")
	s.tmux("link-window", "-d", "-s", "young:0", "-t", "mine:9")
	s.tmux("link-window", "-d", "-s", "mine:0", "-t", "young:7")
	s.tmux("new-session", "-d", "-s", "group", "-t", "young")
	s.tmux("new-session", "-d", "-s", "last", "sleep", "1000")
	s.tmux("link-window", "-d", "-k", "-s", "mine:0", "-t", "last:0")
	w, err := s.host.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ses := range w.Sessions {
		for _, win := range ses.Windows {
			got = append(got, fmt.Sprintf("%s:%d %s", ses.Name, win.Index, win.Panes[0].Terminal.ID))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"mine:0 %0", "young:0 %1"}) {
		t.Error(got)
	}
}

func TestEmptyServer(t *testing.T) {
	s := newStage(t)
	s.tmux("new-session", "-d", "-s", "x", "sleep", "1000", ";", "set-option", "-s", "exit-empty", "off", ";", "kill-session", "-t", "x")
	w, err := s.host.Snapshot(t.Context())
	if err != nil || w.Instance.PID == 0 || len(w.Sessions) != 0 {
		t.Fatalf("%+v %v", w, err)
	}
	log := filepath.Join(s.dir, "log")
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.host.Create(t.Context(), victim("mixed", log)); err != nil {
		t.Fatal(err)
	}
}
