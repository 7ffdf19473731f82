package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/spool"
)

// spool is where the reports wait that name a pane of this server.
func (a *app) spool(h *hosted) spool.Box {
	d, err := a.dirs()
	if err != nil {
		return spool.Box{}
	}
	server, err := serverName(h)
	if err != nil {
		return spool.Box{}
	}
	return spool.Box{Dir: filepath.Join(d.Runtime, "heard", server)}
}

// noted puts a report down before the work that may take too long. Nil where it names no
// conversation: then nothing is lost with it. An error where it could not be put down.
func (a *app) noted(box spool.Box, rep *capture.Report, at time.Time) (*spool.Note, error) {
	rep.Settle = nil
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	own, err := reg.Resolve(rep.Integration)
	if err != nil {
		return nil, nil // which the report is refused for
	}
	id, err := owner.Heard(own.Template, rep.Event, rep.Payload)
	if err != nil || id == "" {
		return nil, nil
	}
	n := &spool.Note{At: at, Integration: rep.Integration, Event: rep.Event, ID: id, From: rep.From}
	if err := box.Put(n); err != nil {
		return nil, err
	}
	rep.Settle = func(agent owner.Process) error { return box.Settle(n, agent) }
	return n, nil
}

// judged reports that a report was taken in or refused, and need not be heard again.
func judged(err error) bool {
	var refused *capture.RefusedError
	return err == nil || errors.Is(err, owner.ErrEvent) || errors.As(err, &refused)
}

// takeIn takes in what hooks of this server's agents were told and had no time for, by the same
// proof. What the host gives no answer to stays.
func (a *app) takeIn(ctx context.Context, h *hosted, req capture.Request) {
	box := a.spool(h)
	for _, n := range box.Left() {
		rep := capture.Report{
			Integration: n.Integration, Event: n.Event, From: n.From, Said: n.ID,
			Settle: func(agent owner.Process) error { return box.Settle(n, agent) },
		}
		heard, err := capture.Hear(ctx, req, rep)
		if !judged(err) {
			continue
		}
		box.Remove(n)
		word := fmt.Sprintf("late, told at %s by process %d: ", n.At.UTC().Format(time.RFC3339), n.From.PID)
		args := []string{n.Integration, n.Event}
		switch {
		case err != nil:
			a.hookLog(args, word+"refused: "+err.Error())
		case heard.Changed != "":
			a.hookLog(args, fmt.Sprintf("%spane %s: %s, now %s", word, heard.Terminal.ID, heard.Changed, heard.ID))
		}
	}
}
