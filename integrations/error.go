package integrations

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is the refusal of a template: where, what is wrong, and what to write instead. Its text
// has a first line that is complete in itself (Headline), then the source line with a caret.
type Error struct {
	File    string
	Line    int    // from 1; 0 where no line can be named (a key that is absent everywhere)
	Column  int    // from 1, in characters
	Width   int    // characters that the caret underlines, at least 1
	Key     string // the full key, as session_identity.resume_args; empty for TOML syntax
	Problem string
	Instead string // what to write
	Source  string // the line as it stands in the file
}

// Headline is the refusal in one line: FILE:LINE:COLUMN: KEY: PROBLEM; INSTEAD.
func (e *Error) Headline() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, ": %s", e.Key)
	}
	fmt.Fprintf(&b, ": %s", e.Problem)
	if e.Instead != "" {
		fmt.Fprintf(&b, "; %s", e.Instead)
	}
	return b.String()
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Headline()
	}
	line, column, width := excerpt([]rune(printable(e.Source)), e.Column, max(e.Width, 1))
	return fmt.Sprintf("%s\n%5d | %s\n      | %s%s", e.Headline(), e.Line, line,
		strings.Repeat(" ", max(column-1, 0)), strings.Repeat("^", width))
}

// excerpt cuts a long line down to what surrounds the caret.
func excerpt(line []rune, column, width int) (string, int, int) {
	const most, before = 120, 30
	from := 0
	if len(line) > most && column > before {
		from = min(column-before, len(line))
		line = append([]rune("…"), line[from:]...)
		from-- // for the mark
	}
	if len(line) > most {
		line = append(line[:most:most], '…')
	}
	column -= from
	return string(line), column, max(1, min(width, len(line)-column+1))
}

// printable keeps one cell for each character, so that the caret stays below its place, and
// lets nothing through that moves a terminal's cursor or its reading direction.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, s)
}
