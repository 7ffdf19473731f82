//go:build linux

package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

const idD = "d4a1b2c3-1111-4222-8333-444455556666"

// The trees in which a hook may be called, by the script that the agent runs; each prints the pid
// of what stands for the hook.
const (
	ownTree     = `sleep 300 & echo $!; wait`
	childTree   = `if [ -n "$C" ]; then sleep 300 & echo $!; wait; else (export C=1; exec -a demo-agent bash -c "$S"); fi`
	grandTree   = `bash -c 'bash -c "sleep 300 & echo \$!; wait; :"; :'; :`
	nestedTree  = `bash -c 'exec -a demo-agent bash -c "sleep 300 & echo \$!; wait"; :'; :`
	daemonTree  = `(setsid sleep 300 & echo $!); sleep 300; :`
	daemonAgent = `(setsid bash -c 'exec -a demo-agent bash -c "sleep 300 & echo \$!; wait"' &); sleep 300; :`
)

// tree starts an agent whose script leaves a process for a hook, and returns both pids.
func (r *rig) tree(script string) (root, reporter int) {
	r.t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Args[0] = "demo-agent"
	cmd.Env = append(os.Environ(), "S="+script, "HOME="+r.env["HOME"], "C=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(r.t, err)
	must(r.t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(r.t, err)
	reporter, err = strconv.Atoi(strings.TrimSpace(line))
	must(r.t, err)
	if script == daemonTree || script == daemonAgent {
		// What made it a daemon may be a moment from its end, and stands above it until then.
		for above := true; above; time.Sleep(time.Millisecond) {
			table, err := proc.ReadTable()
			must(r.t, err)
			above = slices.ContainsFunc(table.Ancestors(reporter), func(i proc.Info) bool { return i.PID == cmd.Process.Pid })
		}
	}
	r.t.Cleanup(func() {
		below := []int{reporter}
		if table, err := proc.ReadTable(); err == nil {
			for _, i := range table.Descendants(cmd.Process.Pid) {
				below = append(below, i.PID)
			}
			for _, i := range table.Ancestors(reporter) {
				if i.PID > 1 && i.Start >= r.born {
					below = append(below, i.PID)
				}
			}
		}
		_ = cmd.Process.Kill()
		for _, pid := range below {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, reporter
}

// real lets the rig ask the machine, and remembers what was there before its processes.
func (r *rig) real() *rig {
	r.req.proofs = nil
	_, err := proc.Self()
	must(r.t, err)
	r.born = r.ident(r.sleeper()).Start
	return r
}

func (r *rig) hear(integration, event string, reporter int, id string) (Heard, error) {
	payload := fmt.Sprintf(`{"session_id":%q,"kind":"main","source":"x","extra":[1,{"a":null}]}`, id)
	return Hear(context.Background(), r.req, Report{Integration: integration, Event: event, Payload: []byte(payload), From: r.line(reporter)})
}

// line is what stands above a process: as the rig says, else as the machine does.
func (r *rig) line(pid int) owner.Line {
	if r.req.proofs == nil {
		return owner.LineOf(pid)
	}
	l := owner.Line{Process: owner.Process{PID: pid}}
	for _, p := range r.chain[pid] {
		l.Above = append(l.Above, owner.Link{Process: p})
	}
	return l
}

// keeps writes the registry file by which the agent proves its conversation.
func (r *rig) keeps(pid int, id string) {
	r.t.Helper()
	dir := filepath.Join(r.env["HOME"], ".demo", "sessions")
	must(r.t, os.MkdirAll(dir, 0o700))
	text := fmt.Sprintf(`{"sessionId":%q,"procStart":"%d"}`, id, r.ident(pid).Start)
	must(r.t, os.WriteFile(filepath.Join(dir, strconv.Itoa(pid)+".json"), []byte(text), 0o600))
}

// What a session start can mean, and from where it can be told: only the owner's own report counts.
func TestHearMatrix(t *testing.T) {
	sources := map[string]string{"startup": idA, "compact": idA, "clear": idD, "resume": idC, "fork": idD}
	places := map[string]struct {
		script string
		ours   bool
		reuse  bool // of the pid: the facts and the host speak of an earlier process
	}{
		"own process": {ownTree, true, false},
		"child":       {childTree, true, false},
		"grandchild":  {grandTree, true, false},
		"nested":      {nestedTree, false, false},
		"daemon":      {daemonTree, false, false},
		"its agent":   {daemonAgent, false, false},
		"reused pid":  {ownTree, false, true},
	}
	for place, c := range places {
		for _, integration := range []string{"told", "both"} {
			t.Run(place+"/"+integration, func(t *testing.T) {
				t.Parallel()
				r := newRig(t).real()
				root, reporter := r.tree(c.script)
				for source, id := range sources {
					spec := spec{integration: integration, id: idA, mode: host.Program, after: "shell"}
					if c.reuse {
						spec.facts = func(f *metadata.LaunchFacts) { f.OwnerPID, f.OwnerStart = root, r.ident(root).Start-1 }
					}
					panes := r.session("work-"+source, spec, spec2(integration, idB))
					if !c.reuse {
						must(t, r.host.SetPID(panes[0], root))
					} else {
						must(t, r.host.SetPID(panes[0], r.gonePID()))
					}
					if integration == "both" {
						r.keeps(root, id)
					}
					// A registry proves by itself: what the payload says does not matter there.
					said := id
					if integration == "both" {
						said = idB
					}
					h, err := r.hear(integration, "Start", reporter, said)
					switch {
					case c.ours && (err != nil || h.ID != id || r.record(panes[0]) != id):
						t.Errorf("%s: %+v, %v; the record is %s", source, h, err, r.record(panes[0]))
					case c.ours && id != idA && (h.Changed != "rotated from "+idA || !cmp.Equal(r.facts(panes[0]).Previous, []string{idA})):
						t.Errorf("%s: %+v, %+v", source, h, r.facts(panes[0]))
					case !c.ours:
						var refused *RefusedError
						if !errors.As(err, &refused) || r.record(panes[0]) != idA {
							t.Errorf("%s: %+v, %v; the record is %s", source, h, err, r.record(panes[0]))
						}
					}
					if r.record(panes[1]) != idB {
						t.Errorf("%s: the neighbour's record is %s", source, r.record(panes[1]))
					}
					for _, p := range panes {
						must(t, r.host.Kill(context.Background(), p))
					}
				}
			})
		}
	}
}

func spec2(integration, id string) spec {
	return spec{integration: integration, id: id, mode: host.Program, after: "shell"}
}

// gonePID is a number that no process has now.
func (r *rig) gonePID() int {
	cmd := exec.Command("true")
	must(r.t, cmd.Run())
	return cmd.Process.Pid
}

// A report from another pane is about that pane, whatever id it carries, and takes nothing from
// this one.
func TestHearFromAnotherPane(t *testing.T) {
	r := newRig(t).real()
	rootA, fromA := r.tree(ownTree)
	rootB, fromB := r.tree(ownTree)
	panes := r.session("work", spec2("told", idA), spec2("told", idB))
	must(t, r.host.SetPID(panes[0], rootA))
	must(t, r.host.SetPID(panes[1], rootB))
	if _, err := r.hear("told", "Start", fromB, idA); err == nil || !strings.Contains(err.Error(), "which pane "+panes[0].ID+" holds") {
		t.Errorf("it takes what pane A holds: %v", err)
	}
	if h, err := r.hear("told", "Start", fromB, idC); err != nil || h.Terminal != panes[1] {
		t.Errorf("%+v, %v", h, err)
	}
	if r.record(panes[0]) != idA || r.record(panes[1]) != idC {
		t.Errorf("%s, %s", r.record(panes[0]), r.record(panes[1]))
	}
	// What somebody else runs outside of every pane is not taken either.
	other := r.sleeper()
	must(t, r.req.Claims.Rebuild(metadata.Identity{IntegrationID: "told", NativeID: idD}, r.ident(other), owner.Place{Host: "elsewhere"}))
	var live *owner.LiveError
	if _, err := r.hear("told", "Start", fromA, idD); !errors.As(err, &live) {
		t.Errorf("it takes what is live elsewhere: %v", err)
	}
	if r.record(panes[0]) != idA {
		t.Error(r.record(panes[0]))
	}
}

// A pane whose facts name a number that another pane's agent has now neither takes nor hides what
// that one says.
func TestHearPastAStaleNumber(t *testing.T) {
	r := newRig(t).real()
	rootB, fromB := r.tree(ownTree)
	stale := spec2("told", idA)
	stale.facts = func(f *metadata.LaunchFacts) { f.OwnerPID, f.OwnerStart = rootB, r.ident(rootB).Start-1 }
	panes := r.session("work", stale, spec2("told", idB))
	must(t, r.host.SetPID(panes[1], rootB))
	if h, err := r.hear("told", "Start", fromB, idC); err != nil || h.Terminal != panes[1] {
		t.Errorf("%+v, %v", h, err)
	}
	if r.record(panes[0]) != idA || r.record(panes[1]) != idC {
		t.Errorf("%s, %s", r.record(panes[0]), r.record(panes[1]))
	}
}

func TestHearRefusals(t *testing.T) {
	for _, c := range []struct {
		name, integration, event, payload, want string
		event0                                  bool // no word at all
	}{
		{"an event that is not listened to", "told", "End", `{"session_id":"` + idD + `","kind":"main"}`, "", true},
		{"no event", "told", "", `{"session_id":"` + idD + `","kind":"main"}`, "", true},
		{"an event in the payload", "told", "", `{"session_id":"` + idA + `","kind":"main","hook_event_name":"Prompt"}`, "ok", false},
		{"another kind of run", "told", "Start", `{"session_id":"` + idD + `","kind":"sub"}`, "", true},
		{"another integration", "both", "Start", `{"session_id":"` + idD + `","kind":"main"}`, "its agent is told", false},
		{"no id", "told", "Start", `{"kind":"main"}`, "names no conversation", false},
		{"a number", "told", "Start", `{"kind":"main","session_id":7}`, "names no conversation", false},
		{"an id of another shape", "told", "Start", `{"kind":"main","session_id":"latest"}`, "id_pattern", false},
		{"an option", "told", "Start", `{"kind":"main","session_id":"--continue"}`, "native id", false},
		{"no JSON", "told", "Start", `{"kind":`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).real()
			root, from := r.tree(ownTree)
			p := r.session("work", spec2("told", idA))[0]
			must(t, r.host.SetPID(p, root))
			_, err := Hear(context.Background(), r.req, Report{Integration: c.integration, Event: c.event, Payload: []byte(c.payload), From: r.line(from)})
			switch {
			case c.want == "ok" && err != nil:
				t.Error(err)
			case c.event0 && !errors.Is(err, owner.ErrEvent):
				t.Errorf("not ignored: %v", err)
			case c.want != "" && c.want != "ok" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			if r.record(p) != idA {
				t.Errorf("the record is %s", r.record(p))
			}
		})
	}
}

// A report that is judged late: what brought it has ended, and what stood above it was taken down.
func TestHearLate(t *testing.T) {
	for _, c := range []struct {
		name, script string
		settle       error
		want         string // empty: taken in
	}{
		{"a grandchild's", grandTree, nil, ""},
		{"a nested agent's", nestedTree, nil, "stands between"},
		{"a daemon's", daemonTree, nil, "no agent of a pane"},
		{"and a later one came", grandTree, errors.New("told something else"), "told something else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).real()
			root, reporter := r.tree(c.script)
			p := r.session("work", spec2("told", idA))[0]
			must(t, r.host.SetPID(p, root))
			line := owner.LineOf(reporter)
			// The agent's script waits for nothing more, so stop it, or it would end as well.
			must(t, syscall.Kill(root, syscall.SIGSTOP))
			for _, a := range append([]owner.Process{line.Process}, line.Processes()...) {
				if a.PID == root {
					break
				}
				if a.Start >= r.born {
					must(t, syscall.Kill(a.PID, syscall.SIGKILL))
				}
			}
			for proc.Alive(proc.ID(line.Process)) {
				time.Sleep(time.Millisecond)
			}
			settled := owner.Process{}
			h, err := Hear(context.Background(), r.req, Report{Integration: "told", Event: "Start", From: line, Said: idD, Settle: func(a owner.Process) error {
				settled = a
				return c.settle
			}})
			if c.want == "" {
				if err != nil || h.Changed == "" || r.record(p) != idD || settled.PID != root || h.Told {
					t.Errorf("%+v, %v, record %s, settled %+v", h, err, r.record(p), settled)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || r.record(p) != idA {
				t.Errorf("%v, want %q; record %s", err, c.want, r.record(p))
			}
			if c.settle == nil && settled.PID != 0 {
				t.Error("settled for a report that is not the agent's")
			}
		})
	}
	// And of an agent that has ended since, nothing is taken in.
	r := newRig(t).real()
	root, reporter := r.tree(ownTree)
	p := r.session("work", spec2("told", idA))[0]
	must(t, r.host.SetPID(p, root))
	line := owner.LineOf(reporter)
	must(t, syscall.Kill(root, syscall.SIGKILL))
	for id := proc.ID(r.ident(root)); proc.Alive(id); {
		time.Sleep(time.Millisecond)
	}
	if _, err := Hear(context.Background(), r.req, Report{Integration: "told", Event: "Start", From: line, Said: idD}); err == nil || r.record(p) != idA {
		t.Errorf("%v, record %s", err, r.record(p))
	}
}

// Several conversations open: the hook says which is active, if it is one of them.
func TestHearAmongSeveral(t *testing.T) {
	r := newRig(t)
	p := r.session("work", spec2("both", idA))[0]
	root := r.live(p).PID
	r.chain[99] = []owner.Process{r.ident(root)}
	r.answers[root] = owner.Answer{Kind: owner.Unknown, Reason: "2 conversations open", Open: []string{idA, idD}}
	if got := r.look()[p]; got.Facts.Unconfirmed == "" {
		t.Error("two are open, and it is confirmed")
	}
	if _, err := r.hear("both", "Start", 99, idC); err == nil || r.record(p) != idA {
		t.Errorf("one that is not open: %v, %s", err, r.record(p))
	}
	if h, err := r.hear("both", "Start", 99, idD); err != nil || r.record(p) != idD {
		t.Fatalf("%+v, %v, %s", h, err, r.record(p))
	}
	// One more is open since, of which no hook told: it may be the active one.
	r.answers[root] = owner.Answer{Kind: owner.Unknown, Reason: "3 conversations open", Open: []string{idA, idC, idD}}
	if got := r.look()[p]; !strings.Contains(got.Reason, "its hook has not said since") || got.Record.NativeID != idD {
		t.Errorf("one more is open: %+v", got)
	}
	if _, err := r.hear("both", "Start", 99, idD); err != nil {
		t.Fatal(err)
	}
	if got := r.look()[p]; got.Reason != "" {
		t.Errorf("said again: %+v", got)
	}
	r.answers[root] = owner.Answer{Kind: owner.Unknown, Reason: "2 conversations open", Open: []string{idA, idD}}
	// And so it stays, as long as the same process has it open.
	got := r.look()[p]
	if got.Record.NativeID != idD || got.Facts.Unconfirmed != "" || !got.Facts.ConfirmedAt.Equal(when) || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	r.answers[root] = owner.Answer{Kind: owner.Unknown, Reason: "2 conversations open", Open: []string{idA, idC}}
	if got := r.look()[p]; got.Facts.Unconfirmed == "" {
		t.Errorf("it is not open any more: %+v", got)
	}
}

// A hook's word stands at the next save, with the time when it was said, and not for another
// process.
func TestAHooksWordStands(t *testing.T) {
	r := newRig(t)
	p := r.session("work", spec2("told", idA))[0]
	root := r.live(p).PID
	r.chain[99] = []owner.Process{r.ident(root)}
	if got := r.look()[p]; got.Facts.Unconfirmed == "" || !strings.Contains(got.Reason, "unconfirmed") {
		t.Errorf("nobody said anything: %+v", got)
	}
	if _, err := r.hear("told", "Start", 99, idA); err != nil {
		t.Fatal(err)
	}
	later := when.Add(time.Hour)
	r.req.Now = func() time.Time { return later }
	got := r.look()[p]
	if got.Facts.Unconfirmed != "" || !got.Facts.ConfirmedAt.Equal(when) || got.Reason != "" || !got.Restorable {
		t.Errorf("%+v", got)
	}
	swaps := r.count(memory.StepSwap)
	if _, err := r.hear("told", "Prompt", 99, idA); err != nil || !r.facts(p).ConfirmedAt.Equal(later) {
		t.Errorf("%v, %v", err, r.facts(p).ConfirmedAt)
	}
	if _, err := r.hear("told", "Prompt", 99, idA); err != nil || *swaps != 1 {
		t.Errorf("%v, %d swaps", err, *swaps)
	}
	was := r.ident(root)
	must(t, syscall.Kill(root, syscall.SIGKILL))
	for r.alive(was) {
		time.Sleep(time.Millisecond) // polls the end itself
	}
	must(t, r.host.SetPID(p, r.sleeper()))
	if got := r.look()[p]; got.Facts.Unconfirmed == "" {
		t.Errorf("another process: %+v", got)
	}
}

// count counts the steps of a name from now on.
func (r *rig) count(step memory.Step) *int {
	n := new(int)
	r.host.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == step {
			*n++
		}
		return nil
	})
	return n
}

// Between the snapshot and the swap somebody else changes the record.
func TestHearLosesARace(t *testing.T) {
	r := newRig(t)
	p := r.session("work", spec2("told", idA))[0]
	r.chain[99] = []owner.Process{r.ident(r.live(p).PID)}
	once := true
	r.host.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepSwap && once {
			once = false
			return host.ErrConflict
		}
		return nil
	})
	if h, err := r.hear("told", "Start", 99, idD); err != nil || h.Changed == "" || r.record(p) != idD {
		t.Errorf("%+v, %v", h, err)
	}
}
