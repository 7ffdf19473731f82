package embedded

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// fields is one msgpack map with small integer keys. Values are int, uint64, bool, string, []byte,
// []string (as binary, for arguments are no text), fields and []fields. A zero value is not
// written, and what is not there reads as zero.
type fields map[int]any

// encode writes the map, its keys in order.
func (f fields) encode() []byte {
	var b bytes.Buffer
	f.write(&b)
	return b.Bytes()
}

// frame is the map with its length before it.
func (f fields) frame() []byte {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	f.write(&b)
	out := b.Bytes()
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func (f fields) write(b *bytes.Buffer) {
	e := msgpack.GetEncoder()
	e.Reset(b)
	e.UseCompactInts(true)
	f.encodeTo(e)
	msgpack.PutEncoder(e)
}

// encodeTo ignores the encoder's errors: it writes into memory.
func (f fields) encodeTo(e *msgpack.Encoder) {
	keys := slices.Sorted(maps.Keys(f))
	keys = slices.DeleteFunc(keys, func(k int) bool { return isZero(f[k]) })
	_ = e.EncodeMapLen(len(keys))
	for _, k := range keys {
		_ = e.EncodeInt(int64(k))
		switch v := f[k].(type) {
		case bool:
			_ = e.EncodeBool(v)
		case int:
			_ = e.EncodeInt(int64(v))
		case uint64:
			_ = e.EncodeUint(v)
		case string:
			_ = e.EncodeString(v)
		case []byte:
			_ = e.EncodeBytes(v)
		case []string:
			_ = e.EncodeArrayLen(len(v))
			for _, s := range v {
				_ = e.EncodeBytes([]byte(s))
			}
		case fields:
			v.encodeTo(e)
		case []fields:
			_ = e.EncodeArrayLen(len(v))
			for _, m := range v {
				m.encodeTo(e)
			}
		}
	}
}

func isZero(v any) bool {
	switch v := v.(type) {
	case bool:
		return !v
	case int:
		return v == 0
	case uint64:
		return v == 0
	case string:
		return v == ""
	case []byte:
		return len(v) == 0
	case []string:
		return len(v) == 0
	case fields:
		return v == nil
	case []fields:
		return len(v) == 0
	}
	return true
}

// decodeFields reads exactly one map; see scan for what is refused. Unknown keys are kept and
// never asked for, which is how they are skipped.
func decodeFields(b []byte) (fields, error) {
	if err := scan(b); err != nil {
		return nil, err
	}
	d := decoder{b: b}
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	return v.(fields), nil
}

// decoder reads what scan has passed. The small values are read here, for a frame is mostly
// those; numbers are msgpack's own.
type decoder struct {
	b []byte
}

func (d *decoder) value() (any, error) {
	r := bytes.NewReader(d.b)
	m := msgpack.GetDecoder()
	defer msgpack.PutDecoder(m)
	m.Reset(r)
	return read(m)
}

func read(m *msgpack.Decoder) (any, error) {
	c, err := m.PeekCode()
	if err != nil {
		return nil, badFrame("%v", err)
	}
	switch {
	case isMap(c):
		n, err := m.DecodeMapLen()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		out := make(fields, min(n, 32))
		for range n {
			k, err := m.DecodeInt()
			if err != nil {
				return nil, badFrame("%v", err)
			}
			if out[k], err = read(m); err != nil {
				return nil, err
			}
		}
		return out, nil
	case c>>4 == 9 || c == 0xdc || c == 0xdd:
		n, err := m.DecodeArrayLen()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		out := make([]any, 0, min(n, 1024))
		for range n {
			v, err := read(m)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case c>>5 == 5 || c >= 0xd9 && c <= 0xdb:
		s, err := m.DecodeString()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		return s, nil
	case c >= 0xc4 && c <= 0xc6:
		b, err := m.DecodeBytes()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		return b, nil
	case c == 0xc0:
		return nil, m.DecodeNil()
	case c == 0xc2 || c == 0xc3:
		v, err := m.DecodeBool()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		return v, nil
	case c == 0xca || c == 0xcb:
		v, err := m.DecodeFloat64()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		return v, nil
	case c == 0xcf:
		v, err := m.DecodeUint64()
		if err != nil {
			return nil, badFrame("%v", err)
		}
		return v, nil
	}
	v, err := m.DecodeInt64()
	if err != nil {
		return nil, badFrame("%v", err)
	}
	return int(v), nil
}

// reading asks a map for its values; a value of another kind than is asked for is remembered
// as an error, and reads as zero.
type reading struct {
	fields
	err error
}

func (r *reading) wrong(k int, what string) {
	if r.err == nil {
		r.err = badFrame("key %d is no %s", k, what)
	}
}

func (r *reading) number(k int) int {
	switch v := r.fields[k].(type) {
	case nil:
		return 0
	case int:
		return v
	case uint64:
		if v <= math.MaxInt {
			return int(v)
		}
	}
	r.wrong(k, "number")
	return 0
}

func (r *reading) unsigned(k int) uint64 {
	switch v := r.fields[k].(type) {
	case nil:
		return 0
	case uint64:
		return v
	case int:
		if v >= 0 {
			return uint64(v)
		}
	}
	r.wrong(k, "unsigned number")
	return 0
}

func (r *reading) flag(k int) bool {
	switch v := r.fields[k].(type) {
	case nil:
		return false
	case bool:
		return v
	}
	r.wrong(k, "truth value")
	return false
}

// text and data take text and binary alike: which of the two is a matter of taste elsewhere.
func (r *reading) text(k int) string {
	switch v := r.fields[k].(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	r.wrong(k, "text")
	return ""
}

func (r *reading) data(k int) []byte {
	switch v := r.fields[k].(type) {
	case nil:
		return nil
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	r.wrong(k, "binary value")
	return nil
}

func (r *reading) words(k int) []string {
	var out []string
	for _, v := range r.list(k) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []byte:
			out = append(out, string(v))
		default:
			r.wrong(k, "list of words")
			return nil
		}
	}
	return out
}

func (r *reading) list(k int) []any {
	switch v := r.fields[k].(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	r.wrong(k, "list")
	return nil
}

func (r *reading) maps(k int) []fields {
	var out []fields
	for _, v := range r.list(k) {
		m, ok := v.(fields)
		if !ok {
			r.wrong(k, "list of maps")
			return nil
		}
		out = append(out, m)
	}
	return out
}

func (r *reading) sub(k int) fields {
	switch v := r.fields[k].(type) {
	case nil:
		return nil
	case fields:
		return v
	}
	r.wrong(k, "map")
	return nil
}

func (r *reading) has(k int) bool { _, ok := r.fields[k]; return ok }
