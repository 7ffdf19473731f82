package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Bounds of watching, where the configuration does not say.
const (
	settleTime   = 2 * time.Second  // an agent that lived so long runs
	deadlineTime = 30 * time.Second // of the whole watch
	lookAgain    = 20 * time.Millisecond
)

// WatchProcesses is Env.Watch for hosts whose terminals are processes of this machine.
func WatchProcesses(ctx context.Context, pids []int, settle time.Duration) error {
	ids := make([]proc.ID, 0, len(pids))
	for _, pid := range pids {
		// A process that is gone by now is for the snapshot to see.
		if info, err := proc.Stat(pid); err == nil {
			ids = append(ids, info.ID())
		}
	}
	_, err := proc.WatchExit(ctx, ids, settle)
	if errors.Is(err, proc.ErrUnsupported) {
		return pause(ctx, settle)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e Env) times() (settle, deadline time.Duration) {
	settle, deadline = settleTime, deadlineTime
	if e.Config != nil {
		if n := e.Config.Restore.SettleMillis; n > 0 {
			settle = time.Duration(n) * time.Millisecond
		}
		if n := e.Config.Restore.DeadlineSecs; n > 0 {
			deadline = time.Duration(n) * time.Second
		}
	}
	return settle, deadline
}

// watch waits until each agent runs or has exited. Running is said of those only that the host
// was seen to hold alive once the settle time was over.
func (k *work) watch(ctx context.Context) {
	settle, deadline := k.e.times()
	ctx, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	wait := k.e.Watch
	if wait == nil {
		wait = func(ctx context.Context, _ []int, settle time.Duration) error { return pause(ctx, settle) }
	}
	left := k.agents
	for len(left) > 0 {
		pids := make([]int, len(left))
		for i, a := range left {
			pids[i] = a.started.PID
		}
		if wait(ctx, pids, settle) != nil {
			break
		}
		seen, err := look(ctx, k.e.Host)
		if err != nil {
			break
		}
		var next []*running
		for _, a := range left {
			if !k.judge(ctx, a, seen) {
				next = append(next, a)
			}
		}
		left = next
	}
	for _, a := range left {
		a.report.Reason = join(a.report.Reason, "started, and not seen running in time")
	}
}

// look is the view, until ctx is done.
func look(ctx context.Context, h host.Host) (map[string]host.Pane, error) {
	for {
		v, err := view(ctx, h)
		if err == nil {
			seen := map[string]host.Pane{}
			for _, s := range v.Sessions {
				for _, w := range s.Windows {
					for _, p := range w.Panes {
						seen[p.Terminal.ID] = p
					}
				}
			}
			return seen, nil
		}
		if !errors.Is(err, host.ErrChanged) {
			return nil, err
		}
		if err := pause(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

// judge says what became of an agent, or that it cannot be said yet.
func (k *work) judge(ctx context.Context, a *running, seen map[string]host.Pane) (done bool) {
	p, there := seen[a.started.Terminal.ID]
	how := ""
	switch {
	case !there, p.Terminal.Instance != a.started.Terminal.Instance:
		how = "its pane is gone"
	case p.Origin == host.Replaced:
		how = "another program was put in its place"
	case p.Dead:
		how = "it exited" + status(p.Exit)
	case p.Origin == host.Ended:
		how = "it exited with 0"
	case p.Waiting:
		return false
	default:
		a.report.result(Running)
		return true
	}
	a.report.result(Exited)
	a.report.Reason = how
	if r, ok := k.e.Host.(host.Reader); ok && there {
		if words, err := r.LastWords(ctx, a.started.Terminal, 2*maxWords); err == nil {
			if words = squeeze(words); words != "" {
				a.report.Reason += ": " + bound(words)
			}
		}
	}
	if rec := a.report.Record; rec != nil {
		a.report.Hint = "the record is kept; to try again: " + resumeHint(rec.Identity())
	}
	return true
}

func status(e *host.Exit) string {
	switch {
	case e == nil:
		return ""
	case e.Signal != "":
		return " by signal " + e.Signal
	case e.Status >= 0:
		return fmt.Sprintf(" with %d", e.Status)
	}
	return ""
}

// squeeze makes one line of a screen.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " / ")
}
