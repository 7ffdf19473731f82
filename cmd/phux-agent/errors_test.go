package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/launch"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

func TestJudge(t *testing.T) {
	id := metadata.Identity{IntegrationID: "claude-code", NativeID: "abc"}
	trust := &plugin.TrustError{Path: "/x", Why: "is writable by others", Mode: 0o777, Fix: "chmod o-w /x"}
	resolve := func(r plugin.Reason, off bool, err error) error {
		return &plugin.ResolveError{Reason: r, Integration: "claude", Plugin: "p", Near: "claude-code", Off: off, Owner: "new", Err: err}
	}
	for _, c := range []struct {
		err    error
		code   int
		reason string
		hint   string // part of it; "-" for none
	}{
		{nil, 0, "", "-"},
		{errors.New("x"), 1, "failed", "-"},
		{&usageError{Command: "phux-agent save", Err: errors.New("x")}, 2, "usage", "phux-agent save --help"},
		{&interruptedError{context.Canceled}, 1, "interrupted", "run it again"},
		{&hostFlagError{}, 2, "usage", "-L NAME"},
		{&embedded.NameError{Name: "a/b"}, 2, "usage", "-L NAME"},
		{&embedded.PathError{Path: "/x"}, 5, "no-host", "XDG_RUNTIME_DIR"},
		{&embedded.StartError{Reason: "x"}, 5, "no-host", "server run"},
		{embedded.ErrRunning, 1, "running", "server status"},
		{embedded.ErrVersion, 5, "version", "server stop"},
		{&hostKindError{"screen"}, 5, "no-host", "tmux"},
		{&noTmuxError{&plugin.ProgramError{Name: "tmux"}}, 5, "no-host", "install tmux"},
		{host.ErrNoServer, 5, "no-server", "-L NAME"},
		{host.ErrOlderHost, 4, "host-unsupported", "3.2a"},
		{host.ErrDangerous, 4, "dangerous-setting", "setting"},
		{resolve(plugin.Missing, false, nil), 4, "integration-missing", "did you mean claude-code?"},
		{resolve(plugin.Disabled, true, nil), 4, "integration-disabled", "phux-agent integration enable claude"},
		{resolve(plugin.Disabled, false, nil), 4, "integration-disabled", "phux-agent plugin enable p"},
		{resolve(plugin.Ambiguous, false, nil), 4, "integration-ambiguous", "plugin disable"},
		{resolve(plugin.Invalid, false, errors.New("x")), 4, "integration-invalid", "integration lint"},
		{resolve(plugin.Untrusted, false, trust), 4, "untrusted", "chmod o-w /x"},
		{resolve(plugin.OwnerChanged, false, nil), 4, "owner-changed", "--owner OLD=new"},
		{trust, 4, "untrusted", "chmod o-w /x"},
		{&plugin.TrustError{Path: "/x", Why: "is owned by uid 7"}, 4, "untrusted", "yours alone"},
		{&dirs.ForeignError{Path: "/x"}, 4, "untrusted", "XDG_RUNTIME_DIR"},
		{&owner.DirectoryError{Path: "/x"}, 4, "untrusted", "/x"},
		{&owner.LiveError{Identity: id, Live: owner.Live{Kind: owner.Claimed, Process: owner.Process{PID: 7}}}, 4, "already-live", "pid 7"},
		{&owner.LiveError{Identity: id, Live: owner.Live{Kind: owner.Orphan}}, 4, "already-live", "phux-agent reap claude-code/abc"},
		{&owner.NotOrphanError{}, 4, "not-orphan", "ps"},
		{&owner.FlippedError{}, 4, "conversation-changed", "--plan"},
		{&launch.ExistsError{Identity: id}, 4, "exists", "phux-agent launch claude-code --resume abc"},
		{&launch.AbsentError{Identity: id}, 4, "transcript-missing", "phux-agent launch claude-code"},
		{&launch.NotRestorableError{Integration: "x"}, 4, "not-restorable", "--resume"},
		{&launch.IDError{Integration: "x"}, 4, "invalid-id", "integration show x"},
		{&launch.RequirementError{Require: integrations.Require{File: "f", JSON: "/p", Equals: false}}, 4, "requirement-unmet", "set /p in f to false"},
		{&integrations.NeverError{}, 4, "never-option", "--resume ID"},
		{launch.ErrHere, 4, "here", "--here"},
		{&launch.DirError{Dir: "/x"}, 1, "cwd", "--cwd DIR"},
		{&launch.ProfileError{Profile: "w", Integration: "x"}, 2, "profile-missing", "[profiles.w.x]"},
		{&launch.ProgramError{Program: "x"}, 1, "binary-missing", "PATH"},
		{&plugin.ProgramError{Name: "x"}, 1, "binary-missing", "PATH"},
		{&launch.MintError{}, 1, "mint-failed", "login"},
		{&launch.ReadBackError{}, 1, "read-back", "again"},
		{&restore.UnknownSessionError{}, 2, "unknown-session", "archive show"},
		{&restore.StaleError{}, 1, "stale-plan", "again"},
		{&archive.BusyError{}, 1, "busy", "wait"},
		{&archive.VersionError{Found: 9}, 1, "schema", "upgrade"},
		{&archive.FormatError{}, 1, "not-an-archive", "archive list"},
		{&archive.LastGoodError{}, 4, "last-good", "save first"},
		{archive.ErrNone, 1, "no-generation", "phux-agent save"},
		{archive.ErrNoGeneration, 1, "no-generation", "archive list"},
		{archive.ErrNoSession, 1, "no-session", "archive show"},
		{archive.ErrStaleWriter, 1, "stale-writer", "again"},
		{archive.ErrName, 2, "usage", "letters"},
		{&paneError{Arg: "x"}, 1, "no-pane", "ps --all"},
		{&paneError{Arg: "x", Many: []string{"a", "b"}}, 1, "no-pane", "%N"},
		{&notInPaneError{"--here"}, 1, "not-in-pane", "--here"},
		{&unknownPluginError{"x"}, 1, "no-plugin", "plugin list"},
		{&notAddedError{ID: "x", Origin: plugin.Embedded}, 1, "not-added", "plugin disable x"},
		{&notAddedError{ID: "x", Origin: plugin.Added}, 1, "not-added", "[[plugins]]"},
		{&duplicatePluginError{ID: "x"}, 1, "duplicate-plugin", "plugin remove x"},
		{&invalidPluginError{Err: errors.New("x")}, 1, "invalid-plugin", "lint"},
		{&lintError{errors.New("x")}, 1, "invalid-template", "writing-an-integration"},
		{&config.FileError{File: "f"}, 1, "configuration", "correct the file"},
		{host.ErrNoSession, 1, "no-session", "ps --all"},
		{host.ErrSessionExists, 1, "session-exists", "--session"},
		{host.ErrNoTerminal, 1, "no-pane", "ps --all"},
		{host.ErrStale, 1, "stale", "again"},
		{host.ErrConflict, 1, "conflict", "again"},
		{host.ErrChanged, 1, "changed", "again"},
		{host.ErrNoSpace, 1, "no-space", "--new-window"},
		{host.ErrName, 1, "name", "another name"},
		{context.DeadlineExceeded, 124, "timed-out", "again"},
		{fs.ErrPermission, 1, "permission", "-"},
	} {
		t.Run(fmt.Sprintf("%T %v", c.err, c.code), func(t *testing.T) {
			err := c.err
			if err != nil {
				err = fmt.Errorf("outer: %w", err) // as rooms hand them on
			}
			j := judge(err)
			if j.code != c.code || j.reason != c.reason {
				t.Errorf("judged %d %s, want %d %s", j.code, j.reason, c.code, c.reason)
			}
			if c.hint == "-" && j.hint != "" || c.hint != "-" && !strings.Contains(j.hint, c.hint) {
				t.Errorf("hint %q, want %q", j.hint, c.hint)
			}
		})
	}
}

func TestReportEscapes(t *testing.T) {
	var out bytes.Buffer
	a := &app{stderr: &out, json: true}
	if code := a.report(errors.New("a\x1b[31m\u202eb\nsecond line")); code != 1 {
		t.Errorf("code %d", code)
	}
	want := "phux-agent: error: a\\x1b[31m\\u202eb\n  second line\n" +
		`{"schema_version":1,"error":{"code":1,"reason":"failed","message":"a\u001b[31m\u202eb\nsecond line","hint":""}}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRestoreStatus(t *testing.T) {
	result := func(s string) *string { return &s }
	pane := func(v restore.Verdict, r *string) restore.PaneReport {
		return restore.PaneReport{Verdict: v, Result: r}
	}
	session := func(action string, panes ...restore.PaneReport) restore.SessionReport {
		return restore.SessionReport{Action: action, Panes: panes}
	}
	ok := session(restore.Create, pane(restore.Resume, result(restore.Running)))
	for _, c := range []struct {
		name     string
		sessions []restore.SessionReport
		code     int
	}{
		{"none", nil, 0},
		{"all run", []restore.SessionReport{ok}, 0},
		{"skipped", []restore.SessionReport{session(restore.SkipExisting, pane(restore.AlreadyLive, nil))}, 0},
		{"placeholder", []restore.SessionReport{session(restore.Create, pane(restore.CwdMissing, result(restore.Waits)))}, 3},
		{"exited", []restore.SessionReport{session(restore.Create, pane(restore.Resume, result(restore.Exited)))}, 3},
		{"refused beside a success", []restore.SessionReport{ok, session(restore.Refuse)}, 3},
		{"refused alone", []restore.SessionReport{session(restore.Refuse)}, 4},
		{"failed alone", []restore.SessionReport{{Action: restore.Create, Error: "x"}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &app{stderr: &bytes.Buffer{}}
			if got := a.report(restoreStatus(&restore.Report{Sessions: c.sessions})); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
		})
	}
}

// TestReasonsAreDocumented keeps docs/exit-codes.md true: each word stands in the row of its code.
func TestReasonsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{"failed": "1", "misused": "2", "partial": "3", "refused": "4", "noHost": "5", "timedOut": "124"}
	rule := regexp.MustCompile(`(?:as\(|sentinel\([^,]*, )(\w+), "([a-z-]+)"`)
	found := rule.FindAllStringSubmatch(string(src), -1)
	if len(found) < 40 {
		t.Fatalf("only %d rules were found", len(found))
	}
	for _, m := range found {
		row := regexp.MustCompile("(?m)^\\|.*`" + m[2] + "`.*\\| " + codes[m[1]] + " \\|$")
		if !row.Match(b) {
			t.Errorf("%s (code %s) has no row", m[2], codes[m[1]])
		}
	}
}
