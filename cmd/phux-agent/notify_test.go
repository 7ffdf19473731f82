package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A slot fills one argument, whole: nothing from outside becomes two, an option, or a program.
func TestNoticeFill(t *testing.T) {
	n := notice{State: "waiting", Agent: "claude-code", Session: "-rf /", Pane: "%3", Title: "a\x1b]0;x\a \u202eb"}
	got := n.fill([]string{"${TITLE}", "${SESSION}", "${TITLE}", "--x=${PANE}", "${PANE}", "${OTHER}", "${TEXT}"})
	want := []string{
		`a\x1b]0;x\x07 \u202eb`, " -rf /", `a\x1b]0;x\x07 \u202eb`, "--x=${PANE}", "%3", "${OTHER}",
		"claude-code waits for you in -rf / (%3)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, kv := range n.environ() {
		if !strings.HasPrefix(kv, "PHUX_AGENT_NOTIFY_") || strings.ContainsAny(kv, "\x1b\a") {
			t.Errorf("%q", kv)
		}
	}
	if len(n.environ()) != 6 {
		t.Error(n.environ())
	}
}
