package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/internal/ui"
)

func (a *app) archiveDiffVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [A] [B]",
		Short: "Say what changed between two generations",
		Long: `Say what changed from A to B: sessions, windows, panes and conversations. Each is
a generation's number, the name of a save, or an archive FILE. Without B it is
the newest good generation; without A the good one before B that says something
else. With one word, that is B.

What changes by itself is not told: titles, programs in the foreground, what is
active, and names that windows give themselves. That there are differences is no
failure.`,
		Example: "  phux-agent archive diff\n  phux-agent archive diff 41 44\n  phux-agent archive diff before-upgrade ./workspace.json --json",
		Args:    cobra.MaximumNArgs(2), RunE: func(cmd *cobra.Command, args []string) error { return a.archiveDiff(cmd, args) },
		Annotations: exits("0 said", "1 one of them is not there, or cannot be read", "2 usage", "5 no host"),
	}
	return cmd
}

// reference names an archive: a generation's number, the name of a save, or a file.
func (a *app) reference(st archive.Store, word string) (e archive.Entry, err error) {
	n, notNumber := strconv.ParseUint(word, 10, 64)
	switch {
	case notNumber == nil:
		e, err = st.Get(n)
	case strings.ContainsAny(word, "/") || word == "-":
		return a.referenceFile(word)
	default:
		e, err = st.Named(word)
		if path, perr := a.abs(word); errors.Is(err, archive.ErrNoGeneration) && perr == nil {
			if _, serr := os.Stat(path); serr == nil {
				return a.referenceFile(word)
			}
		}
	}
	if err == nil && e.Err != nil {
		err = fmt.Errorf("read generation %d (%s): %w", e.Generation, e.Path, e.Err)
	}
	return e, err
}

func (a *app) referenceFile(file string) (archive.Entry, error) {
	ar, b, path, err := a.readArchive(file)
	if err != nil {
		return archive.Entry{}, err
	}
	return archive.Entry{Path: path, Digest: archive.Digest(b), Size: int64(len(b)), SavedAt: ar.SavedAt, State: archive.Good, Archive: ar}, nil
}

// changeLine is one change with its words, for programs.
type changeLine struct {
	archive.Change
	Words string `json:"words"`
}

func (a *app) archiveDiff(cmd *cobra.Command, args []string) error {
	st, _, err := a.history(cmd)
	if err != nil {
		return err
	}
	var before, after archive.Entry
	if len(args) == 0 {
		best, err := st.Best()
		if err != nil {
			return fmt.Errorf("choose a generation: %w", err)
		}
		after = best.Entry
	} else if after, err = a.reference(st, args[len(args)-1]); err != nil {
		return err
	}
	switch {
	case len(args) == 2:
		before, err = a.reference(st, args[0])
	case after.Generation == 0:
		// A file that is none of ours: the newest good one is what it is compared with.
		var best archive.Choice
		best, err = st.Best()
		before = best.Entry
	default:
		before, err = st.Before(after.Generation)
	}
	if err != nil {
		return err
	}
	changes := archive.Diff(before.Archive, after.Archive)
	if a.json {
		doc := struct {
			SchemaVersion int          `json:"schema_version"`
			From          generation   `json:"from"`
			To            generation   `json:"to"`
			Changes       []changeLine `json:"changes"`
		}{schemaVersion, generationOf(before), generationOf(after), []changeLine{}}
		for _, c := range changes {
			doc.Changes = append(doc.Changes, changeLine{c, c.Words()})
		}
		return writeDocument(a.stdout, doc)
	}
	a.say("from %s", a.referred(before))
	a.say("to   %s", a.referred(after))
	if len(changes) == 0 {
		a.say("nothing has changed")
		return nil
	}
	t := ui.NewTable()
	for _, c := range changes {
		t.Row(mark(c.Kind), c.Place(), c.Words())
	}
	fmt.Fprintln(a.stdout)
	return t.Write(a.stdout, "")
}

// mark says at a glance which way a change goes.
func mark(kind string) string {
	switch {
	case strings.HasSuffix(kind, "-added"), kind == archive.SessionCameBack:
		return "+"
	case strings.HasSuffix(kind, "-removed"), kind == archive.SessionWaits:
		return "-"
	}
	return "~"
}

func (a *app) referred(e archive.Entry) string {
	when := "saved " + ago(e.SavedAt, a.now())
	if e.Generation == 0 {
		return fmt.Sprintf("%s, %s", a.tilde(e.Path), when)
	}
	s := fmt.Sprintf("generation %d, %s", e.Generation, when)
	if e.Name != "" {
		s += ", named " + e.Name
	}
	if e.State != archive.Good {
		s += ", " + string(e.State)
	}
	return s
}
