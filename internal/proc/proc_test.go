package proc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	line := func(comm string) string {
		return "77 (" + comm + ") S 5 6 7 34816 77 4194304 98 0 0 0 0 0 0 0 20 0 1 0 111543 3133440 380 18446744073709551615 0\n"
	}
	for _, comm := range []string{"cat", "", "tmux: server", "a) R 1 1 1 (b", "((()))", "x\ny", "Web Content)"} {
		got, err := parseStat([]byte(line(comm)))
		want := Info{PID: 77, PPID: 5, Group: 6, Session: 7, TTY: 34816, Front: 77, State: 'S', Start: 111543, Comm: comm}
		if err != nil || got != want {
			t.Errorf("%q: %+v %v", comm, got, err)
		}
	}
	for _, bad := range []string{
		"", "77", "77 (cat", "cat) S 1", "x (cat) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9", "77 (cat) SS 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9",
		"77 (cat) S 1 1 1 0", "77 (cat) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 -9", "-1 (cat) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9",
	} {
		if i, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, i)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("77 (a) b) S 5 6 7 34816 77 4194304 98 0 0 0 0 0 0 0 20 0 1 0 111543 3133440 380"))
	f.Add([]byte("1 () Z 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := parseStat(b)
		if err == nil && i.PID <= 0 {
			t.Fatalf("%q gives the pid %d", b, i.PID)
		}
	})
}

func TestTTYName(t *testing.T) {
	for dev, want := range map[int]string{
		0: "", 34816: "/dev/pts/0", 34816 + 7: "/dev/pts/7", 137<<8 | 1: "/dev/pts/257", 1025: "/dev/tty1", 1089: "terminal 4:65",
		136<<8 | 0x100000: "/dev/pts/256",
	} {
		if got := TTYName(dev); got != want {
			t.Errorf("%d: %q, want %q", dev, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	boot := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	if got := ticks(boot, 12345); !got.Equal(boot.Add(123*time.Second + 450*time.Millisecond)) {
		t.Error(got)
	}
	if got := ticks(boot, 1<<63); !got.IsZero() {
		t.Error("a number beyond time is a time:", got)
	}
}

func TestSplitNul(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "\x00\x00": nil, "a\x00": {"a"}, "a\x00\x00b\x00": {"a", "", "b"}, "pi\x00\x00\x00\x00": {"pi"}, "pi": {"pi"},
	} {
		if d := cmp.Diff(want, splitNul([]byte(in))); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

func TestTableWalks(t *testing.T) {
	table := newTable([]Info{
		{PID: 30, PPID: 20, Start: 3, State: 'S'},
		{PID: 10, PPID: 1, Start: 1, State: 'S'},
		{PID: 20, PPID: 10, Start: 2, State: 'Z'},
		{PID: 21, PPID: 10, Start: 2, State: 'R'},
	})
	pids := func(list []Info) string {
		var b strings.Builder
		for _, i := range list {
			fmt.Fprint(&b, i.PID, " ")
		}
		return b.String()
	}
	for _, c := range []struct{ what, got, want string }{
		{"all", pids(table.All()), "10 20 21 30 "},
		{"children", pids(table.Children(10)), "20 21 "},
		{"descendants", pids(table.Descendants(10)), "20 21 30 "},
		{"ancestors", pids(table.Ancestors(30)), "20 10 "},
		{"nobody's", pids(table.Children(99)) + pids(table.Ancestors(99)), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	for id, want := range map[ID]bool{{10, 1}: true, {10, 2}: false, {20, 2}: false, {99, 0}: false} {
		if table.Alive(id) != want {
			t.Errorf("%v alive: %v", id, !want)
		}
	}
	// Lines of different moments may close a circle; the walks end all the same.
	circle := newTable([]Info{{PID: 1, PPID: 2}, {PID: 2, PPID: 1}})
	if n := len(circle.Descendants(1)); n > 2 {
		t.Errorf("%d descendants in a circle of two", n)
	}
	if n := len(circle.Ancestors(1)); n > 2 {
		t.Errorf("%d ancestors in a circle of two", n)
	}
}
