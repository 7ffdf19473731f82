package embedded

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

func (s *stage) attach(c *Client, t host.Terminal, cols, rows int) *View {
	s.t.Helper()
	v, _, _, err := c.Attach(context.Background(), t, cols, rows)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// shows follows a view on a screen of its own until that shows what is wanted.
func shows(t *testing.T, v *View, s *screen, want string) {
	t.Helper()
	end := time.After(20 * time.Second)
	for !strings.Contains(s.Text(0), want) {
		select {
		case e, ok := <-v.Events():
			if !ok {
				t.Fatalf("the view ended; it shows:\n%s", s.Text(0))
			}
			s.Write(e.Output)
			if e.Cols > 0 {
				s.Resize(e.Cols, e.Rows)
			}
		case <-end:
			t.Fatalf("not %q; it shows:\n%s", want, s.Text(0))
		}
	}
}

func TestAttachShowsWhatIsThere(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", shell(`printf '\033[1mbefore\033[m\033[?1049h\033[5;5Hpainted\033[?2004h'; read x; printf "got $x\n"; read y`))).Windows[0][0].Terminal
	c, other := s.dial(), s.dial()
	until(t, func() string {
		if sc, err := c.Read(context.Background(), term, 0); err != nil || !strings.Contains(sc.Text, "painted") {
			return fmt.Sprintf("%q, %v", sc.Text, err)
		}
		return ""
	})
	v := s.attach(c, term, 60, 20)
	mine := newScreen(60, 20, nil)
	shows(t, v, mine, "    painted")
	if !mine.modes.altScreen || !mine.modes.paste {
		t.Errorf("modes %+v", mine.modes)
	}
	// Two look: each sees the same, at the smallest size of the two.
	w := s.attach(other, term, 40, 30)
	theirs := newScreen(40, 30, nil)
	shows(t, w, theirs, "painted")
	until(t, func() string {
		sc, err := c.Read(context.Background(), term, 0)
		if err != nil || sc.Cols != 40 || sc.Rows != 20 {
			return fmt.Sprintf("%dx%d, %v", sc.Cols, sc.Rows, err)
		}
		return ""
	})
	if err := w.Input([]byte("this\r")); err != nil {
		t.Fatal(err)
	}
	shows(t, v, mine, "got this")
	shows(t, w, theirs, "got this")
	if err := w.Detach(); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if sc, err := c.Read(context.Background(), term, 0); err != nil || sc.Cols != 60 {
			return fmt.Sprintf("%dx%d, %v", sc.Cols, sc.Rows, err)
		}
		return ""
	})
	if err := v.Resize(50, 10); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if sc, err := c.Read(context.Background(), term, 0); err != nil || sc.Cols != 50 || sc.Rows != 10 {
			return fmt.Sprintf("%dx%d, %v", sc.Cols, sc.Rows, err)
		}
		return ""
	})
	if err := c.Kill(context.Background(), term); err != nil {
		t.Fatal(err)
	}
	closed := false
	for e := range v.Events() {
		closed = closed || e.Closed
	}
	if !closed {
		t.Error("the view ends without a word")
	}
}

// Who reads gets every byte, in order, from the attach on.
func TestAttachLosesNothing(t *testing.T) {
	s := newStage(t)
	const n = 200000
	term := s.create(sessionOf("work", shell(fmt.Sprintf(`stty -opost; read x; seq 1 %d; echo end; read y`, n)))).Windows[0][0].Terminal
	c := s.dial()
	v := s.attach(c, term, 0, 0)
	if err := v.Input([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for e := range v.Events() {
		got.Write(e.Output)
		if bytes.HasSuffix(got.Bytes(), []byte("end\n")) {
			break
		}
	}
	var all bytes.Buffer
	for i := range n {
		fmt.Fprintf(&all, "%d\n", i+1)
	}
	if !bytes.Contains(got.Bytes(), all.Bytes()) {
		t.Errorf("%d bytes came, and not the %d in order", got.Len(), all.Len())
	}
}

// Who does not read holds nobody up, and sees the screen as it is once it reads again.
func TestAttachThatDoesNotRead(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", shell(`read x; seq 1 260000; echo over; read y`))).Windows[0][0].Terminal
	conn := rawDial(t, s.socket)
	send(t, conn, fields{keyKind: kindHello, keyRequest: 1, helloVersion: Version})
	send(t, conn, fields{keyKind: kindAttach, keyRequest: 2, termID: term.ID, termCols: 100, termRows: 40})
	c := s.dial()
	until(t, func() string {
		if sc, err := c.Read(context.Background(), term, 0); err != nil || sc.Rows != 40 {
			return fmt.Sprintf("%+v %v", sc, err)
		}
		return ""
	})
	if err := c.Input(context.Background(), term, []byte("\r")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string { // 1.7 MB are written, and nobody reads
		time.Sleep(50 * time.Millisecond) // each look feeds the emulator, and the program waits meanwhile
		sc, err := c.Read(context.Background(), term, 0)
		if err != nil || !strings.Contains(sc.Text, "over") {
			return fmt.Sprintf("%q, %v", sc.Text, err)
		}
		return ""
	})
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // that of the dial may have passed meanwhile
	mine := newScreen(100, 40, nil)
	total := 0
	for !strings.Contains(mine.Text(0), "over") {
		m := reading{fields: receive(t, conn)}
		if m.number(keyKind) == kindOutput {
			total += len(m.data(termData))
			mine.Write(m.data(termData))
		}
	}
	if total > 3<<19 {
		t.Errorf("%d bytes waited for it", total)
	}
	sc, err := c.Read(context.Background(), term, 0)
	if err != nil || sc.Text != mine.Text(0) {
		t.Errorf("it sees\n%s\nnot\n%s\n%v", mine.Text(0), sc.Text, err)
	}
}

func TestQuestionsAreAnsweredWhereNobodyLooks(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", shell(`stty raw -echo; printf 'ab\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; read x`))).Windows[0][0].Terminal
	c := s.dial()
	until(t, func() string {
		sc, err := c.Read(context.Background(), term, 0)
		if err != nil || !strings.Contains(sc.Text, "033   [   1   ;   3   R") {
			return fmt.Sprintf("%q, %v", sc.Text, err)
		}
		return ""
	})
}

func TestInputThatNobodyReads(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", shell("stty raw -echo; sleep 1000"))).Windows[0][0].Terminal
	c := s.dial()
	var err error
	for range 100 {
		if err = c.Input(context.Background(), term, make([]byte, 60000)); err != nil {
			break
		}
	}
	want(t, "a flood of input", err, ErrBusy)
	if err := c.Kill(context.Background(), term); err != nil {
		t.Error(err)
	}
}

func TestRespawn(t *testing.T) {
	s := newStage(t)
	pane := sleeper("r")
	pane.Start = shell("exit 3").Start
	out := s.create(sessionOf("work", pane, sleeper("x")))
	term := out.Windows[0][0].Terminal
	c := s.dial()
	want(t, "respawn of what runs", c.Respawn(context.Background(), out.Windows[0][1].Terminal), host.ErrConflict)
	until(t, func() string {
		w, err := c.Snapshot(context.Background())
		if err != nil {
			return err.Error()
		}
		if p := w.Sessions[0].Windows[0].Panes[0]; !p.Dead || p.Exit == nil || p.Exit.Status != 3 {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	want(t, "input to what has ended", c.Input(context.Background(), term, []byte("x")), ErrDead)
	if err := c.Respawn(context.Background(), term); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		sc, err := c.Read(context.Background(), term, 0)
		if err != nil || !strings.Contains(sc.Text, "respawned "+out.Windows[0][0].Nonce) {
			return fmt.Sprintf("%q, %v", sc.Text, err)
		}
		return ""
	})
	w, err := c.Snapshot(context.Background())
	if p := w.Sessions[0].Windows[0].Panes[0]; err != nil || p.Dead || !p.Waiting || p.Nonce != out.Windows[0][0].Nonce {
		t.Errorf("%+v, %v", p, err)
	}
}
