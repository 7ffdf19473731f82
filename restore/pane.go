package restore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// existing judges a pane whose session is there already, and is never touched.
func (m *maker) existing(there *host.Session, s *archive.Session, p *archive.Pane, pp *PanePlan) {
	if p.AgentSession == nil {
		pp.Verdict, pp.Reason = ShellPane, "its session is there, and is left as it is"
		return
	}
	id := m.hold.identity(*p.AgentSession)
	pane, facts, ok := m.hold.holding(there, id)
	switch {
	case ok && runs(pane) && !facts.Ended:
		pp.Verdict, pp.Reason = AlreadyLive, fmt.Sprintf("it runs in its session, in pane %s", pane.Terminal.ID)
		return
	case ok && (facts.Ended || pane.Origin == host.Ended):
		pp.Verdict, pp.Reason = EndedPane, fmt.Sprintf("its agent had ended; pane %s of its session keeps the record", pane.Terminal.ID)
		pp.Hint = resumeHint(id)
		return
	case ok && pane.Dead:
		pp.Verdict, pp.Reason = PendingPane, fmt.Sprintf("its agent failed; pane %s of its session keeps the record", pane.Terminal.ID)
		pp.Hint = resumeHint(id)
		return
	case ok:
		pp.Verdict, pp.Reason = PendingPane, fmt.Sprintf("its record waits in pane %s of its session", pane.Terminal.ID)
		pp.Hint = "press Enter in that pane"
		return
	}
	w := wanted(m.src, m.o, p)
	if l := m.f.Talks[TalkKey{w.key, id.NativeID}].Live; live(l) {
		t := m.liveTrouble(l, id)
		pp.Verdict, pp.Reason, pp.Hint = t.verdict, t.reason, t.hint
		return
	}
	switch rankOf(s, p) {
	case rankNone:
		pp.Verdict, pp.Reason = EndedPane, "its agent had ended; its session is there, and is left as it is"
	default:
		pp.Verdict, pp.Reason = PendingPane, "its session is there, and no pane of it holds this record"
		pp.Hint = resumeHint(id)
	}
}

// resumeHint is how a conversation is taken up in another pane.
func resumeHint(id metadata.Identity) string {
	return fmt.Sprintf("phux-agent launch %s --resume %s", quoteArg(id.IntegrationID), quoteArg(id.NativeID))
}

// pane judges a pane of a session that is to be created.
func (m *maker) pane(s *archive.Session, p *archive.Pane, pp *PanePlan) {
	rec := p.AgentSession
	switch {
	case rec == nil && p.Process != nil && p.Agent == nil:
		m.program(s, p, pp)
		return
	case rec == nil:
		m.shell(s, p, pp, noRecord(p))
		return
	}
	w := wanted(m.src, m.o, p)
	pp.key, pp.Record = w.key, &w.record
	own, by, rivals := m.hold.owns(p)
	state := ""
	if p.Agent != nil {
		state = p.Agent.State
	}
	switch {
	case rivals != nil:
		pp.trouble(trouble{
			DuplicateIdentity, fmt.Sprintf("%s is the record of %s: %s", w.record.Identity(), count(len(rivals), "pane"), sessionsOf(rivals)),
			"only one of them can run it: name the session that should (--only)",
		})
		return
	case !own:
		reason := fmt.Sprintf("its conversation went on in session %q", by.Name)
		m.shell(s, p, pp, reason)
		pp.Record = nil
		pp.remembers(w.record.NativeID)
		return
	case state == "ended":
		m.shell(s, p, pp, "its agent had ended by itself: the record is kept, and nothing is started")
		pp.Verdict = EndedPane
		pp.Hint = resumeHint(w.record.Identity()) + " --here"
		if w.record.Validate() == nil {
			pp.facts, pp.store, pp.carry = archivedFacts(s, p, w), true, true
			pp.facts.Ended = true
		}
		return
	case state == "replaced":
		m.shell(s, p, pp, "another program had taken the place of its agent")
		pp.Hint = resumeHint(w.record.Identity()) + " --here"
		pp.remembers(w.record.NativeID)
		return
	}
	m.agentPane(s, p, w, pp)
}

// noRecord says what there is to say of a pane without one.
func noRecord(p *archive.Pane) string {
	switch a := p.Agent; {
	case a == nil:
		return ""
	case a.RecordError != "":
		return "its record was left out when it was saved: " + a.RecordError
	case a.IntegrationID != "":
		return fmt.Sprintf("no record: the conversation of its %s was never proven", a.IntegrationID)
	}
	return ""
}

func sessionsOf(hs []holder) string {
	var names []string
	for _, h := range hs {
		if n := fmt.Sprintf("%q", h.session.Name); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return "session " + strings.Join(names, ", ")
}

// trouble is a verdict of authority: nothing is to be started.
func (p *PanePlan) trouble(t trouble) {
	p.Verdict, p.Reason, p.Hint = t.verdict, t.reason, t.hint
	p.Start, p.agent = host.Start{}, nil
}

// placeholder makes the pane say why, in a directory that exists, and carry its record on.
func (p *PanePlan) placeholder(t trouble, dir string) {
	p.Verdict, p.Reason, p.Hint = t.verdict, t.reason, t.hint
	p.Start = host.Start{Mode: host.Placeholder, Dir: dir, Reason: t.reason, Hint: t.hint, AfterExit: p.after}
	p.agent = nil
	p.facts.Pending = true
}

// shell makes the pane a shell: always, and as near to its directory as can be.
func (m *maker) shell(s *archive.Session, p *archive.Pane, pp *PanePlan, reason string) {
	dir, note := m.shellIn(shellDir(s, p))
	pp.Verdict, pp.Reason, pp.Dir = ShellPane, join(reason, note), dir
	pp.Start = host.Start{Mode: host.Shell, Dir: dir}
	if p.Agent != nil {
		pp.facts.PaneKey, pp.facts.Previous = p.Agent.Key, bounded(p.Agent.Previous)
	}
	pp.remembers()
}

// remembers stores with a shell the ids that its pane had before, and nothing where it had none:
// then it is a shell like any other.
func (p *PanePlan) remembers(ids ...string) {
	for _, id := range ids {
		p.facts.Remember(id)
	}
	p.facts.Ended = len(p.facts.Previous) > 0
	p.store = p.facts.Ended
}

func bounded(previous []string) []string {
	return slices.Clone(previous[:min(len(previous), metadata.MaxPrevious)])
}

func join(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "; ")
}

// shellIn is where a shell starts instead of a directory that it cannot have, and why.
func (m *maker) shellIn(path string) (dir, note string) {
	home := m.f.Home
	if m.f.Dirs[home].State != DirThere {
		home = "/"
	}
	d := m.f.Dirs[path]
	switch {
	case path == "":
		return home, ""
	case !m.src.Own && d.State != DirMissing && !d.Own:
		return home, fmt.Sprintf("its directory %s belongs to somebody else: it starts in %s", path, home)
	case d.State == DirThere:
		return path, ""
	case m.src.Own && d.Nearest != "":
		dir = d.Nearest
	default:
		dir = home
	}
	what := "is gone"
	if d.State == DirUnreadable {
		what = "cannot be entered"
	}
	return dir, fmt.Sprintf("its directory %s %s (%s): it starts in %s", path, what, d.Detail, dir)
}

// standIn is a directory for a placeholder: the wanted one where it is there.
func (m *maker) standIn(path string) string {
	dir, _ := m.shellIn(path)
	return dir
}

// archivedFacts are the launch facts of a pane as they were archived.
func archivedFacts(s *archive.Session, p *archive.Pane, w want) metadata.LaunchFacts {
	f := metadata.LaunchFacts{
		PluginID: w.record.PluginID, IntegrationID: w.record.IntegrationID,
		Profile: w.key.Profile, LaunchDir: launchDir(s, p),
	}
	if a := p.Agent; a != nil {
		f.PaneKey, f.Store, f.ConfirmedAt, f.Unconfirmed = a.Key, a.Store, a.ConfirmedAt, a.Unconfirmed
		f.Previous, f.NotPreserved, f.Durability = bounded(a.Previous), slices.Clone(a.NotPreserved), a.Durability
	}
	return f
}

// agentPane judges a pane whose agent is to come back.
func (m *maker) agentPane(s *archive.Session, p *archive.Pane, w want, pp *PanePlan) {
	pp.facts, pp.store, pp.carry = archivedFacts(s, p, w), true, true
	pp.Dir = pp.facts.LaunchDir
	a := m.f.Agents[w.key]
	if t := m.authority(a, w); t != nil {
		pp.trouble(*t)
		return
	}
	t := a.Owner.Template
	id := m.hold.identity(w.record)
	pp.name = &metadata.Agent{Name: orDefault(t.Agent.Name, t.ID), Kind: t.Agent.Kind}
	talk := m.f.Talks[TalkKey{w.key, id.NativeID}]
	pp.after = t.Launch.AfterExit
	standIn := m.standIn(pp.Dir)

	dir, trbl := m.workDir(a, pp.Dir)
	if trbl != nil && trbl.verdict.Authority() {
		pp.trouble(*trbl)
		return
	}
	switch {
	case live(talk.Live):
		trbl = m.liveTrouble(talk.Live, id)
	case !a.HasProfile:
		trbl = &trouble{
			ProfileMissing, fmt.Sprintf("its profile %q is not in the configuration, and no other stands in for it", w.key.Profile),
			fmt.Sprintf("add [profiles.%s.%s] to the configuration, then press Enter in the pane", w.key.Profile, w.key.IntegrationID),
		}
	case a.BuildErr != nil:
		trbl = &trouble{
			ProfileMissing, fmt.Sprintf("its profile %q cannot be used: %v", w.key.Profile, a.BuildErr),
			fmt.Sprintf("correct [profiles.%s.%s] in the configuration, then press Enter in the pane", w.key.Profile, w.key.IntegrationID),
		}
	case trbl != nil:
	case a.ProgramErr != nil:
		trbl = &trouble{
			BinaryMissing, a.ProgramErr.Error(),
			"install it, or restore from a shell whose PATH has it; then press Enter in the pane",
		}
	}
	if trbl != nil {
		pp.placeholder(*trbl, standIn)
		return
	}

	archived, store := "", ""
	if p.Agent != nil {
		archived, store = p.Agent.Durability, p.Agent.Store
	}
	v := converse(archived, store, a, talk)
	if v.verdict.Circumstance() {
		pp.placeholder(v, standIn)
		return
	}
	op := integrations.Resume
	if v.verdict == FreshSameID {
		op = integrations.Fresh
	}
	cmd, err := a.build(op, id.NativeID)
	if err != nil {
		pp.trouble(trouble{
			NotRestorable, fmt.Sprintf("its command cannot be built: %v", err),
			fmt.Sprintf("phux-agent integration show %s", quoteArg(w.key.IntegrationID)),
		})
		return
	}
	pp.Verdict, pp.Hint = v.verdict, v.hint
	pp.Unconfirmed = m.unconfirmed(p)
	pp.Reason = join(v.reason, pp.Unconfirmed, m.caveats(p))
	if pp.Unconfirmed != "" && pp.Hint == "" && t.HookTells() && !a.Hooked {
		pp.Hint = fmt.Sprintf("phux-agent hooks install %s, and it tells from then on which conversation is open", quoteArg(t.ID))
	}
	pp.Start = host.Start{
		Mode: host.Program, Argv: slices.Concat([]string{a.Program}, cmd.Argv[1:]), Dir: dir,
		Set: environ(cmd.Set, m.f.Path), Unset: slices.Clone(cmd.Unset), AfterExit: t.Launch.AfterExit,
	}
	pp.archived = pp.facts
	pp.facts.Store, pp.facts.NotPreserved, pp.facts.Durability = a.Store, nil, ""
	switch {
	case archived == durPresent || talk.Presence == owner.Present:
		// Once seen, it is never again taken for one that was not prompted.
		pp.facts.Durability = durPresent
	case op == integrations.Fresh:
		// Until a look finds it, a respawn begins it again.
		pp.facts.Durability = durNeverPrompted
	}
	pp.agent = &agentStart{template: t, identity: id, expect: talk.Presence, fallback: standIn}
}

// environ is a command's environment as pairs, with the PATH by which its program was found.
func environ(set map[string]string, path string) []string {
	pairs := make([]string, 0, len(set)+1)
	if _, ok := set["PATH"]; !ok && path != "" {
		pairs = append(pairs, "PATH="+path)
	}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		pairs = append(pairs, k+"="+set[k])
	}
	return pairs
}

// authority is the trouble that refuses the session: the record, or who owns its integration.
func (m *maker) authority(a Agent, w want) *trouble {
	id := w.key.IntegrationID
	if err := w.record.Validate(); err != nil {
		return &trouble{InvalidRecord, err.Error(), "the archive keeps it as it is; nothing is started by it"}
	}
	if a.Err != nil {
		return resolveTrouble(a, w)
	}
	if a.Owner.Template == nil {
		return &trouble{IntegrationMissing, fmt.Sprintf("integration %q was not looked at", id), "restore again"}
	}
	var unverified *plugin.UnverifiedError
	if err := a.Owner.Restorable(); errors.As(err, &unverified) {
		return &trouble{NotRestorable, err.Error(), "to take that upon yourself: " + unverified.Allow()}
	} else if err != nil {
		return &trouble{
			NotRestorable, fmt.Sprintf("integration %q cannot resume a conversation: %v", id, err),
			"its plugin must say how (resume_args); phux-agent integration show " + quoteArg(id),
		}
	}
	if err := a.Owner.Template.CheckID(w.record.NativeID); err != nil {
		return &trouble{InvalidRecord, err.Error(), "the archive keeps it as it is; nothing is started by it"}
	}
	if a.BuildErr != nil && !a.ProfileBad {
		return &trouble{
			IntegrationInvalid, fmt.Sprintf("the command of integration %q cannot be built: %v", id, a.BuildErr),
			"phux-agent integration lint " + quoteArg(a.Owner.Template.File),
		}
	}
	return nil
}

func resolveTrouble(a Agent, w want) *trouble {
	id, pl := quoteArg(w.key.IntegrationID), quoteArg(w.key.PluginID)
	t := &trouble{verdict: Verdict(a.Err.Reason), reason: a.Err.Detail}
	if t.reason == "" {
		t.reason = a.Err.Error()
	}
	switch a.Err.Reason {
	case plugin.Missing:
		t.hint = "install the plugin that has it: phux-agent plugin add DIR"
		if a.Err.Near != "" {
			t.hint += "; there is " + quoteArg(a.Err.Near)
		}
	case plugin.Disabled:
		t.hint = fmt.Sprintf("phux-agent integration enable %s, or phux-agent plugin enable %s", id, pl)
	case plugin.Ambiguous:
		t.hint = "disable all but one of them: phux-agent plugin disable ID"
	case plugin.Untrusted:
		t.hint = "make it yours alone to write, then restore again"
	case plugin.OwnerChanged:
		t.hint = fmt.Sprintf("if the new owner is meant: phux-agent restore --owner %s=%s", pl, quoteArg(orDefault(a.Err.Owner, "NEW")))
	default:
		t.verdict = IntegrationInvalid
		t.hint = "phux-agent integration list says where it is; phux-agent integration lint FILE what is wrong"
	}
	return t
}

// workDir is where the agent starts, or why it cannot.
func (m *maker) workDir(a Agent, launch string) (string, *trouble) {
	if a.Owner.Template.Launch.WorkingDirectory == "plugin-root" {
		return a.Owner.Root, nil
	}
	d := m.f.Dirs[launch]
	switch {
	case launch == "":
		return "", &trouble{
			CwdMissing, "the archive does not say in which directory it ran",
			"cd there and take it up: phux-agent launch INTEGRATION --resume ID",
		}
	case !m.src.Own && d.State != DirMissing && !d.Own:
		return "", &trouble{
			Untrusted, fmt.Sprintf("its directory %s belongs to somebody else, and the archive is imported", launch),
			"only your own directories are entered for an imported archive",
		}
	case d.State == DirThere:
		return launch, nil
	case d.State == DirUnreadable:
		return "", &trouble{
			CwdUnreadable, fmt.Sprintf("its directory %s cannot be entered: %s", launch, d.Detail),
			fmt.Sprintf("make it readable (ls -ld %s), then press Enter in the pane", quoteArg(launch)),
		}
	}
	return "", &trouble{
		CwdMissing, fmt.Sprintf("its directory %s is gone: %s", launch, orDefault(d.Detail, "it does not exist")),
		fmt.Sprintf("bring it back (mkdir -p %s, or git worktree add), then press Enter in the pane", quoteArg(launch)),
	}
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

// liveTrouble says where an identity runs, which process, and one command that helps.
func (m *maker) liveTrouble(l owner.Live, id metadata.Identity) *trouble {
	t := &trouble{verdict: AlreadyLive}
	at := fmt.Sprintf("process %d", l.Process.PID)
	if l.Command != "" {
		at += " (" + l.Command + ")"
	}
	if l.Place.Terminal != "" {
		at = fmt.Sprintf("pane %s of %s, %s", l.Place.Terminal, orDefault(l.Place.Host, "this host"), at)
	} else if l.Place.Host != "" {
		at = fmt.Sprintf("%s, %s", l.Place.Host, at)
	} else if l.TTY != "" {
		at += " on " + l.TTY
	}
	switch l.Kind {
	case owner.Orphan:
		t.reason = fmt.Sprintf("its last agent outlived its pane and still runs: %s", at)
		t.hint = "phux-agent reap " + quoteArg(id.String())
	case owner.Starting:
		t.reason = fmt.Sprintf("another launch or restore is starting it: %s", at)
		t.hint = "phux-agent ps"
	case owner.Suspected:
		t.reason = fmt.Sprintf("it seems to run already: %s has its id among its arguments", at)
		t.hint = fmt.Sprintf("end it (kill %d), then press Enter in the pane", l.Process.PID)
	case owner.Registry:
		t.reason = fmt.Sprintf("it runs already, by its own account: %s", at)
		t.hint = fmt.Sprintf("end it (kill %d), then press Enter in the pane", l.Process.PID)
	default:
		t.reason = fmt.Sprintf("it runs already: %s", at)
		t.hint = "phux-agent ps"
	}
	t.reason = join(t.reason, l.Note)
	return t
}

// unconfirmed says since when, and why, nothing has proven that the record is the conversation
// that was open; empty where it was proven when it was saved.
func (m *maker) unconfirmed(p *archive.Pane) string {
	if p.Agent == nil || p.Agent.Unconfirmed == "" {
		return ""
	}
	w := fmt.Sprintf("unconfirmed since %s: %s", ui.Since(p.Agent.ConfirmedAt, m.f.Now), p.Agent.Unconfirmed)
	if n := len(p.Agent.Previous); n > 0 {
		w += "; before it: " + p.Agent.Previous[0]
	}
	return w
}

// caveats are true of a pane that comes back, and worth a word.
func (m *maker) caveats(p *archive.Pane) string {
	if p.Agent != nil && !m.src.Own && p.Agent.Profile != "" && p.Agent.Profile != DefaultProfile {
		return fmt.Sprintf("profile %q is not used for an imported archive", p.Agent.Profile)
	}
	return ""
}

// quoteArg quotes data for a command that a person may copy into a shell.
func quoteArg(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
