package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/rehearsal"
)

type rehearseFlags struct {
	real         bool
	prompt       string
	conversation string
	wait         time.Duration
}

func (a *app) integrationTest() *cobra.Command {
	var f rehearseFlags
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Rehearse what a template promises: start, save, kill, restore",
		Long: `Rehearse what a template promises, on a tmux server of its own: start the agent,
prompt it, save, kill the server with SIGKILL, and restore, three times over; and
say of each step what was seen, and what to do where it was not as it should be.

Without --real a stand-in plays the agent, in a home of its own: it does what the
template says, keeps conversations where [transcript] says, refuses an unknown id
and one that exists. That needs no account, and shows a template that contradicts
itself; what it says of the real program is believed.

With --real the program itself runs, in your environment and in a temporary
directory. It may ask questions, and somebody has to prompt it: you are told when
and where, or --prompt types it for you. Its conversation stays in its own store.

With --conversation nothing is started: does the template find that conversation?`,
		Example: `  phux-agent integration test my-agent
  phux-agent integration test my-agent --conversation "$ID"
  phux-agent integration test my-agent --real
  phux-agent integration test my-agent --real --prompt hello`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rehearse(cmd, f, args[0]) },
		Annotations: exits("0 everything was as the template says", "1 something was not, or it could not be played", "2 usage",
			"4 it does not resolve to one trusted, enabled owner", "5 no tmux"),
		ValidArgsFunction: a.completeIntegrations,
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.real, "real", false, "run the real program, in your environment")
	fl.StringVar(&f.prompt, "prompt", "", "type this `TEXT` as each prompt; with --real")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "wait that long for the answer to a prompt; with --real")
	fl.StringVar(&f.conversation, "conversation", "", "only look whether the conversation `ID` is found where the template says")
	exclude(cmd, "real conversation", "prompt conversation")
	return cmd
}

// integrationFake is the stand-in, as its own program.
func (a *app) integrationFake() *cobra.Command {
	return &cobra.Command{
		Use: "fake TEMPLATE STORE -- ARGS…", Short: "The stand-in of integration test", Hidden: true,
		DisableFlagParsing: true, Args: cobra.MinimumNArgs(3), Annotations: exits("0 ended"),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the template: %w", err)
			}
			t, _, err := integrations.Parse(args[0], b)
			if err != nil {
				return &lintError{err}
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			fake := rehearsal.Fake{Template: t, Store: args[1], Args: args[3:], Environ: a.environ, Self: self, In: a.stdin, Out: a.stdout}
			if code := fake.Run(); code != 0 {
				return &statusError{code: code}
			}
			return nil
		},
	}
}

func (a *app) rehearse(cmd *cobra.Command, f rehearseFlags, id string) error {
	ctx := cmd.Context()
	if !f.real && (f.prompt != "" || cmd.Flags().Changed("wait")) {
		return usage(cmd, "--prompt and --wait belong to --real: the stand-in needs no answer")
	}
	reg, err := a.registry()
	if err != nil {
		return err
	}
	own, err := reg.Resolve(id)
	if err != nil {
		return err
	}
	if f.conversation != "" {
		return a.findConversation(own, f.conversation)
	}
	src, err := os.ReadFile(own.Template.File)
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	warnings, err := integrations.Lint(own.Template.File, src)
	if err != nil {
		return &lintError{err}
	}
	play := rehearsal.Play{Template: own.Template, Warnings: warnings, Root: own.Root, Patience: f.wait, Prompt: f.prompt}
	stage, err := a.newStage()
	if err != nil {
		return err
	}
	defer stage.close()
	look := a.lookup
	if f.real {
		play.Dir = filepath.Join(stage.base, "work")
		if err := os.MkdirAll(filepath.Join(play.Dir, "untouched"), 0o700); err != nil {
			return fmt.Errorf("rehearse: %w", err)
		}
		stage.environ = withoutServer(a.environ)
		play.Person = a.person(stage)
		play.Find = func(id string) []string { return rehearsal.FindFiles(a.likelyStores(own.Template), id) }
		play.Held = stage.held
	} else {
		th, err := rehearsal.Build(filepath.Join(stage.base, "t"), own.Template, src, stage.self, a.getenv("PATH"))
		if err != nil {
			return err
		}
		stage.environ, look = th.Environ, th.Getenv
		play.Dir, play.Fakes, play.Root, play.Prompt = th.Dir, th.Fakes, th.Root, "remember this"
	}
	play.Patterns = func(id string) ([]string, error) {
		c := own.Template.Transcript
		root, err := integrations.ExpandRoot(c.Root, look)
		if err != nil {
			return nil, err
		}
		return c.Patterns(root, id), nil
	}
	report, err := rehearsal.Run(ctx, stage, play)
	if err != nil {
		return fmt.Errorf("rehearse %q: %w", id, err)
	}
	with := "by a stand-in that believes the template; --real asks the program itself"
	if f.real {
		with = "by the real program"
		if report.NativeID != "" {
			with += fmt.Sprintf("; conversation %s stays in the agent's own store", report.NativeID)
		}
	}
	return a.rehearsed(report, with)
}

// rehearsed prints what a rehearsal found.
func (a *app) rehearsed(r *rehearsal.Report, with string) error {
	if a.json {
		if err := writeDocument(a.stdout, struct {
			SchemaVersion int `json:"schema_version"`
			*rehearsal.Report
			Passed bool `json:"passed"`
		}{schemaVersion, r, r.Passed()}); err != nil {
			return err
		}
	} else {
		t := ui.NewTable("CUT", "STEP", "RESULT", "SEEN")
		failed := 0
		for _, c := range r.Checks {
			t.Row(strconv.Itoa(c.Generation), c.What, string(c.State), c.Detail)
			if c.State == rehearsal.Failed {
				failed++
				t.Note("do: "+c.Do, a.width())
			}
		}
		if err := t.Write(a.stdout, ""); err != nil {
			return err
		}
		if failed > 0 {
			a.say("%s failed, %s", plural(failed, "step"), with)
		} else {
			a.say("as the template says, %s", with)
		}
	}
	if !r.Passed() {
		return &statusError{code: failed}
	}
	return nil
}

// findConversation looks for one conversation in the caller's environment.
func (a *app) findConversation(own plugin.Owner, id string) error {
	t := own.Template
	r := &rehearsal.Report{Integration: t.ID, Real: true, NativeID: id, Checks: []rehearsal.Check{}}
	c := rehearsal.Check{What: "transcript", State: rehearsal.OK}
	if err := t.CheckID(id); err != nil {
		c = rehearsal.Check{What: "id", State: rehearsal.Failed, Detail: err.Error(), Do: "correct id_pattern, or take an id that the agent has"}
	} else {
		presence, detail := owner.Probe(t, id, a.lookup)
		c.Detail = fmt.Sprintf("%s: %s", presence, detail)
		if presence != owner.Present {
			c.State, c.Do = rehearsal.Failed, "correct [transcript] root and paths"
			if found := rehearsal.FindFiles(a.likelyStores(t), id); len(found) > 0 {
				c.Do += "; files with its id in their name: " + strings.Join(found, ", ")
			}
		}
	}
	r.Checks = append(r.Checks, c)
	return a.rehearsed(r, "by a look into your own store; nothing was started")
}

// likelyStores are directories where an agent may keep its conversations: the template's root, and
// those of the home directory that are called like its program or its integration.
func (a *app) likelyStores(t *integrations.Template) []string {
	var roots []string
	if t.Transcript != nil {
		if root, err := integrations.ExpandRoot(t.Transcript.Root, a.lookup); err == nil {
			roots = append(roots, root)
		}
	}
	home := a.getenv("HOME")
	for _, name := range []string{t.ID, filepath.Base(t.Launch.Command[0])} {
		for _, pattern := range []string{"." + name + "*", ".config/" + name + "*", ".local/share/" + name + "*", ".local/state/" + name + "*"} {
			found, err := filepath.Glob(filepath.Join(home, pattern))
			if err == nil {
				roots = append(roots, found...)
			}
		}
	}
	return roots
}

func withoutServer(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if name != "TMUX" && name != "TMUX_PANE" && !strings.HasPrefix(name, "PHUX_AGENT_") {
			out = append(out, kv)
		}
	}
	return out
}

// person tells whoever sits here what to do; nil where nobody does.
func (a *app) person(s *stage) func(string) {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func(what string) {
		printSafe(a.stderr, "Now you. In another terminal:\n  %s -S %s attach -t %s\nthere: %s. Then press Enter here.", s.tmux, s.socket, rehearsal.Session, what)
		_, _ = bufio.NewReader(in).ReadString('\n') // whatever it is, the person is back
	}
}

// stage is a tmux server on a private socket, with phux-agent in front of it.
type stage struct {
	base, socket string
	tmux, self   string
	environ      []string
	hangup       chan os.Signal
	states       []string // directories of the server's own history, to be removed
}

func (a *app) newStage() (*stage, error) {
	name := a.getenv("PHUX_TEST_TMUX")
	if name == "" {
		name = "tmux"
	}
	program, err := plugin.LookProgram(name, a.getenv("PATH"))
	if err != nil {
		return nil, &noTmuxError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	base, err := os.MkdirTemp("", "phux-") // short: the path of a socket is bounded
	if err != nil {
		return nil, fmt.Errorf("rehearse: %w", err)
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, fmt.Errorf("rehearse: %w", err)
	}
	s := &stage{base: base, socket: filepath.Join(base, "s"), tmux: program, self: self, hangup: make(chan os.Signal, 1)}
	if !signal.Ignored(syscall.SIGHUP) {
		// Whoever closes the terminal must not leave a server and its stand-ins behind.
		signal.Notify(s.hangup, syscall.SIGHUP)
		go func() {
			if _, hung := <-s.hangup; hung {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}
		}()
	}
	return s, nil
}

func (s *stage) close() {
	defer func() {
		signal.Stop(s.hangup)
		close(s.hangup)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = s.Cut(ctx) // what is left over is named nowhere, and ends with its terminal
	for _, dir := range s.states {
		_ = os.RemoveAll(dir)
	}
	_ = os.RemoveAll(s.base)
}

func (s *stage) Verb(ctx context.Context, args ...string) (rehearsal.Outcome, error) {
	cmd := exec.CommandContext(ctx, s.self, append(append([]string{"-S", s.socket}, args...), "--json")...)
	cmd.Env, cmd.Dir = s.environ, s.base
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return rehearsal.Outcome{}, fmt.Errorf("run phux-agent %s: %w", args[0], err)
	}
	s.remember(args[0], stdout.Bytes())
	return rehearsal.Outcome{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.String()}, nil
}

// remember notes where the server's history is kept: it has none once the rehearsal is over.
func (s *stage) remember(verb string, out []byte) {
	var doc struct {
		Path string `json:"path"`
	}
	if verb != "save" || decodeDocument(out, &doc) != nil {
		return
	}
	dir := filepath.Dir(doc.Path)
	if strings.HasPrefix(filepath.Base(dir), "tmux-S-") && filepath.Base(filepath.Dir(dir)) == "archives" {
		s.states = append(s.states, dir)
	}
}

func (s *stage) ask(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.tmux, append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = s.environ
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask tmux for %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

func (s *stage) Type(ctx context.Context, pane, text string) error {
	if _, err := s.ask(ctx, "send-keys", "-t", pane, "-l", "--", text); err != nil {
		return err
	}
	// An interface takes keys that come at once for a paste, and Enter in one for a new line.
	deadline := time.Now().Add(3 * time.Second)
	for time.Now().Before(deadline) {
		if screen, err := s.Screen(ctx, pane); err != nil || strings.Contains(screen, text) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, err := s.ask(ctx, "send-keys", "-t", pane, "Enter")
	return err
}

func (s *stage) Screen(ctx context.Context, pane string) (string, error) {
	return s.ask(ctx, "capture-pane", "-p", "-J", "-t", pane)
}

func (s *stage) Process(ctx context.Context, pane string) ([]string, bool, error) {
	out, err := s.ask(ctx, "display-message", "-p", "-t", pane, "#{pane_pid} #{pane_dead}")
	if err != nil {
		return nil, false, err
	}
	word, dead, _ := strings.Cut(out, " ")
	pid, err := strconv.Atoi(word)
	if err != nil || dead == "1" {
		return nil, false, nil
	}
	args, err := proc.Cmdline(pid)
	if err != nil {
		return nil, false, nil // it ended just now
	}
	return args, true, nil
}

// held names what the processes of a pane hold open that has the id in its name.
func (s *stage) held(ctx context.Context, pane, id string) []string {
	out, err := s.ask(ctx, "display-message", "-p", "-t", pane, "#{pane_pid}")
	if err != nil {
		return nil
	}
	root, err := strconv.Atoi(out)
	if err != nil {
		return nil
	}
	table, err := proc.ReadTable()
	if err != nil {
		return nil
	}
	var found []string
	for _, pid := range append([]int{root}, pids(table.Descendants(root))...) {
		files, err := proc.OpenFiles(pid)
		if err != nil {
			continue // ended since
		}
		for _, f := range files {
			if strings.Contains(filepath.Base(f.Target), id) && len(found) < maxHeld {
				args, _ := proc.Cmdline(pid)
				found = append(found, fmt.Sprintf("%s by process %d (%s)", f.Target, pid, strings.Join(args, " ")))
			}
		}
	}
	return found
}

const maxHeld = 5 // files that are named

func pids(all []proc.Info) []int {
	out := make([]int, len(all))
	for i := range all {
		out[i] = all[i].PID
	}
	return out
}

func (s *stage) Cut(ctx context.Context) error {
	out, err := s.ask(ctx, "list-panes", "-a", "-F", "#{pid} #{pane_pid}")
	if err != nil {
		return nil // no server
	}
	table, err := proc.ReadTable()
	if err != nil {
		return fmt.Errorf("cut the power: %w", err)
	}
	var server proc.ID
	var rest []proc.ID
	for line := range strings.Lines(out) {
		var pid, pane int
		if _, err := fmt.Sscan(line, &pid, &pane); err != nil {
			continue
		}
		if i, ok := table.Get(pid); ok {
			server = i.ID()
		}
		if i, ok := table.Get(pane); ok {
			rest = append(rest, i.ID())
		}
		for _, i := range table.Descendants(pane) {
			rest = append(rest, i.ID())
		}
	}
	for _, id := range append([]proc.ID{server}, rest...) {
		if id.PID > 1 {
			_ = proc.Signal(id, syscall.SIGKILL) // it may have ended by now
		}
	}
	for _, id := range append([]proc.ID{server}, rest...) {
		for proc.Alive(id) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("cut the power: process %d does not end: %w", id.PID, ctx.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}
