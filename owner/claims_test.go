//go:build linux

package owner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// claimant is a process that claims what its environment names: it says it is there, waits for a
// line, acts, says what came of it, and stays until its input ends.
func claimant(role string) int {
	c := Claims{Dir: os.Getenv("CLAIMS")}
	id := identity("onefile", os.Getenv("ID"))
	in := bufio.NewReader(os.Stdin)
	fmt.Println("there")
	if _, err := in.ReadString('\n'); err != nil {
		return 0
	}
	var claim Claim
	var err error
	switch role {
	case "reserve":
		claim, err = c.Reserve(id, Place{})
	case "take":
		claim, err = c.Take(id, os.Getenv("TICKET"), Place{})
	case "race":
		var won []string
		for n := range raceRounds {
			id.NativeID = fmt.Sprint(n)
			if n%2 == 0 {
				_, err = c.Reserve(id, Place{})
			} else {
				_, err = c.Take(id, "", Place{})
			}
			if err == nil {
				won = append(won, id.NativeID)
			} else if !errors.Is(err, ErrLive) {
				won = append(won, strings.ReplaceAll(err.Error(), " ", "_"))
			}
		}
		fmt.Println(strings.Join(won, " "))
		_, _ = io.Copy(io.Discard, in)
		return 0
	case "flap":
		fmt.Println("flapping")
		for {
			claim, err = c.Reserve(id, Place{})
			if err == nil {
				claim, err = c.Take(id, claim.Ticket, Place{})
			}
			if err == nil {
				err = c.Release(claim)
			}
			if err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
	switch {
	case errors.Is(err, ErrLive):
		fmt.Println("live")
	case err != nil:
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
	default:
		fmt.Println("won", claim.Ticket)
	}
	_, _ = io.Copy(io.Discard, in)
	return 0
}

type actor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func call(t *testing.T, role string, c Claims, id metadata.Identity, env ...string) *actor {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{cmd: exec.Command(exe)}
	a.cmd.Env = append(os.Environ(), append(env, roleEnv+"="+role, "CLAIMS="+c.Dir, "ID="+id.NativeID)...)
	a.cmd.Stderr = os.Stderr
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewReader(out)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

func (a *actor) kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

func (a *actor) say(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(a.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

func (a *actor) hear(t *testing.T) string {
	t.Helper()
	s, err := a.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

const raceRounds = 30

// Law 8: of any number of processes that claim at once, one wins.
func TestOneWinnerOfManyProcesses(t *testing.T) {
	c := claims(t)
	var all []*actor
	for range 50 {
		all = append(all, call(t, "race", c, identity("onefile", idA)))
	}
	for _, a := range all {
		a.hear(t)
	}
	for _, a := range all {
		a.say(t)
	}
	winner := map[string]*actor{}
	for _, a := range all {
		for _, id := range strings.Fields(a.hear(t)) {
			if winner[id] != nil {
				t.Errorf("%s has two owners", id)
			}
			winner[id] = a
		}
	}
	if len(winner) != raceRounds {
		t.Errorf("%d identities have an owner, want %d", len(winner), raceRounds)
	}
	list, err := c.List()
	if err != nil || len(list) != raceRounds {
		t.Errorf("%d claims, %v", len(list), err)
	}
	for _, claim := range list {
		if a := winner[claim.Identity.NativeID]; a == nil || claim.Process.PID != a.cmd.Process.Pid {
			t.Errorf("the winner is not on file: %+v", claim)
		}
	}
	// Winners die without a word; the next one may have what they had.
	for _, a := range all {
		a.kill()
	}
	for id := range winner {
		if _, err := c.Reserve(identity("onefile", id), Place{}); err != nil {
			t.Errorf("after the owner's death: %v", err)
		}
	}
}

// A process killed at any point leaves nothing that keeps the next one out.
func TestKilledAtAnyPoint(t *testing.T) {
	c, id := claims(t), identity("onefile", idA)
	for n := range 25 {
		a := call(t, "flap", c, id)
		a.hear(t)
		a.say(t)
		a.hear(t)
		// Killed at a moment of its own: after the n-th change of the file that we see.
		path := filepath.Join(c.Dir, fileName(id)+".json")
		last, seen := "", 0
		until(t, "the claim changes", func() bool {
			b, _ := os.ReadFile(path)
			if string(b) != last {
				last = string(b)
				seen++
			}
			return seen > n%5
		})
		a.kill()
		claim, err := c.Reserve(id, Place{})
		if err != nil {
			t.Fatalf("after kill %d: %v", n, err)
		}
		if err := c.Release(claim); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReserveTakeRelease(t *testing.T) {
	c, id := claims(t), identity("onefile", idA)
	r, err := c.Reserve(id, Place{Host: "tmux-default"})
	if err != nil || !r.Reserved || r.Epoch != 1 || r.Ticket == "" || r.Process.PID != os.Getpid() {
		t.Fatalf("%+v %v", r, err)
	}
	var live *LiveError
	if _, err := c.Reserve(id, Place{}); !errors.As(err, &live) || live.Live.Kind != Starting {
		t.Errorf("a second reservation: %v", err)
	}
	if got := observer(t).Find(c, nil, id, nil); got.Kind != Starting || got.Place.Host != "tmux-default" {
		t.Errorf("%+v", got)
	}
	// The pane takes it over, although its maker lives; a stranger does not.
	stranger := call(t, "take", c, id, "TICKET=other")
	stranger.hear(t)
	stranger.say(t)
	if got := stranger.hear(t); got != "live" {
		t.Errorf("a stranger's ticket: %s", got)
	}
	pane := call(t, "take", c, id, "TICKET="+r.Ticket)
	pane.hear(t)
	pane.say(t)
	if got := pane.hear(t); got != "won "+r.Ticket {
		t.Fatal(got)
	}
	again := call(t, "take", c, id, "TICKET="+r.Ticket)
	again.hear(t)
	again.say(t)
	if got := again.hear(t); got != "live" {
		t.Errorf("the ticket a second time: %s", got)
	}
	// What a pane has taken, its maker does not give back.
	if err := c.Release(r); err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(id)
	if err != nil || got == nil || got.Reserved || got.Process.PID != pane.cmd.Process.Pid || got.Epoch != r.Epoch {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := c.Reserve(id, Place{}); !errors.As(err, &live) || live.Live.Kind != Claimed {
		t.Errorf("a claimed identity is reserved: %v", err)
	}
	pane.kill()
	next, err := c.Reserve(id, Place{})
	if err != nil || next.Epoch != r.Epoch+1 {
		t.Fatalf("%+v %v", next, err)
	}
	// The old ticket is stale also when nobody lives who holds the new one.
	if err := c.Release(next); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Take(id, next.Ticket, Place{}); !errors.Is(err, ErrTicket) {
		t.Errorf("a reservation that was given back is taken: %v", err)
	}
	if _, err := c.Take(id, r.Ticket, Place{}); !errors.Is(err, ErrTicket) {
		t.Errorf("a superseded ticket is taken: %v", err)
	}
	if list, err := c.List(); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	last, err := c.Take(id, "", Place{Terminal: "%1"})
	if err != nil || last.Epoch != next.Epoch+1 {
		t.Errorf("%+v %v", last, err)
	}
	// What this process took and did not become, it may take again and give back.
	if last, err = c.Take(id, "", Place{Terminal: "%1"}); err != nil {
		t.Error(err)
	}
	if list, err := c.List(); err != nil || len(list) != 1 || list[0] != last {
		t.Errorf("%+v %v", list, err)
	}
	if got := observer(t).Find(c, nil, id, nil); got.Kind != NotLive {
		t.Errorf("it is its own rival: %+v", got)
	}
	if err := c.Release(last); err != nil {
		t.Fatal(err)
	}
	if list, _ := c.List(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// A reservation outlives its maker for the pane that holds its ticket, and for nobody else.
func TestTheMakerDies(t *testing.T) {
	c, id := claims(t), identity("onefile", idA)
	maker := call(t, "reserve", c, id)
	maker.hear(t)
	maker.say(t)
	_, ticket, _ := strings.Cut(maker.hear(t), " ")
	maker.kill()
	if got := observer(t).Find(c, nil, id, nil); got.Kind != NotLive {
		t.Errorf("%+v", got)
	}
	if _, err := c.Take(id, ticket, Place{}); err != nil {
		t.Error(err)
	}
}

// Law 8: a number is no proof. The same pid with another start time, and another boot, is dead.
func TestALeftoverNumberIsNotLive(t *testing.T) {
	c, id := claims(t), identity("onefile", idA)
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	a := call(t, "reserve", c, identity("onefile", idB))
	a.hear(t)
	info, err := proc.Stat(a.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	base := Claim{Identity: id, Process: processOf(info), Session: info.Session, Group: info.Group, Boot: boot, Epoch: 4, Ticket: "t"}
	for _, tc := range []struct {
		name string
		edit func(*Claim)
		want LiveKind
	}{
		{"it", func(c *Claim) {}, Claimed},
		{"a reused number", func(c *Claim) { c.Process.Start-- }, NotLive},
		{"another boot", func(c *Claim) { c.Boot = "00000000-0000-0000-0000-000000000000" }, NotLive},
		{"a reservation of a reused number", func(c *Claim) { c.Process.Start--; c.Reserved = true }, NotLive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim := base
			tc.edit(&claim)
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			if err := writeClaim(filepath.Join(c.Dir, fileName(id)), claim); err != nil {
				t.Fatal(err)
			}
			if got := observer(t).Find(c, nil, id, nil); got.Kind != tc.want {
				t.Errorf("found %+v, want %q", got, tc.want)
			}
			got, err := c.Reserve(id, Place{})
			if tc.want == NotLive {
				if err != nil || got.Epoch != 5 {
					t.Errorf("reserved %+v %v", got, err)
				}
			} else if !errors.Is(err, ErrLive) {
				t.Errorf("reserved: %v", err)
			}
		})
	}
	// A zombie has ended.
	if err := writeClaim(filepath.Join(c.Dir, fileName(id)), base); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "it is a zombie", func() bool { i, err := proc.Stat(base.Process.PID); return err == nil && i.Dead() })
	if got := observer(t).Find(c, nil, id, nil); got.Kind != NotLive {
		t.Errorf("a zombie is %+v", got)
	}
	if _, err := c.Reserve(id, Place{}); err != nil {
		t.Error(err)
	}
}

func TestDamagedClaim(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "torn": `{"identity":{"IntegrationID":"onefile"`, "text": "hello", "null": "null",
		"cased": `{"Identity":{"IntegrationID":"onefile","NativeID":"` + idA + `"}}`,
		"twice": `{"epoch":1,"epoch":2}`, "huge": strings.Repeat(" ", maxClaim+1) + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			c, id := claims(t), identity("onefile", idA)
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(c.Dir, fileName(id)+".json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			// Nobody else: free, but said.
			if got := observer(t).Find(c, nil, id, nil); got.Kind != NotLive || !strings.Contains(got.Note, path) {
				t.Errorf("%+v", got)
			}
			// Somebody has the id in his arguments: not free.
			f := enact(t, nil, []string{"onefile", "--resume", idA}, part{}, false)
			if got := observer(t).Find(c, nil, id, nil); got.Kind != Suspected || got.Process != f.Process || !strings.Contains(got.Note, path) {
				t.Errorf("%+v", got)
			}
			var live *LiveError
			if _, err := c.Reserve(id, Place{}); !errors.As(err, &live) || live.Live.Process != f.Process {
				t.Errorf("%v", err)
			}
			if _, err := observer(t).Reap(t.Context(), c, nil, id, 0); !errors.Is(err, ErrNotOrphan) {
				t.Errorf("reaped: %v", err)
			}
			f.kill(t)
			claim, err := c.Reserve(id, Place{})
			if err != nil {
				t.Fatalf("nobody can claim it any more: %v", err)
			}
			if got, err := c.Get(id); err != nil || *got != claim {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestRebuild(t *testing.T) {
	c, a, b := claims(t), identity("onefile", idA), identity("onefile", idB)
	f := enact(t, nil, []string{"onefile"}, part{}, false)
	owns(t, c, a, f)
	owns(t, c, a, f) // twice changes nothing
	if got, err := c.Get(a); err != nil || got.Process != f.Process || got.Epoch != 1 || got.Session != f.PID {
		t.Errorf("%+v %v", got, err)
	}
	other := enact(t, nil, []string{"onefile"}, part{}, false)
	if err := c.Rebuild(a, other.Process, Place{}); !errors.Is(err, ErrLive) {
		t.Errorf("a second owner: %v", err)
	}
	if err := c.Rebuild(b, Process{f.PID, f.Start + 1}, Place{}); !errors.Is(err, proc.ErrGone) {
		t.Errorf("a dead owner: %v", err)
	}
	// A rotation that was proven: the process leaves A and is in B.
	owns(t, c, b, f)
	o := observer(t)
	if got := o.Find(c, nil, a, nil); got.Kind != NotLive {
		t.Errorf("the old identity is %+v", got)
	}
	if got := o.Find(c, nil, b, nil); got.Kind != Claimed || got.Place.Terminal != "%7" {
		t.Errorf("the new identity is %+v", got)
	}
	if _, err := c.Reserve(a, Place{}); err != nil {
		t.Error(err)
	}
}

func TestDirectoryOfClaims(t *testing.T) {
	id := identity("onefile", idA)
	c := claims(t)
	if list, err := c.List(); err != nil || list != nil {
		t.Errorf("%v %v", list, err)
	}
	if _, err := c.Reserve(id, Place{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.Dir, filepath.Dir(c.Dir)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	names, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if info, err := n.Info(); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(n.Name(), idA) {
			t.Errorf("%s: %v %v", n.Name(), info.Mode(), err)
		}
	}
	loose := Claims{Dir: filepath.Join(t.TempDir(), "loose")}
	if err := os.Mkdir(loose.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := loose.Reserve(id, Place{}); err != nil {
		t.Error(err)
	}
	if info, _ := os.Stat(loose.Dir); info.Mode().Perm() != 0o700 {
		t.Error("left open to others:", info.Mode())
	}
	link := Claims{Dir: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(c.Dir, link.Dir); err != nil {
		t.Fatal(err)
	}
	file := Claims{Dir: filepath.Join(t.TempDir(), "file")}
	if err := os.WriteFile(file.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := []Claims{link, file, {Dir: "relative"}, {}}
	if os.Geteuid() == 0 {
		foreign := Claims{Dir: filepath.Join(t.TempDir(), "foreign")}
		if err := os.Mkdir(foreign.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign.Dir, 4242, 4242); err != nil {
			t.Fatal(err)
		}
		bad = append(bad, foreign, Claims{Dir: filepath.Join(foreign.Dir, "below")})
	}
	for _, b := range bad {
		var dir *DirectoryError
		if _, err := b.Reserve(id, Place{}); !errors.As(err, &dir) {
			t.Errorf("%q: %v", b.Dir, err)
		}
	}
}

// Law 9: a change that cannot be written leaves what was there, and the next one goes through.
func TestAClaimThatCannotBeWritten(t *testing.T) {
	c, id := claims(t), identity("onefile", idA)
	before, err := c.Reserve(id, Place{})
	must(t, err)
	tmp := filepath.Join(c.Dir, fileName(id)+".tmp")
	must(t, os.Mkdir(tmp, 0o700))
	if _, err := c.Take(id, before.Ticket, Place{}); err == nil {
		t.Fatal("taken, and not on file")
	}
	if got, err := c.Get(id); err != nil || *got != before {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := c.Take(id, before.Ticket, Place{}); err != nil {
		t.Errorf("nobody can claim it any more: %v", err)
	}
	// What a killed writer left is overwritten.
	must(t, os.WriteFile(tmp, []byte(`{"identity":{"Integra`), 0o600))
	if got, err := c.Take(id, "", Place{Terminal: "%2"}); err != nil || got.Place.Terminal != "%2" {
		t.Errorf("%+v %v", got, err)
	}
}

func FuzzDecodeClaim(f *testing.F) {
	f.Add([]byte(`{"identity":{"IntegrationID":"a","NativeID":"b"},"process":{"pid":1,"start":2},"session":1,"boot":"x","place":{},"epoch":1,"ticket":"t","reserved":true,"at":"2026-11-29T12:00:00Z"}`))
	f.Add([]byte(`{"identity":{"IntegrationID":"a","NativeID":"b"},"process":{"pid":0,"start":0},"boot":"x","epoch":18446744073709551615,"ticket":"t","later":[1]}`))
	f.Add([]byte(`{"epoch":1,"epoch":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeClaim(b)
		if err != nil {
			return
		}
		base := filepath.Join(t.TempDir(), "x")
		if err := writeClaim(base, c); err != nil {
			t.Skip(err) // a time that has no form, and the like
		}
		again, err := readClaim(base + ".json")
		if err != nil || again == nil || !again.At.Equal(c.At) {
			t.Fatalf("%+v %v", again, err)
		}
		again.At = c.At
		if d := cmp.Diff(c, *again); d != "" {
			t.Fatal(d)
		}
	})
}
