package foreign

import (
	"fmt"
	"strings"
)

// A block is some lines of ours in a text file whose comments begin with #, between two lines
// that say so.
const (
	blockBegin = "# >>> phux-agent "
	blockEnd   = "# <<< phux-agent "
	// joined marks a block before which a newline was put that the file did not end with.
	joined = " (newline added)"
)

// SetBlock puts the block of that name at the end of text, or in the place of the one that is
// there. Text that has it already comes back as it is. The line endings are the text's.
func SetBlock(text, name, body string) (string, error) {
	nl := newline(text)
	body = strings.ReplaceAll(strings.Trim(body, "\n"), "\n", nl)
	start, end, added, err := findBlock(text, name)
	if err != nil {
		return "", err
	}
	if start < 0 {
		start, end = len(text), len(text)
		added = text != "" && !strings.HasSuffix(text, "\n")
	}
	mark, before := "", ""
	if added {
		mark, before = joined, nl
	}
	return text[:start] + before + blockBegin + name + " >>>" + mark + nl + body + nl + blockEnd + name + " <<<" + nl + text[end:], nil
}

// RemoveBlock takes the block away, with what was put before it: a newline that the text did not
// end with stays where somebody has written behind the block since, for two lines must not become
// one. Found is false where there is none.
func RemoveBlock(text, name string) (out string, found bool, err error) {
	start, end, added, err := findBlock(text, name)
	if err != nil || start < 0 {
		return text, false, err
	}
	if added && end < len(text) && start > 0 {
		return text[:start] + newline(text) + text[end:], true, nil
	}
	return text[:start] + text[end:], true, nil
}

// Block returns the body of the block of that name.
func Block(text, name string) (body string, found bool, err error) {
	start, end, _, err := findBlock(text, name)
	if err != nil || start < 0 {
		return "", false, err
	}
	lines := strings.Split(strings.Trim(strings.ReplaceAll(text[start:end], "\r\n", "\n"), "\n"), "\n")
	return strings.Join(lines[1:len(lines)-1], "\n"), true, nil
}

// findBlock returns the bytes of a block; start is -1 where there is none.
func findBlock(text, name string) (start, end int, added bool, err error) {
	start = -1
	at := 0
	closed := true
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case bare == blockBegin+name+" >>>" || bare == blockBegin+name+" >>>"+joined:
			if start >= 0 {
				return 0, 0, false, fmt.Errorf("the block %q stands in it twice", name)
			}
			start, closed = at, false
			if strings.HasSuffix(bare, joined) {
				added = true
				if cut := strings.TrimSuffix(strings.TrimSuffix(text[:at], "\n"), "\r"); cut != text[:at] {
					start = len(cut)
				}
			}
		case bare == blockEnd+name+" <<<" && !closed:
			end, closed = at+len(line), true
		}
		at += len(line)
	}
	if !closed {
		return 0, 0, false, fmt.Errorf("the block %q has no end", name)
	}
	return start, end, added, nil
}

// newline is the text's line ending: that of its first line.
func newline(text string) string {
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
