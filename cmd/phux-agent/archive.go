package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/ui"
)

func (a *app) archiveVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "archive",
		Short: "Look at the history of a workspace, and mend it",
		Long: `Look at the history of a workspace, and mend it. Each server has its own history;
-L and -S choose it as for every verb, and the server need not run.`,
		Example: `  phux-agent archive list
  phux-agent archive show
  phux-agent archive diff
  phux-agent archive prune --dry-run
  phux-agent archive verify workspace.json`,
		Annotations: exits("0 done", "1 failed", "2 usage", "3 verify: some are not sound", "5 no host"),
	})
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the generations, newest first, with their state",
		Long: `List the generations, newest first, with their state. Restore picks the newest good
one. A held one looks like a loss (no conversation where the last good one had
some, or most of them gone at once); save --accept keeps such a workspace. An
edited one has not the bytes that were written: restore takes it only with
--generation and --import.

LIFE says in which life of the server it was saved: now is the one that runs, -1
the one before it.`,
		Example: "  phux-agent archive list\n  phux-agent -L work archive list --json",
		Args:    cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return a.archiveList(cmd) },
		Annotations: exits("0 listed", "1 the history cannot be read", "2 usage", "5 no host"),
	}, &cobra.Command{
		Use: "show [N|NAME]", Short: "Show what a generation holds (default: the newest good one)",
		Example: "  phux-agent archive show\n  phux-agent archive show 41 --json",
		Args:    cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error { return a.archiveShow(cmd, args) },
		Annotations: exits("0 shown", "1 there is none, or it cannot be read", "2 usage", "5 no host"),
	}, &cobra.Command{
		Use: "verify [FILE…]", Short: "Check archives, or the whole history, byte for byte",
		Long: `Check archives, or the whole history, byte for byte. Of the history each
generation is compared with what was written: the last save knows the newest one,
and each generation the one before it.`,
		Example: "  phux-agent archive verify\n  phux-agent archive verify workspace.json",
		Args:    cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error { return a.archiveVerify(cmd, args) },
		Annotations: exits("0 all are sound", "1 none is", "2 usage", "3 some are not", "5 no host"),
	}, &cobra.Command{
		Use: "rm N", Short: "Remove one generation",
		Long: `Remove one generation. The last good one of a server's life is not removed: what
it holds would be lost.`,
		Example: "  phux-agent archive rm 41",
		Args:    cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error { return a.archiveRemove(cmd, args[0]) },
		Annotations: exits("0 removed", "1 there is none", "2 usage", "4 it is the last good one of a server's life", "5 no host"),
	}, &cobra.Command{
		Use: "forget SESSION", Short: "Carry a session that waits to be restored no further",
		Long: `Carry a session that waits to be restored no further. A session of an earlier life
of the server is carried from save to save until it is restored, declined or
forgotten. Generations that hold it stay as they are.`,
		Example: "  phux-agent archive forget experiments",
		Args:    cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error { return a.archiveForget(cmd, args[0]) },
		Annotations: exits("0 forgotten", "1 no such session waits", "2 usage", "5 no host"),
	}, a.archiveDiffVerb(), a.archivePruneVerb())
	return cmd
}

// history is the store of the server that the flags mean. That server need not run.
func (a *app) history(cmd *cobra.Command) (archive.Store, string, error) {
	h, err := a.host(cmd.Context())
	if err != nil {
		return archive.Store{}, "", err
	}
	st, err := a.store(h.info)
	return st, h.info.Server, err
}

// generation is one line of archive list --json.
type generation struct {
	Generation uint64 `json:"generation"`
	Name       string `json:"name"`
	SavedAt    string `json:"saved_at"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Sessions   int    `json:"sessions"`
	Records    int    `json:"records"`
	Pending    int    `json:"pending"`
	Size       int64  `json:"size"`
	Digest     string `json:"digest"`
	Path       string `json:"path"`
	Error      string `json:"error"`
	Instance   string `json:"instance"` // of the server's life, and of the machine's
	Boot       string `json:"boot"`
	Life       string `json:"life"` // now, -1, -2, …; filled in by archive list
	// RestoredFrom: the last restore was made from it. RestoreOf: it is what that restore wrote.
	RestoredFrom bool `json:"restored_from"`
	RestoreOf    bool `json:"restore_of"`
}

func generationOf(e archive.Entry) generation {
	g := generation{
		Generation: e.Generation, Name: e.Name, State: string(e.State), Reason: e.Reason, Size: e.Size, Digest: e.Digest, Path: e.Path,
	}
	if !e.SavedAt.IsZero() {
		g.SavedAt = e.SavedAt.UTC().Format(time.RFC3339)
	}
	if e.Archive != nil {
		g.Sessions = len(e.Archive.Sessions)
		g.Records, g.Pending = e.Archive.Records()
		g.Instance, g.Boot = e.Archive.Host.Instance, e.Archive.Host.Boot
	}
	if e.Err != nil {
		g.Error = e.Err.Error()
	}
	return g
}

func (a *app) archiveList(cmd *cobra.Command) error {
	h, err := a.host(cmd.Context())
	if err != nil {
		return err
	}
	st, err := a.store(h.info)
	if err != nil {
		return err
	}
	server := h.info.Server
	entries, err := st.List()
	if err != nil {
		return err
	}
	last, restored := st.LastRestore()
	lives := livesOf(h.info, entries)
	var list []generation
	for _, e := range entries {
		g := generationOf(e)
		g.Life = lives[g.Instance]
		g.RestoredFrom, g.RestoreOf = restored && last.Generation == g.Generation, restored && last.Own == g.Generation
		list = append(list, g)
	}
	if a.json {
		doc := struct {
			SchemaVersion int               `json:"schema_version"`
			Server        string            `json:"server"`
			Generations   []generation      `json:"generations"`
			Restored      *archive.Restored `json:"restored"`
		}{SchemaVersion: schemaVersion, Server: server, Generations: list}
		if restored {
			doc.Restored = &last
		}
		return writeDocument(a.stdout, doc)
	}
	if len(entries) == 0 {
		a.say("no generation of %s yet; phux-agent save writes one", server)
		return nil
	}
	t := ui.NewTable("GENERATION", "SAVED", "LIFE", "STATE", "SESSIONS", "CONVERSATIONS", "NAME")
	now := a.now()
	for i, e := range entries {
		g := list[i]
		records := strconv.Itoa(g.Records)
		if g.Pending > 0 {
			records += fmt.Sprintf(" + %d waiting", g.Pending)
		}
		t.Row(strconv.FormatUint(g.Generation, 10), ago(e.SavedAt, now), g.Life, g.State, strconv.Itoa(g.Sessions), records, g.Name)
		switch {
		case g.Error != "":
			t.Note(g.Error, a.width())
		case g.Reason != "":
			t.Note(g.Reason, a.width())
		}
		switch {
		case g.RestoredFrom && last.Proven == 0:
			t.Note("the last restore was made from it: it stays until a save holds all of its conversations as running", a.width())
		case g.RestoredFrom:
			t.Note("the last restore was made from it", a.width())
		case g.RestoreOf:
			t.Note(fmt.Sprintf("what the last restore made, of generation %d", last.Generation), a.width())
		}
	}
	return t.Write(a.stdout, "")
}

// livesOf gives each life of a server its name in a list: now is the one that runs, and -1 the
// one before it.
func livesOf(info host.Info, entries []archive.Entry) map[string]string {
	names := map[string]string{"": ""}
	if info.Running {
		names[info.Instance.Digest()] = "now"
	}
	n := 0
	for _, e := range entries {
		if e.Archive == nil || names[e.Archive.Host.Instance] != "" || e.Archive.Host.Instance == "" {
			continue
		}
		n++
		names[e.Archive.Host.Instance] = strconv.Itoa(-n)
	}
	return names
}

func (a *app) archiveShow(cmd *cobra.Command, args []string) error {
	st, _, err := a.history(cmd)
	if err != nil {
		return err
	}
	var e archive.Entry
	if len(args) == 0 {
		var best archive.Choice
		best, err = st.Best()
		e = best.Entry
	} else {
		e, err = a.reference(st, args[0])
	}
	if err == nil {
		err = e.Err
	}
	if err != nil {
		return fmt.Errorf("show generation: %w", err)
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int `json:"schema_version"`
			generation
			Archive *archive.Archive `json:"archive"`
		}{schemaVersion, generationOf(e), e.Archive})
	}
	a.say("generation %d, saved %s on %s, %s", e.Generation, ago(e.SavedAt, a.now()), e.Archive.Host.Server, string(e.State))
	a.say("  %s", e.Path)
	if e.Reason != "" {
		a.say("  %s", e.Reason)
	}
	for _, s := range e.Archive.Sessions {
		fmt.Fprintln(a.stdout)
		if s.Pending != nil {
			a.say("%s  waits since %s, from generation %d", s.Name, s.Pending.Since.Local().Format("2006-01-02 15:04"), s.Pending.From)
		} else {
			a.say("%s", s.Name)
		}
		t := ui.NewTable()
		for _, w := range s.Windows {
			for i, p := range w.Panes {
				a.archivedPane(t, w, i, p)
			}
		}
		if err := t.Write(a.stdout, "  "); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) archivedPane(t *ui.Table, w archive.Window, i int, p archive.Pane) {
	who, id, state := "", a.tilde(p.Cwd), ""
	if p.Agent != nil {
		who, state = p.Agent.IntegrationID, p.Agent.State
	}
	if p.AgentSession != nil {
		who, id = p.AgentSession.IntegrationID, p.AgentSession.NativeID
	}
	if who == "" {
		who = p.Program
	}
	t.Row(fmt.Sprintf("%d.%d", w.Index, i), w.Name, who, id, state)
	if p.AgentSession != nil && p.Cwd != "" {
		t.Note("in "+a.tilde(p.Cwd), 0)
	}
	if p.AgentSession != nil && p.Agent != nil {
		for _, earlier := range p.Agent.Previous {
			t.Note("before it: "+earlier, 0)
		}
	}
	if len(p.Command) > 0 {
		t.Note("command, never run: "+quoteAll(p.Command), 0)
	}
	if p.Agent != nil && p.Agent.RecordError != "" {
		t.Note("its record was left out: "+p.Agent.RecordError, 0)
	}
}

func parseGeneration(cmd *cobra.Command, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, usage(cmd, "%q is not the number of a generation", s)
	}
	return n, nil
}

// verdict is one file of archive verify --json.
type verdict struct {
	Path  string `json:"path"`
	Sound bool   `json:"sound"`
	Own   bool   `json:"own"`
	Error string `json:"error"`
}

func (a *app) archiveVerify(cmd *cobra.Command, files []string) error {
	st, server, err := a.history(cmd)
	if err != nil {
		return err
	}
	var out []verdict
	if len(files) == 0 {
		entries, err := st.List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			v := verdict{Path: e.Path, Sound: e.Err == nil && e.State != archive.Corrupt && e.State != archive.Edited, Own: e.Err == nil && e.State != archive.Edited}
			if e.Err != nil {
				v.Error = e.Err.Error()
			} else if !v.Sound {
				v.Error = editedWords(e)
			}
			out = append(out, v)
		}
	}
	for _, f := range files {
		v := verdict{Path: f, Sound: true}
		_, b, path, err := a.readArchive(f)
		if err != nil {
			v.Sound, v.Error = false, err.Error()
		} else {
			v.Path, v.Own = path, st.Own(b)
		}
		out = append(out, v)
	}
	bad := 0
	for _, v := range out {
		if !v.Sound {
			bad++
		}
	}
	if a.json {
		if err := writeDocument(a.stdout, struct {
			SchemaVersion int       `json:"schema_version"`
			Files         []verdict `json:"files"`
		}{schemaVersion, out}); err != nil {
			return err
		}
	} else {
		for _, v := range out {
			switch {
			case !v.Sound:
				a.say("BAD   %s: %s", v.Path, v.Error)
			case v.Own:
				a.say("sound %s", v.Path)
			default:
				a.say("sound %s (not written by this machine: restore wants --import)", v.Path)
			}
		}
		if len(out) == 0 {
			a.say("no generation of %s yet", server)
		}
	}
	switch {
	case bad == 0:
		return nil
	case bad == len(out):
		return &statusError{code: failed}
	}
	return &statusError{code: partial}
}

func (a *app) archiveRemove(cmd *cobra.Command, arg string) error {
	n, err := parseGeneration(cmd, arg)
	if err != nil {
		return err
	}
	st, _, err := a.history(cmd)
	if err != nil {
		return err
	}
	if err := st.Remove(n); err != nil {
		return err
	}
	return a.doneDocument("removed", "generation "+arg)
}

func (a *app) archiveForget(cmd *cobra.Command, session string) error {
	if strings.TrimSpace(session) == "" {
		return usage(cmd, "name a session")
	}
	st, _, err := a.history(cmd)
	if err != nil {
		return err
	}
	if err := st.Forget(session); err != nil {
		return err
	}
	return a.doneDocument("forgotten", session)
}

// doneDocument says what a verb did that answers nothing else.
func (a *app) doneDocument(did, what string) error {
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Action        string `json:"action"`
			Subject       string `json:"subject"`
		}{schemaVersion, did, what})
	}
	a.say("%s %s", did, what)
	return nil
}
