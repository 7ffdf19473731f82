package restore

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// beginTime is how long the shells of a server that has just begun may take to stand idle: they
// read their own configuration.
const (
	beginTime  = 3 * time.Second
	beginEvery = 100 * time.Millisecond
)

// again plans anew what could not be made because this very restore started the server, and the
// server's configuration made sessions of those names: nobody could know of them before. What is
// one idle shell among them makes room like any other; the rest is left as it is, for its reasons.
func (k *work) again(ctx context.Context, r *Report) {
	var late []int
	for i := range r.Sessions {
		if k.p.Sessions[i].Action == Create && r.Sessions[i].Action == SkipExisting {
			late = append(late, i)
		}
	}
	if len(late) == 0 || k.p.Host.Instance != (host.Instance{}) {
		return
	}
	info, _, err := k.e.probe(ctx)
	if err != nil || info.Instance == k.p.Host.Instance {
		return
	}
	e := k.e
	e.Info = &info
	for end := time.Now().Add(beginTime); ; {
		f, err := Gather(ctx, e, k.p.Source, k.p.Options)
		if err != nil {
			return // what is known of them stays true
		}
		if f.begins() && time.Now().Before(end) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(beginEvery):
			}
			continue
		}
		p, err := Make(k.p.Source, f, k.p.Options)
		if err != nil {
			return
		}
		k.p = p
		break
	}
	k.takenKeys(ctx, nil)
	now := k.p.report()
	for _, i := range late {
		r.Sessions[i] = now.Sessions[i]
		k.one(ctx, &k.p.Sessions[i], &r.Sessions[i])
	}
}

// begins reports a shell in the place of a session that is not idle.
func (f *Facts) begins() bool {
	for _, err := range f.Husks {
		if errors.Is(err, proc.ErrNotIdle) {
			return true
		}
	}
	return false
}

// waits says of a pane that was to come back that its session was not made.
func (p *PaneReport) waits() {
	if p.Record != nil && p.Verdict != EndedPane {
		p.Verdict, p.Reason, p.Hint = PendingPane, "its session was not made, and its record waits for the next restore", ""
	}
}
