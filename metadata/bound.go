package metadata

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Bound is one rule that a value may break. The text is what a person reads.
type Bound string

// The bounds. A value is refused by the first one that it breaks, and is never repaired.
const (
	Missing      Bound = "missing"
	Empty        Bound = "empty"
	TooLong      Bound = "too long"
	TooMany      Bound = "too many"
	NotUTF8      Bound = "not valid UTF-8"
	Padded       Bound = "white space around it"
	Control      Bound = "a control character in it"
	OptionShaped Bound = "begins with -"
	NotAbsolute  Bound = "not an absolute path"
	BadKey       Bound = "not a pane key"
	Negative     Bound = "negative"
	BadTime      Bound = "not a time"
	Unknown      Bound = "not a member of the record"
	Duplicate    Bound = "given twice"
	WrongType    Bound = "of the wrong JSON type"
	NotObject    Bound = "not a JSON object"
	TooDeep      Bound = "too deeply nested"
	NotJSON      Bound = "not JSON"
)

// BoundError says which field broke which bound, so that a verb can tell its user.
type BoundError struct {
	Field    string // the member's name, or what the caller calls the value; empty for the value as a whole
	Bound    Bound
	Got, Max int    // bytes with TooLong, elements with TooMany; else zero
	Want     string // where a word helps: what is wanted
	Err      error  // with NotJSON and BadTime: what the decoder said
}

func (e *BoundError) Error() string {
	var b strings.Builder
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", e.Field)
	}
	b.WriteString(string(e.Bound))
	switch {
	case e.Bound == TooLong:
		fmt.Fprintf(&b, " (%d bytes, at most %d)", e.Got, e.Max)
	case e.Bound == TooMany:
		fmt.Fprintf(&b, " (%d, at most %d)", e.Got, e.Max)
	case e.Want != "":
		fmt.Fprintf(&b, " (want %s)", e.Want)
	case e.Err != nil:
		fmt.Fprintf(&b, " (%v)", e.Err)
	}
	return b.String()
}

func (e *BoundError) Unwrap() error { return e.Err }

// CheckID checks the bounds of a plugin or integration id: valid UTF-8 of 1 to MaxID bytes,
// equal to its own trim, without control characters. No character set beyond that, and a
// leading - is allowed: both as in phux. what names the value in the *BoundError.
func CheckID(what, id string) error { return checkText(what, id, MaxID) }

// CheckNativeID checks the bounds of a provider's own identity: those of CheckID with
// MaxNativeID, and never option-shaped. what names the value in the *BoundError.
func CheckNativeID(what, id string) error {
	if err := checkText(what, id, MaxNativeID); err != nil {
		return err
	}
	if id[0] == '-' {
		return &BoundError{Field: what, Bound: OptionShaped}
	}
	return nil
}

// CheckPaneKey checks that a pane key is one that NewPaneKey could have made.
func CheckPaneKey(what, key string) error {
	switch {
	case key == "":
		return &BoundError{Field: what, Bound: Missing}
	case len(key) != paneKeyLen || strings.Trim(key, paneKeyAlphabet) != "":
		return &BoundError{Field: what, Bound: BadKey, Want: "26 characters of a-z and 2-7"}
	}
	return nil
}

// checkText is what all bounded words have in common. Trim is Unicode's White_Space and control
// is Cc, in Rust as in Go, so phux and we refuse the same bytes.
func checkText(what, s string, most int) error {
	switch {
	case s == "":
		return &BoundError{Field: what, Bound: Empty}
	case len(s) > most:
		return &BoundError{Field: what, Bound: TooLong, Got: len(s), Max: most}
	case !utf8.ValidString(s):
		return &BoundError{Field: what, Bound: NotUTF8}
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return &BoundError{Field: what, Bound: Control}
	case strings.TrimSpace(s) != s:
		return &BoundError{Field: what, Bound: Padded}
	}
	return nil
}

// checkOptional is checkText for a field that may be empty.
func checkOptional(what, s string, most int) error {
	if s == "" {
		return nil
	}
	return checkText(what, s, most)
}

// checkDir checks a directory: data, so any character but NUL, which no path can hold.
func checkDir(what, dir string) error {
	switch {
	case dir == "":
		return nil
	case len(dir) > MaxDir:
		return &BoundError{Field: what, Bound: TooLong, Got: len(dir), Max: MaxDir}
	case !utf8.ValidString(dir):
		return &BoundError{Field: what, Bound: NotUTF8}
	case strings.IndexByte(dir, 0) >= 0:
		return &BoundError{Field: what, Bound: Control}
	case !path.IsAbs(dir):
		return &BoundError{Field: what, Bound: NotAbsolute}
	}
	return nil
}

func checkSize(n int) error {
	switch {
	case n == 0:
		return &BoundError{Bound: Empty}
	case n > MaxRecord:
		return &BoundError{Bound: TooLong, Got: n, Max: MaxRecord}
	}
	return nil
}
