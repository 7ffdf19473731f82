package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
)

type saveFlags struct {
	name, out string
	accept    bool
}

func (a *app) saveVerb() *cobra.Command {
	var f saveFlags
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Save the workspace: layouts, and each pane's conversation",
		Long: `Save the workspace: every session, window, layout, pane, and each agent's
conversation, as the next generation of this server's history.

Before it is written, each agent is asked which conversation it has open, where
its integration says how. A save never replaces an earlier one, and one that
looks like a loss is held: restore passes over it until it is accepted.`,
		Example: `  phux-agent save
  phux-agent save --name before-upgrade
  phux-agent save -o workspace.json
  phux-agent save --accept`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.save(cmd, f) },
		Annotations: exits("0 saved, or nothing has changed", "1 not saved", "2 usage",
			"3 saved without some pane's record, or held", "5 no host, or no server"),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "keep this save under a `NAME`; it is never pruned")
	fl.StringVarP(&f.out, "output", "o", "", "write an archive `FILE` instead of a generation; - is standard output")
	fl.BoolVar(&f.accept, "accept", false, "the workspace is right as it is: do not hold this save")
	exclude(cmd, "output name", "output accept")
	return cmd
}

// saveDocument is what save --json prints.
type saveDocument struct {
	SchemaVersion int     `json:"schema_version"`
	Generation    uint64  `json:"generation"`
	Path          string  `json:"path"`
	State         string  `json:"state"`
	Reason        string  `json:"reason"`
	Records       int     `json:"records"`
	Panes         int     `json:"panes"`
	Pending       int     `json:"pending"`
	Unchanged     bool    `json:"unchanged"`
	LeftOut       []blame `json:"left_out"`
}

// blame is a pane whose record is not in the save.
type blame struct {
	Terminal string `json:"terminal"`
	Place    string `json:"place"`
	Reason   string `json:"reason"`
}

func (a *app) save(cmd *cobra.Command, f saveFlags) error {
	ctx := cmd.Context()
	if cmd.Flags().Changed("output") && f.out == "" {
		return usage(cmd, "-o needs a file, or - for standard output")
	}
	if f.out == "-" && a.json {
		return usage(cmd, "-o - prints the archive itself, so --json cannot be added")
	}
	s, err := a.openSaver(ctx, nil)
	if err != nil {
		return err
	}
	o := saveOptions{name: f.name, accept: f.accept, out: f.out}
	if f.out != "" && f.out != "-" {
		if o.out, err = a.abs(f.out); err != nil {
			return err
		}
	}
	done, err := s.save(ctx, o)
	if err != nil {
		return err
	}
	if f.out == "-" {
		if _, err := a.stdout.Write(done.bytes); err != nil {
			return fmt.Errorf("save: %w", err)
		}
	}
	doc := done.document()
	switch {
	case a.json:
		if err := writeDocument(a.stdout, doc); err != nil {
			return err
		}
	case f.out != "-":
		a.saySaved(doc, done)
	}
	for _, b := range doc.LeftOut {
		a.warn("the record of pane %s (%s) is left out: %s", b.Place, b.Terminal, b.Reason)
	}
	if len(doc.LeftOut) > 0 || doc.State != string(archive.Good) {
		return &statusError{code: partial}
	}
	return nil
}

func (a *app) saySaved(doc saveDocument, done *saveDone) {
	what := fmt.Sprintf("%s, %s, %s", plural(len(done.archive.Sessions), "session"), plural(doc.Panes, "pane"), plural(doc.Records, "conversation"))
	switch {
	case doc.Unchanged:
		a.say("nothing has changed since generation %d: %s", doc.Generation, what)
	case doc.Generation == 0:
		a.say("saved to %s: %s", doc.Path, what)
	default:
		a.say("saved generation %d: %s", doc.Generation, what)
	}
	if doc.Pending > 0 {
		a.say("  %s of an earlier life carried on until restored or declined", plural(doc.Pending, "conversation"))
	}
	if doc.State != string(archive.Good) {
		a.say("  %s: %s", doc.State, doc.Reason)
		a.say("  restore passes over it; phux-agent %ssave --accept keeps it", a.serverFlags())
	}
	for _, p := range done.panes {
		if p.Changed != "" {
			a.say("  %s:%d.%d %s", p.Session, p.Window, p.Index, p.Changed)
		}
	}
}

// saver is what a capture and its store need, opened once.
type saver struct {
	app   *app
	host  *hosted
	req   capture.Request
	store archive.Store
}

type saveOptions struct {
	name, out string // out: an absolute path, or "-"
	accept    bool
	auto      bool // of a verb that was asked for something else: silent while another works
}

type saveDone struct {
	archive *archive.Archive
	panes   []capture.Pane
	saved   archive.Saved
	bytes   []byte // of "-"
}

// openSaver prepares a save. h is the host where it was probed already; one whose server did
// not run then is asked again.
func (a *app) openSaver(ctx context.Context, h *hosted) (*saver, error) {
	if h == nil || !h.info.Running {
		var err error
		if h, err = a.lookable(ctx); err != nil {
			return nil, noServer("save", err)
		}
	}
	req, err := a.captureRequest(h)
	if err != nil {
		return nil, err
	}
	st, err := a.store(h.info)
	return &saver{a, h, req, st}, err
}

func (a *app) captureRequest(h *hosted) (capture.Request, error) {
	reg, err := a.registry()
	if err != nil {
		return capture.Request{}, err
	}
	c, err := a.config()
	if err != nil {
		return capture.Request{}, err
	}
	claims, err := a.claims()
	r := capture.Request{
		Host: h.Host, Registry: reg, Claims: claims, Now: a.now, Machine: machine(),
		Getenv: a.lookup, Write: true, Adopt: c.AdoptAtSave, Programs: c.Programs,
	}
	if h.info.Kind != "" {
		r.Info = &h.info
	}
	return r, err
}

// noServer says that no server runs as a verb says it that finds out before it looks.
func noServer(what string, err error) error {
	if errors.Is(err, host.ErrNoServer) {
		return fmt.Errorf("%s: %w", what, host.ErrNoServer)
	}
	return err
}

// retries bounds how often a save starts again because someone saved meanwhile.
const retries = 10

func (s *saver) save(ctx context.Context, o saveOptions) (*saveDone, error) {
	for n := 1; ; n++ {
		d, err := s.once(ctx, o)
		var busy *archive.BusyError
		switch {
		case err == nil:
			return d, nil
		case o.auto && errors.As(err, &busy):
			return nil, nil // who holds the lock writes the generation that this one would be
		case n == retries || !errors.Is(err, archive.ErrStaleWriter) && !errors.Is(err, host.ErrChanged):
			return nil, err
		}
	}
}

func (s *saver) once(ctx context.Context, o saveOptions) (*saveDone, error) {
	base, err := s.store.Base()
	if err != nil {
		return nil, err
	}
	began := s.app.now()
	req := s.req
	req.Auto = o.auto
	s.app.takeIn(ctx, s.host, req)
	ar, panes, err := capture.Capture(ctx, req)
	if err != nil {
		return nil, noServer("save", err)
	}
	d := &saveDone{archive: ar, panes: panes}
	switch o.out {
	case "":
		so := archive.SaveOptions{Name: o.name, Accept: o.accept, Base: &base, Auto: o.auto}
		s.texts(ctx, &so, ar, panes)
		d.saved, err = s.store.SaveContext(ctx, ar, so)
		if err == nil {
			d.archive = d.saved.Archive // with what it carries on
			if d.saved.TextsErr != nil {
				s.app.warn("%v", d.saved.TextsErr)
			}
			s.signs(panes)
			s.prune()
			s.app.glanced(ctx, s.host, panes, d, began)
		}
	case "-":
		if d.bytes, err = ar.Encode(); err == nil {
			d.bytes = append(bytes.TrimRight(d.bytes, "\n"), '\n')
			err = s.store.Remember(d.bytes)
		}
		d.saved.State = archive.Good
	default:
		d.saved, err = s.store.Export(ar, o.out)
		d.saved.State = archive.Good
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// texts adds what stands on the terminals, where the configuration asks for it. That it cannot be
// had is no failure of the save.
func (s *saver) texts(ctx context.Context, o *archive.SaveOptions, ar *archive.Archive, panes []capture.Pane) {
	c, err := s.app.config()
	if err != nil || c.Scrollback.Lines == 0 {
		return
	}
	o.KeepTexts = true
	if o.Texts, err = capture.Texts(ctx, s.host.Host, ar, panes, c.Scrollback.Lines); err != nil {
		s.app.warn("%v", err)
	}
}

// prune applies the bounds of the configuration. That it fails is no failure of the save.
func (s *saver) prune() {
	c, err := s.app.config()
	if err != nil {
		return
	}
	if _, err := s.store.Prune(c.Keep.Generations, time.Duration(c.Keep.Days)*24*time.Hour); err != nil {
		s.app.warn("older generations were not pruned: %v", err)
	}
}

func (d *saveDone) document() saveDocument {
	doc := saveDocument{
		SchemaVersion: schemaVersion, Generation: d.saved.Generation, Path: d.saved.Path, State: string(d.saved.State),
		Reason: d.saved.Reason, Unchanged: d.saved.Unchanged, LeftOut: []blame{},
	}
	doc.Records, doc.Pending = d.archive.Records()
	for _, s := range d.archive.Sessions {
		if s.Pending != nil {
			continue
		}
		for _, w := range s.Windows {
			doc.Panes += len(w.Panes)
		}
	}
	for _, p := range d.panes {
		if p.Err != nil {
			doc.LeftOut = append(doc.LeftOut, blame{p.Terminal.ID, fmt.Sprintf("%s:%d.%d", p.Session, p.Window, p.Index), p.Err.Error()})
		}
	}
	return doc
}
