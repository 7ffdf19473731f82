package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/owner"
)

// hookVerb is what agents call; like paneExecVerb it comes before everything else.
const hookVerb = "hook"

// Bounds of one call by a hook, which an agent may wait for.
const (
	hookTime    = time.Second
	payloadTime = 700 * time.Millisecond // of it, for a payload whose writer does not come to an end
	maxPayload  = 1 << 20                // bytes that are kept of a payload
	maxDrained  = 16 << 20               // bytes that are read of it, so that its writer is not cut off
	maxAbove    = 64                     // processes above us that are looked at
)

func (a *app) hookHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "hook INTEGRATION [EVENT]",
		Short: "What agents call when their conversation changes",
		Long: `Called by an agent's hook (hooks install writes it), with the agent's own JSON on standard input: bring the
record of the pane up to date in which that agent runs.

The pane is the one whose agent stands above this process, and no other; what an
environment says is no proof. Where the agent keeps a file that shows which
conversation it has open, that is read, and the hook only says that it is time.

It prints nothing, exits with 0 whatever happens, and ends within a second. What
was refused, and what was changed, is noted in hook.log of the state directory.`,
		Example:     "  phux-agent hook claude-code SessionStart < payload.json",
		RunE:        func(cmd *cobra.Command, args []string) error { return nil },
		Annotations: exits("0 always"),
	}
}

// hook hears one report. Nothing that goes wrong here is the agent's business.
func hook(args, environ []string, stdin io.Reader) int {
	a := &app{environ: environ, stdin: stdin, stdout: io.Discard, stderr: io.Discard}
	ctx, cancel := context.WithTimeout(context.Background(), hookTime)
	defer cancel()
	ended := make(chan struct{})
	var waits atomic.Bool
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				a.hookLog(args, fmt.Sprintf("error: %v", p))
			}
		}()
		if word := a.hear(ctx, args, &waits); word != "" {
			a.hookLog(args, word)
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		word := "error: it did not come to an end in time"
		if waits.Load() {
			word += "; the next save or ps takes in what it told"
		}
		a.hookLog(args, word)
	}
	return done
}

// hear returns what is worth noting in the log. waits tells meanwhile that the report is put down,
// and is heard again where nothing becomes of it now.
func (a *app) hear(ctx context.Context, args []string, waits *atomic.Bool) string {
	var rep capture.Report
	now := time.Now()
	switch len(args) {
	case 2:
		rep.Integration, rep.Event = args[0], args[1]
	case 1:
		rep.Integration = args[0]
	default:
		return "refused: hook takes an integration and an event"
	}
	payload := make(chan []byte, 1)
	go func() { payload <- readPayload(a.stdin) }()
	chain := chainAbove(os.Getpid())
	apps, said := a.above(chain)
	select {
	case rep.Payload = <-payload:
	case <-time.After(payloadTime):
	}
	if len(apps) == 0 {
		if said {
			return "refused: the environment names a server that does not stand above this process"
		}
		return "" // an agent that runs in no pane
	}
	var last, unnoted error
	for _, b := range apps {
		h, err := b.unprobed()
		if err != nil {
			last = err
			continue
		}
		box := b.spool(h)
		if box.Empty() && b.heardBefore(h, rep, chain) {
			return ""
		}
		if rep.From.PID == 0 {
			rep.From = owner.LineOf(os.Getpid())
		}
		note, err := b.noted(box, &rep, now)
		if err != nil {
			unnoted = err
		}
		waits.Store(note != nil)
		req, err := b.captureRequest(h)
		if err != nil {
			return "error: " + err.Error()
		}
		req.Info = nil // asked for only where something is to be changed
		heard, err := capture.Hear(ctx, req, rep)
		if judged(err) {
			box.Remove(note)
		}
		b.heard(ctx, h, heard)
		switch {
		case err == nil && heard.Changed != "":
			return fmt.Sprintf("pane %s: %s, now %s", heard.Terminal.ID, heard.Changed, heard.ID)
		case err == nil, errors.Is(err, owner.ErrEvent):
			return ""
		}
		last = err
		if !errors.Is(err, capture.ErrNoPane) {
			break
		}
	}
	var refused *capture.RefusedError
	if errors.As(last, &refused) {
		return "refused: " + last.Error()
	}
	return "error: " + errors.Join(last, unnoted).Error()
}

// chainAbove is a process and what stands above it, of this user or not, nearest first.
func chainAbove(pid int) []proc.Info {
	var chain []proc.Info
	for len(chain) < maxAbove && pid > 0 {
		i, err := proc.Stat(pid)
		if err != nil {
			break
		}
		chain = append(chain, i)
		pid = i.PPID
	}
	return chain
}

// readPayload reads one JSON value, and not the end of the input: some writers leave it open. Nil
// where there is none, or one that is too long to be kept.
func readPayload(r io.Reader) []byte {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return nil // a terminal, or nothing
		}
	}
	limited := &io.LimitedReader{R: r, N: maxPayload}
	d := jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := d.ReadValue()
	if err != nil {
		if limited.N == 0 {
			_, _ = io.Copy(io.Discard, io.LimitReader(r, maxDrained))
		}
		return nil
	}
	return v.Clone()
}

// Bounds of the log: it is renamed once it is longer, and the one before it goes.
const (
	maxHookLog  = 256 << 10
	maxHookLine = 1000
)

// hookNotes is where reports are noted, and the last one that was refused; empty where there is
// none.
func (a *app) hookNotes() (path, refusal string) {
	d, err := a.dirs()
	if err != nil {
		return "", ""
	}
	path = filepath.Join(d.State, "hook.log")
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*maxHookLog))
	if err != nil {
		return path, ""
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, ": refused: ") {
			refusal = strings.TrimSpace(line)
		}
	}
	return path, refusal
}

// hookLog notes one line, as well as that can be done.
func (a *app) hookLog(args []string, text string) {
	d, err := a.dirs()
	if err != nil || dirs.Private(d.State) != nil {
		return
	}
	path := filepath.Join(d.State, "hook.log")
	if info, err := os.Lstat(path); err == nil && info.Size() > maxHookLog {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	clip := func(s string, most int) string {
		if len(s) > most {
			s = strings.ToValidUTF8(s[:most], "") + "…"
		}
		return ui.Escape(s)
	}
	line := fmt.Sprintf("%s hook %s pid %d: %s\n", time.Now().UTC().Format(time.RFC3339), clip(strings.Join(args, " "), 100), os.Getpid(), clip(text, maxHookLine))
	_, _ = f.WriteString(line) // one write: lines of several hooks stay whole
}
