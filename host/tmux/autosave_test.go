package tmux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

// called is a program that writes down how it is called.
func called(t *testing.T) (program string, calls func() []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a dir's $(name)")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program, log := filepath.Join(dir, "called"), filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$*\" >>\"${0%/*}/log\"\necho noise; echo noise >&2; exit 3\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, func() []string {
		b, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

func lacking(yes bool, what string) string {
	if yes {
		return what + " did not come"
	}
	return ""
}

func TestAutosaveCalls(t *testing.T) {
	s := newStage(t)
	h := s.host
	if err := h.SetAutosave(t.Context(), host.Autosave{Command: []string{"/x"}, Debounce: time.Second, Heartbeat: time.Hour}); !errors.Is(err, host.ErrNoServer) {
		t.Fatalf("without a server: %v", err)
	}
	s.start()
	program, calls := called(t)
	a := host.Autosave{Command: []string{program, "it's", "two words", "#{pid}$HOME"}, Debounce: time.Second, Heartbeat: time.Hour}
	if err := h.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	st, err := h.AutosaveState(t.Context())
	if err != nil || st.Setting != host.SettingOn || st.Program != program || st.Present != st.Wanted || len(st.Taken) > 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	s.tmux("new-window", "-d", "-t", "mine:")
	s.until(func() string { return lacking(calls()[0] == "", "a call") })
	if got, want := calls()[0], "it's two words #{pid}$HOME "+st.Token+" change"; got != want {
		t.Errorf("called with %q, not %q", got, want)
	}
	// Nothing of it is shown to anybody.
	if out := s.tmux("list-panes", "-a", "-F", "#{pane_in_mode}"); strings.Contains(out, "1") {
		t.Error("what the call printed, or how it ended, stands in a pane")
	}
	if ok, err := h.Tick(t.Context(), st.Token, nil); !ok || err != nil {
		t.Errorf("a call of this setting: %v, %v", ok, err)
	}
	if ok, err := h.Tick(t.Context(), "aaaaaaaaaaaaaaaaaaaaaaaaaa", &a); ok || err != nil {
		t.Errorf("a call of another: %v, %v", ok, err)
	}
	// A heartbeat puts back what a configuration that was read again took away.
	s.tmux("set-hook", "-gu", "window-linked")
	if st, _ := h.AutosaveState(t.Context()); st.Present != st.Wanted-1 {
		t.Errorf("a hook is gone: %+v", st)
	}
	if ok, err := h.Tick(t.Context(), st.Token, &a); !ok || err != nil {
		t.Fatalf("a heartbeat: %v, %v", ok, err)
	}
	again, err := h.AutosaveState(t.Context())
	if err != nil || again.Present != again.Wanted || again.Token != st.Token {
		t.Errorf("after a heartbeat: %+v, %v", again, err)
	}
	if err := h.StopAutosave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := s.tmux("show-options", "-s"); strings.Contains(out, "@phux-auto-") {
		t.Errorf("left:\n%s", out)
	}
	if st, err := h.AutosaveState(t.Context()); err != nil || st.Setting != host.SettingOff || st.Present != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if ok, _ := h.Tick(t.Context(), st.Token, &a); ok {
		t.Error("a call after it was turned off is somebody's")
	}
	if st, _ := h.AutosaveState(t.Context()); st.Present != 0 {
		t.Error("that call set the hooks again")
	}
}

func TestAutosaveHeartbeat(t *testing.T) {
	s := newStage(t)
	h := s.host
	s.start()
	program, calls := called(t)
	a := host.Autosave{Command: []string{program}, Debounce: time.Second, Heartbeat: time.Second}
	if err := h.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	st, err := h.AutosaveState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beats := func() (n int) {
		for _, c := range calls() {
			if c == st.Token+" beat" {
				n++
			}
		}
		return n
	}
	s.until(func() string { return lacking(beats() == 0, "a heartbeat") })
	if ok, err := h.Tick(t.Context(), st.Token, &a); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s.until(func() string { return lacking(beats() < 2, "the next heartbeat") })
}

// What people do with their own hooks stays, and what stands in our place is not taken.
func TestAutosaveAmongHooks(t *testing.T) {
	s := newStage(t)
	h := s.host
	s.start()
	s.tmux("set-hook", "-g", "window-linked[2]", "display-message mine")
	s.tmux("set-hook", "-g", "window-renamed[9731]", "display-message theirs")
	a := host.Autosave{Command: []string{"/bin/true"}, Debounce: time.Second, Heartbeat: time.Hour}
	var taken *host.TakenError
	if err := h.SetAutosave(t.Context(), a); !errors.As(err, &taken) || len(taken.What) != 1 || taken.What[0] != "window-renamed[9731]" {
		t.Fatalf("a slot of somebody's: %v", err)
	}
	if st, _ := h.AutosaveState(t.Context()); st.Setting != host.SettingNo || st.Present != 0 {
		t.Errorf("something was set: %+v", st)
	}
	if err := h.StopAutosave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := s.tmux("show-hooks", "-g", "window-renamed"); !strings.Contains(out, "theirs") {
		t.Errorf("off took somebody's hook: %s", out)
	}
	s.tmux("set-hook", "-gu", "window-renamed[9731]")
	if err := h.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := h.StopAutosave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := s.tmux("show-hooks", "-g", "window-linked"); !strings.Contains(out, "window-linked[2] display-message mine") || strings.Contains(out, "9731") {
		t.Errorf("the user's hooks: %s", out)
	}
}

func TestAutosaveRefusals(t *testing.T) {
	s := newStage(t)
	h := s.host
	for _, a := range []host.Autosave{
		{},
		{Command: []string{"relative"}, Debounce: time.Second, Heartbeat: time.Second},
		{Command: []string{"/x\ny"}, Debounce: time.Second, Heartbeat: time.Second},
		{Command: []string{"/x"}, Heartbeat: time.Second},
		{Command: []string{"/x"}, Debounce: time.Second},
	} {
		if err := h.SetAutosave(context.Background(), a); !errors.Is(err, host.ErrRequest) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// A window that names itself after what runs in it is no change; one that a person names is.
func TestAutosaveNames(t *testing.T) {
	s := newStage(t)
	s.start()
	p := s.shellPane()
	a := host.Autosave{Command: []string{"/bin/true"}, Debounce: time.Second, Heartbeat: time.Hour}
	if err := s.host.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	armed := func() bool {
		st, err := s.host.AutosaveState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !st.Armed.IsZero()
	}
	s.tmux("set-option", "-w", "-t", p.Terminal.ID, "automatic-rename", "on")
	s.tmux("send-keys", "-t", p.Terminal.ID, "exec sleep 1000", "Enter")
	s.until(func() string {
		return lacking(s.tmux("display-message", "-p", "-t", p.Terminal.ID, "#{window_name}") != "sleep", "the window's own name")
	})
	if armed() {
		t.Error("a window that names itself is saved")
	}
	s.tmux("rename-window", "-t", p.Terminal.ID, "mine")
	s.until(func() string { return lacking(!armed(), "a call for a name that a person gave") })
}

// The status segment says that a heartbeat is overdue, and nothing where autosave is off.
func TestAutosaveOverdueInTheStatusLine(t *testing.T) {
	s := newStage(t)
	s.start()
	shows := func() string { return s.tmux("display-message", "-p", pluginStatus) }
	if got := shows(); got != " " {
		t.Errorf("without autosave: %q", got)
	}
	a := host.Autosave{Command: []string{"/bin/true"}, Debounce: time.Second, Heartbeat: time.Hour}
	if err := s.host.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	for late, want := range map[int64]string{0: " ", 7200: " ", 7300: "  (autosave overdue)", -7200: " "} {
		s.tmux("set-option", "-s", autoBeat, strconv.FormatInt(now-late, 10))
		if got := shows(); got != want {
			t.Errorf("%d s after a heartbeat: %q, want %q", late, got, want)
		}
	}
	if err := s.host.StopAutosave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := shows(); got != " " {
		t.Errorf("turned off: %q", got)
	}
	for _, status := range []string{"x" + pluginLabel, "x" + pluginStatus} {
		if rest, ours := withoutStatus(status); rest != "x" || !ours {
			t.Errorf("%q: %q, %v", status, rest, ours)
		}
	}
}

// A machine that slept has a heartbeat that comes late, beside one that a change began anew: one of
// them goes on.
func TestAutosaveHeartbeatsDoNotMultiply(t *testing.T) {
	s := newStage(t)
	s.start()
	a := host.Autosave{Command: []string{"/bin/true"}, Debounce: time.Second, Heartbeat: time.Hour}
	if err := s.host.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	st, err := s.host.AutosaveState(t.Context())
	if err != nil || st.Every != time.Hour {
		t.Fatal(st, err)
	}
	set := time.Now().Add(-10 * time.Minute).Unix()
	s.tmux("set-option", "-s", autoBeat, strconv.FormatInt(set, 10))
	if ok, err := s.host.Tick(t.Context(), st.Token, &a); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if again, _ := s.host.AutosaveState(t.Context()); again.Beat.Unix() != set {
		t.Error("a second heartbeat is on its way")
	}
	s.tmux("set-option", "-s", autoBeat, strconv.FormatInt(set-1800, 10))
	if ok, err := s.host.Tick(t.Context(), st.Token, &a); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if again, _ := s.host.AutosaveState(t.Context()); again.Beat.Unix() == set-1800 {
		t.Error("no heartbeat is on its way")
	}
}

// One more call comes later, one for all that ask, and none of a setting that is over.
func TestAutosaveAgain(t *testing.T) {
	s := newStage(t)
	s.start()
	program, calls := called(t)
	a := host.Autosave{Command: []string{program}, Debounce: time.Second, Heartbeat: time.Hour}
	if err := s.host.SetAutosave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	st, err := s.host.AutosaveState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := func(token string, after time.Duration) {
		if err := s.host.Again(t.Context(), token, after); err != nil {
			t.Fatal(err)
		}
	}
	again("aaaaaaaaaaaaaaaaaaaaaaaaaa", time.Second)
	for range 3 {
		again(st.Token, 2*time.Second)
	}
	s.until(func() string { return lacking(calls()[0] == "", "the call") })
	s.tmux("run-shell", "-d", "3", "true") // as long as any other of them would have taken
	if got := calls(); len(got) != 1 || got[0] != st.Token+" change" {
		t.Errorf("called with %q", got)
	}
}
