package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/status"
)

func (a *app) autosaveVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "autosave",
		Short: "Have the server's workspace saved by itself",
		Long: `Have the workspace of this server saved by itself: some seconds after a window,
pane or session came, went or was renamed, and every quarter of an hour without a
change, which catches what no hook tells (a /clear in an agent, a swapped pane).

On tmux it is six hooks of the server and one of its own timers: no process waits,
nothing depends on the status line or on an attached client, and the user's own
hooks stay as they are. launch and restore turn it on, unless it was turned off for
this server or the configuration says [autosave] enabled = false.

A save that looks like a loss is held, as any other is, and while a restore runs
nothing is saved.`,
		Example: `  phux-agent autosave on
  phux-agent autosave status
  phux-agent autosave off`,
		Annotations: exits("0 done", "1 failed", "2 usage", "5 no host, or no server"),
	})
	add := func(use, short, long, example string, run func(ctx context.Context) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
			RunE:        func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
			Annotations: exits("0 done", "1 failed", "2 usage", "5 no host, or no server"),
		})
	}
	add("on", "Turn it on for the server that runs", `Turn autosave on for the server that runs, for as long as it runs. Where it is on
already, it is set anew, with what the configuration says now and this program.`,
		"  phux-agent autosave on\n  phux-agent -L work autosave on", a.autosaveOn)
	add("off", "Turn it off, and take the hooks away", `Turn autosave off for this life of the server. Exactly our own hooks and options are
taken away. launch and restore do not turn it on again there; autosave on does.`,
		"  phux-agent autosave off", a.autosaveOff)
	add("status", "Say whether it is on, and when it saved last", "", "  phux-agent autosave status\n  phux-agent autosave status --json", a.autosaveStatus)
	var set []string
	run := &cobra.Command{
		Use: "run TOKEN WHY", Short: "Save, as the server's hook asks for it", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.environ = append(slices.Clone(a.environ), set...)
			return a.autosaveRun(cmd.Context(), args[0], args[1])
		},
		Annotations: exits("0 always"),
	}
	run.Flags().StringArrayVar(&set, "env", nil, "over the environment")
	cmd.AddCommand(run)
	return cmd
}

// autosaver is the host, where it can save by itself.
func (a *app) autosaver() (*hosted, host.Autosaver, error) {
	h, err := a.openHost()
	if err != nil {
		return nil, nil, err
	}
	s, ok := h.Host.(host.Autosaver)
	if !ok {
		return nil, nil, errNoAutosave
	}
	return h, s, nil
}

var errNoAutosave = errors.New("autosave: this host does not offer it")

// autosaveOf is what the host is to call, and when. The directories of the caller go with it: the
// server may have been started with another environment.
func (a *app) autosaveOf() (host.Autosave, error) {
	c, err := a.config()
	if err != nil {
		return host.Autosave{}, err
	}
	return a.autosaveBy(c.Autosave)
}

func (a *app) autosaveBy(c config.Autosave) (host.Autosave, error) {
	self, err := a.ownPath()
	if err != nil {
		return host.Autosave{}, err
	}
	words := []string{self, "autosave", "run"}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMUX_TMPDIR"} {
		if v := a.getenv(name); filepath.IsAbs(v) {
			words = append(words, "--env", name+"="+v)
		}
	}
	return host.Autosave{Command: words, Debounce: c.Debounce(), Heartbeat: c.Heartbeat()}, nil
}

func (a *app) autosaveOn(ctx context.Context) error {
	h, s, err := a.autosaver()
	if err != nil {
		return err
	}
	want, err := a.autosaveOf()
	if err != nil {
		return err
	}
	a.rememberSocket(s)
	if err := s.SetAutosave(ctx, want); err != nil {
		return noServer("autosave", err)
	}
	a.checked(ctx, h, false, true)
	if a.json {
		return a.autosaveSay(ctx, h, s)
	}
	a.say("autosave is on for %s: %s after a change, and every %s", a.serverName(h), words(want.Debounce), words(want.Heartbeat))
	a.say("  off again: phux-agent %sautosave off", a.serverFlags())
	return nil
}

// words say a whole number of seconds or minutes.
func words(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return plural(int(d/time.Minute), "minute")
	}
	return plural(int(d/time.Second), "second")
}

// serverName is Info.Server, without asking the server.
func (a *app) serverName(h *hosted) string {
	if l, ok := h.Host.(interface{ ServerName() string }); ok {
		return l.ServerName()
	}
	return h.info.Server
}

func (a *app) autosaveOff(ctx context.Context) error {
	h, s, err := a.autosaver()
	if err != nil {
		return err
	}
	if err := s.StopAutosave(ctx); err != nil {
		return noServer("autosave", err)
	}
	a.checked(ctx, h, false, false)
	if a.json {
		return a.autosaveSay(ctx, h, s)
	}
	a.say("autosave is off for %s, as long as this server runs", a.serverName(h))
	a.say("  for good: [autosave] enabled = false in the configuration")
	return nil
}

func (a *app) autosaveStatus(ctx context.Context) error {
	h, s, err := a.autosaver()
	if err != nil {
		return err
	}
	return a.autosaveSay(ctx, h, s)
}

// autosaveDocument is what autosave status --json prints.
type autosaveDocument struct {
	SchemaVersion    int       `json:"schema_version"`
	Server           string    `json:"server"`
	State            string    `json:"state"` // on, off, stale, damaged, overdue
	Reason           string    `json:"reason"`
	Program          string    `json:"program"`
	Hooks            int       `json:"hooks"`
	HooksWanted      int       `json:"hooks_wanted"`
	DebounceSeconds  int       `json:"debounce_seconds"`
	HeartbeatMinutes int       `json:"heartbeat_minutes"`
	OverdueSince     time.Time `json:"overdue_since,omitzero"`
	Last             *lastAuto `json:"last"` // the last save by itself; null where there was none
}

// lastAuto is what came of the last save by itself; autosave run writes it down.
type lastAuto struct {
	At         time.Time `json:"at"`
	Why        string    `json:"why"`    // change, beat
	Result     string    `json:"result"` // saved, unchanged, held, silent, failed
	Generation uint64    `json:"generation"`
	Reason     string    `json:"reason"`
	Millis     int64     `json:"millis"`
	// Awake is how long the machine had been awake then, in seconds, since the boot of that name: what
	// it sleeps, and what is done to its clock, makes nothing overdue.
	Awake int64  `json:"awake,omitzero"`
	Boot  string `json:"boot,omitzero"`
}

func (a *app) autosaveSay(ctx context.Context, h *hosted, s host.Autosaver) error {
	st, err := s.AutosaveState(ctx)
	if err != nil {
		return noServer("autosave", err)
	}
	c, err := a.config()
	if err != nil {
		return err
	}
	doc := autosaveDocument{
		SchemaVersion: schemaVersion, Server: a.serverName(h), State: "off", Program: st.Program, Hooks: st.Present, HooksWanted: st.Wanted,
		DebounceSeconds: c.Autosave.DebounceSeconds, HeartbeatMinutes: c.Autosave.HeartbeatMinutes, Last: a.lastAutosave(a.serverName(h)),
	}
	switch st.Setting {
	case host.SettingOn:
		doc.State = "on"
		if st.Wanted == 0 { // the server calls by itself
			break
		}
		self, _ := a.ownPath()
		doc.OverdueSince = a.overdue(st, doc.Last)
		switch {
		case !executable(st.Program):
			doc.State, doc.Reason = "stale", st.Program+", which the server calls, is not there any more"
		case len(st.Taken) > 0:
			doc.State, doc.Reason = "damaged", "somebody else uses "+strings.Join(st.Taken, ", ")
		case !doc.OverdueSince.IsZero():
			doc.State, doc.Reason = "overdue", overdueWords(doc.OverdueSince, a.now())
		case st.Present < st.Wanted:
			// The next heartbeat mends it.
			doc.Reason = fmt.Sprintf("%d of its %d hooks are gone until the next heartbeat", st.Wanted-st.Present, st.Wanted)
		case self != st.Program:
			doc.Reason = "the server calls another phux-agent than this one: " + st.Program
		}
	case host.SettingOff:
		doc.Reason = "it was turned off, for as long as this server runs"
	default:
		doc.Reason = "nobody turned it on"
		if _, ours := h.Host.(*embedded.Host); ours {
			if doc.State, doc.Reason = "on", ""; !a.wantsAutosave(c) {
				doc.State, doc.Reason = "off", "the configuration says so"
			}
		}
	}
	if a.json {
		return writeDocument(a.stdout, doc)
	}
	switch doc.State {
	case "off":
		a.say("autosave is off for %s: %s", doc.Server, doc.Reason)
	default:
		a.say("autosave is %s for %s: %s after a change, and every %s", doc.State, doc.Server, words(c.Autosave.Debounce()), words(c.Autosave.Heartbeat()))
		if doc.Reason != "" {
			a.say("  %s", doc.Reason)
		}
	}
	if doc.State != "on" || doc.Reason != "" {
		a.say("  phux-agent %sautosave on", a.serverFlags())
	}
	if l := doc.Last; l != nil {
		line := fmt.Sprintf("  last: %s, %s", ago(l.At, a.now()), l.Result)
		if l.Generation > 0 {
			line += fmt.Sprintf(", generation %d", l.Generation)
		}
		if l.Reason != "" {
			line += ": " + l.Reason
		}
		a.say("%s", line)
	}
	return nil
}

// overdue is since when autosave owes a call, which is on; the zero time where it does not.
func (a *app) overdue(st host.AutosaveState, l *lastAuto) time.Time {
	if st.Setting != host.SettingOn || st.Every <= 0 {
		return time.Time{}
	}
	now, awake := a.now(), proc.Awake()
	armed := status.Overdue(st.Beat, 0, st.Every, now, awake)
	if l == nil || l.Awake <= 0 || armed.IsZero() && !st.Beat.After(now) {
		return armed // nobody called yet, or a heartbeat is on its way
	}
	if boot, err := proc.BootID(); err != nil || boot != l.Boot {
		return armed
	}
	return status.Overdue(l.At, time.Duration(l.Awake)*time.Second, st.Every, now, awake)
}

func overdueWords(since, now time.Time) string {
	return fmt.Sprintf("a save was due since %s, and none comes", ui.Since(since, now))
}

// autosaveFile is where autosave run leaves its last word for a server.
func (a *app) autosaveFile(server string) (string, error) {
	d, err := a.dirs()
	return filepath.Join(d.State, "autosave", server+".json"), err
}

func (a *app) lastAutosave(server string) *lastAuto {
	path, err := a.autosaveFile(server)
	if err != nil {
		return nil
	}
	b, err := os.ReadFile(path)
	var l lastAuto
	if err != nil || decodeDocument(b, &l) != nil {
		return nil
	}
	return &l
}

// noteAutosave writes the last word down. It is for people: that it cannot be written stops
// nothing, and it is not worth waiting for the disk.
func (a *app) noteAutosave(server string, l lastAuto) {
	path, err := a.autosaveFile(server)
	if err != nil || dirs.Private(filepath.Dir(path)) != nil {
		return
	}
	_ = a.writeHint(path, l)
}

// writeHint replaces a small file of ours that is not worth waiting for the disk.
func (a *app) writeHint(path string, v any) error {
	var b strings.Builder
	if err := writeLine(&b, v); err != nil {
		return err
	}
	return atomicfile.Unsynced(path, fmt.Sprintf("%s.%d", path, os.Getpid()), []byte(b.String()))
}

// autosaveRun is what the server calls. Nobody reads what it says: it never fails.
func (a *app) autosaveRun(ctx context.Context, token, why string) error {
	h, s, err := a.autosaver()
	if err != nil {
		return nil
	}
	start := a.now()
	ctx, stop := context.WithTimeout(ctx, autosaveTime)
	defer stop()
	var again *host.Autosave
	if why == host.BeatTick {
		w, err := a.autosaveOf()
		if err != nil { // a configuration that is broken just now must not end the heartbeat for good
			w, err = a.autosaveBy(config.DefaultAutosave)
		}
		if err == nil {
			again = &w
		}
	}
	current, err := s.Tick(ctx, token, again)
	if !current {
		return nil
	}
	l := lastAuto{At: start, Why: why, Awake: int64(proc.Awake() / time.Second)}
	l.Boot, _ = proc.BootID()
	var done *saveDone
	if err == nil {
		done, err = a.saveAuto(ctx)
	}
	switch {
	case err != nil:
		l.Result, l.Reason = "failed", err.Error()
	case done == nil:
		l.Result, l.Reason = "silent", "a restore or another save was at work"
	default:
		l.Generation = done.saved.Generation
		switch {
		case done.saved.State != archive.Good:
			l.Result, l.Reason = "held", done.saved.Reason
		case done.saved.Unchanged:
			l.Result = "unchanged"
		default:
			l.Result = "saved"
		}
	}
	l.Millis = a.now().Sub(start).Milliseconds()
	a.noteAutosave(a.serverName(h), l)
	a.checked(ctx, h, l.Result == "failed", true)
	if l.Result == "held" || done != nil && done.doubts() {
		// Where nothing changes any more, it would stay so until the next heartbeat.
		_ = s.Again(ctx, token, archive.ShutdownTime+time.Second)
	}
	return nil
}

// doubts reports an agent that has ended and is saved as failed: it may have been a shutdown that ended it.
func (d *saveDone) doubts() bool {
	n := 0
	for _, p := range d.panes {
		if p.State == capture.Exited {
			n--
		}
	}
	for _, s := range d.archive.Sessions {
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if s.Pending == nil && p.Agent != nil && p.Agent.State == archive.StateExited {
					n++
				}
			}
		}
	}
	return n > 0
}

// checked notes for the status line that autosave is on, has just looked, and whether it could not save;
// or that it is off.
func (a *app) checked(ctx context.Context, h *hosted, failed, on bool) {
	c, err := a.config()
	if err != nil {
		c = &config.Config{Autosave: config.DefaultAutosave}
	}
	every := c.Autosave.Heartbeat()
	if !on {
		every = 0
	}
	h.info.Server = a.serverName(h)
	now := a.now().UTC().Truncate(time.Second)
	a.glance(ctx, h, host.Instance{}, func(s *status.Summary) {
		s.Checked(now, proc.Awake(), every)
		if failed {
			s.Changed(now)
		}
	})
}

// autosaveTime bounds one save by itself.
const autosaveTime = 2 * time.Minute

// saveAuto is a save that nobody asked for: nil where another works at the history.
func (a *app) saveAuto(ctx context.Context) (*saveDone, error) {
	s, err := a.openSaver(ctx, nil)
	if err != nil {
		return nil, err
	}
	return s.save(ctx, saveOptions{auto: true})
}

// envAutosave overrides [autosave] enabled of the configuration: on or off.
const envAutosave = "PHUX_AGENT_AUTOSAVE"

func (a *app) wantsAutosave(c *config.Config) bool {
	switch a.getenv(envAutosave) {
	case "on":
		return true
	case "off":
		return false
	}
	return c.Autosave.Enabled
}

// serverSaves is how the embedded host's server saves by itself: by this program, started anew, for
// the server is older than the next upgrade.
func (a *app) serverSaves(name string) embedded.Saves {
	c, err := a.config()
	self, perr := a.ownPath()
	if err != nil || perr != nil {
		return embedded.Saves{}
	}
	return embedded.Saves{
		On: a.wantsAutosave(c), Debounce: c.Autosave.Debounce(), Heartbeat: c.Autosave.Heartbeat(), Settle: archive.ShutdownTime + time.Second,
		Call: func(why string) {
			cmd := exec.Command(self, "--host", embedded.Kind, "-L", name, "autosave", "run", "server", why)
			cmd.Env = a.environ
			if cmd.Start() == nil {
				go func() { _ = cmd.Wait() }() // how it ended, it writes down itself
			}
		},
	}
}

// keepSaved turns autosave on for a server that something was made on, where the configuration
// wants that and nobody has said anything about it there. What goes wrong is only said.
func (a *app) keepSaved(ctx context.Context, h *hosted) {
	s, ok := h.Host.(host.Autosaver)
	c, err := a.config()
	if !ok || err != nil || !a.wantsAutosave(c) {
		return
	}
	if _, ours := s.(*embedded.Host); ours {
		return // its server reads the configuration itself
	}
	st, err := s.AutosaveState(ctx)
	if err != nil || st.Setting != host.SettingNo {
		return
	}
	want, err := a.autosaveOf()
	if err == nil {
		a.rememberSocket(s)
		err = s.SetAutosave(ctx, want)
	}
	if err != nil {
		a.warn("autosave is not on: %v", err)
		return
	}
	a.checked(ctx, h, false, true)
	if !a.json {
		fmt.Fprintf(a.stderr, "phux-agent: autosave is on for this server (phux-agent %sautosave off)\n", a.serverFlags())
	}
}
