package restore

import (
	"context"
	"errors"
	"testing"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
)

// asked counts the questions, and is a Looker.
type asked struct {
	host.Host
	infos, snapshots, looks int
}

func (a *asked) Info(ctx context.Context) (host.Info, error) { a.infos++; return a.Host.Info(ctx) }

func (a *asked) Snapshot(ctx context.Context) (*host.Workspace, error) {
	a.snapshots++
	return a.Host.Snapshot(ctx)
}

func (a *asked) ServerName() string { return "memory" }

func (a *asked) Look(ctx context.Context) (host.Info, *host.Workspace, error) {
	a.looks++
	return host.Look(ctx, a.Host)
}

// TestSee: what the caller knows of the host is not asked again, and is not believed of another
// life of it.
func TestSee(t *testing.T) {
	ctx := context.Background()
	s := newStage(t)
	a := &asked{Host: s.h}
	e := s.e
	e.Host = a

	none, err := s.h.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e.Info = &none
	f := &Facts{}
	if err := f.see(ctx, e); err != nil || f.View == nil || a.infos+a.snapshots+a.looks != 0 {
		t.Fatalf("without a server: %+v, %v, asked %+v", f, err, *a)
	}
	p := &Plan{Host: none}
	one := host.CreateSession{Name: "work", Windows: []host.WindowSpec{{Name: "w", Layout: host.Cell{Cols: 80, Rows: 24}, Panes: []host.PaneSpec{{}}}}}
	if _, err := s.h.Create(ctx, one); err != nil {
		t.Fatal(err)
	}
	var stale *StaleError
	if _, err := Apply(ctx, e, p); !errors.As(err, &stale) {
		t.Fatalf("a server came since: %v", err)
	}

	*a = asked{Host: s.h}
	if err := f.see(ctx, e); err != nil || f.Host.Running || len(f.View.Sessions) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	life, err := s.h.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e.Info = &life
	if err := f.see(ctx, e); err != nil || f.Host.Instance != f.View.Instance || a.infos != 0 || a.snapshots != 1 {
		t.Fatalf("of the same life: %+v, %v, asked %+v", f, err, *a)
	}
	s.h.Restart()
	if _, err := s.h.Create(ctx, one); err != nil {
		t.Fatal(err)
	}
	*a = asked{Host: s.h}
	if err := f.see(ctx, e); err != nil || f.Host.Instance != f.View.Instance || f.Host.Instance == life.Instance || a.infos != 1 {
		t.Fatalf("of another life: %+v, %v, asked %+v", f, err, *a)
	}

	*a = asked{Host: s.h}
	if _, err := Apply(ctx, e, &Plan{Source: Source{Archive: &archive.Archive{}}, Host: f.Host}); err != nil || a.looks != 1 || a.infos+a.snapshots != 0 {
		t.Fatalf("apply: %v, asked %+v", err, *a)
	}
}
