//go:build linux

package owner

import (
	"errors"
	"os"
	"testing"

	"github.com/phux-agent/phux-agent/integrations"
)

func TestUnder(t *testing.T) {
	_, environ, _ := store(t)
	tmpl := lockAgent(t)
	tmpl.Launch.Passthrough = []string{"-p", "mcp"}
	known := []*integrations.Template{tmpl}
	for _, c := range []struct {
		name string
		args []string
		part part
		tty  string
		want error // nil: the process itself, or its child
	}{
		{name: "the interface", args: []string{"locker", "hello"}},
		{name: "below a shell", args: []string{"sh"}, part: part{Child: &part{As: []string{"locker"}}}},
		{name: "a headless run", args: []string{"locker", "-p", "x"}, want: ErrNoAgent},
		{name: "a subcommand", args: []string{"locker", "mcp", "serve"}, want: ErrNoAgent},
		{name: "its output goes elsewhere", args: []string{"locker"}, tty: "/dev/pts/0", want: ErrNoAgent},
		{name: "below a headless run", args: []string{"locker", "-p"}, part: part{Nested: [][]string{{"locker"}}, Inner: &part{}}, want: ErrNoAgent},
		{name: "two of them", args: []string{"sh"}, part: part{Nested: [][]string{{"locker"}, {"locker"}}, Inner: &part{}}, want: ErrSeveral},
		{name: "another program", args: []string{"vim"}, want: ErrNoAgent},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := enact(t, environ, c.args, c.part, false)
			got, err := observer(t).Under(f.Process.PID, c.tty, known)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%+v, %v, want %v", got, err, c.want)
			}
			if c.want == nil && (got.Template != tmpl || got.Process.PID < f.Process.PID || got.Process.PID == os.Getpid()) {
				t.Errorf("%+v", got)
			}
		})
	}
}
