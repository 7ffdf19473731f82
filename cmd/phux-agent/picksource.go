package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/picker"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
	"github.com/phux-agent/phux-agent/status"
)

// pickSource is what the picker shows, from the host, the archives and the plan of a restore.
type pickSource struct {
	app  *app
	work sync.Mutex // the app's configuration and plugins are read once, by one at a time

	mu        sync.Mutex
	host      *hosted
	server    proc.ID // of the life that was looked at; the zero one where none ran
	terminals map[string]host.Terminal
}

// patientTries bounds how often what moved while it was read is read again.
const patientTries = 3

func (s *pickSource) Data(ctx context.Context, generation uint64) (d *picker.Data, err error) {
	for range patientTries {
		// A server that ends or begins meanwhile is no failure: it is asked anew.
		if d, err = s.look(ctx, generation); !errors.Is(err, host.ErrChanged) && !errors.Is(err, host.ErrNoServer) && !errors.Is(err, host.ErrStale) {
			break
		}
	}
	return d, err
}

// Pulse asks the server nothing while it is the one that was looked at: its process, the file that
// whoever looks keeps, and the folder of the generations say enough.
func (s *pickSource) Pulse(ctx context.Context) string {
	s.work.Lock()
	defer s.work.Unlock()
	a := s.app
	s.mu.Lock()
	h, server := s.host, s.server
	s.mu.Unlock()
	life := fmt.Sprint(server)
	if server.PID == 0 || !proc.Alive(server) {
		now, err := a.host(ctx)
		if err != nil {
			return err.Error()
		}
		h, life = now, fmt.Sprint(serverID(now.info))
	}
	out := h.info.Server + " " + life
	if d, err := a.dirs(); err == nil {
		out += " " + stamp(status.File(d.Runtime, h.info.Server))
	}
	if store, err := a.store(h.info); err == nil {
		out += " " + stamp(store.Dir)
	}
	return out
}

// serverID is the process of a server that runs.
func serverID(info host.Info) proc.ID {
	if !info.Running {
		return proc.ID{}
	}
	i, err := proc.Stat(info.Instance.PID)
	if err != nil {
		return proc.ID{}
	}
	return i.ID()
}

// stamp is another text where a file was written or a folder got another entry.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	return fmt.Sprintf("%d.%d", info.ModTime().UnixNano(), info.Size())
}

func (s *pickSource) look(ctx context.Context, generation uint64) (*picker.Data, error) {
	s.work.Lock()
	defer s.work.Unlock()
	a := s.app
	h, err := a.host(ctx)
	if err != nil {
		return nil, err
	}
	store, err := a.store(h.info)
	if err != nil {
		return nil, err
	}
	d := &picker.Data{SchemaVersion: schemaVersion, Server: h.info.Server, Asked: generation > 0, Notes: []string{}, Sessions: []picker.Session{}}
	entry, newer, err := chooseEntry(store, generation)
	if err != nil {
		return nil, err
	}
	now := s.app.now()
	looked := func() (*host.Workspace, []capture.Pane, error) { return nil, nil, host.ErrNoServer }
	if h.info.Running {
		req, err := a.captureRequest(h)
		if err != nil {
			return nil, err
		}
		// Beside the plan, for neither needs the other.
		req.Write = false
		looked = beside(func() (*host.Workspace, []capture.Pane, error) { return capture.Look(ctx, req) })
	}
	var plan *restore.Plan
	var src restore.Source
	if entry.Archive != nil {
		src = restore.Source{Archive: entry.Archive, Path: entry.Path, Own: entry.State != archive.Edited}
		if generation == 0 {
			src.Archive, _ = without(entry.Archive, entry.Dismissed, nil)
		}
		d.Generation, d.Saved = entry.Generation, ago(entry.SavedAt, now)
		for _, n := range newer {
			d.Notes = append(d.Notes, fmt.Sprintf("generation %d above it is passed over: %s", n.Generation, cmp.Or(n.Reason, string(n.State))))
		}
		e, err := a.restoreEnv(ctx, h, store)
		if err != nil {
			return nil, err
		}
		o := restore.Options{}
		facts, err := restore.Gather(ctx, e, src, o)
		if err != nil {
			return nil, err
		}
		if plan, err = restore.Make(src, facts, o); err != nil {
			return nil, err
		}
		d.Notes = append(d.Notes, plan.Notes...)
	}
	m := &merger{d: d, now: now, held: map[metadata.Identity]*picker.Pane{}, terminals: map[string]host.Terminal{}}
	switch w, panes, err := looked(); {
	case errors.Is(err, host.ErrNoServer):
	case err != nil:
		return nil, err
	default:
		m.live(w, panes)
	}
	if plan != nil {
		m.saved(plan, src.Archive)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host, s.server, s.terminals = h, serverID(h.info), m.terminals
	return d, nil
}

// beside begins to do something, and returns what waits for it.
func beside(do func() (*host.Workspace, []capture.Pane, error)) func() (*host.Workspace, []capture.Pane, error) {
	var w *host.Workspace
	var panes []capture.Pane
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w, panes, err = do()
	}()
	return func() (*host.Workspace, []capture.Pane, error) {
		<-ended
		return w, panes, err
	}
}

// chooseEntry is a generation by number, or the newest good one with what stands above it; an
// empty one where nothing was saved.
func chooseEntry(store archive.Store, generation uint64) (archive.Entry, []archive.Entry, error) {
	if generation == 0 {
		best, err := store.Best()
		if errors.Is(err, archive.ErrNone) {
			return archive.Entry{}, best.Newer, nil
		}
		return best.Entry, best.Newer, err
	}
	e, err := store.Get(generation)
	if err == nil && e.Err != nil {
		err = fmt.Errorf("read generation %d: %w", generation, e.Err)
	}
	return e, nil, err
}

// merger lays what runs and what was saved over one another.
type merger struct {
	d         *picker.Data
	now       time.Time
	held      map[metadata.Identity]*picker.Pane // of panes that are there
	terminals map[string]host.Terminal
}

// live puts in what runs.
func (m *merger) live(w *host.Workspace, panes []capture.Pane) {
	names := map[string]string{}  // window names, by session and index
	active := map[string]string{} // by session, the terminal that is looked at
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if win.Active && p.Active {
					active[s.Name] = p.Terminal.ID
				}
			}
			names[fmt.Sprintf("%s\n%d", s.Name, win.Index)] = win.Name
		}
	}
	for _, p := range panes {
		if n := len(m.d.Sessions); n == 0 || m.d.Sessions[n-1].Name != p.Session {
			m.d.Sessions = append(m.d.Sessions, picker.Session{Name: p.Session, There: true})
		}
		s := &m.d.Sessions[len(m.d.Sessions)-1]
		if n := len(s.Windows); n == 0 || s.Windows[n-1].Index != p.Window {
			s.Windows = append(s.Windows, picker.Window{Index: p.Window, Name: names[fmt.Sprintf("%s\n%d", p.Session, p.Window)]})
		}
		win := &s.Windows[len(s.Windows)-1]
		one := picker.Pane{
			Index: p.Index, Agent: p.Facts.IntegrationID, State: stateOf(p), Reason: reasonOf(p), Dir: m.dir(p), Title: p.Title,
			Command: p.Command, Previous: p.Facts.Previous, Profile: p.Facts.Profile, Terminal: p.Terminal.ID, Active: active[p.Session] == p.Terminal.ID, Does: picker.Jump,
		}
		if p.Record != nil {
			one.Agent, one.ID = p.Record.IntegrationID, p.Record.NativeID
		}
		if at := p.Facts.ConfirmedAt; !at.IsZero() {
			one.Age = "seen " + ago(at, m.now)
		}
		win.Panes = append(win.Panes, one)
		m.terminals[p.Terminal.ID] = p.Terminal
	}
	for i := range m.d.Sessions {
		for j := range m.d.Sessions[i].Windows {
			for k := range m.d.Sessions[i].Windows[j].Panes {
				if p := &m.d.Sessions[i].Windows[j].Panes[k]; p.ID != "" {
					m.held[metadata.Identity{IntegrationID: p.Agent, NativeID: p.ID}] = p
				}
			}
		}
	}
}

func (m *merger) dir(p capture.Pane) string {
	if p.Record != nil && p.Facts.LaunchDir != "" {
		return p.Facts.LaunchDir
	}
	return p.Cwd
}

// saved puts in what a restore would do, session by session.
func (m *merger) saved(plan *restore.Plan, ar *archive.Archive) {
	bySession := map[string]*archive.Session{}
	for i := range ar.Sessions {
		bySession[ar.Sessions[i].Name] = &ar.Sessions[i]
	}
	for i := range plan.Sessions {
		sp := &plan.Sessions[i]
		facts := archivedAgents(bySession[sp.Name])
		if at := slices.IndexFunc(m.d.Sessions, func(s picker.Session) bool { return s.There && s.Name == sp.HostName }); at >= 0 && sp.Action == restore.SkipExisting {
			m.beside(&m.d.Sessions[at], sp, facts)
			continue
		}
		s := picker.Session{Name: sp.Name, Action: sp.Action, As: sp.HostName, Reason: sp.Reason}
		for j := range sp.Panes {
			pp := &sp.Panes[j]
			p := m.planned(pp, facts[j])
			if sp.Action == restore.Create {
				p.Does = picker.RestoreSession
				if pp.Record != nil && pp.Verdict.Starts() {
					p.Does = picker.RestorePane
				}
			}
			s.Add(pp.Window, facts[j].window, p)
		}
		m.d.Sessions = append(m.d.Sessions, s)
	}
}

// beside says of a session that is there what was saved of it: on the panes that hold the same
// conversations, and, of those that no pane holds, in lines of their own.
func (m *merger) beside(s *picker.Session, sp *restore.SessionPlan, facts []archived) {
	s.Action = sp.Action
	for j := range sp.Panes {
		pp := &sp.Panes[j]
		if pp.Record == nil {
			continue
		}
		if there := m.held[pp.Record.Identity()]; there != nil {
			there.Verdict, there.Hint = string(pp.Verdict), pp.Hint
			continue
		}
		if pp.Verdict != restore.PendingPane && pp.Verdict != restore.AlreadyLive {
			continue
		}
		p := m.planned(pp, facts[j])
		if pp.Verdict == restore.PendingPane {
			p.Does = picker.Resume
		}
		s.Add(pp.Window, facts[j].window, p)
	}
}

// archived is what an archive says of a pane besides its plan.
type archived struct {
	window    string // its name
	confirmed time.Time
	profile   string
	launchDir string
}

// archivedAgents is one for each pane of a session, in the order of the plan.
func archivedAgents(s *archive.Session) []archived {
	var out []archived
	if s == nil {
		return nil
	}
	for _, w := range s.Windows {
		for _, p := range w.Panes {
			one := archived{window: w.Name}
			if p.Agent != nil {
				one.confirmed, one.profile, one.launchDir = p.Agent.ConfirmedAt, p.Agent.Profile, p.Agent.LaunchCwd
			}
			out = append(out, one)
		}
	}
	return out
}

func (m *merger) planned(pp *restore.PanePlan, f archived) picker.Pane {
	p := picker.Pane{
		Index: pp.Index, Verdict: string(pp.Verdict), Reason: pp.Reason, Hint: pp.Hint, Dir: cmp.Or(pp.Dir, f.launchDir), Title: pp.Title,
		Command: pp.Command, Previous: pp.Previous, Profile: f.profile,
	}
	if pp.Record != nil {
		p.Agent, p.ID = pp.Record.IntegrationID, pp.Record.NativeID
		p.Command = ""
	}
	if pp.Verdict.Starts() && pp.Start.Mode == host.Program {
		p.Would = slices.Clone(pp.Start.Argv)
	}
	if !f.confirmed.IsZero() {
		p.Age = "seen " + ago(f.confirmed, m.now)
	}
	return p
}

func (s *pickSource) Generations(_ context.Context, below uint64, most int) ([]picker.Generation, error) {
	s.work.Lock()
	defer s.work.Unlock()
	h, err := s.app.openHost()
	if err != nil {
		return nil, err
	}
	if h.info.Server, err = serverName(h); err != nil {
		return nil, err
	}
	store, err := s.app.store(h.info)
	if err != nil {
		return nil, err
	}
	list, err := store.Page(below, most)
	if err != nil {
		return nil, err
	}
	now := s.app.now()
	out := make([]picker.Generation, len(list))
	for i, e := range list {
		out[i] = picker.Generation{Number: e.Generation, Saved: ago(e.SavedAt, now), Name: e.Name, State: string(e.State), Reason: e.Reason}
		if e.Archive != nil {
			live, pending := e.Archive.Records()
			out[i].Sessions, out[i].Conversations = len(e.Archive.Sessions), live+pending
		}
	}
	return out, nil
}

// wordsShown bounds what is read of a terminal's text.
const wordsShown = 4000

func (s *pickSource) Words(ctx context.Context, terminal string) (string, error) {
	s.mu.Lock()
	h, t, ok := s.host, s.terminals[terminal], s.terminals[terminal].ID != ""
	s.mu.Unlock()
	if !ok {
		return "", host.ErrNoTerminal
	}
	r, ok := h.Host.(host.Reader)
	if !ok {
		return "", nil
	}
	return r.LastWords(ctx, t, wordsShown)
}

func (s *pickSource) Agents(context.Context) ([]picker.Agent, error) {
	s.work.Lock()
	defer s.work.Unlock()
	reg, err := s.app.registry()
	if err != nil {
		return nil, err
	}
	var out []picker.Agent
	seen := map[string]bool{}
	for _, p := range reg.Plugins() {
		for _, in := range p.Integrations {
			if in.Template == nil || len(in.Template.Launch.Command) == 0 || seen[in.ID] {
				continue
			}
			seen[in.ID] = true
			if _, err := reg.Resolve(in.ID); err != nil {
				continue
			}
			one := picker.Agent{ID: in.ID, Name: in.Template.DisplayName}
			if _, err := plugin.LookProgram(in.Template.Launch.Command[0], s.app.getenv("PATH")); err != nil {
				one.Note = "not installed"
			}
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b picker.Agent) int {
		return cmp.Or(cmp.Compare(len(a.Note), len(b.Note)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}
