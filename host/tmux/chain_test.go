package tmux

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestChain: the parts are the whole list in its order, none is much longer than the bound, and each
// but the last runs the next one as its last command.
func TestChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l list
		longest := 0
		for i := range rapid.IntRange(1, 60).Draw(t, "commands") {
			text := strings.Repeat("x", rapid.IntRange(0, 3*maxLink/2).Draw(t, "bytes"))
			l.add("set-option", "-g", fmt.Sprintf("@c%d", i), text)
			longest = max(longest, len(l[i]))
		}
		parts := chain("@n", l)
		var whole list
		for i, p := range parts {
			if len(p) == 0 {
				t.Fatalf("part %d is empty", i)
			}
			if i+1 < len(parts) {
				last := p[len(p)-1]
				if last != "set-hook -R "+word(link("@n", i+1)) {
					t.Fatalf("part %d ends with %.80q", i, last)
				}
				p = p[:len(p)-1]
			}
			if n := len(p.String()); n > maxLink+longest+4*len(p) {
				t.Fatalf("part %d is %d bytes long", i, n)
			}
			whole = append(whole, p...)
		}
		if whole.String() != l.String() {
			t.Fatal("the parts are not the list")
		}
	})
}

// TestChainIsOne: by tmux itself, a list of several parts is still one. What follows a command that
// fails is not run, in whatever part it is, and no hook of the user's comes in between.
func TestChainIsOne(t *testing.T) {
	s := newStage(t, "set-hook -g after-new-window 'set-option -g @hooked yes'")
	s.start()
	v := s.version()
	long := func(fails int) (l list) {
		for i := range 40 {
			l.add("set-option", "-g", fmt.Sprintf("@ran-%d", i), strings.Repeat("x", maxLink/10))
			if i%10 == 5 {
				l.add("new-window", "-d", "-t", "mine:", "sleep", "1000")
			}
			if i == fails {
				l.add("select-window", "-t", "mine:12345")
			}
		}
		return l
	}
	ran := func() (n int) {
		for i := range 40 {
			if s.tmux("show-options", "-gqv", fmt.Sprintf("@ran-%d", i)) == "" {
				continue
			}
			if n++; n != i+1 {
				t.Errorf("number %d ran, and one before it did not", i)
			}
		}
		return n
	}
	for _, fails := range []int{3, 25, -1} {
		for i := range 40 {
			s.tmux("set-option", "-gu", fmt.Sprintf("@ran-%d", i))
		}
		l := long(fails)
		if v.firesLists() && len(chain("@n", l)) < 4 {
			t.Fatalf("it is %d parts", len(chain("@n", l)))
		}
		_, _ = s.host.tool.script(t.Context(), fire("phux-chain", l, v))
		want := fails + 1
		if fails < 0 {
			want = 40
		}
		if got := ran(); got != want {
			t.Errorf("%d commands ran, where number %d fails", got, fails)
		}
	}
	if out := s.tmux("show-options", "-gqv", "@hooked"); out != "" {
		t.Error("a hook of the user's ran in between")
	}
	if out := s.tmux("show-options", "-g"); strings.Contains(out, "phux-chain") {
		t.Error("what was stored is still there")
	}
}
