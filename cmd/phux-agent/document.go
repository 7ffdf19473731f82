package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schemaVersion is of every document that --json prints. Documents are only ever added to.
const schemaVersion = 1

// writeDocument prints one JSON document, indented. What a terminal would act on or hide (C1
// controls, bidi marks) is written as a JSON escape, which reads back as the same text.
func writeDocument(w io.Writer, v any) error { return encode(w, v, jsontext.WithIndent("  ")) }

// decodeDocument reads what writeDocument printed; members that nobody asks for are passed over.
func decodeDocument(b []byte, v any) error { return json.Unmarshal(bytes.TrimSpace(b), v) }

// writeLine prints one JSON document on one line.
func writeLine(w io.Writer, v any) error { return encode(w, v) }

func encode(w io.Writer, v any, o ...json.Options) error {
	var b bytes.Buffer
	o = append(o, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err := json.MarshalWrite(&b, v, o...); err != nil {
		return fmt.Errorf("encode the document: %w", err)
	}
	out := make([]byte, 0, b.Len()+1)
	for s := b.Bytes(); len(s) > 0; {
		r, n := utf8.DecodeRune(s)
		if hidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, s[:n]...)
		}
		s = s[n:]
	}
	_, err := w.Write(append(out, '\n'))
	return err
}

func hidden(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x061c || r == 0x200b || r == 0x200e || r == 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}
