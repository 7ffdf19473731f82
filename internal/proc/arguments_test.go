package proc

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseArguments(t *testing.T) {
	for text, want := range map[string][]string{
		"vim\x00": {"vim"}, "vim\x00a b\x00\x00": {"vim", "a b", ""}, "\x00\x00x\x00": {"", "", "x"}, "a\nb\x00\xff\x00": {"a\nb", "\xff"},
	} {
		got, err := parseArguments([]byte(text))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, d)
		}
	}
	for _, text := range []string{"", "vim", "vim\x00-- insert"} {
		if got, err := parseArguments([]byte(text)); !errors.Is(err, ErrRewritten) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
