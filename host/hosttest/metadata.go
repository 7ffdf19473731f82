package hosttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// values are what no host may change a byte of.
func values() map[string][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	long := make([]byte, metadata.MaxRecord)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range long {
		long[i] = byte(random.Uint32())
	}
	out := map[string][]byte{"every byte": all, "longest": long, "longest text": bytes.Repeat([]byte(`"`), metadata.MaxRecord)}
	for _, s := range []string{
		"$ ; # \\ ' \" {} % \n", "end;", "end\\;", ";", " ", "\n", "\t", "\\", "'", `"`, "%", "%%", "#", "##", "#{pid}", "#(touch /tmp/x)", "#[fg=red]",
		"$HOME", "`id`", "-x", "--", "~", "{", "}", "{a}", "=", "a=b", "0", "none", "\x00", "\xff", "\xc3\x28", "ünïcödé 漢字 🙂", "\u202eabc", "\x1b[31m", "%end 1 1 0", "\r\n",
		`{"native_id":"a;b'c\"d$e#{f}"}`,
	} {
		out[fmt.Sprintf("%q", s)] = []byte(s)
	}
	return out
}

// current polls until the value of a key is as wanted; nil is absent.
func (r *rig) holds(t host.Terminal, k metadata.Key, want []byte) {
	r.t.Helper()
	got, there := r.pane(t).Meta[k]
	if !bytes.Equal(got, want) || there != (want != nil) {
		r.t.Errorf("%s is %q (there: %v), not %q", k, got, there, want)
	}
}

var metadataTests = []test{
	{name: "spawned byte for byte", run: func(r *rig) {
		r.create(r.one("work"))
		for name, v := range values() {
			meta := map[metadata.Key][]byte{
				metadata.KeyAgentSession: v,
				metadata.KeyAgentLaunch:  append([]byte("launch "), v...),
			}
			out := r.spawn(host.Spawn{Session: "work", Background: true, Pane: host.PaneSpec{
				Start: r.program("p", "stay"), Meta: meta,
			}})
			if diff := cmp.Diff(meta, out.Meta); diff != "" {
				r.t.Errorf("%s: read back (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(meta, r.pane(out.Terminal).Meta); diff != "" {
				r.t.Errorf("%s: seen (-want +got):\n%s", name, diff)
			}
			if err := r.Host.Kill(r.ctx, out.Terminal); err != nil {
				r.t.Fatal(err)
			}
		}
	}},
	{name: "created byte for byte", run: func(r *rig) {
		var panes []host.PaneSpec
		for _, v := range values() {
			panes = append(panes, host.PaneSpec{
				Start: r.program("p", "stay"),
				Meta:  map[metadata.Key][]byte{metadata.KeyAgentSession: v, metadata.KeyAgent: v},
			})
		}
		c := sessionOf("work", panes...)
		r.create(c)
		if diff := lacks(r.session("work"), c); diff != "" {
			r.t.Error(diff)
		}
	}},
	{name: "swapped byte for byte", run: func(r *rig) {
		t := r.create(r.one("work")).Windows[0][0].Terminal
		old := record("work")
		for name, v := range values() {
			if err := r.Host.Swap(r.ctx, t, metadata.KeyAgentSession, old, v); err != nil {
				r.t.Fatalf("%s: %v", name, err)
			}
			r.holds(t, metadata.KeyAgentSession, v)
			old = v
		}
	}},
	{name: "swap", run: func(r *rig) {
		out := r.create(r.whole("work", 1, 2))
		t, beside := out.Windows[0][0].Terminal, out.Windows[0][1].Terminal
		birth, k := record("work-0-0"), metadata.KeyAgentSession
		swap := func(h host.Host, k metadata.Key, old, new []byte, want error) {
			r.t.Helper()
			if err := h.Swap(r.ctx, t, k, old, new); !errors.Is(err, want) {
				r.t.Errorf("swap %q for %q: %v, not %v", old, new, err, want)
			}
		}
		a, b := []byte("a"), []byte("b")
		swap(r.Host, k, nil, a, host.ErrConflict)
		swap(r.Host, k, a, b, host.ErrConflict)
		swap(r.Host, k, birth[:len(birth)-1], b, host.ErrConflict)
		r.holds(t, k, birth)
		swap(r.Host, k, birth, a, nil)
		r.holds(t, k, a)
		swap(r.Host, k, birth, b, host.ErrConflict)
		swap(r.second(), k, a, b, nil)
		r.holds(t, k, b)
		// A tombstone: the value of birth does not come back.
		swap(r.Host, k, b, nil, nil)
		r.holds(t, k, nil)
		swap(r.Host, k, birth, a, host.ErrConflict)
		swap(r.Host, k, b, a, host.ErrConflict)
		r.holds(t, k, nil)
		swap(r.Host, k, nil, nil, nil)
		swap(r.Host, k, nil, a, nil)
		r.holds(t, k, a)
		// A key that the spawn did not have.
		swap(r.Host, metadata.KeyAgent, a, b, host.ErrConflict)
		swap(r.Host, metadata.KeyAgent, nil, a, nil)
		r.holds(t, metadata.KeyAgent, a)
		r.holds(t, k, a)
		swap(r.Host, metadata.KeyAgent, a, nil, nil)
		r.holds(t, metadata.KeyAgent, nil)
		swap(r.Host, k, a, bytes.Repeat([]byte("x"), metadata.MaxRecord+1), host.ErrRequest)
		r.holds(t, k, a)
		if diff := cmp.Diff(records("work-0-1"), r.pane(beside).Meta); diff != "" {
			r.t.Errorf("the pane beside (-want +got):\n%s", diff)
		}
	}},
	{name: "swap has one winner", run: func(r *rig) {
		t := r.create(r.one("work")).Windows[0][0].Terminal
		clients := []host.Host{r.Host, r.second()}
		old := record("work")
		for round := range 10 {
			errs := make([]error, 6)
			value := func(i int) []byte { return fmt.Appendf(nil, "round %d by %d", round, i) }
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { errs[i] = clients[i%2].Swap(r.ctx, t, metadata.KeyAgentSession, old, value(i)) })
			}
			all.Wait()
			winner := -1
			for i, err := range errs {
				switch {
				case err == nil && winner < 0:
					winner = i
				case err == nil:
					r.t.Fatalf("round %d has two winners", round)
				case !errors.Is(err, host.ErrConflict):
					r.t.Errorf("round %d: %v", round, err)
				}
			}
			if winner < 0 {
				r.t.Fatalf("round %d has no winner", round)
			}
			old = value(winner)
			r.holds(t, metadata.KeyAgentSession, old)
		}
	}},
	{name: "dies with its terminal", run: func(r *rig) {
		r.create(r.one("base"))
		for i := range 5 {
			name := fmt.Sprintf("p%d", i)
			t := r.spawn(host.Spawn{Session: "base", Pane: r.stay(name)}).Terminal
			if err := r.Host.Kill(r.ctx, t); err != nil {
				r.t.Fatal(err)
			}
			fresh := r.spawn(host.Spawn{Session: "base", Pane: host.PaneSpec{Start: r.program("q", "stay")}}).Terminal
			if got := r.pane(fresh).Meta; len(got) > 0 {
				r.t.Errorf("a new terminal has %q", got)
			}
		}
		r.Restart(r.t)
		r.until(func() string {
			if _, err := look(r.ctx, r.Host); !errors.Is(err, host.ErrNoServer) {
				return "the server still runs"
			}
			return ""
		})
		bare := r.create(sessionOf("base", host.PaneSpec{Start: r.program("q", "stay")})).Windows[0][0].Terminal
		if got := r.pane(bare).Meta; len(got) > 0 {
			r.t.Errorf("a terminal of the next life has %q", got)
		}
	}},
	{name: "follows its terminal", run: func(r *rig) {
		if r.Move == nil {
			r.t.Skip("this body cannot move a terminal")
		}
		out := r.create(r.whole("work", 2, 2))
		t := out.Windows[0][0].Terminal
		if err := r.Host.Swap(r.ctx, t, metadata.KeyAgent, nil, []byte("put later")); err != nil {
			r.t.Fatal(err)
		}
		r.Move(r.t, t)
		s := r.session("work")
		if len(s.Windows) != 3 {
			r.t.Fatalf("%d windows after the move", len(s.Windows))
		}
		r.holds(t, metadata.KeyAgentSession, record("work-0-0"))
		r.holds(t, metadata.KeyAgent, []byte("put later"))
		if p := r.pane(t); p.Origin != host.Ours || p.Nonce != out.Windows[0][0].Nonce {
			r.t.Errorf("moved, it is %+v", p)
		}
		for w, row := range out.Windows {
			for p, started := range row {
				r.holds(started.Terminal, metadata.KeyAgentSession, record(fmt.Sprintf("work-%d-%d", w, p)))
			}
		}
		if err := r.Host.Swap(r.ctx, t, metadata.KeyAgentSession, record("work-0-0"), []byte("moved")); err != nil {
			r.t.Error(err)
		}
		r.holds(t, metadata.KeyAgentSession, []byte("moved"))
	}},
	{name: "replaced", run: func(r *rig) {
		if r.Respawn == nil {
			r.t.Skip("this body cannot respawn a terminal")
		}
		t := r.create(r.one("work")).Windows[0][0].Terminal
		r.Respawn(r.t, t)
		r.until(func() string {
			if p := r.pane(t); p.Origin != host.Replaced {
				return fmt.Sprintf("it is %+v", p)
			}
			return ""
		})
	}},
	{name: "bound", programs: true, run: func(r *rig) {
		b, ok := r.Host.(host.Binder)
		if !ok {
			r.t.Skip("this body binds nothing")
		}
		t := r.create(sessionOf("work", host.PaneSpec{})).Windows[0][0].Terminal
		if p := r.pane(t); p.Origin != host.Foreign || len(p.Meta) > 0 || p.Nonce != "" {
			r.t.Errorf("a shell is %+v", p)
		}
		start := r.program("bound", "stay")
		cmd := exec.Command(start.Argv[0], start.Argv[1:]...)
		if err := cmd.Start(); err != nil {
			r.t.Fatal(err)
		}
		ended := sync.OnceFunc(func() {
			_ = cmd.Process.Signal(os.Kill)
			_ = cmd.Wait()
		})
		defer ended()
		began, err := proc.StartTime(cmd.Process.Pid)
		if err != nil {
			r.t.Fatal(err)
		}
		meta := map[metadata.Key][]byte{metadata.KeyAgentSession: values()["every byte"], metadata.KeyAgentLaunch: []byte("l")}
		if err := b.Bind(r.ctx, t, cmd.Process.Pid, began, meta); err != nil {
			r.t.Fatal(err)
		}
		p := r.pane(t)
		if p.Origin != host.Bound || p.BoundPID != cmd.Process.Pid || p.BoundStart != began {
			r.t.Errorf("bound, it is %+v", p)
		}
		if diff := cmp.Diff(meta, p.Meta); diff != "" {
			r.t.Errorf("bound (-want +got):\n%s", diff)
		}
		if err := r.Host.Swap(r.ctx, t, metadata.KeyAgentSession, meta[metadata.KeyAgentSession], []byte("new")); err != nil {
			r.t.Error(err)
		}
		r.holds(t, metadata.KeyAgentSession, []byte("new"))
		ended()
		r.until(func() string {
			if p := r.pane(t); p.Origin != host.BoundGone {
				return fmt.Sprintf("after its process ended it is %+v", p)
			}
			return ""
		})
	}},
}
