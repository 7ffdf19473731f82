package embedded

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// see is a pane as it is now.
func (s *stage) see(t host.Terminal) host.Pane {
	s.t.Helper()
	w, err := s.host.Snapshot(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, se := range w.Sessions {
		for _, win := range se.Windows {
			for _, p := range win.Panes {
				if p.Terminal == t {
					return p
				}
			}
		}
	}
	s.t.Fatalf("no pane %s", t.ID)
	return host.Pane{}
}

// idle is a session with a person's own shell in it.
func (s *stage) idle() host.Pane {
	s.t.Helper()
	term := s.create(sessionOf("work", host.PaneSpec{Start: host.Start{Mode: host.Shell}})).Windows[0][0].Terminal
	var p host.Pane
	until(s.t, func() string {
		if p = s.see(term); p.Command != "sh" || p.Waiting {
			return "the shell is " + p.Command
		}
		return ""
	})
	return p
}

func TestReplace(t *testing.T) {
	s := newStage(t)
	p := s.idle()
	if p.Origin != host.Foreign {
		t.Fatalf("%+v", p)
	}
	was := host.Occupant{PID: p.PID, Command: "sh"}
	try := func(what string, was host.Occupant, spec host.PaneSpec, target error) {
		t.Helper()
		_, err := s.host.Replace(context.Background(), p.Terminal, was, spec)
		want(t, what, err, target)
		if now := s.see(p.Terminal); now.PID != p.PID || now.Origin != host.Foreign || len(now.Meta) != 0 {
			t.Errorf("%s: it was touched: %+v", what, now)
		}
	}
	agent := shell("echo agent is here; echo $PHUX_TERMINAL_ID; sleep 1000")
	agent.Meta = map[metadata.Key][]byte{metadata.KeyAgentSession: []byte("agent")}
	try("another process", host.Occupant{PID: p.PID + 1, Command: "sh"}, agent, host.ErrOccupied)
	try("another program", host.Occupant{PID: p.PID, Command: "bash"}, agent, host.ErrOccupied)
	try("a shell in its place", was, host.PaneSpec{Start: host.Start{Mode: host.Shell}}, host.ErrRequest)
	c := s.dial()
	if err := c.Input(context.Background(), p.Terminal, []byte("sleep 1000\r")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if now := s.see(p.Terminal); now.Command != "sleep" {
			return now.Command
		}
		return ""
	})
	try("a program in the foreground", was, agent, host.ErrOccupied)
	if err := c.Input(context.Background(), p.Terminal, []byte("\x03printf '\\033[?1049hfull'\r")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		sc, err := c.Read(context.Background(), p.Terminal, 0)
		if err != nil || !strings.Contains(sc.Text, "full") || strings.Contains(sc.Text, "printf") {
			return fmt.Sprint(sc.Text, err)
		}
		return ""
	})
	try("a full screen", was, agent, host.ErrOccupied)
	if err := c.Input(context.Background(), p.Terminal, []byte("printf '\\033[?1049l'; echo back\r")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		sc, err := c.Read(context.Background(), p.Terminal, 0)
		if err != nil || !strings.Contains(sc.Text, "back\n#") && !strings.Contains(sc.Text, "back\n$") || s.see(p.Terminal).Command != "sh" {
			return fmt.Sprint(sc.Text, err)
		}
		return ""
	})

	v := s.attach(c, p.Terminal, 70, 20)
	mine := newScreen(70, 20, nil)
	shows(t, v, mine, "back")
	st, err := s.host.Replace(context.Background(), p.Terminal, was, agent)
	if err != nil || st.Err != nil || string(st.Meta[metadata.KeyAgentSession]) != "agent" || st.Terminal != p.Terminal {
		t.Fatalf("%+v, %v", st, err)
	}
	now := s.see(p.Terminal)
	if now.Origin != host.Ours || now.PID == p.PID || now.PID != st.PID || now.Nonce != st.Nonce || now.Waiting || now.Dead || string(now.Meta[metadata.KeyAgentSession]) != "agent" || now.Cols != 70 {
		t.Errorf("%+v", now)
	}
	shows(t, v, mine, "agent is here\n"+p.Terminal.ID) // whoever looks goes on looking
	until(t, func() string {
		if running(p.PID) {
			return "the shell runs on"
		}
		return ""
	})
	_, err = s.host.Replace(context.Background(), p.Terminal, was, agent)
	want(t, "a second time", err, host.ErrOccupied)
}

// What does not start leaves a shell, and never takes the terminal.
func TestReplaceByWhatDoesNotStart(t *testing.T) {
	s := newStage(t)
	p := s.idle()
	spec := sleeper("agent")
	spec.Start.Argv = []string{"/nonexistent/agent"}
	st, err := s.host.Replace(context.Background(), p.Terminal, host.Occupant{PID: p.PID, Command: "sh"}, spec)
	if err != nil || st.Err == nil {
		t.Fatalf("%+v, %v", st, err)
	}
	until(t, func() string {
		if now := s.see(p.Terminal); now.Dead || now.PID == p.PID || now.Command != "sh" || now.Origin != host.Ended {
			return fmt.Sprintf("%+v", now)
		}
		return ""
	})
}
