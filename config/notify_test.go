package config

import (
	"slices"
	"strings"
	"testing"
)

func TestNotify(t *testing.T) {
	read := func(text string) (*Config, error) {
		c := Default()
		return c, decode("config.toml", []byte(text), c)
	}
	c, err := read("[notify]\ncommand = [\"notify-send\", \"${TEXT}\"]\n")
	if err != nil || !slices.Equal(c.Notify.Command, []string{"notify-send", "${TEXT}"}) {
		t.Errorf("%v, %v", c.Notify, err)
	}
	for text, want := range map[string]string{
		"[notify]\ncommand = \"notify-send x\"\n":                            "config.toml:2",
		"[notify]\ncommand = [\"${TITLE}\"]\n":                               "must be a program",
		"[notify]\ncommand = [\"\"]\n":                                       "must be a program",
		"[notify]\ncommand = [\"x\", \"a\\u0000b\"]\n":                       "NUL",
		"[notify]\ncomand = [\"x\"]\n":                                       `did you mean "command"`,
		"[notify]\ncommand = [\"x\"" + strings.Repeat(", \"x\"", 64) + "]\n": "over 64 arguments",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
