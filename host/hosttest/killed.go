package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// order is what a process of its own is to ask of the host.
type order struct {
	Create *host.CreateSession
	Spawn  *host.Spawn
}

// Serve asks the host for what stands in the order. It is what the process that Harness.Child
// starts does with its standard input, and all that it does.
func Serve(ctx context.Context, h host.Host, in io.Reader) error {
	h = breakHost(h)
	var o order
	if err := json.UnmarshalRead(in, &o); err != nil {
		return err
	}
	if o.Create != nil {
		if _, err := h.Create(ctx, *o.Create); err != nil {
			return err
		}
	}
	if o.Spawn != nil {
		if _, err := h.Spawn(ctx, *o.Spawn); err != nil {
			return err
		}
	}
	return nil
}

// took is how long another process needs to carry out the order.
func (r *rig) took(o order) time.Duration {
	r.t.Helper()
	begin := time.Now()
	if !r.kill(o, time.Minute) {
		r.t.Fatal("nobody killed it, and it was not through")
	}
	return time.Since(begin)
}

// kill has another process carry out the order, and kills it after the delay; done tells that
// it was through before.
func (r *rig) kill(o order, after time.Duration) (done bool) {
	r.t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := r.Child(r.t)
	cmd.Stdin = bytes.NewReader(b)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	timer.Stop()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == -1) {
		r.t.Errorf("the process was not killed, and ends with %v: %s", err, said.Bytes())
	}
	return err == nil
}

var killedTests = []test{
	{name: "create", programs: true, run: func(r *rig) {
		if r.Child == nil {
			r.t.Skip("this body has no clients in other processes")
		}
		r.create(r.one("base"))
		full := r.whole("kept", 2, 3)
		whole := r.took(order{Create: &full})
		if diff := lacks(r.session("kept"), full); diff != "" {
			r.t.Fatal(diff)
		}
		const n = 40
		var never []string
		for i := range n {
			c := r.whole(fmt.Sprintf("k%d", i), 2, 3)
			r.kill(order{Create: &c}, whole*time.Duration(i+1)/n)
			programs := programsOf(c)
			// What is seen under the name is whole at every moment, and then all of it runs;
			// or nothing comes to be there.
			r.until(func() string {
				s := session(r.snapshot(), c.Name)
				ran := slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return len(r.runs(p)) == 0 })
				switch {
				case s == nil && len(ran) == 0:
					return ""
				case s == nil:
					return fmt.Sprintf("no session, but %v ran", ran)
				}
				if diff := lacks(s, c); diff != "" {
					return "the session is not whole: " + diff
				}
				if len(ran) != len(programs) {
					return fmt.Sprintf("the session is there, and of its programs only %v ran", ran)
				}
				return ""
			})
			if session(r.snapshot(), c.Name) == nil {
				never = append(never, programs...)
			}
		}
		if len(never) == 0 {
			r.t.Error("no create was killed in the middle")
		}
		r.neverRan(never...)
		for _, name := range r.names() {
			if name != "base" && name != "barrier" && !strings.HasPrefix(name, "k") {
				r.t.Errorf("a session %q is left", name)
			}
		}
		// And the server is as usable as before.
		r.create(r.whole("after", 2, 3))
	}},
	{name: "spawn", programs: true, run: func(r *rig) {
		if r.Child == nil {
			r.t.Skip("this body has no clients in other processes")
		}
		r.create(r.one("base"))
		wanted := map[string]bool{string(record("base")): true}
		const n = 30
		for i := range n {
			wanted[string(record(fmt.Sprintf("p%d", i)))] = true
		}
		wanted[string(record("kept"))] = true
		stop := r.observe(func(w *host.Workspace) string { return consistent(w, wanted) })
		whole := r.took(order{Spawn: &host.Spawn{Session: "base", Pane: r.stay("kept")}})
		var never []string
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			r.kill(order{Spawn: &host.Spawn{Session: "base", Pane: r.stay(name)}}, whole*time.Duration(i+1)/n)
			there := false
			r.until(func() string {
				w := r.snapshot()
				there = false
				for _, win := range session(w, "base").Windows {
					for _, p := range win.Panes {
						there = there || string(p.Meta[metadata.KeyAgentSession]) == string(record(name))
					}
				}
				if ran := len(r.runs(name)) == 1; ran != there {
					return fmt.Sprintf("pane %s is there: %v, its program ran: %v", name, there, ran)
				}
				return ""
			})
			if !there {
				never = append(never, name)
			}
		}
		stop()
		if len(never) == 0 {
			r.t.Error("no spawn was killed in the middle")
		}
		r.neverRan(never...)
	}},
}
