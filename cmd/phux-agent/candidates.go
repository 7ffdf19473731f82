package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
)

// candidateTime bounds how long a person waits for the answer to a Tab.
const candidateTime = 3 * time.Second

// candidates are what a word can be now, each with a description after a tab. What cannot be
// asked offers nothing.
type candidates func(ctx context.Context) []string

// offer gives every argument and flag that names something its live candidates, for the shell's
// completion. A verb that has some of its own keeps them.
func (a *app) offer(root *cobra.Command) {
	for path, of := range map[string]candidates{
		"record show": a.panesNow, "record forget": a.panesNow, "adopt": a.panesNow, "send": a.panesNow, "read": a.panesNow, "kill": a.panesNow,
		"attach": a.sessionsNow,
		"reap":   a.claimsNow, "archive show": a.generations, "archive rm": a.generations, "archive diff": a.generations,
		"archive forget": a.sessionsSaved, "plugin remove": a.pluginsNow, "plugin enable": a.pluginsNow, "plugin disable": a.pluginsNow,
	} {
		cmd, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 {
			continue
		}
		own := cmd.ValidArgsFunction
		several := path == "archive diff"
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !several {
				if own != nil {
					return own(cmd, args, word)
				}
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return within(cmd, of), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for path, flags := range map[string]map[string]candidates{
		"launch":  {"session": a.sessionsNow, "target": a.panesNow},
		"restore": {"generation": a.generations, "name": a.saveNames, "only": a.sessionsSaved, "pane": a.panesSaved, "id": a.idsSaved},
	} {
		cmd, _, err := root.Find([]string{path})
		if err != nil {
			continue
		}
		for flag, of := range flags {
			if cmd.Flags().Lookup(flag) == nil {
				continue
			}
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return within(cmd, of), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	if cmd, _, err := root.Find([]string{"launch"}); err == nil {
		_ = cmd.RegisterFlagCompletionFunc("profile", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			c, err := a.config()
			if err != nil || len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.Profiles(args[0]), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

func within(cmd *cobra.Command, of candidates) []string {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, candidateTime)
	defer cancel()
	return of(ctx)
}

// candidate is a word and what it is. A word that a shell's completion cannot carry is none.
func candidate(word, format string, args ...any) []string {
	if word == "" || ui.Escape(word) != word {
		return nil
	}
	return []string{word + "\t" + ui.Escape(fmt.Sprintf(format, args...))}
}

// sessions are those of the server that is meant; none where it does not run.
func (a *app) sessions(ctx context.Context) []host.Session {
	h, err := a.host(ctx)
	if err != nil || !h.info.Running {
		return nil
	}
	w, err := h.Snapshot(ctx)
	if err != nil {
		return nil
	}
	return w.Sessions
}

// panesNow are the live panes, by their ids.
func (a *app) panesNow(ctx context.Context) (out []string) {
	for _, s := range a.sessions(ctx) {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				what := p.Command
				if rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession]); err == nil {
					what = rec.IntegrationID + " " + rec.NativeID
				}
				out = append(out, candidate(p.Terminal.ID, "%s:%d.%d %s", s.Name, win.Index, p.Index, what)...)
			}
		}
	}
	return out
}

func (a *app) sessionsNow(ctx context.Context) (out []string) {
	for _, s := range a.sessions(ctx) {
		out = append(out, candidate(s.Name, "%s", plural(len(s.Windows), "window"))...)
	}
	return out
}

func (a *app) claimsNow(context.Context) (out []string) {
	claims, err := a.claims()
	if err != nil {
		return nil
	}
	list, err := claims.List()
	if err != nil {
		return nil
	}
	for _, c := range list {
		out = append(out, candidate(c.Identity.String(), "pid %d", c.Process.PID)...)
	}
	return out
}

func (a *app) pluginsNow(context.Context) (out []string) {
	reg, err := a.registry()
	if err != nil {
		return nil
	}
	for _, p := range reg.Plugins() {
		out = append(out, candidate(p.ID, "%s %s", p.Name, p.Version)...)
	}
	return out
}

// saved is the server that is meant, and its history; false where that cannot be told.
func (a *app) saved(ctx context.Context) (*hosted, archive.Store, bool) {
	h, err := a.host(ctx)
	if err != nil {
		return nil, archive.Store{}, false
	}
	st, err := a.store(h.info)
	return h, st, err == nil
}

// best is the server that is meant, and what a restore would use there; false where that cannot be
// told.
func (a *app) best(ctx context.Context) (*hosted, archive.Choice, bool) {
	h, st, ok := a.saved(ctx)
	if !ok {
		return nil, archive.Choice{}, false
	}
	best, err := st.Best()
	return h, best, err == nil && best.Archive != nil
}

// entries are the generations of that history, those without a number included.
func (a *app) entries(ctx context.Context) []archive.Entry {
	_, st, ok := a.saved(ctx)
	if !ok {
		return nil
	}
	list, err := st.List()
	if err != nil {
		return nil
	}
	return list
}

func (a *app) generations(ctx context.Context) (out []string) {
	list := a.entries(ctx)
	slices.SortFunc(list, func(x, y archive.Entry) int { return cmp.Compare(y.Generation, x.Generation) })
	for _, e := range list[:min(len(list), 50)] {
		if e.Generation > 0 {
			out = append(out, candidate(strconv.FormatUint(e.Generation, 10), "%s, %s", ago(e.SavedAt, a.now()), e.State)...)
		}
	}
	return out
}

func (a *app) saveNames(ctx context.Context) (out []string) {
	for _, e := range a.entries(ctx) {
		out = append(out, candidate(e.Name, "%s", ago(e.SavedAt, a.now()))...)
	}
	return out
}

func (a *app) sessionsSaved(ctx context.Context) (out []string) {
	a.eachSaved(ctx, func(s archive.Session) {
		out = append(out, candidate(s.Name, "%s", plural(len(s.Windows), "window"))...)
	})
	return out
}

func (a *app) panesSaved(ctx context.Context) (out []string) {
	a.eachSavedAgent(ctx, func(at string, p *archive.Pane) {
		out = append(out, candidate(at, "%s %s", p.AgentSession.IntegrationID, p.AgentSession.NativeID)...)
	})
	return out
}

// idsSaved are the conversations that a restore could be asked for, those of now and those before them.
func (a *app) idsSaved(ctx context.Context) (out []string) {
	a.eachSavedAgent(ctx, func(at string, p *archive.Pane) {
		of := p.AgentSession.IntegrationID + " " + at
		out = append(out, candidate(p.AgentSession.NativeID, "%s", of)...)
		if p.Agent != nil {
			for _, id := range p.Agent.Previous {
				out = append(out, candidate(id, "%s, before", of)...)
			}
		}
	})
	return out
}

// eachSavedAgent goes through the panes with a record that a restore would bring back, by the name of
// their place.
func (a *app) eachSavedAgent(ctx context.Context, do func(at string, p *archive.Pane)) {
	a.eachSaved(ctx, func(s archive.Session) {
		for _, w := range s.Windows {
			for i := range w.Panes {
				if p := &w.Panes[i]; p.AgentSession != nil {
					do(fmt.Sprintf("%s:%d.%d", s.Name, w.Index, i), p)
				}
			}
		}
	})
}

// eachSaved goes through the sessions that a restore would bring back.
func (a *app) eachSaved(ctx context.Context, do func(archive.Session)) {
	if _, best, ok := a.best(ctx); ok {
		for _, s := range best.Archive.Sessions {
			do(s)
		}
	}
}
