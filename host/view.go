package host

// ViewEvent is what somebody who looks at a terminal of a host of ours is told: output as its
// program wrote it; a new size, which is the smallest of all who look; the end of the terminal.
type ViewEvent struct {
	Output     []byte
	Cols, Rows int
	Closed     bool
}
