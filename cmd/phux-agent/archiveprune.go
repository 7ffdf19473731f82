package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/internal/ui"
)

type pruneFlags struct {
	dry        bool
	keep, days int
}

func (a *app) archivePruneVerb() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old generations, and say of each why it goes or stays",
		Long: `Remove old generations, and say of each why it goes or stays. Every save does so
by itself, within the bounds of [keep] in the configuration: so many good
generations that differ, and so many days.

Never removed: a named one, the newest, the last good one of each life of the
server, the newest five good ones that differ, and the one that the last restore
was made from until a later save holds all of its conversations as running.`,
		Example: "  phux-agent archive prune --dry-run\n  phux-agent archive prune --keep 20 --days 30",
		Args:    cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return a.archivePrune(cmd, f) },
		Annotations: exits("0 done, or nothing to do", "1 failed", "2 usage", "5 no host"),
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.dry, "dry-run", false, "say what would go, remove nothing")
	fl.IntVar(&f.keep, "keep", 0, "keep so `MANY` good generations that differ, instead of the configuration's")
	fl.IntVar(&f.days, "days", 0, "keep so many `DAYS`, instead of the configuration's")
	return cmd
}

// pruned is one generation of archive prune --json.
type pruned struct {
	Generation uint64 `json:"generation"`
	Name       string `json:"name"`
	SavedAt    string `json:"saved_at"`
	State      string `json:"state"`
	Action     string `json:"action"` // "remove" | "keep"
	Reason     string `json:"reason"`
}

func (a *app) archivePrune(cmd *cobra.Command, f pruneFlags) error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"keep", f.keep}, {"days", f.days}} {
		if cmd.Flags().Changed(n.flag) && n.value < 1 {
			return usage(cmd, "--%s %d: write a number from 1 on", n.flag, n.value)
		}
	}
	st, server, err := a.history(cmd)
	if err != nil {
		return err
	}
	c, err := a.config()
	if err != nil {
		return err
	}
	keep, days := c.Keep.Generations, c.Keep.Days
	if f.keep > 0 {
		keep = f.keep
	}
	if f.days > 0 {
		days = f.days
	}
	do := st.PruneNow
	if f.dry {
		do = st.PrunePlan
	}
	all, err := do(keep, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	if a.json {
		return a.prunedDocument(server, keep, days, f.dry, all)
	}
	return a.sayPruned(server, f.dry, all)
}

func (a *app) prunedDocument(server string, keep, days int, dry bool, all []archive.Judgement) error {
	doc := struct {
		SchemaVersion int      `json:"schema_version"`
		Server        string   `json:"server"`
		Keep          int      `json:"keep"`
		Days          int      `json:"days"`
		DryRun        bool     `json:"dry_run"`
		Removed       int      `json:"removed"`
		Generations   []pruned `json:"generations"`
	}{SchemaVersion: schemaVersion, Server: server, Keep: keep, Days: days, DryRun: dry, Generations: []pruned{}}
	for _, j := range all {
		p := pruned{Generation: j.Generation, Name: j.Name, State: string(j.State), Action: "keep", Reason: j.Why}
		if !j.SavedAt.IsZero() {
			p.SavedAt = j.SavedAt.UTC().Format(time.RFC3339)
		}
		if j.Goes {
			p.Action = "remove"
			doc.Removed++
		}
		doc.Generations = append(doc.Generations, p)
	}
	return writeDocument(a.stdout, doc)
}

func (a *app) sayPruned(server string, dry bool, all []archive.Judgement) error {
	if len(all) == 0 {
		a.say("no generation of %s yet", server)
		return nil
	}
	goes := "removed"
	if dry {
		goes = "to remove"
	}
	n := 0
	t := ui.NewTable("GENERATION", "SAVED", "STATE", "", "WHY")
	for _, j := range all {
		what := "stays"
		if j.Goes {
			what = goes
			n++
		}
		t.Row(strconv.FormatUint(j.Generation, 10), ago(j.SavedAt, a.now()), string(j.State), what, j.Why)
	}
	if err := t.Write(a.stdout, ""); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	a.say("%s: %d %s, %d stay", plural(len(all), "generation"), n, goes, len(all)-n)
	return nil
}
