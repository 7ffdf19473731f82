package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/attach"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/internal/foreign"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/launch"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

// The exit codes. This file alone knows which error is which, and what to say besides.
const (
	done     = 0
	failed   = 1
	misused  = 2
	partial  = 3
	refused  = 4
	noHost   = 5
	timedOut = 124
)

// exitCodes documents them.
const exitCodes = `0 done, every pane as asked
1 failed
2 usage
3 partial: a placeholder, a refusal beside successes, an agent that exited
4 refused by trust, ownership or policy; nothing was created
5 no host
124 timed out`

// usageError is a command line that says nothing that can be done.
type usageError struct {
	Command string
	Err     error
}

func (e *usageError) Error() string { return e.Err.Error() }
func (e *usageError) Unwrap() error { return e.Err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{Command: cmd.CommandPath(), Err: fmt.Errorf(format, args...)}
}

// statusError is a code without words: the result that was printed says it all.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// interruptedError is what was broken off by a signal.
type interruptedError struct{ Err error }

func (e *interruptedError) Error() string { return "interrupted: " + e.Err.Error() }
func (e *interruptedError) Unwrap() error { return e.Err }

// judgement is what an error means at the front door.
type judgement struct {
	code   int
	reason string // one word for programs
	hint   string // what to do; may be empty
}

// is makes a rule of a sentinel.
func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// as makes a rule of an error type. hint may look into the error.
func as[E error](code int, reason string, hint func(E) string) rule {
	return func(err error) (judgement, bool) {
		var e E
		if !errors.As(err, &e) {
			return judgement{}, false
		}
		j := judgement{code: code, reason: reason}
		if hint != nil {
			j.hint = hint(e)
		}
		return j, true
	}
}

type rule func(error) (judgement, bool)

func sentinel(target error, code int, reason, hint string) rule {
	match := is(target)
	return func(err error) (judgement, bool) { return judgement{code, reason, hint}, match(err) }
}

// always is a hint that does not depend on the error.
func always[E error](text string) func(E) string { return func(E) string { return text } }

// rules are tried in order: the most telling first.
var rules = []rule{
	as(misused, "usage", func(e *usageError) string { return e.Command + " --help" }),
	as(failed, "interrupted", always[*interruptedError]("what was done before stands; run it again")),

	as(noHost, "no-host", always[*hostKindError]("the hosts are: tmux, embedded")),
	func(err error) (judgement, bool) {
		var e *embeddedError
		if !errors.As(err, &e) {
			return judgement{}, false
		}
		return e.judge()
	},
	as(refused, "within", always[*withinError]("Ctrl-b w chooses another terminal, Ctrl-b d leaves")),
	as(timedOut, "timed-out", func(e *waitError) string {
		return "phux-agent --host embedded read " + shellQuote(e.Pane) + " shows what stands there"
	}),
	as(misused, "usage", always[*hostFlagError]("name the server: -L NAME")),
	as(misused, "usage", always[*embedded.NameError]("choose another name: -L NAME")),
	as(noHost, "no-host", always[*noTmuxError]("install tmux 3.2a or later, or use the host that needs none: --host embedded")),
	as(noHost, "no-host", always[*embedded.PathError]("set XDG_RUNTIME_DIR to a directory with a shorter path")),
	as(noHost, "no-host", always[*embedded.StartError]("phux-agent --host embedded server run shows it")),
	sentinel(embedded.ErrRunning, failed, "running", "phux-agent --host embedded server status"),
	sentinel(embedded.ErrVersion, noHost, "version", "its program is another version: end it by that one's server stop"),
	sentinel(attach.ErrNotTerminal, misused, "not-a-terminal", "run it in a terminal; phux-agent read and send are for scripts"),
	sentinel(host.ErrNoServer, noHost, "no-server", "start one by phux-agent launch or restore, or choose another with -L NAME or -S PATH"),
	sentinel(host.ErrOlderHost, refused, "host-unsupported", "restart the server: the one that runs is older than this program, or tmux older than 3.2a"),
	sentinel(host.ErrDangerous, refused, "dangerous-setting", "change the setting, then try again"),

	func(err error) (judgement, bool) {
		var e *plugin.ResolveError
		if !errors.As(err, &e) {
			return judgement{}, false
		}
		return judgement{refused, string(e.Reason), resolveHint(e)}, true
	},
	as(refused, "untrusted", trustHint),
	as(refused, "untrusted", always[*dirs.ForeignError]("remove it, or set XDG_RUNTIME_DIR to a directory of yours")),
	as(refused, "already-live", liveHint),
	as(refused, "not-orphan", func(e *owner.NotOrphanError) string { return "phux-agent ps" }),
	sentinel(owner.ErrNotOrphan, refused, "not-orphan", "phux-agent ps"),
	as(refused, "untrusted", func(e *owner.DirectoryError) string { return "make " + e.Path + " yours alone: chmod 700" }),
	as(refused, "conversation-changed", always[*owner.FlippedError]("look again: phux-agent restore --plan")),

	as(refused, "exists", func(e *launch.ExistsError) string {
		return fmt.Sprintf("phux-agent launch %s --resume %s", shellQuote(e.Identity.IntegrationID), shellQuote(e.Identity.NativeID))
	}),
	as(refused, "transcript-missing", func(e *launch.AbsentError) string {
		return fmt.Sprintf("check the id and the agent's configuration directory; a new conversation: phux-agent launch %s", shellQuote(e.Identity.IntegrationID))
	}),
	as(refused, "not-restorable", func(e *launch.NotRestorableError) string {
		return "leave --resume out, or phux-agent integration show " + shellQuote(e.Integration)
	}),
	as(refused, "invalid-id", func(e *launch.IDError) string {
		return "phux-agent integration show " + shellQuote(e.Integration) + " says which ids it has"
	}),
	as(refused, "requirement-unmet", func(e *launch.RequirementError) string {
		return fmt.Sprintf("set %s in %s to %v", e.Require.JSON, e.Require.File, e.Require.Equals)
	}),
	as(refused, "never-option", always[*integrations.NeverError]("leave it out; to take hold of a conversation: --resume ID")),
	sentinel(launch.ErrHere, refused, "here", "launch it in a new window: leave --here out"),
	as(failed, "cwd", always[*launch.DirError]("choose another: --cwd DIR")),
	as(misused, "profile-missing", func(e *launch.ProfileError) string {
		return fmt.Sprintf("add [profiles.%s.%s] to the configuration", e.Profile, e.Integration)
	}),
	as(failed, "binary-missing", always[*launch.ProgramError]("install the agent, or put its directory on PATH")),
	as(failed, "binary-missing", always[*plugin.ProgramError]("install the agent, or put its directory on PATH")),
	as(refused, "unproven", func(e *capture.UnprovenError) string {
		return fmt.Sprintf("name it: phux-agent adopt %s %s --id ID", shellQuote(e.Terminal), shellQuote(e.Integration))
	}),
	as(refused, "transcript-missing", always[*capture.MissingError]("check the id; ids are compared as they are written")),
	as(refused, "invalid-id", func(e *integrations.IDError) string {
		return "phux-agent integration show " + shellQuote(e.Integration) + " says which ids it has"
	}),
	sentinel(owner.ErrNoAgent, refused, "no-agent", "phux-agent ps --all shows what runs in each pane"),
	sentinel(owner.ErrSeveral, refused, "several-agents", "end all but one"),
	sentinel(capture.ErrAdopt, refused, "not-adopted", "phux-agent ps says what the pane holds"),
	sentinel(integrations.ErrNotRestorable, refused, "not-restorable", "phux-agent integration list says which agents come back"),
	as(refused, "file-refused", always[*foreign.Refusal]("nothing was changed; edit it by hand, or mend it and run this again")),
	sentinel(foreign.ErrChanged, failed, "changed", "another program writes that file; run it again"),
	sentinel(hooks.ErrNone, misused, "no-hooks", "phux-agent hooks status lists the integrations that have them"),
	as(failed, "mint-failed", always[*launch.MintError]("run the agent by itself once; it may want a login")),
	as(failed, "read-back", always[*launch.ReadBackError]("try again; if it stays, phux-agent version and tmux -V belong in a report")),

	as(misused, "unknown-session", func(e *restore.UnknownSessionError) string {
		return "--only takes a name as the archive has it: phux-agent archive show"
	}),
	as(misused, "unknown-pane", func(e *restore.UnknownPaneError) string {
		return "--pane takes SESSION:WINDOW.PANE as the archive has it, or a pane key: phux-agent restore --plan"
	}),
	as(failed, "unknown-id", func(e *restore.UnknownIDError) string {
		if len(e.Panes) > 0 {
			return "say which: --pane " + shellQuote(e.Panes[0])
		}
		return "phux-agent archive show has the conversations of each pane, and those before them; another generation may have it: --generation N"
	}),
	as(failed, "stale-plan", always[*restore.StaleError]("run it again")),
	as(failed, "busy", always[*archive.BusyError]("wait for it, and run this again")),
	as(failed, "foreign-file", always[*foreignUnitError]("move it away, or choose another server: -L NAME")),
	as(failed, "taken", always[*host.TakenError]("free it (tmux set-hook -gu NAME), then phux-agent autosave on")),
	sentinel(errNoAutosave, noHost, "no-autosave", "choose another host: --host tmux"),
	as(failed, "schema", always[*archive.VersionError]("a newer phux-agent wrote it: upgrade")),
	as(failed, "not-an-archive", always[*archive.FormatError]("phux-agent archive list says which generations are sound")),
	as(refused, "last-good", always[*archive.LastGoodError]("save first, then it is not the last one")),
	sentinel(archive.ErrNone, failed, "no-generation", "phux-agent archive list shows held ones; phux-agent save writes one"),
	sentinel(archive.ErrNoGeneration, failed, "no-generation", "phux-agent archive list"),
	sentinel(archive.ErrNoSession, failed, "no-session", "phux-agent archive show"),
	sentinel(archive.ErrStaleWriter, failed, "stale-writer", "run it again"),
	sentinel(archive.ErrName, misused, "usage", "write 1 to 64 letters, digits, . _ - and begin with a letter or digit"),

	as(failed, "no-pane", func(e *paneError) string {
		if len(e.Many) > 0 {
			return "name it as %N"
		}
		return "phux-agent ps --all lists the panes"
	}),
	as(failed, "not-in-pane", always[*notInPaneError]("run it in a pane, or leave --here out")),
	as(failed, "no-plugin", always[*unknownPluginError]("phux-agent plugin list")),
	as(failed, "not-added", func(e *notAddedError) string {
		if e.Origin == plugin.Added {
			return "take its [[plugins]] entry out of the configuration"
		}
		return "phux-agent plugin disable " + shellQuote(e.ID)
	}),
	as(failed, "duplicate-plugin", func(e *duplicatePluginError) string {
		return "phux-agent plugin remove " + shellQuote(e.ID) + ", then add this one"
	}),
	as(failed, "invalid-plugin", always[*invalidPluginError]("phux-agent integration lint FILE says more")),
	as(failed, "file-exists", always[*takenError]("choose another directory: --dir DIR")),
	as(failed, "invalid-template", always[*lintError]("docs/writing-an-integration.md has every key")),
	as(failed, "configuration", always[*config.FileError]("correct the file; nothing was done")),

	sentinel(host.ErrNoSession, failed, "no-session", "phux-agent ps --all lists the sessions"),
	sentinel(host.ErrSessionExists, failed, "session-exists", "choose another name: --session NAME"),
	sentinel(host.ErrNoTerminal, failed, "no-pane", "phux-agent ps --all lists the panes"),
	sentinel(host.ErrStale, failed, "stale", "the server was restarted meanwhile; run it again"),
	sentinel(host.ErrConflict, failed, "conflict", "run it again"),
	sentinel(host.ErrChanged, failed, "changed", "the workspace changed while it was read; run it again"),
	sentinel(host.ErrNoSpace, failed, "no-space", "the window is too small for another pane: use --new-window"),
	sentinel(host.ErrName, failed, "name", "choose another name"),
	sentinel(context.DeadlineExceeded, timedOut, "timed-out", "the host did not answer in time; run it again"),
	sentinel(fs.ErrPermission, failed, "permission", ""),
}

// judge says what an error means. One that no rule knows is a plain failure.
func judge(err error) judgement {
	if err == nil {
		return judgement{}
	}
	for _, r := range rules {
		if j, ok := r(err); ok {
			return j
		}
	}
	return judgement{code: failed, reason: "failed"}
}

func resolveHint(e *plugin.ResolveError) string {
	switch e.Reason {
	case plugin.Missing:
		if e.Near != "" {
			return "did you mean " + e.Near + "? phux-agent integration list"
		}
		return "phux-agent integration list; a plugin that has it: phux-agent plugin add DIR"
	case plugin.Disabled:
		if e.Off {
			return "phux-agent integration enable " + shellQuote(e.Integration)
		}
		return "phux-agent plugin enable " + shellQuote(e.Plugin)
	case plugin.Ambiguous:
		return "disable all but one: phux-agent plugin disable ID"
	case plugin.Untrusted:
		var te *plugin.TrustError
		if errors.As(e.Err, &te) {
			return trustHint(te)
		}
	case plugin.Invalid:
		return "phux-agent integration lint FILE says what is wrong"
	case plugin.OwnerChanged:
		return "if that is meant: phux-agent restore --owner OLD=" + e.Owner
	}
	return ""
}

func trustHint(e *plugin.TrustError) string {
	if e.Fix != "" {
		return e.Fix
	}
	return "make it yours alone to write, or use a copy that is"
}

func liveHint(e *owner.LiveError) string {
	if e.Live.Kind == owner.Orphan {
		return fmt.Sprintf("phux-agent reap %s ends what is left of it", shellQuote(e.Identity.String()))
	}
	if e.Live.Process.PID > 0 {
		return fmt.Sprintf("it runs as pid %d; phux-agent ps says where", e.Live.Process.PID)
	}
	return "phux-agent ps says where"
}

// report prints an error and returns the exit code. With --json the last line on standard error
// is a document of it.
func (a *app) report(err error) int {
	if err == nil {
		return done
	}
	var status *statusError
	if errors.As(err, &status) {
		return status.code
	}
	j := judge(err)
	lines := strings.Split(strings.TrimRight(ui.EscapeLines(err.Error()), "\n"), "\n")
	fmt.Fprintf(a.stderr, "phux-agent: error: %s\n", strings.Join(lines, "\n  "))
	if j.hint != "" {
		fmt.Fprintf(a.stderr, "phux-agent: hint: %s\n", ui.Escape(j.hint))
	}
	if a.json {
		type problem struct {
			Code    int    `json:"code"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
			Hint    string `json:"hint"`
		}
		// That this fails as well leaves nobody to tell.
		_ = writeLine(a.stderr, struct {
			SchemaVersion int     `json:"schema_version"`
			Error         problem `json:"error"`
		}{schemaVersion, problem{j.code, j.reason, err.Error(), j.hint}})
	}
	return j.code
}
