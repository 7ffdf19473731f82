// Package tmux drives a real tmux, 3.2a and later, as a host.
//
// A pane of ours runs SELF pane-exec TOKEN NONCE DIR, so that its record stands in its start
// command from its first instant. What is current is a pane option whose value names the nonce.
// A session is built under a temporary name in one list that no hook can enter, looked at, and
// renamed; a gate holds every program until then. Nothing is typed, no text of others passes
// through a format, and every layout is written from a checked tree.
package tmux
