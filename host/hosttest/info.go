package hosttest

import (
	"context"
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

var infoTests = []test{
	{name: "no server", run: func(r *rig) {
		info, err := r.Host.Info(r.ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if info.Running || info.Instance != (host.Instance{}) {
			r.t.Errorf("before anything was created: %+v", info)
		}
		if info.Kind == "" || info.Version == "" || info.Server == "" {
			r.t.Errorf("no kind, version or server: %+v", info)
		}
		if _, err := r.Host.Snapshot(r.ctx); !errors.Is(err, host.ErrNoServer) {
			r.t.Errorf("snapshot: %v", err)
		}
		if _, _, err := host.Look(r.ctx, r.Host); !errors.Is(err, host.ErrNoServer) {
			r.t.Errorf("look: %v", err)
		}
		if _, err := r.Host.Spawn(r.ctx, host.Spawn{Session: "work", Pane: r.stay("a")}); !errors.Is(err, host.ErrNoServer) && !errors.Is(err, host.ErrNoSession) {
			r.t.Errorf("spawn: %v", err)
		}
		if info, err := r.Host.Info(r.ctx); err != nil || info.Running {
			r.t.Errorf("asking started a server: %+v, %v", info, err)
		}
		r.neverRan("a")
	}},
	{name: "server", run: func(r *rig) {
		before, err := r.Host.Info(r.ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		// A body that is run here stores records inside the spawn, and says so before.
		if !before.AtomicRecord {
			r.t.Error("AtomicRecord is not said before anything is created")
		}
		out := r.create(r.one("work"))
		info, err := r.Host.Info(r.ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if !info.Running || !info.AtomicRecord || info.Server != before.Server || info.Kind != before.Kind {
			r.t.Errorf("%+v, before %+v", info, before)
		}
		if i := info.Instance; i.Kind != info.Kind || i.Socket == "" || i.PID == 0 || i.Start == "" || i.Boot == "" {
			r.t.Errorf("instance %+v", i)
		}
		if got := out.Windows[0][0].Terminal.Instance; got != info.Instance {
			r.t.Errorf("terminal of %+v, server is %+v", got, info.Instance)
		}
		if got := r.snapshot().Instance; got != info.Instance {
			r.t.Errorf("snapshot of %+v, server is %+v", got, info.Instance)
		}
		if l, ok := r.Host.(host.Looker); ok && l.ServerName() != info.Server {
			r.t.Errorf("the name of the server is %q, and %q before it is asked", info.Server, l.ServerName())
		}
		seen, w, err := host.Look(r.ctx, r.Host)
		if err != nil {
			r.t.Fatal(err)
		}
		if d := cmp.Diff(info, seen); d != "" {
			r.t.Errorf("a look says of the host (-info +look):\n%s", d)
		}
		if w.Instance != info.Instance || len(w.Sessions) != 1 || w.Sessions[0].Name != "work" {
			r.t.Errorf("a look sees %+v", w)
		}
		if other, err := r.second().Info(r.ctx); err != nil || other.Instance != info.Instance {
			r.t.Errorf("the second client sees %+v, %v", other, err)
		}
	}},
	{name: "restart", run: func(r *rig) {
		old := r.create(r.one("work")).Windows[0][0].Terminal
		r.Restart(r.t)
		r.until(func() string {
			if _, err := look(r.ctx, r.Host); !errors.Is(err, host.ErrNoServer) {
				return "the server still runs"
			}
			return ""
		})
		refused := func(err error) bool {
			return errors.Is(err, host.ErrNoServer) || errors.Is(err, host.ErrStale)
		}
		if err := r.Host.Kill(r.ctx, old); !refused(err) {
			r.t.Errorf("kill without a server: %v", err)
		}
		now := r.create(r.one("work")).Windows[0][0].Terminal
		if now == old {
			r.t.Fatalf("terminal %v in two lives", now)
		}
		// Same id, other life: it must not reach the terminal that has the id now.
		old.ID = now.ID
		if err := r.Host.Kill(r.ctx, old); !errors.Is(err, host.ErrStale) {
			r.t.Errorf("kill: %v", err)
		}
		if err := r.Host.Swap(r.ctx, old, metadata.KeyAgentSession, record("work"), record("x")); !errors.Is(err, host.ErrStale) {
			r.t.Errorf("swap: %v", err)
		}
		if _, err := r.Host.Spawn(r.ctx, host.Spawn{Place: host.SplitH, Target: old, Pane: r.stay("late")}); !errors.Is(err, host.ErrStale) {
			r.t.Errorf("split: %v", err)
		}
		if h, ok := r.Host.(host.Reader); ok {
			if _, err := h.LastWords(r.ctx, old, 100); !errors.Is(err, host.ErrStale) {
				r.t.Errorf("last words: %v", err)
			}
		}
		if h, ok := r.Host.(host.Focuser); ok {
			if err := h.Focus(r.ctx, old); !errors.Is(err, host.ErrStale) {
				r.t.Errorf("focus: %v", err)
			}
		}
		if h, ok := r.Host.(host.Binder); ok {
			if err := h.Bind(r.ctx, old, 1, 1, records("x")); !errors.Is(err, host.ErrStale) {
				r.t.Errorf("bind: %v", err)
			}
		}
		if got := r.pane(now).Meta[metadata.KeyAgentSession]; string(got) != string(record("work")) {
			r.t.Errorf("record is %q", got)
		}
		r.neverRan("late")
	}},
	{name: "cancelled", run: func(r *rig) {
		r.create(r.one("work"))
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		if _, err := r.Host.Info(ctx); err == nil {
			r.t.Error("info answers")
		}
		if _, err := r.Host.Snapshot(ctx); err == nil {
			r.t.Error("snapshot answers")
		}
		if _, err := r.Host.Create(ctx, r.one("late")); err == nil {
			r.t.Error("create answers")
		}
		if _, err := r.Host.Spawn(ctx, host.Spawn{Session: "work", Pane: r.stay("later")}); err == nil {
			r.t.Error("spawn answers")
		}
		if got := r.names(); len(got) != 1 || len(r.session("work").Windows) != 1 {
			r.t.Errorf("sessions %v", got)
		}
		r.neverRan("late", "later")
	}},
}
