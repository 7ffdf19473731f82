// Package embedded is a host of our own: a small server of ptys on a unix socket, its wire, and
// the client that is a host.Host.
//
// It holds sessions, windows and terminals as data, with their metadata, and shows one terminal
// at a time to whoever attaches. docs/embedded-protocol.md has every byte of the wire.
//
// One lock holds the state. A terminal is published together with its record while that lock is
// held, so nobody sees one without the other; its program waits at a gate of its own until then,
// and ends without a word where the terminal is never published.
package embedded

// Kind is the kind of this host.
const Kind = "embedded"
