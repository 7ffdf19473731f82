package phuxagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

// onEmbedded stands in the place of tmux's -L where a scene is to look at the embedded host.
const onEmbedded = "--embedded"

// embeddedOut does on the embedded host what the scenes ask of tmux, by tmux's words for it.
func embeddedOut(sc scene, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := embedded.Dial(ctx, embedded.SocketPath(filepath.Join(sc.Getenv("XDG_RUNTIME_DIR"), "phux-agent"), embedded.DefaultName))
	if err != nil {
		return "", err
	}
	defer c.Close()
	w, err := c.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	target, last := "", args[len(args)-1]
	if i := slices.Index(args, "-t"); i >= 0 {
		target = args[i+1]
	}
	var out strings.Builder
	var at *host.Pane
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for i := range win.Panes {
				p := &win.Panes[i]
				place := fmt.Sprintf("%s:%d.%d", s.Name, win.Index, i)
				if target == place || target == p.Terminal.ID {
					at = p
				}
				fmt.Fprintf(&out, "%d %s\n", p.PID, place)
			}
		}
	}
	if at == nil && target != "" {
		return "", fmt.Errorf("no pane %s", target)
	}
	switch {
	case args[0] == "list-panes":
		return out.String(), nil
	case args[0] == "display-message" && at == nil:
		return strconv.Itoa(c.Instance.PID), nil
	case args[0] == "display-message":
		return strconv.Itoa(at.PID), nil
	case args[0] == "capture-pane":
		s, err := c.Read(ctx, at.Terminal, -1)
		return s.Text, err
	case args[0] == "send-keys" && last == "Enter":
		return "", c.Input(ctx, at.Terminal, []byte("\r"))
	case args[0] == "send-keys":
		return "", c.Input(ctx, at.Terminal, []byte(last))
	}
	return "", fmt.Errorf("the embedded host has no %q", args)
}

// endEmbedded ends every server of the embedded host below a runtime directory.
func endEmbedded(run string) {
	sockets, _ := filepath.Glob(filepath.Join(run, "phux-agent", "*.sock"))
	for _, s := range sockets {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if c, err := embedded.Dial(ctx, s); err == nil {
			_ = c.Shutdown(ctx) // Best effort.
			for running := true; running && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
				running = syscall.Kill(c.Instance.PID, 0) == nil && !zombie(c.Instance.PID)
			}
			c.Close()
		}
		cancel()
	}
}

// cmdServing waits until the embedded host's server answers.
func cmdServing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: serving")
	}
	await(ts, "a server of the embedded host", func() (bool, string) {
		_, err := embeddedOut(ts, []string{"list-panes"})
		return err == nil, fmt.Sprint(err)
	})
}

// cmdEnter presses Enter in a pane: enter [-L NAME] TARGET.
func cmdEnter(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: enter [-L NAME] TARGET")
	}
	out, err := tmuxOut(ts, slices.Concat(flags, []string{"send-keys", "-t", args[0], "Enter"})...)
	if err != nil {
		ts.Fatalf("send-keys: %v: %s", err, out)
	}
}

// cmdShape compares archives by what a host is to bring back.
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: shape ARCHIVE ARCHIVE…")
	}
	first := ""
	for i, file := range args {
		text, err := shape([]byte(ts.ReadFile(file)))
		if err != nil {
			ts.Fatalf("%s: %v", file, err)
		}
		if i == 0 {
			first = text
		} else if d := cmp.Diff(first, text); d != "" {
			ts.Fatalf("%s (-) and %s (+) are not the same:\n%s", args[0], file, d)
		}
	}
}

// shape is of an archive what a host is to bring back: sessions, windows, their order, names,
// layouts, and each pane's directory and record.
func shape(text []byte) (string, error) {
	keep := []string{
		"name", "index", "active", "zoomed", "layout", "cells", "cwd", "agent_session", "sessions", "windows", "panes", "cols", "rows",
		"kind", "dir", "left", "right", "ratio", "pane", "plugin_id", "integration_id", "native_id", "automatic_name",
	}
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			_, session := v["windows"]          // which of them was looked at last is nobody's shape
			made := v["automatic_name"] == true // by the host, of what runs there at the moment
			for k := range v {
				if !slices.Contains(keep, k) || session && k == "active" || made && k == "name" {
					delete(v, k)
				} else {
					v[k] = strip(v[k])
				}
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
		}
		return v
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(strip(v), "", " ")
	return string(b), err
}
