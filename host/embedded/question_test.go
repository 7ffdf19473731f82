package embedded

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestQuestionsAreTakenOut(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain",
		// What every terminal answers.
		"a\x1b[cb": "ab", "a\x1b[0cb": "ab", "a\x1b[>0cb": "ab", "a\x1b[=cb": "ab", "a\x1b[6nb": "ab", "a\x1b[?6nb": "ab", "a\x1bZb": "ab",
		"a\x1b[?2026$pb": "ab", "a\x1b[4$pb": "ab", "a\x1b[>qb": "ab", "a\x1b[?ub": "ab", "a\x1b[18tb": "ab", "a\x1b[014tb": "ab", "a\x05b": "ab",
		"a\x1b]11;?\x07b": "ab", "a\x1b]4;1;?\x1b\\b": "ab", "a\x1b]52;c;?\x07b": "ab", "a\x1bP+q544e\x1b\\b": "ab", "a\x1bP$qm\x1b\\b": "ab",
		"a\x1b_Gi=1,a=q;AAAA\x1b\\b": "ab",
		// What none answers.
		"\x1b[m\x1b[?25l\x1b[?6c": "\x1b[m\x1b[?25l\x1b[?6c", "\x1b[2 q": "\x1b[2 q", "\x1b[u\x1b[>1u": "\x1b[u\x1b[>1u", "\x1b[8;3;4t\x1b[22;0t": "\x1b[8;3;4t\x1b[22;0t",
		"\x1b]0;why?;?\x07": "\x1b]0;why?;?\x07", "\x1b]11;#fff\x07": "\x1b]11;#fff\x07", "\x1b]8;;http://x/?a=?b\x1b\\": "\x1b]8;;http://x/?a=?b\x1b\\",
		"\x1bPq#1~~\x1b\\": "\x1bPq#1~~\x1b\\", "\x1b_Ga=T;AA\x1b\\": "\x1b_Ga=T;AA\x1b\\", "\x1b(0\x1b#8\x1b7": "\x1b(0\x1b#8\x1b7", "\x1b[>4;1m\x1b[>1n": "\x1b[>4;1m\x1b[>1n",
		// Interrupted, nested, with controls in them.
		"\x1b[6\x18n": "\x1b[6\x18n", "\x1b[6\x1b[1m": "\x1b[1m", "\x1b[6\r\nn!": "\r\n!", "\x1b]11;?\x1b[31mx": "\x1b[31mx", "\x1b\x1b[6n": "", "\x1b]2;t\x1b[cx": "\x1b]2;t\x1b\\x", "é\x1b[c漢": "é漢",
	} {
		for cut := range len(in) + 1 {
			var a asker
			got := string(a.strain([]byte(in[:cut]))) + string(a.strain([]byte(in[cut:])))
			if got != want || a.begun() {
				t.Errorf("of %q, cut at %d, comes %q, not %q; and %q is held back", in, cut, got, want, a.held)
			}
		}
	}
	// What is long passes as it comes, with all that is within.
	var a asker
	long := "\x1bP" + strings.Repeat("x", 3*maxQuestion)
	if got := a.strain([]byte(long)); string(got) != long {
		t.Errorf("%d of %d bytes come", len(got), len(long))
	}
	if got := string(a.strain([]byte("\x05\x07y\x1b\\\x05\x1b[cz"))); got != "\x05\x07y\x1b\\\x1b\\z" {
		t.Errorf("%q", got)
	}
}

// FuzzAsker: what is taken out makes no difference to what is shown, nothing that is left is
// answered, and it does not matter where the output is cut, nor where the asker comes in.
func FuzzAsker(f *testing.F) {
	for _, s := range []string{"a\x1b[6nb", "\x1b]11;?\x07\x1bP+q54\x1b\\", "\x1b[?2026$p\x1b[>q", "\x1b[6\r\x18n\x05", "\x1bP" + strings.Repeat("y", maxQuestion) + "\x1b\\x", "\x1b]2;t\x1b[c", "漢\x1b[18t"} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		if len(b) > 8192 {
			return
		}
		at := int(cut) % (len(b) + 1)
		var a, whole asker
		first := append([]byte(nil), a.strain(b[:at])...)
		got := append(append([]byte(nil), first...), a.strain(b[at:])...)
		if all := whole.strain(b); !bytes.Equal(got, all) || !bytes.Equal(a.held, whole.held) {
			t.Fatalf("cut at %d: %q and %q, not %q and %q", at, got, a.held, all, whole.held)
		}
		raw := newScreen(20, 5, nil)
		raw.Write(b[:at])
		// One that comes in here goes on as one that was there.
		var there, late asker
		there.strain(b[:at])
		late.resume(raw.Begun())
		if there.begun() && late.begun() {
			x := append([]byte(nil), there.strain(b[at:])...)
			if y := late.strain(b[at:]); !bytes.Equal(x, y) {
				t.Fatalf("at %d: %q, not %q", at, y, x)
			}
		}
		raw.Write(b[at:])
		asked := ""
		strained := newScreen(20, 5, func(b []byte) { asked += string(b) })
		strained.Write(got)
		if asked != "" {
			t.Fatalf("what is left is answered by %q", asked)
		}
		strained.Write(a.held)
		if !utf8.Valid(b) { // the halves of a character come together where a question stood between them
			return
		}
		if diff := cmp.Diff(raw.Text(Scrollback), strained.Text(Scrollback)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// However many look, a program that asks once is answered once: by one who has a window, and by the
// server where there is none.
func TestOneAnswers(t *testing.T) {
	s := newStage(t)
	const asks = 20
	term := s.create(sessionOf("work", shell(fmt.Sprintf(`stty raw -echo
for round in 1 2 3 4 5; do
	head -c 1 >/dev/null
	i=0; while [ $i -lt %d ]; do i=$((i+1)); printf '\033[H\033[6'; printf n; head -c 6 >/dev/null; done
	printf '\033[2Jround %%s over,' $round
	printf ' then %%s read' "$(head -c 1)"
done
read x`, asks)))).Windows[0][0].Terminal
	reader := s.dial()
	type looker struct {
		name     string
		view     *View
		screen   *screen
		answered int
	}
	look := func(name string, cols, rows int) *looker {
		l := &looker{name: name, view: s.attach(s.dial(), term, cols, rows)}
		l.screen = newScreen(80, 24, func(b []byte) {
			l.answered++
			if err := l.view.Input(b); err != nil {
				t.Error(err)
			}
		})
		return l
	}
	rounds := 0
	round := func(who string, all ...*looker) {
		t.Helper()
		rounds++
		typed := func(text, want string) {
			t.Helper()
			if err := reader.Input(context.Background(), term, []byte(text)); err != nil {
				t.Fatal(err)
			}
			until(t, func() string {
				sc, err := reader.Read(context.Background(), term, 0)
				lacks := ""
				if err != nil || !strings.Contains(sc.Text, want) {
					lacks = fmt.Sprintf("%q, %v", sc.Text, err)
				}
				for _, l := range all {
					for more := true; more; {
						select {
						case e := <-l.view.Events():
							l.screen.Write(e.Output)
						default:
							more = false
						}
					}
					if text := l.screen.Text(0); !strings.Contains(text, want) {
						lacks += fmt.Sprintf("; %s sees %q", l.name, text)
					}
				}
				return lacks
			})
		}
		for _, l := range all {
			l.answered = 0
		}
		typed(".", fmt.Sprintf("round %d over,", rounds))
		typed("!", fmt.Sprintf("round %d over, then ! read", rounds))
		for _, l := range all {
			if n := map[bool]int{true: asks}[l.name == who]; l.answered != n {
				t.Errorf("round %d: %s answers %d times, where %q is to answer", rounds, l.name, l.answered, who)
			}
		}
	}
	round("")
	onlooker := look("onlooker", 0, 0)
	onlooker.screen.reply = nil // it is no terminal
	round("", onlooker)
	first := look("first", 80, 24)
	second, third := look("second", 80, 24), look("third", 80, 24)
	round("first", onlooker, first, second, third)
	for _, l := range []*looker{first, second} {
		if err := l.view.Detach(); err != nil {
			t.Fatal(err)
		}
	}
	round("third", onlooker, third)
	if err := third.view.Detach(); err != nil {
		t.Fatal(err)
	}
	round("", onlooker)
}

// A sequence that is begun when somebody comes to look goes on for him, too; and whoever comes to
// answer in the middle of a question gets it whole.
func TestBegunSequences(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", shell(`stty raw -echo; printf 'here\033[6'; head -c 1 >/dev/null; printf 'n\033[1'; head -c 1 >/dev/null; printf ';31mred'; head -c 20`))).Windows[0][0].Terminal
	c, d := s.dial(), s.dial()
	until(t, func() string {
		if sc, err := c.Read(context.Background(), term, 0); err != nil || !strings.Contains(sc.Text, "here") {
			return fmt.Sprintf("%q, %v", sc.Text, err)
		}
		return ""
	})
	asked := 0
	first, second := s.attach(c, term, 80, 24), s.attach(d, term, 80, 24)
	mine, theirs := newScreen(80, 24, func([]byte) { t.Error("the one who left is asked") }), newScreen(80, 24, func([]byte) { asked++ })
	shows(t, first, mine, "here")
	shows(t, second, theirs, "here")
	if err := first.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := d.Input(context.Background(), term, []byte(".")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		select {
		case e := <-second.Events():
			theirs.Write(e.Output)
		default:
		}
		if asked != 1 || theirs.parser.state != csi {
			return fmt.Sprintf("asked %d times; the screen stands in %q", asked, theirs.parser.raw)
		}
		return ""
	})
	third := s.attach(c, term, 80, 24)
	late := newScreen(80, 24, nil)
	shows(t, third, late, "here")
	if err := d.Input(context.Background(), term, []byte(".")); err != nil {
		t.Fatal(err)
	}
	shows(t, second, theirs, "herered")
	shows(t, third, late, "herered")
	for name, s := range map[string]*screen{"second": theirs, "third": late} {
		if c := s.main.rows[0].cells[4]; c.ch != 'r' || c.style != (style{fg: indexed | 1, flags: bold}) {
			t.Errorf("the %s sees %+v", name, c)
		}
	}
}
