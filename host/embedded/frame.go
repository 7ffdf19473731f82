package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of the wire. A peer that breaks one is dropped.
const (
	// MaxFrame bounds what a client sends, in bytes without the length. It holds a session of
	// hundreds of panes; what is larger is no request that a person makes.
	MaxFrame = 16 << 20
	// MaxReply bounds what the server sends: the state of a server at all its limits may not
	// fit, and then the request fails.
	MaxReply = 64 << 20
	// MaxNesting bounds maps and arrays within one another.
	MaxNesting = 12
	// maxItems bounds the elements of a frame, maps, arrays and all that is in them.
	maxItems = 1 << 20
)

// ErrFrame is wrapped where bytes are not a frame of this protocol.
var ErrFrame = errors.New("not a frame")

func badFrame(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
}

// readFrame reads one frame of at most limit bytes and checks its form; the memory grows with what
// has come, not with what was announced. io.EOF where the stream ends between two frames.
func readFrame(r io.Reader, limit int) (fields, error) {
	n, err := readLength(r, limit)
	if err != nil {
		return nil, err
	}
	return readBody(r, n)
}

func readLength(r io.Reader, limit int) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n == 0 || n > limit {
		return 0, badFrame("%d bytes, where 1 to %d may be", n, limit)
	}
	return n, nil
}

func readBody(r io.Reader, n int) (fields, error) {
	body, err := readBytes(r, n)
	if err != nil {
		return nil, err
	}
	return decodeFields(body)
}

func readBytes(r io.Reader, n int) ([]byte, error) {
	const step = 64 << 10
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		want := min(n-len(body), max(step, len(body)))
		at := len(body)
		if cap(body) < at+want {
			grown := make([]byte, at, at+want)
			copy(grown, body)
			body = grown
		}
		body = body[:at+want]
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}

// What is typed and what is written are most of all frames, so that they are written and read by
// hand, in this one form of the many that msgpack has: what fields{keyKind: kind, termID: id,
// termData: b} says. In another form they are read as every frame is.
const (
	threePairs  = 0x83
	str8, bin32 = 0xd9, 0xc6
	beforeID    = 1 + 2 + 3 // bytes, from the map to the length of the id
	beforeData  = 1 + 1 + 4
)

// dataFrame is such a frame; the id has at most 255 bytes.
func dataFrame(kind byte, id string, b []byte) []byte {
	n := beforeID + len(id) + beforeData + len(b)
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+n), uint32(n))
	out = append(out, threePairs, keyKind, kind, termID, str8, byte(len(id)))
	out = append(out, id...)
	out = append(out, termData, bin32)
	out = binary.BigEndian.AppendUint32(out, uint32(len(b)))
	return append(out, b...)
}

// dataOf reads one without its length. It is false where it is none of that kind, or another form.
func dataOf(kind byte, body []byte) (id string, b []byte, ok bool) {
	if len(body) < beforeID+beforeData || [beforeID - 1]byte(body) != [...]byte{threePairs, keyKind, kind, termID, str8} {
		return "", nil, false
	}
	n, body := int(body[beforeID-1]), body[beforeID:]
	if len(body) < n+beforeData || body[n] != termData || body[n+1] != bin32 {
		return "", nil, false
	}
	b = body[n+beforeData:]
	return string(body[:n]), b, int(binary.BigEndian.Uint32(body[n+2:])) == len(b)
}

// scan checks that b is exactly one map with small integer keys, no key twice, nothing after it,
// nothing nested too deep and no length that the bytes do not hold: what passes can be decoded
// without a bound being asked about again.
func scan(b []byte) error {
	s := scanner{b: b, items: maxItems}
	if len(b) == 0 || !isMap(b[0]) {
		return badFrame("no map")
	}
	if err := s.value(0); err != nil {
		return err
	}
	if s.at != len(b) {
		return badFrame("%d bytes after the map", len(b)-s.at)
	}
	return nil
}

type scanner struct {
	b     []byte
	at    int
	items int
}

func isMap(c byte) bool { return c>>4 == 8 || c == 0xde || c == 0xdf }

func (s *scanner) take(n int) ([]byte, error) {
	if n < 0 || n > len(s.b)-s.at {
		return nil, badFrame("it ends early")
	}
	out := s.b[s.at : s.at+n]
	s.at += n
	return out, nil
}

// number takes a big-endian length of that many bytes.
func (s *scanner) number(size int) (int, error) {
	b, err := s.take(size)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range b {
		n = n<<8 | int(c)
	}
	return n, nil
}

func (s *scanner) value(depth int) error {
	if s.items--; s.items < 0 {
		return badFrame("more than %d elements", maxItems)
	}
	if depth > MaxNesting {
		return badFrame("nested more than %d deep", MaxNesting)
	}
	head, err := s.take(1)
	if err != nil {
		return err
	}
	c := head[0]
	skip := func(n int) error {
		_, err := s.take(n)
		return err
	}
	sized := func(size int, then func(int) error) error {
		n, err := s.number(size)
		if err != nil {
			return err
		}
		return then(n)
	}
	switch {
	case c <= 0x7f || c >= 0xe0: // small integers
		return nil
	case c>>4 == 8:
		return s.pairs(int(c&0x0f), depth)
	case c>>4 == 9:
		return s.list(int(c&0x0f), depth)
	case c>>5 == 5: // fixstr
		return skip(int(c & 0x1f))
	}
	switch c {
	case 0xc0, 0xc2, 0xc3:
		return nil
	case 0xc4, 0xd9:
		return sized(1, skip)
	case 0xc5, 0xda:
		return sized(2, skip)
	case 0xc6, 0xdb:
		return sized(4, skip)
	case 0xca:
		return skip(4)
	case 0xcb:
		return skip(8)
	case 0xcc, 0xd0:
		return skip(1)
	case 0xcd, 0xd1:
		return skip(2)
	case 0xce, 0xd2:
		return skip(4)
	case 0xcf, 0xd3:
		return skip(8)
	case 0xdc:
		return sized(2, func(n int) error { return s.list(n, depth) })
	case 0xdd:
		return sized(4, func(n int) error { return s.list(n, depth) })
	case 0xde:
		return sized(2, func(n int) error { return s.pairs(n, depth) })
	case 0xdf:
		return sized(4, func(n int) error { return s.pairs(n, depth) })
	}
	return badFrame("a value of kind 0x%02x", c)
}

func (s *scanner) list(n, depth int) error {
	for range n {
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) pairs(n, depth int) error {
	var seen [128]bool
	for range n {
		key, err := s.take(1)
		if err != nil {
			return err
		}
		k := key[0]
		if k > 0x7f {
			return badFrame("a key that is no small integer")
		}
		if seen[k] {
			return badFrame("key %d stands twice", k)
		}
		seen[k] = true
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
