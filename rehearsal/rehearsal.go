// Package rehearsal plays what a template promises, on a stage of its own: an agent is started,
// prompted, saved, its server killed, and restored, three times over; and judges what came back by
// what it could see.
//
// It goes through the same verbs as a person, and knows no host: Stage is what it needs of one.
// The agent is the real program, or Fake, which believes the template.
package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/integrations"
)

// Stage is a host server of its own, and phux-agent in front of it.
type Stage interface {
	// Verb runs phux-agent with these arguments and --json.
	Verb(ctx context.Context, args ...string) (Outcome, error)
	// Type types a line into a pane, as a person does.
	Type(ctx context.Context, pane, text string) error
	// Screen is the text of a pane.
	Screen(ctx context.Context, pane string) (string, error)
	// Process is the process of a pane, its arguments, and whether it runs.
	Process(ctx context.Context, pane string) (args []string, alive bool, err error)
	// Cut ends the server and all that runs in it by SIGKILL, as a power cut does.
	Cut(ctx context.Context) error
}

// Outcome is what a verb said.
type Outcome struct {
	Code   int
	Stdout []byte
	Stderr string
}

// Play is what is to be rehearsed.
type Play struct {
	Template *integrations.Template
	Warnings []integrations.Warning   // of the linter
	Root     string                   // the plugin's directory
	Dir      string                   // where the agent works; exists, and nothing in it matters
	Fakes    string                   // the fakes' store; empty for the real program
	Prompt   string                   // typed as the first prompt; empty: a person does it
	Patience time.Duration            // the longest wait for a prompt's answer
	Person   func(instruction string) // tells a person what to do now; nil: there is none
	// Find looks for files of an id below the directories where its agent may keep them. For words.
	Find func(id string) []string
	// Held names the files with the id in their names that the pane's processes hold open, each with
	// its process. For words.
	Held func(ctx context.Context, pane, id string) []string
	// Patterns says where the template says that the conversation lies, in the agent's environment.
	Patterns func(id string) ([]string, error)
}

// Generations is how often the power is cut.
const Generations = 3

// Session is the name of the session that is played in.
const Session = "rehearsal"

const untouched = "untouched"

// State is a check's outcome.
type State string

const (
	OK      State = "ok"
	Failed  State = "fail"
	Skipped State = "skip" // it could not be seen, or the template does not say
)

// Check is one thing that was looked at.
type Check struct {
	Generation int    `json:"generation"` // of power cuts before it
	What       string `json:"what"`
	State      State  `json:"state"`
	Detail     string `json:"detail"` // what was seen
	Do         string `json:"do"`     // of Failed: what to do
}

// Report is what a rehearsal found, in the order of the play.
type Report struct {
	Integration string  `json:"integration"`
	Real        bool    `json:"real"`
	NativeID    string  `json:"native_id"`
	Checks      []Check `json:"checks"`
}

// Passed reports whether nothing failed.
func (r *Report) Passed() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.State == Failed })
}

// errStop ends a play whose next step has no ground to stand on; the check before it says why.
var errStop = errors.New("the rehearsal ends here")

type rehearsal struct {
	Play
	stage      Stage
	report     *Report
	generation int
	pane, id   string
	prompts    int
}

// Run plays it. The error is a stage that broke down; what the agent did wrong is in the report.
func Run(ctx context.Context, stage Stage, p Play) (*Report, error) {
	r := &rehearsal{Play: p, stage: stage, report: &Report{Integration: p.Template.ID, Real: p.Fakes == "", Checks: []Check{}}}
	err := r.run(ctx)
	r.report.NativeID = r.id
	if errors.Is(err, errStop) {
		err = nil
	}
	return r.report, err
}

func (r *rehearsal) note(state State, what, do, detail string, args ...any) {
	if state != Failed {
		do = ""
	}
	r.report.Checks = append(r.report.Checks, Check{r.generation, what, state, fmt.Sprintf(detail, args...), do})
}

// check notes ok or fail.
func (r *rehearsal) check(ok bool, what, do, detail string, args ...any) bool {
	state := OK
	if !ok {
		state = Failed
	}
	r.note(state, what, do, detail, args...)
	return ok
}

func (r *rehearsal) run(ctx context.Context) error {
	if err := r.template(); err != nil {
		return err
	}
	if err := r.launch(ctx); err != nil {
		return err
	}
	if err := r.prompt(ctx); err != nil {
		return err
	}
	if r.Template.CanMint() {
		out, err := r.stage.Verb(ctx, "launch", r.Template.ID, "--session", untouched, "--cwd", filepath.Join(r.Dir, untouched))
		if err != nil {
			return err
		}
		if out.Code != 0 {
			r.note(Failed, "a second one starts", said(out), "exit %d", out.Code)
		}
	}
	for r.generation < Generations {
		if err := r.save(ctx); err != nil {
			return err
		}
		if err := r.stage.Cut(ctx); err != nil {
			return err
		}
		r.generation++
		if err := r.restore(ctx); err != nil {
			return err
		}
		if r.Prompt != "" {
			if err := r.prompt(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rehearsal) template() error {
	t := r.Template
	if err := t.Restorable(); err != nil {
		r.note(Failed, "template", "write [session_identity] with mode, restore and resume_args", "%v", err)
		return errStop
	}
	if integrations.Unfilled(r.Warnings) {
		r.note(Failed, "template", "phux-agent integration lint "+t.File, "it is not filled in yet")
		return errStop
	}
	if t.Transcript != nil && r.Fakes != "" { // the real agent's profile may set what we cannot see
		if _, err := r.Patterns("id"); err != nil {
			r.note(Failed, "transcript", r.where(), "%v", err)
			return errStop
		}
	}
	if n := len(r.Warnings); n > 0 {
		r.note(OK, "template", "", "it loads; the linter has %d to say: phux-agent integration lint %s", n, t.File)
		return nil
	}
	r.note(OK, "template", "", "it loads, and the linter has nothing to say")
	return nil
}

// said is the last of what a verb said to a person.
func said(out Outcome) string {
	var hint string
	for line := range strings.Lines(out.Stderr) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "phux-agent: hint: "); ok {
			return h
		}
		if e, ok := strings.CutPrefix(line, "phux-agent: error: "); ok {
			hint = e
		}
	}
	return hint
}

func problem(out Outcome) string {
	for line := range strings.Lines(out.Stderr) {
		if e, ok := strings.CutPrefix(strings.TrimSpace(line), "phux-agent: error: "); ok {
			return e
		}
	}
	return fmt.Sprintf("exit %d", out.Code)
}

// decode reads the document that a verb printed, which may say more than is read here.
func decode(out Outcome, v any) error {
	if err := json.Unmarshal(bytes.TrimSpace(out.Stdout), v); err != nil {
		return fmt.Errorf("read what phux-agent printed: %w", err)
	}
	return nil
}

type record struct {
	NativeID string `json:"native_id"`
}

func (r *rehearsal) launch(ctx context.Context) error {
	out, err := r.stage.Verb(ctx, "launch", r.Template.ID, "--session", Session, "--cwd", r.Dir)
	if err != nil {
		return err
	}
	if !r.check(out.Code == 0, "starts", said(out), "%s", map[bool]string{true: "launch", false: problem(out)}[out.Code == 0]) {
		return errStop
	}
	var doc struct {
		Terminal string  `json:"terminal"`
		Record   *record `json:"record"`
		Reason   string  `json:"reason"`
	}
	if err := decode(out, &doc); err != nil {
		return err
	}
	r.pane = doc.Terminal
	op := integrations.Plain
	if doc.Record != nil {
		r.id = doc.Record.NativeID
		if op = integrations.Resume; r.Template.CanMint() {
			op = integrations.Fresh
		}
		r.note(OK, "identity", "", "%s, on record from the first instant", r.id)
	}
	if r.Fakes != "" {
		if e, ok, err := r.event(ctx, "start", 0); err != nil {
			return err
		} else if !ok {
			r.note(Failed, "runs", "correct what it says", "%s", r.lastWords(ctx))
			return errStop
		} else {
			r.check(len(e.Left) == 0 && (r.id == "" || e.Native == r.id || r.Template.Identity.NativeEnv == ""), "environment",
				"tell the project: this is phux-agent's part", "%s set to the id, %d of scrub_env left", r.Template.Identity.NativeEnv, len(e.Left))
		}
	}
	return r.runs(ctx, op)
}

// runs checks that the pane's process is alive and has the arguments that the template builds.
func (r *rehearsal) runs(ctx context.Context, op integrations.Op) error {
	args, alive, err := r.stage.Process(ctx, r.pane)
	if err != nil {
		return err
	}
	if !r.check(alive, "alive", "run it by hand in "+r.Dir+" and read what it says", "%s", map[bool]string{true: "its process runs", false: r.lastWords(ctx)}[alive]) {
		return errStop
	}
	req := integrations.Request{Op: op, PluginRoot: r.Root}
	if op != integrations.Plain {
		req.ID = r.id
	}
	cmd, err := r.Template.Build(req)
	if err != nil {
		r.note(Failed, "arguments", "correct the template", "%v", err)
		return errStop
	}
	want := cmd.Argv
	if r.Fakes != "" {
		// The stand-in's own words come before those of the template.
		if i := slices.Index(args, "--"); i >= 0 {
			args = append([]string{want[0]}, args[i+1:]...)
		}
	}
	shown := strings.Join(want, " ")
	switch {
	case len(args) > 0 && slices.Equal(args[1:], want[1:]):
		r.note(OK, "arguments", "", "%s", shown)
	case endsWith(args, want[1:]): // an interpreter before its script; arguments of a profile stand before the identity
		r.note(OK, "arguments", "", "%s", shown)
	case op != integrations.Plain && slices.Contains(args, r.id):
		r.note(OK, "arguments", "", "%s", strings.Join(args, " "))
	case len(args) <= 1:
		r.note(Skipped, "arguments", "", "it writes over its own arguments; %s was run", shown)
	default:
		r.note(Failed, "arguments", "see whether [launch] command names a wrapper that changes them", "it runs %s, and %s was wanted", strings.Join(args, " "), shown)
	}
	return nil
}

func endsWith(args, tail []string) bool {
	return len(args) > len(tail) && slices.Equal(args[len(args)-len(tail):], tail)
}

// pane is what ps says of one.
type pane struct {
	Terminal   string  `json:"terminal"`
	Session    string  `json:"session"`
	Window     int     `json:"window"`
	Index      int     `json:"index"`
	Record     *record `json:"record"`
	State      string  `json:"state"`
	Durability string  `json:"durability"`
	Restorable bool    `json:"restorable"`
	Reason     string  `json:"reason"`
}

// look asks ps for the pane of the session that is played in.
func (r *rehearsal) look(ctx context.Context) (pane, error) {
	out, err := r.stage.Verb(ctx, "ps")
	if err != nil {
		return pane{}, err
	}
	var doc struct {
		Panes []pane `json:"panes"`
	}
	if out.Code != 0 {
		return pane{}, fmt.Errorf("list panes: %s", problem(out))
	}
	if err := decode(out, &doc); err != nil {
		return pane{}, err
	}
	for _, p := range doc.Panes {
		if p.Session == Session {
			return p, nil
		}
	}
	return pane{}, errors.New("list panes: the rehearsal's session is gone")
}

// lastWords is the end of what stands on the screen.
func (r *rehearsal) lastWords(ctx context.Context) string {
	text, err := r.stage.Screen(ctx, r.pane)
	if err != nil {
		return "its pane is gone"
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "it ended without a word"
	}
	return "it said: " + strings.Join(lines[max(0, len(lines)-3):], " / ")
}

// poll asks until ok, or until the patience for it ends.
func poll(ctx context.Context, patience time.Duration, ask func() (bool, error)) (bool, error) {
	deadline := time.Now().Add(patience)
	for {
		ok, err := ask()
		if ok || err != nil {
			return ok, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// event waits for an event of the fakes beyond the first n of its kind.
func (r *rehearsal) event(ctx context.Context, kind string, n int) (found Event, ok bool, err error) {
	ok, err = poll(ctx, 20*time.Second, func() (bool, error) {
		all, err := Events(r.Fakes)
		seen := 0
		for _, e := range all {
			if e.Event == kind {
				if seen++; seen > n {
					found = e
					return true, nil
				}
			}
		}
		if len(all) > 0 && all[len(all)-1].Event == "refuse" {
			return false, errRefused
		}
		return false, err
	})
	if errors.Is(err, errRefused) {
		return found, false, nil
	}
	return found, ok, err
}

var errRefused = errors.New("it refused")

// prompt makes the conversation durable: a line is typed, or a person asked to do it.
func (r *rehearsal) prompt(ctx context.Context) error {
	switch {
	case r.Prompt != "":
		if r.Fakes == "" {
			r.settle(ctx) // an interface that is not drawn yet loses what is typed
		}
		if err := r.stage.Type(ctx, r.pane, r.Prompt); err != nil {
			return err
		}
		r.prompts++
	case r.Person == nil:
		r.note(Failed, "prompt", "give a prompt that is typed for you: --prompt TEXT", "a person is needed to answer its questions and to prompt it, and there is no terminal here")
		return errStop
	default:
		r.Person("answer its questions, send it one prompt, and wait for the answer")
		r.prompts++
	}
	if r.Fakes != "" {
		n := 0
		if all, err := Events(r.Fakes); err == nil {
			for _, e := range all {
				if e.Event == "prompt" {
					n++
				}
			}
		}
		if n < r.prompts {
			if _, ok, err := r.event(ctx, "prompt", r.prompts-1); err != nil {
				return err
			} else if !ok {
				r.note(Failed, "prompt", "correct what it says", "%s", r.lastWords(ctx))
				return errStop
			}
		}
	}
	return r.durable(ctx)
}

// settle waits until the screen has stood still for a moment, for some seconds at most.
func (r *rehearsal) settle(ctx context.Context) {
	last, still := "", 0
	_, _ = poll(ctx, min(r.Patience, 15*time.Second), func() (bool, error) { // a screen that never rests is typed into all the same
		text, err := r.stage.Screen(ctx, r.pane)
		if err != nil || strings.TrimSpace(text) == "" || text != last {
			last, still = text, 0
			return false, nil
		}
		still++
		return still > 10, nil
	})
}

// durable checks that the conversation is seen where the template says that it lies, and that
// the pane has an identity by now.
func (r *rehearsal) durable(ctx context.Context) error {
	var p pane
	patience := r.Patience
	if r.Fakes != "" {
		patience = 10 * time.Second
	}
	wanted := func() bool { return p.Record != nil && (r.Template.Transcript == nil || p.Durability == "present") }
	_, err := poll(ctx, patience, func() (bool, error) {
		var err error
		p, err = r.look(ctx)
		return err == nil && wanted(), err
	})
	if err != nil {
		return err
	}
	if p.Record == nil && r.Fakes != "" && len(r.Template.Observe) == 0 {
		// Nothing shows which id it has: what is left is that a person says it.
		e, _, err := r.event(ctx, "start", 0)
		if err != nil {
			return err
		}
		if _, err := r.stage.Verb(ctx, "adopt", r.pane, r.Template.ID, "--id", e.ID); err != nil {
			return err
		}
		if p, err = r.look(ctx); err != nil {
			return err
		}
		if p.Record != nil {
			r.note(Skipped, "identity", "", "nothing shows its id; it was adopted under the one that a person would say")
		}
	}
	if p.Record == nil {
		if r.Template.Identity.UnknownID == "blank" && r.Template.Transcript == nil {
			r.note(Failed, "identity", `write a [transcript]: with unknown_id = "blank" and no place to look, no conversation is ever taken up`, "%s", p.Reason)
			return errStop
		}
		r.note(Failed, "identity", "correct [[observe]]; or, where nothing can show it, adopt PANE "+r.Template.ID+" --id ID is what is left", "%s", p.Reason)
		return errStop
	}
	if r.id == "" {
		r.id = p.Record.NativeID
		r.note(OK, "identity", "", "%s, seen as the template says", r.id)
	} else if p.Record.NativeID != r.id {
		r.note(Failed, "identity", "see whether it begins another conversation at its first prompt", "%s, and it was %s", p.Record.NativeID, r.id)
		return errStop
	}
	if r.generation > 0 && (r.Template.Transcript == nil || p.Durability == "present") {
		return nil // as before
	}
	if r.Template.Transcript == nil {
		r.note(Skipped, "transcript", "", "the template names none")
	} else if !r.check(p.Durability == "present", "transcript", r.where(), "%s", r.seen(p)) {
		return errStop
	}
	r.proof(ctx, p)
	return nil
}

func (r *rehearsal) seen(p pane) string {
	patterns, err := r.Patterns(r.id)
	if err != nil {
		return err.Error()
	}
	if p.Durability == "present" {
		return "found by " + strings.Join(patterns, ", ")
	}
	return fmt.Sprintf("nothing of it by %s", strings.Join(patterns, ", "))
}

// where is what an author can do about a transcript that is not found.
func (r *rehearsal) where() string {
	if _, err := r.Patterns(r.id); err != nil {
		return `give [transcript] root a default, as "${MY_AGENT_HOME:-~/.my-agent}"`
	}
	do := "correct [transcript] root and paths"
	if r.Find != nil {
		if found := r.Find(r.id); len(found) > 0 {
			return do + "; files with its id in their name: " + strings.Join(found, ", ")
		}
	}
	return do + "; look which file changes when you prompt it"
}

// proof says whether the process was seen to have the id open.
func (r *rehearsal) proof(ctx context.Context, p pane) {
	var kinds []string
	for _, o := range r.Template.Observe {
		if !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
	}
	switch unseen := strings.HasPrefix(p.Reason, "unconfirmed"); {
	case len(kinds) == 0:
		r.note(Skipped, "proof", "", "no [[observe]]: a conversation that it changes to by itself is not seen")
	case !unseen:
		r.note(OK, "proof", "", "its process shows the id, by %s", strings.Join(kinds, ", "))
	case slices.Equal(kinds, []string{"hook"}):
		r.note(Skipped, "proof", "", "%s (has phux-agent hooks install %s been run?)", p.Reason, r.Template.ID)
	default:
		do := "correct [[observe]]: path, id, pid, start and start_unit, where"
		if r.Held != nil {
			if held := r.Held(ctx, r.pane, r.id); len(held) > 0 {
				do += "; held open with its id in the name: " + strings.Join(held, ", ")
			}
		}
		if r.Find != nil {
			if found := r.Find(r.id); len(found) > 0 {
				do += "; files with its id in their name: " + strings.Join(found, ", ")
			}
		}
		r.note(Failed, "proof", do, "%s", p.Reason)
	}
}

func (r *rehearsal) save(ctx context.Context) error {
	out, err := r.stage.Verb(ctx, "save")
	if err != nil {
		return err
	}
	var doc struct {
		Generation uint64 `json:"generation"`
		State      string `json:"state"`
		Reason     string `json:"reason"`
		Records    int    `json:"records"`
	}
	if len(out.Stdout) > 0 {
		if err := decode(out, &doc); err != nil {
			return err
		}
	}
	if !r.check(out.Code == 0 && doc.State == "good" && doc.Records > 0, "saved", cmpOr(said(out), "look at what it says of each pane: phux-agent ps"), "generation %d, %d on record %s", doc.Generation, doc.Records, doc.Reason) {
		return errStop
	}
	return nil
}

// restored is what restore says of a pane.
type restored struct {
	Window  int     `json:"window"`
	Index   int     `json:"index"`
	Verdict string  `json:"verdict"`
	Reason  string  `json:"reason"`
	Hint    string  `json:"hint"`
	Record  *record `json:"record"`
	Result  *string `json:"result"`
}

func (r *rehearsal) restore(ctx context.Context) error {
	starts := 0
	if r.Fakes != "" {
		all, err := Events(r.Fakes)
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.Event == "start" && e.ID == r.id {
				starts++
			}
		}
	}
	out, err := r.stage.Verb(ctx, "restore")
	if err != nil {
		return err
	}
	var doc struct {
		Sessions []struct {
			Name   string     `json:"name"`
			Reason string     `json:"reason"`
			Error  string     `json:"error"`
			Panes  []restored `json:"panes"`
		} `json:"sessions"`
	}
	if len(out.Stdout) == 0 {
		r.note(Failed, "restored", said(out), "%s", problem(out))
		return errStop
	}
	if err := decode(out, &doc); err != nil {
		return err
	}
	var main, other []restored
	for _, s := range doc.Sessions {
		switch s.Name {
		case Session:
			main = s.Panes
		case untouched:
			other = s.Panes
		}
	}
	if len(main) != 1 {
		r.note(Failed, "restored", "tell the project: this is phux-agent's part", "%d panes where one was saved", len(main))
		return errStop
	}
	p := main[0]
	result := ""
	if p.Result != nil {
		result = *p.Result
	}
	words := strings.Trim(strings.Join([]string{p.Verdict, result, p.Reason}, ", "), ", ")
	do := cmpOr(p.Hint, "run it by hand with resume_args in "+r.Dir+" and read what it says")
	if cmd, err := r.Template.Build(integrations.Request{Op: integrations.Resume, ID: r.id, PluginRoot: r.Root}); err == nil && p.Verdict == "resume" {
		do = "correct resume_args; this was run: " + strings.Join(cmd.Argv, " ")
	}
	if !r.check(p.Verdict == "resume" && result == "running", "restored", do, "%s", words) {
		return errStop
	}
	now, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.pane = now.Terminal
	if !r.check(now.Record != nil && now.Record.NativeID == r.id, "same identity", "see whether it forks when it resumes: resume_args must keep the id", "%s", idOf(now.Record)) {
		return errStop
	}
	r.check(now.Window == p.Window && now.Index == p.Index, "same pane", "tell the project: this is phux-agent's part", "window %d, pane %d", now.Window, now.Index)
	if err := r.runs(ctx, integrations.Resume); err != nil {
		return err
	}
	if r.Fakes != "" {
		if err := r.remembers(ctx, starts); err != nil {
			return err
		}
	}
	if r.Template.Transcript != nil {
		r.check(now.Durability == "present", "transcript", r.where(), "%s", r.seen(now))
	}
	if r.generation == 1 {
		r.never(other)
	}
	return nil
}

// remembers checks that what came back knows its prompts.
func (r *rehearsal) remembers(ctx context.Context, starts int) error {
	var last Event
	ok, err := poll(ctx, 10*time.Second, func() (bool, error) {
		all, err := Events(r.Fakes)
		n := 0
		for _, e := range all {
			if e.Event == "start" && e.ID == r.id {
				n, last = n+1, e
			}
		}
		return n > starts, err
	})
	if err != nil {
		return err
	}
	r.check(ok && last.Op == "resume" && last.Prompts == r.prompts, "remembers", "see which of the template's arguments it took for what", "%d of %d prompts, started by %s", last.Prompts, r.prompts, cmpOr(last.Op, "nothing"))
	return nil
}

// never checks what became of the conversation that was never prompted.
func (r *rehearsal) never(panes []restored) {
	if !r.Template.CanMint() {
		return
	}
	if len(panes) != 1 {
		r.note(Skipped, "never prompted", "", "it was not saved")
		return
	}
	p, result := panes[0], ""
	if p.Result != nil {
		result = *p.Result
	}
	words := strings.Trim(p.Verdict+", "+result, ", ")
	switch {
	case r.Template.Identity.NeverPrompted == integrations.FreshUntilFile && p.Verdict == "never-durable":
		r.check(true, "never prompted", "", "%s", words)
	case r.Template.Identity.NeverPrompted == integrations.Lost:
		r.check(p.Verdict == "never-durable" || p.Verdict == "resume" && result == "running", "never prompted", "see docs/writing-an-integration.md on never_prompted", "%s", words)
	case r.Template.Transcript == nil:
		r.note(Skipped, "never prompted", "", "%s; without a [transcript] nobody can tell", words)
	default:
		r.check((p.Verdict == "fresh-same-id" || p.Verdict == "resume") && result == "running", "never prompted",
			`where the same fresh_args are refused the second time, write never_prompted = "lost"`, "%s", strings.Trim(words+", "+p.Reason, ", "))
	}
}

func idOf(r *record) string {
	if r == nil {
		return "no record"
	}
	return r.NativeID
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
