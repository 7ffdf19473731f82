package metadata

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how many containers serde_json nests before it refuses; so do we, also in what
// is skipped, for phux reads the live identity as a whole before it looks at a member.
const maxDepth = 127

// object walks the members of the one JSON object that b must be, exactly: names are case
// sensitive, strings valid UTF-8 without lone surrogates, nothing follows, and null or an
// array in the object's place is refused. member must consume the value.
//
// serde also fills a struct from an array of its fields in declared order. We refuse that form
// on purpose: the specification (L3.md §3.7.1) says object, phux never writes it, and a
// positional record would be read differently by every later version.
func object(b []byte, repeats bool, member func(name string, d *jsontext.Decoder) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(repeats))
	tok, err := d.ReadToken()
	if err != nil {
		return syntax(err)
	}
	if tok.Kind() != '{' {
		return &BoundError{Bound: NotObject, Want: "a JSON object"}
	}
	for d.PeekKind() != '}' {
		tok, err := d.ReadToken()
		if err != nil {
			return syntax(err)
		}
		if err := member(tok.String(), d); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return syntax(err)
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return &BoundError{Bound: NotJSON, Err: errors.New("something follows the object")}
	case !errors.Is(err, io.EOF):
		return syntax(err)
	}
	return nil
}

// text reads a member that must be a string.
func text(name string, d *jsontext.Decoder) (string, error) {
	if k := d.PeekKind(); k != '"' && k != 0 {
		return "", wrongType(name, "a string")
	}
	tok, err := d.ReadToken()
	if err != nil {
		return "", syntax(err)
	}
	return tok.String(), nil
}

// value reads one value of any type, bounded in depth and, as serde_json does, in the size of
// its numbers. nulls says whether null is allowed anywhere in it.
func value(name string, d *jsontext.Decoder, nulls bool) (jsontext.Value, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, syntax(err)
	}
	v = v.Clone()
	in := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := in.ReadToken()
		if err != nil {
			return v, nil // io.EOF: ReadValue has already found it well-formed
		}
		switch tok.Kind() {
		case '{', '[':
			if in.StackDepth() >= maxDepth { // the object around it is one more
				return nil, &BoundError{Field: name, Bound: TooDeep}
			}
		case 'n':
			if !nulls {
				return nil, wrongType(name, "no null")
			}
		case '0':
			if _, err := strconv.ParseFloat(tok.String(), 64); err != nil {
				return nil, wrongType(name, "a finite number")
			}
		}
	}
}

func wrongType(name, want string) error {
	return &BoundError{Field: name, Bound: WrongType, Want: want}
}

// syntax turns the decoder's refusal into ours.
func syntax(err error) error {
	var at *jsontext.SyntacticError
	switch {
	case errors.As(err, &at) && errors.Is(at.Err, jsontext.ErrDuplicateName):
		return &BoundError{Field: at.JSONPointer.LastToken(), Bound: Duplicate}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &BoundError{Bound: NotJSON, Err: io.ErrUnexpectedEOF}
	}
	return &BoundError{Bound: NotJSON, Err: err}
}
