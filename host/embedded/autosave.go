package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

var _ host.Autosaver = (*Host)(nil)

// Saves are what a server calls when what it holds changes, and from time to time without a change.
type Saves struct {
	// Call starts a save and does not wait for it: why is host.ChangeTick or host.BeatTick. Nil: this
	// server cannot save by itself.
	Call                func(why string)
	Debounce, Heartbeat time.Duration
	Settle              time.Duration // how long after the save of a change one more comes; 0: none
	On                  bool          // from the start
}

// autosaveKey is a value of the server's own in which anybody may say that it is to save by itself, or
// not. It holds no authority: what is called is the server's.
const autosaveKey = metadata.Key("phux.agent-autosave/v1")

// saving reports whether the server saves by itself now. The lock is held.
func (s *Server) saving() bool {
	if s.opt.Saves.Call == nil {
		return false
	}
	switch string(s.globals[autosaveKey]) {
	case string(host.SettingOn):
		return true
	case string(host.SettingOff):
		return false
	}
	return s.opt.Saves.On
}

// due has the workspace saved some time after a change: one save for all that changes until then.
// The lock is held.
func (s *Server) due() {
	if s.saveDue || s.closing || !s.saving() {
		return
	}
	s.saveDue = true
	time.AfterFunc(max(s.opt.Saves.Debounce, time.Second), func() {
		s.mu.Lock()
		s.saveDue = false
		on := s.saving() && !s.closing
		s.mu.Unlock()
		if on {
			s.opt.Saves.Call(host.ChangeTick)
			s.settle()
		}
	})
}

// settle looks once more after a change, also where nothing changes meanwhile: a loss may be one, or
// the beginning of a shutdown.
func (s *Server) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settleDue || s.opt.Saves.Settle <= 0 {
		return
	}
	s.settleDue = true
	time.AfterFunc(s.opt.Saves.Settle, func() {
		s.mu.Lock()
		s.settleDue = false
		on := s.saving() && !s.closing
		s.mu.Unlock()
		if on {
			s.opt.Saves.Call(host.ChangeTick)
		}
	})
}

// beat saves without a change, until the server ends.
func (s *Server) beat() {
	if s.opt.Saves.Call == nil {
		return
	}
	t := time.NewTicker(max(s.opt.Saves.Heartbeat, time.Second))
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.mu.Lock()
			on := s.saving() && len(s.sessions) > 0 && !s.closing
			s.mu.Unlock()
			if on {
				s.opt.Saves.Call(host.BeatTick)
			}
		}
	}
}

// SetAutosave turns it on, with what the server was started with.
func (h *Host) SetAutosave(ctx context.Context, _ host.Autosave) error {
	return h.sayAutosave(ctx, host.SettingOn)
}

// StopAutosave turns it off.
func (h *Host) StopAutosave(ctx context.Context) error {
	return h.sayAutosave(ctx, host.SettingOff)
}

func (h *Host) sayAutosave(ctx context.Context, v host.Setting) error {
	return h.with(ctx, "autosave", func(c *Client) error {
		_, err := c.call(ctx, fields{keyKind: kindSet, metaKey: string(autosaveKey), metaValue: []byte(v)})
		return err
	})
}

// AutosaveState says what was said; nothing where nobody did, for the server's configuration then
// decides.
func (h *Host) AutosaveState(ctx context.Context) (s host.AutosaveState, err error) {
	err = h.with(ctx, "autosave", func(c *Client) error {
		f, err := c.call(ctx, fields{keyKind: kindGet, metaKey: string(autosaveKey)})
		if err != nil {
			return err
		}
		m := reading{fields: f}
		v := host.Setting(m.data(metaValue))
		if m.err != nil {
			return m.err
		}
		switch v {
		case host.SettingNo:
		case host.SettingOn, host.SettingOff:
			s.Setting = v
		default:
			return fmt.Errorf("%w: autosave is %q", host.ErrRequest, v)
		}
		return nil
	})
	return s, err
}

// Tick is host.Autosaver: the server itself knows which of its calls are due.
func (h *Host) Tick(ctx context.Context, _ string, _ *host.Autosave) (bool, error) {
	s, err := h.AutosaveState(ctx)
	return err == nil && s.Setting != host.SettingOff, err
}

// Again is host.Autosaver: the server itself looks once more after each change (Saves.Settle).
func (h *Host) Again(context.Context, string, time.Duration) error { return nil }
