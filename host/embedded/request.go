package embedded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Keys of a start.
const (
	startMode   = 1
	startArgv   = 2
	startDir    = 3
	startSet    = 4
	startUnset  = 5
	startAfter  = 6
	startGuard  = 7
	startReason = 8
	startHint   = 9
	startAsk    = 10
	startFore   = 11
)

func startFields(s host.Start) fields {
	return fields{
		startMode: int(s.Mode), startArgv: s.Argv, startDir: []byte(s.Dir), startSet: s.Set, startUnset: s.Unset,
		startAfter: s.AfterExit, startGuard: s.Guard, startReason: []byte(s.Reason), startHint: []byte(s.Hint),
		startAsk: s.Ask, startFore: []byte(s.Preface),
	}
}

func readStart(f fields) (host.Start, error) {
	r := reading{fields: f}
	s := host.Start{
		Mode: host.Mode(r.number(startMode)), Argv: r.words(startArgv), Dir: r.text(startDir),
		Set: r.words(startSet), Unset: r.words(startUnset), AfterExit: r.text(startAfter),
		Guard: r.data(startGuard), Reason: r.text(startReason), Hint: r.text(startHint), Ask: r.text(startAsk), Preface: r.text(startFore),
	}
	return s, r.err
}

func paneFields(p host.PaneSpec) fields {
	return fields{
		spawnStart: startFields(p.Start), spawnTitle: p.Title,
		spawnRecord: p.Meta[metadata.KeyAgentSession], spawnMeta: metaFields(p.Meta),
	}
}

func readPane(f fields) (p host.PaneSpec, err error) {
	r := reading{fields: f}
	if p.Start, err = readStart(r.sub(spawnStart)); err != nil {
		return p, err
	}
	p.Title = r.text(spawnTitle)
	record, list := r.data(spawnRecord), r.maps(spawnMeta)
	if r.err != nil {
		return p, r.err
	}
	// The envelope of a record that is there is 1 to 4096 bytes; Check has the upper bound.
	if r.has(spawnRecord) && len(record) == 0 {
		return p, fmt.Errorf("%w: an empty record", host.ErrRequest)
	}
	p.Meta, err = readMeta(record, list)
	return p, err
}

func spawnFields(s host.Spawn) fields {
	f := paneFields(s.Pane)
	f[keyKind] = kindSpawn
	f[spawnPlace] = int(s.Place)
	f[spawnSession] = s.Session
	f[spawnTarget] = s.Target.ID
	f[spawnWindow] = s.WindowName
	f[spawnBackground] = s.Background
	return f
}

// readSpawn reads a spawn as it stands on the wire; the target's instance is the server's own.
func readSpawn(f fields, here host.Instance) (s host.Spawn, err error) {
	if s.Pane, err = readPane(f); err != nil {
		return s, err
	}
	r := reading{fields: f}
	s.Place = host.Place(r.number(spawnPlace))
	s.Session = r.text(spawnSession)
	if s.Place != host.NewWindow {
		s.Target = host.Terminal{Instance: here, ID: r.text(spawnTarget)}
	}
	s.WindowName = r.text(spawnWindow)
	s.Background = r.flag(spawnBackground)
	satellite := r.text(spawnSatellite)
	if r.err != nil {
		return s, r.err
	}
	if satellite != "" {
		return s, ErrSatellite
	}
	return s, nil
}

// Keys of the envelope of a create, and of its windows.
const (
	envelopeToken    = 1
	envelopeName     = 2
	envelopeDir      = 3
	envelopeWindows  = 4
	envelopeActive   = 5
	envelopeParallel = 6

	windowName      = 1
	windowIndex     = 2 // one more than the index: none is the next free one
	windowAutomatic = 3
	windowZoomed    = 4
	windowLayout    = 5
	windowPanes     = 6
	windowActive    = 7
)

func createFields(token string, c host.CreateSession) fields {
	var windows []fields
	for _, w := range c.Windows {
		var panes []fields
		for _, p := range w.Panes {
			panes = append(panes, paneFields(p))
		}
		windows = append(windows, fields{
			windowName: w.Name, windowIndex: w.Index + 1, windowAutomatic: w.AutomaticName, windowZoomed: w.Zoomed,
			windowLayout: w.Layout.String(), windowPanes: panes, windowActive: w.Active,
		})
	}
	return fields{
		envelopeToken: token, envelopeName: c.Name, envelopeDir: []byte(c.Dir), envelopeWindows: windows,
		envelopeActive: c.Active, envelopeParallel: c.Parallel,
	}
}

func readCreate(value []byte) (token string, c host.CreateSession, err error) {
	f, err := decodeFields(value)
	if err != nil {
		return "", c, err
	}
	r := reading{fields: f}
	token = r.text(envelopeToken)
	c.Name, c.Dir = r.text(envelopeName), r.text(envelopeDir)
	c.Active, c.Parallel = r.number(envelopeActive), r.number(envelopeParallel)
	for _, m := range r.maps(envelopeWindows) {
		wr := reading{fields: m}
		w := host.WindowSpec{
			Name: wr.text(windowName), Index: wr.number(windowIndex) - 1, AutomaticName: wr.flag(windowAutomatic),
			Zoomed: wr.flag(windowZoomed), Active: wr.number(windowActive),
		}
		panes := wr.maps(windowPanes)
		layout := wr.text(windowLayout)
		if wr.err != nil {
			return "", c, wr.err
		}
		if w.Layout, err = host.ParseCells(layout, len(panes)); err != nil {
			return "", c, err
		}
		for _, m := range panes {
			p, err := readPane(m)
			if err != nil {
				return "", c, err
			}
			w.Panes = append(w.Panes, p)
		}
		c.Windows = append(c.Windows, w)
	}
	return token, c, r.err
}

// Keys of a result.
const (
	resultSession = 1
	resultWindows = 2 // a list of maps, each with the list of its panes in 1
	resultError   = 3 // of a create that failed: code and text, as in an ERROR
)

func startedFields(s host.Started) fields {
	f := fields{
		startedTerminal: s.Terminal.ID, startedNonce: s.Nonce, startedPID: s.PID,
		startedRecord: s.Meta[metadata.KeyAgentSession], startedMeta: metaFields(s.Meta),
	}
	if s.Err != nil {
		f[startedError] = []byte(s.Err.Error())
	}
	return f
}

func readStarted(f fields, here host.Instance) (s host.Started, err error) {
	r := reading{fields: f}
	s.Terminal = host.Terminal{Instance: here, ID: r.text(startedTerminal)}
	s.Nonce, s.PID = r.text(startedNonce), r.number(startedPID)
	if reason := r.text(startedError); reason != "" {
		s.Err = &Failure{Reason: reason}
	}
	record, list := r.data(startedRecord), r.maps(startedMeta)
	if r.err != nil {
		return s, r.err
	}
	s.Meta, err = readMeta(record, list)
	return s, err
}

func createdFields(c *host.Created) fields {
	var windows []fields
	for _, w := range c.Windows {
		var panes []fields
		for _, p := range w {
			panes = append(panes, startedFields(p))
		}
		windows = append(windows, fields{1: panes})
	}
	return fields{resultSession: c.Session, resultWindows: windows}
}

func readCreated(value []byte, here host.Instance) (*host.Created, error) {
	f, err := decodeFields(value)
	if err != nil {
		return nil, err
	}
	r := reading{fields: f}
	if e := r.sub(resultError); e != nil {
		return nil, remote(e)
	}
	c := &host.Created{Session: r.text(resultSession)}
	for _, m := range r.maps(resultWindows) {
		wr := reading{fields: m}
		var panes []host.Started
		for _, p := range wr.maps(1) {
			s, err := readStarted(p, here)
			if err != nil {
				return nil, err
			}
			panes = append(panes, s)
		}
		if wr.err != nil {
			return nil, wr.err
		}
		c.Windows = append(c.Windows, panes)
	}
	return c, r.err
}

// Failure says why a pane that is there did not start its program, in the pane's own words.
type Failure struct{ Reason string }

func (e *Failure) Error() string { return "the program did not start: " + e.Reason }

// The state, as STATE answers it.

func workspaceFields(w *host.Workspace) []fields {
	var sessions []fields
	for _, s := range w.Sessions {
		var windows []fields
		for _, win := range s.Windows {
			var panes []fields
			for _, p := range win.Panes {
				f := fields{
					1: p.Terminal.ID, 2: p.Active, 3: p.Title, 4: []byte(p.Dir), 5: p.DirGone, 6: []byte(p.Command),
					7: p.TTY, 8: p.PID, 9: p.Meta[metadata.KeyAgentSession], 10: p.Cols, 11: metaFields(p.Meta),
					12: p.Rows, 13: p.Dead, 15: int(p.Origin), 16: p.Nonce, 17: p.BoundPID, 18: p.BoundStart, 19: p.Waiting,
				}
				if p.Exit != nil {
					f[14] = fields{1: p.Exit.Status, 2: p.Exit.Signal}
				}
				panes = append(panes, f)
			}
			windows = append(windows, fields{
				1: win.ID, 2: win.Name, 3: win.Index, 4: win.Active, 5: win.Zoomed, 6: win.AutomaticName,
				7: win.Layout.String(), 8: panes,
			})
		}
		sessions = append(sessions, fields{
			1: s.ID, 2: s.Name, 3: []byte(s.Dir), 4: s.Active, 5: s.Attached, 6: int(s.Created.UnixNano()), 7: windows,
		})
	}
	return sessions
}

func readWorkspace(list []fields, here host.Instance) (*host.Workspace, error) {
	w := &host.Workspace{Instance: here}
	for _, m := range list {
		r := reading{fields: m}
		s := host.Session{
			ID: r.text(1), Name: r.text(2), Dir: r.text(3), Active: r.flag(4), Attached: r.number(5),
			Created: time.Unix(0, int64(r.number(6))).UTC(),
		}
		for _, m := range r.maps(7) {
			win, err := readWindow(m, here)
			if err != nil {
				return nil, err
			}
			s.Windows = append(s.Windows, win)
		}
		if r.err != nil {
			return nil, r.err
		}
		w.Sessions = append(w.Sessions, s)
	}
	return w, nil
}

func readWindow(m fields, here host.Instance) (win host.Window, err error) {
	r := reading{fields: m}
	win = host.Window{
		ID: r.text(1), Name: r.text(2), Index: r.number(3), Active: r.flag(4), Zoomed: r.flag(5), AutomaticName: r.flag(6),
	}
	panes := r.maps(8)
	layout := r.text(7)
	if r.err != nil {
		return win, r.err
	}
	if win.Layout, err = host.ParseCells(layout, len(panes)); err != nil {
		return win, fmt.Errorf("window %s: %w", win.ID, err)
	}
	for i, m := range panes {
		r := reading{fields: m}
		p := host.Pane{
			Terminal: host.Terminal{Instance: here, ID: r.text(1)}, Index: i, Active: r.flag(2), Title: r.text(3),
			Dir: r.text(4), DirGone: r.flag(5), Command: r.text(6), TTY: r.text(7), PID: r.number(8), Cols: r.number(10),
			Rows: r.number(12), Dead: r.flag(13), Origin: host.Origin(r.number(15)), Nonce: r.text(16),
			BoundPID: r.number(17), BoundStart: r.unsigned(18), Waiting: r.flag(19),
		}
		if r.has(14) {
			e := reading{fields: r.sub(14)}
			p.Exit = &host.Exit{Status: e.number(1), Signal: e.text(2)}
			if e.err != nil {
				return win, e.err
			}
		}
		record, list := r.data(9), r.maps(11)
		if r.err != nil {
			return win, r.err
		}
		if p.Meta, err = readMeta(record, list); err != nil {
			return win, err
		}
		win.Panes = append(win.Panes, p)
	}
	return win, nil
}
