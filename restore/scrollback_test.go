package restore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
)

// texts gives both panes of the world something that stood there.
func (w *world) texts() {
	at := w.f.Now.Add(-time.Hour)
	w.src.Texts = []archive.Text{
		{Session: "work", Window: 0, Pane: 0, SavedAt: at, Text: "of the first\n"},
		{Session: "work", Window: 0, Pane: 1, SavedAt: at, Text: "of the shell\nline two\n"},
		{Session: "other", Window: 0, Pane: 1, SavedAt: at, Text: "of nobody\n"},
	}
}

// Only what comes back as a shell, or as a program of the user's, shows what stood there, and only
// from an own archive.
func TestWhoShowsWhatStoodThere(t *testing.T) {
	for _, c := range []struct {
		name          string
		arrange       func(w *world)
		first, second int // lines
	}{
		{"an agent and a shell", func(*world) {}, 0, 2},
		{"a program", (*world).program, 1, 2},
		{"imported", func(w *world) { w.src.Own, w.o.Import = false, true }, 0, 0},
		{"a placeholder", func(w *world) { delete(w.f.Dirs, "/src/a") }, 0, 2},
		{"an ended agent", func(w *world) { w.first().Agent.State = "ended" }, 1, 2},
		{"another session's", func(w *world) { w.session(0).Name = "others" }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.texts()
			c.arrange(w)
			panes := w.plan().Dry().Sessions[0].Panes
			if panes[0].Scrollback != c.first || panes[1].Scrollback != c.second {
				t.Errorf("%d and %d lines, not %d and %d: %+v", panes[0].Scrollback, panes[1].Scrollback, c.first, c.second, panes)
			}
		})
	}
}

// prefaces is what the panes of a create were handed, by the text of the file.
func (s *stage) prefaces(files []string) (out []string) {
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			s.t.Fatal(err)
		}
		if i, err := os.Lstat(f); err != nil || i.Mode() != 0o600 {
			s.t.Errorf("%v %v", i.Mode(), err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestPanesAreHandedWhatStoodThere(t *testing.T) {
	s := newStage(t)
	s.texts()
	s.e.Runtime = t.TempDir()
	old := filepath.Join(s.e.Runtime, prefaceHead+"old")
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	s.apply()
	files, err := filepath.Glob(filepath.Join(s.e.Runtime, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q %v", files, err)
	}
	text := s.prefaces(files)[0]
	if !strings.HasPrefix(text, "of the shell\nline two\n\x1b[0;2m── restored from generation 42, saved ") || !strings.HasSuffix(text, " ──\x1b[0m\n") {
		t.Errorf("%q", text)
	}
	var given []string
	for _, st := range s.h.Started() {
		if st.Preface != "" {
			given = append(given, st.Preface)
			if st.Mode != host.Shell {
				t.Errorf("%+v", st)
			}
		}
	}
	if len(given) != 1 || given[0] != files[0] {
		t.Errorf("%q was handed over, and %q is there", given, files)
	}
}

func TestNothingIsLeftOfASessionThatWasNotMade(t *testing.T) {
	s := newStage(t)
	s.texts()
	s.e.Runtime = t.TempDir()
	s.h.Fail(memory.StepCreate, errors.New("no"))
	if r := s.apply(); r.Outcome() != Failed {
		t.Fatalf("%+v", r)
	}
	if files, err := filepath.Glob(filepath.Join(s.e.Runtime, "*")); err != nil || len(files) != 0 {
		t.Errorf("%q %v", files, err)
	}
}
