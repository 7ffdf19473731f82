package tmux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// shellPane is a pane of the user's with a shell in it, in a window of its own.
func (s *stage) shellPane() *host.Pane {
	s.t.Helper()
	id := s.tmux("new-window", "-d", "-t", "mine:", "-P", "-F", "#{pane_id}")
	var p *host.Pane
	s.until(func() string {
		w, err := s.host.Snapshot(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		p = s.see(host.Terminal{Instance: w.Instance, ID: id})
		return lacking(p == nil || p.Command != "sh", "the shell")
	})
	return p
}

func TestReplace(t *testing.T) {
	s := newStage(t, "set-hook -g after-set-option 'new-window -d -n intruder'")
	s.start()
	log := t.TempDir()
	p := s.shellPane()
	started, err := s.host.Replace(t.Context(), p.Terminal, host.Occupant{PID: p.PID, Command: p.Command}, logged(log, "agent"))
	if err != nil || started.Err != nil || string(started.Meta[metadata.KeyAgentSession]) != "agent" {
		t.Fatalf("%+v, %v", started, err)
	}
	s.until(func() string { return lacking(len(ran(t, log)) != 1, "the agent") })
	now := s.see(p.Terminal)
	if now.Origin != host.Ours || now.PID == p.PID || now.Waiting || string(now.Meta[metadata.KeyAgentSession]) != "agent" || now.Index != p.Index {
		t.Errorf("%+v", now)
	}
	// What was there once is not there to be replaced again.
	if _, err := s.host.Replace(t.Context(), p.Terminal, host.Occupant{PID: p.PID, Command: p.Command}, logged(log, "second")); !errors.Is(err, host.ErrOccupied) {
		t.Errorf("a second time: %v", err)
	}
	if again := s.see(p.Terminal); again.PID != now.PID || len(ran(t, log)) != 1 {
		t.Errorf("it was touched: %+v", again)
	}
}

// Who is not idle any more is left alone: another process, another program before the eyes, a
// person who reads above.
func TestReplaceOccupied(t *testing.T) {
	s := newStage(t)
	s.start()
	log := t.TempDir()
	p := s.shellPane()
	try := func(what string, was host.Occupant) {
		t.Helper()
		if _, err := s.host.Replace(t.Context(), p.Terminal, was, logged(log, "agent")); !errors.Is(err, host.ErrOccupied) {
			t.Errorf("%s: %v", what, err)
		}
		if now := s.see(p.Terminal); now == nil || now.PID != p.PID || now.Origin != host.Foreign {
			t.Errorf("%s: it was touched: %+v", what, now)
		}
	}
	was := host.Occupant{PID: p.PID, Command: "sh"}
	try("another process", host.Occupant{PID: p.PID + 1, Command: "sh"})
	try("another program", host.Occupant{PID: p.PID, Command: "bash"})
	s.tmux("copy-mode", "-t", p.Terminal.ID)
	try("copy mode", was)
	s.tmux("send-keys", "-t", p.Terminal.ID, "-X", "cancel")
	s.tmux("send-keys", "-t", p.Terminal.ID, "sleep 1000", "Enter")
	s.until(func() string { return lacking(s.see(p.Terminal).Command != "sleep", "the program") })
	try("a program in the foreground", was)

	other := p.Terminal
	other.Instance.PID++
	if _, err := s.host.Replace(t.Context(), other, was, logged(log, "agent")); !errors.Is(err, host.ErrStale) {
		t.Errorf("another life: %v", err)
	}
	gone := p.Terminal
	gone.ID = "%4711"
	if _, err := s.host.Replace(t.Context(), gone, was, logged(log, "agent")); err == nil {
		t.Error("a terminal that is not there was replaced")
	}
	for _, bad := range []host.PaneSpec{{}, {Start: host.Start{Mode: host.Placeholder}}} {
		if _, err := s.host.Replace(t.Context(), p.Terminal, was, bad); !errors.Is(err, host.ErrRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got := ran(t, log); len(got) > 0 {
		t.Errorf("agents ran: %v", got)
	}
}

// A program that does not come to the gate leaves a shell in its place, and never takes the pane
// away.
func TestReplaceUndone(t *testing.T) {
	s := newStage(t)
	s.start()
	log := t.TempDir()
	p := s.shellPane()
	ctx, cancel := context.WithCancel(t.Context())
	h := s.open()
	// One that ends at once, unless it is to be the shell afterwards.
	ends := filepath.Join(t.TempDir(), filepath.Base(h.opt.Self))
	text := "#!/bin/sh\n[ \"$2\" = --after ] && exec '" + h.opt.Self + "' \"$@\"\nexit 0\n"
	if err := os.WriteFile(ends, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	h.opt.Self = ends
	_, err := h.Replace(ctx, p.Terminal, host.Occupant{PID: p.PID, Command: p.Command}, logged(log, "agent"))
	cancel()
	if !errors.Is(err, ErrBuild) {
		t.Fatal(err)
	}
	now := s.see(p.Terminal)
	if now == nil || len(now.Meta[metadata.KeyAgentSession]) > 0 || strings.Contains(s.tmux("show-options", "-p", "-t", p.Terminal.ID), "phux") {
		t.Errorf("%+v", now)
	}
	if got := ran(t, log); len(got) > 0 {
		t.Errorf("agents ran: %v", got)
	}
}
