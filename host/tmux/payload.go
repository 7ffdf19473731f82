package tmux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/phux-agent/phux-agent/host"
)

// payload is what a pane takes once: what it becomes, and the batch in which it is released.
// Its form is our own and binary, for a pane reads it before anything else: a JSON decoder's
// start-up would be a good part of pane-exec's.
type payload struct {
	batch int
	start host.Start
}

const (
	payloadHead = "phuxpay3"
	// maxPayload bounds a payload, in bytes: arguments, environment, guard and reason each have
	// bounds of their own.
	maxPayload = 2 << 20
	maxWords   = 1 << 16
)

var errPayload = errors.New("not a payload")

func (p payload) encode() ([]byte, error) {
	s := p.start
	b := append(make([]byte, 0, 1024), payloadHead...)
	b = binary.AppendUvarint(b, uint64(p.batch))
	b = binary.AppendUvarint(b, uint64(s.Mode))
	for _, words := range [][]string{s.Argv, s.Set, s.Unset} {
		b = binary.AppendUvarint(b, uint64(len(words)))
		for _, w := range words {
			b = appendText(b, w)
		}
	}
	for _, t := range []string{s.Dir, s.AfterExit, string(s.Guard), s.Reason, s.Hint, s.Ask, s.Preface} {
		b = appendText(b, t)
	}
	if len(b) > maxPayload {
		return nil, fmt.Errorf("%w: %d bytes to start a pane, where %d may be", host.ErrRequest, len(b), maxPayload)
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodePayload accepts what encode wrote, all of it and nothing more.
func decodePayload(b []byte) (payload, error) {
	if len(b) > maxPayload || len(b) < len(payloadHead) || string(b[:len(payloadHead)]) != payloadHead {
		return payload{}, errPayload
	}
	r := reader{b: b[len(payloadHead):]}
	var p payload
	p.batch = r.number(math.MaxInt32)
	p.start.Mode = host.Mode(r.number(int(host.Placeholder)))
	for _, to := range []*[]string{&p.start.Argv, &p.start.Set, &p.start.Unset} {
		n := r.number(maxWords)
		for ; n > 0 && !r.bad; n-- {
			*to = append(*to, r.text())
		}
	}
	p.start.Dir = r.text()
	p.start.AfterExit = r.text()
	if g := r.text(); g != "" {
		p.start.Guard = []byte(g)
	}
	p.start.Reason, p.start.Hint, p.start.Ask = r.text(), r.text(), r.text()
	p.start.Preface = r.text()
	if r.bad || len(r.b) != 0 {
		return payload{}, errPayload
	}
	if err := p.start.Check(); err != nil {
		return payload{}, fmt.Errorf("%w: %w", errPayload, err)
	}
	return p, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number(max int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(max) || n > 1 && r.b[n-1] == 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *reader) text() string {
	n := r.number(maxPayload)
	if r.bad || n > len(r.b) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
