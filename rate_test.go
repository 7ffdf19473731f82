package phuxagent_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// generations is how often each fault strikes one workspace: make exact says it.
var generations = flag.Int("generations", 0, "TestExactRate: saves and restores under each fault; 0 skips it")

// fault is what goes wrong between a save and a restore.
type fault struct {
	name string
	// strike ends the life of the server in its way, and breaks what it breaks.
	strike func(*rate)
	// mend undoes what it broke.
	mend func(*rate)
	// refuses says what is to be said of a pane that cannot come back, "verdict result"; empty where
	// it is to come back as itself. odd: of every second pane of each agent.
	refuses func(agent string, odd bool) string
	// unsaved: the save itself is to fail, and the one before it counts.
	unsaved bool
}

// rated are the integrations; a program's name is the first word of each.
var rated = []string{"claude-code", "codex", "gemini-cli", "opencode", "qwen-code", "copilot", "pi", "kimi"}

// mover names the variable that moves an agent's store; gemini and qwen have none.
var mover = map[string]string{
	"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME", "pi": "PI_CODING_AGENT_DIR",
	"kimi": "KIMI_CODE_HOME", "opencode": "XDG_DATA_HOME",
}

// gone is what is to be said where a conversation is not in its store. opencode keeps a database,
// which is not looked into: it says itself that it has no such session.
func gone(agent string) string {
	if agent == "opencode" {
		return "resume exited"
	}
	return "transcript-missing placeholder"
}

func faults() []fault {
	cut := func(r *rate) { powerCut(r, nil) }
	return []fault{
		{name: "kill -9 of everything", strike: cut},
		{
			name:   "kill -9 of the server alone",
			strike: func(r *rate) { killServer(r, nil) },
			mend:   func(r *rate) { powerCut(r, nil) },
			refuses: func(agent string, _ bool) string {
				if agent == "gemini" { // it outlives its terminal, and is not opened a second time
					return "already-live placeholder"
				}
				return ""
			},
		},
		{name: "full disk at the save", strike: cut, unsaved: true},
		{
			name:   "slow start",
			strike: func(r *rate) { cut(r); r.vars["FAKE_AGENT_SLOW"] = "1s" },
			mend:   func(r *rate) { delete(r.vars, "FAKE_AGENT_SLOW") },
		},
		{
			name:   "missing transcript",
			strike: func(r *rate) { cut(r); r.hide() },
			mend:   (*rate).unhide,
			refuses: func(agent string, odd bool) string {
				if odd {
					return gone(agent)
				}
				return ""
			},
		},
		{
			name: "changed configuration directory",
			strike: func(r *rate) {
				cut(r)
				for _, v := range mover {
					r.vars[v] = filepath.Join(r.work, "elsewhere", v)
				}
			},
			mend: func(r *rate) {
				for _, v := range mover {
					delete(r.vars, v)
				}
			},
			refuses: func(agent string, _ bool) string {
				if mover[agent] == "" {
					return ""
				}
				return gone(agent)
			},
		},
		{
			name:    "upgraded CLI that rejects its option",
			strike:  func(r *rate) { cut(r); r.vars["FAKE_AGENT_REJECTS"] = "1" },
			mend:    func(r *rate) { delete(r.vars, "FAKE_AGENT_REJECTS") },
			refuses: func(string, bool) string { return "resume exited" },
		},
	}
}

// tally counts the panes of one row.
type tally struct{ panes, exact, refused, wrong int }

func (t *tally) add(o tally) {
	t.panes, t.exact, t.refused, t.wrong = t.panes+o.panes, t.exact+o.exact, t.refused+o.refused, t.wrong+o.wrong
}

// TestExactRate measures how often a pane comes back as itself: two of each agent in one directory,
// each fault a workspace of its own. The judge is what the agents themselves logged: which
// conversation runs in which pane, in which directory, and how many turns it remembers. Right is
// that, or a refusal where the fault makes it impossible: nothing runs in the pane, its record is
// kept, the reason is the true one, and once the fault is mended it comes back as itself.
func TestExactRate(t *testing.T) {
	if *generations == 0 {
		t.Skip("make exact runs it")
	}
	byFault, byAgent := map[string]*tally{}, map[string]*tally{}
	after := &tally{}
	var order []string
	for _, f := range faults() {
		order = append(order, f.name)
		byFault[f.name] = &tally{}
		t.Run(f.name, func(t *testing.T) {
			r := newRate(t)
			for range *generations {
				r.generation(f, byFault[f.name], byAgent, after)
			}
			if r.late > 0 {
				t.Logf("%d hooks gave up on a busy machine, and the next turn told", r.late)
			}
		})
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	total := &tally{}
	row := func(name string, c *tally) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", name, c.panes, c.exact, c.refused, c.wrong)
	}
	fmt.Fprintln(w, "fault\tpanes\tas itself\trefused, truly\twrong")
	for _, name := range order {
		row(name, byFault[name])
		total.add(*byFault[name])
	}
	row("all", total)
	row("the refused, once the fault is mended", after)
	fmt.Fprintln(w, "\t\t\t\t\nagent\tpanes\tas itself\trefused, truly\twrong")
	for _, name := range slices.Sorted(maps.Keys(byAgent)) {
		row(name, byAgent[name])
	}
	w.Flush()
	t.Logf("%d agents, two panes each in one directory, %d generations of each of %d faults, with their hooks:\n\n%s",
		len(rated), *generations, len(order), b.String())
	if total.wrong+after.wrong > 0 || total.exact+total.refused != total.panes {
		t.Errorf("%d of %d panes are wrong", total.wrong, total.panes)
	}
}

// rate is a workspace of two panes of each agent.
type rate struct {
	*stage
	panes  map[string]launched // by place
	hidden map[string]string   // where a file was, by where it is
	said   int
	late   int // turns that were had once more, because the hook of the one before came too late
}

func newRate(t *testing.T) *rate {
	r := &rate{stage: newStage(t), panes: map[string]launched{}, hidden: map[string]string{}}
	for file, text := range map[string]string{
		".gemini/settings.json":          `{"general":{"sessionRetention":{"enabled":false}}}`,
		".config/phux-agent/config.toml": "[restore]\nsettle_ms = 300\n",
	} {
		path := filepath.Join(r.vars["HOME"], file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := r.dir("src")
	for _, id := range rated {
		name, _, _ := strings.Cut(id, "-")
		r.must(r.work, "hooks", "install", id)
		for range 2 {
			r.must(dir, "launch", id, "--session", "work")
			r.panes[fmt.Sprintf("work:%d.0", len(r.panes))] = launched{agent: name, dir: dir}
		}
	}
	return r
}

func (r *rate) places() []string {
	return slices.SortedFunc(maps.Keys(r.panes), func(a, b string) int { return strings.Compare(fmt.Sprintf("%10s", a), fmt.Sprintf("%10s", b)) })
}

// odd reports the second of an agent's two panes.
func (r *rate) odd(place string) bool {
	var n int
	_, _ = fmt.Sscanf(place, "work:%d.0", &n)
	return n%2 == 1
}

// running is what the agents say of themselves, by place.
func (r *rate) running() map[string]launched {
	out := map[string]launched{}
	for _, l := range runningAgents(r, nil) {
		f := strings.Fields(l)
		p := launched{agent: f[1], id: f[2], dir: f[3]}
		_, _ = fmt.Sscan(f[4], &p.turns)
		out[f[0]] = p
	}
	return out
}

// generation is turns in every pane, a new conversation in some, a save, the fault, a restore, and
// the count.
func (r *rate) generation(f fault, sum *tally, byAgent map[string]*tally, after *tally) {
	r.Helper()
	for _, place := range r.places() {
		r.said++
		if p := r.panes[place]; r.odd(place) && p.turns > 0 && !f.unsaved {
			if command := renew[p.agent]; command != "" {
				type1(r, nil, place, command)
			}
		}
		type1(r, nil, place, fmt.Sprintf("turn %d", r.said))
	}
	await(r, "every agent", func() (bool, string) {
		now := r.running()
		return len(now) == len(r.panes), fmt.Sprint(now)
	})
	r.heard()
	r.panes = r.running()
	r.must(r.work, "save")
	if f.unsaved {
		for _, place := range r.places() { // what the save that fails would have added
			r.said++
			type1(r, nil, place, fmt.Sprintf("turn %d", r.said))
		}
		r.tmux("rename-window", "-t", "=work:0", fmt.Sprintf("changed%d", r.said))
		r.panes = r.running()
		r.saveOnFullDisk()
	}
	f.strike(r)
	want := map[string]string{}
	for place, p := range r.panes {
		if f.refuses != nil {
			want[place] = f.refuses(p.agent, r.odd(place))
		}
	}
	refused := r.judge(f.name, want, func(p launched, t tally) {
		if byAgent[p.agent] == nil {
			byAgent[p.agent] = &tally{}
		}
		byAgent[p.agent].add(t)
		sum.add(t)
	})
	if f.mend == nil {
		return
	}
	f.mend(r)
	if refused > 0 {
		powerCut(r, nil)
		r.judge(f.name+", mended", nil, func(p launched, t tally) {
			if want[r.at(p)] != "" {
				after.add(t)
			} else if t.wrong > 0 {
				sum.add(tally{wrong: t.wrong})
			}
		})
	}
}

// heard has another turn in each pane whose hook gave up, as it does after a second, for its agent
// waits: ps says of such a pane that its record is not confirmed.
func (r *rate) heard() {
	r.Helper()
	for range 10 {
		var got struct {
			Panes []struct {
				Window int
				Reason string
			}
		}
		out := r.must(r.work, "ps", "--json")
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			r.Fatalf("%v\n%s", err, out)
		}
		silent := 0
		for _, p := range got.Panes {
			if strings.Contains(p.Reason, "unconfirmed since") || strings.Contains(p.Reason, "no id yet") {
				silent++
				r.late++
				r.said++
				type1(r, nil, fmt.Sprintf("work:%d.0", p.Window), fmt.Sprintf("turn %d", r.said))
			}
		}
		if silent == 0 {
			return
		}
	}
	r.Fatal("a hook is not heard")
}

// renew is an agent's own command for a new conversation in the same process.
var renew = map[string]string{
	"claude": "/clear", "codex": "/clear", "gemini": "/clear", "qwen": "/clear", "copilot": "/clear", "pi": "/new", "opencode": "/new",
}

func (r *rate) at(p launched) string {
	for place, q := range r.panes {
		if p == q {
			return place
		}
	}
	return ""
}

// judge restores and counts. want holds what is to be said of the panes that cannot come back.
func (r *rate) judge(what string, want map[string]string, count func(launched, tally)) (refused int) {
	r.Helper()
	var got struct {
		Sessions []struct {
			Panes []struct {
				Window  int
				Verdict string
				Reason  string
				Result  *string
				Record  *struct {
					NativeID string `json:"native_id"`
				}
			}
		}
	}
	out, code := r.run(r.work, "restore", "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		r.Fatalf("%s: restore: exit %d, %v\n%s", what, code, err, out)
	}
	said, ids, why := map[string]string{}, map[string]string{}, map[string]string{}
	for _, s := range got.Sessions {
		for _, p := range s.Panes {
			place := fmt.Sprintf("work:%d.0", p.Window)
			said[place], why[place] = p.Verdict, p.Reason
			if p.Result != nil {
				said[place] += " " + *p.Result
			}
			if p.Record != nil {
				ids[place] = p.Record.NativeID
			}
		}
	}
	// They say themselves when they have started; restore has seen that they run, and not more.
	var now map[string]launched
	here := func() bool {
		now = r.running()
		for place, p := range r.panes {
			if want[place] == "" && now[place] != p {
				return false
			}
		}
		return true
	}
	for deadline := time.Now().Add(patience); !here() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // polling the agents' own log
	}
	for place, p := range r.panes {
		t := tally{panes: 1}
		_, runs := now[place]
		switch {
		case want[place] == "" && now[place] == p && strings.HasSuffix(said[place], " running"):
			t.exact++
		case want[place] != "" && !runs && said[place] == want[place] && ids[place] == p.id && why[place] != "":
			t.refused++
			refused++
		default:
			t.wrong++
			r.Errorf("%s: %s is %+v, want %+v; said %q (%s), want %q", what, place, now[place], p, said[place], why[place], want[place])
		}
		count(p, t)
	}
	if refused > 0 && code != 3 {
		r.Errorf("%s: %d panes did not come back, and the exit code is %d", what, refused, code)
	}
	return refused
}

// saveOnFullDisk saves where the archives' file system has no room for another one: in a mount
// namespace of its own, for which it takes rights that not every machine gives.
func (r *rate) saveOnFullDisk() {
	r.Helper()
	dir := filepath.Join(r.vars["HOME"], ".local", "state", "phux-agent")
	script := `mount -t tmpfs -o size=32m none "$1" && cp -a "$2"/. "$1" && { cat /dev/zero >"$1/ballast" 2>/dev/null; mount --bind "$1" "$2" && phux-agent save; }`
	scratch := r.dir("full")
	cmd := exec.Command("unshare", "-rm", "sh", "-c", script, "sh", scratch, dir)
	cmd.Env = r.environ()
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		r.Fatalf("a save on a full disk says that it succeeded: %s", out)
	case !strings.Contains(string(out), "no space left"):
		r.Skipf("no file system can be filled here: %v: %s", err, out)
	}
}

// hide takes the conversations' files of every second pane of each agent away.
func (r *rate) hide() {
	r.Helper()
	for place, p := range r.panes {
		if !r.odd(place) {
			continue
		}
		found := 0
		_ = filepath.WalkDir(r.vars["HOME"], func(path string, d fs.DirEntry, err error) error {
			part := p.id
			if p.agent == "gemini" {
				part = p.id[:8]
			}
			ours := strings.Contains(path, "phux-agent") || strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ".runtime.json")
			if err != nil || ours || !strings.Contains(filepath.Base(path), part) {
				return nil
			}
			to := filepath.Join(r.dir("hidden"), fmt.Sprint(len(r.hidden)))
			if err := os.Rename(path, to); err != nil {
				r.Fatal(err)
			}
			r.hidden[to] = path
			found++
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		})
		if found == 0 {
			r.Fatalf("no file of %+v", p)
		}
	}
}

func (r *rate) unhide() {
	for from, to := range r.hidden {
		if err := os.Rename(from, to); err != nil {
			r.Fatal(err)
		}
		delete(r.hidden, from)
	}
}
