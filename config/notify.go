package config

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// Notify is the command that hooks call where an agent has come to want its person.
type Notify struct {
	// Command is an argument vector, never a shell's text; empty where nobody is called. An
	// element that is ${STATE}, ${AGENT}, ${SESSION}, ${PANE}, ${TITLE} or ${TEXT} is replaced.
	Command []string
}

type notifyForm struct {
	Command []string `toml:"command"`
}

// Bounds of [notify] command.
const (
	maxNotifyArgs = 64
	maxNotifyText = 16 << 10
)

func (s source) notify(f notifyForm, c *Config) error {
	key := toml.Key{"notify", "command"}
	size := 0
	for _, a := range f.Command {
		if strings.ContainsRune(a, 0) {
			return s.fail(key, "", "an argument of the notification holds a NUL")
		}
		size += len(a) + 1
	}
	switch {
	case len(f.Command) > maxNotifyArgs || size > maxNotifyText:
		return s.fail(key, "", "the notification has over %d arguments or %d bytes", maxNotifyArgs, maxNotifyText)
	case len(f.Command) > 0 && (f.Command[0] == "" || strings.HasPrefix(f.Command[0], "$")):
		return s.fail(key, `write command = ["notify-send", "${TEXT}"]`, "the first element must be a program")
	}
	c.Notify.Command = f.Command
	return nil
}
