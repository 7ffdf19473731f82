package integrations

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// span is a place in the source, in bytes; end is exclusive and on the same line.
type span struct{ start, end int }

// positions finds where keys and array elements stand, for messages alone: the TOML library
// decides what the file means, and does not say where. Paths look like observe[0].path and
// session_identity.resume_args[1]. On a file that is not TOML it finds what it can.
//
// It also bounds nesting before that library sees the file, whose work grows with the square
// of the length of a dotted key.
type positions struct {
	src     string
	keys    map[string]span // the key itself
	values  map[string]span // its value, or the element
	arrays  map[string]int  // [[tables]] seen so far
	tooDeep int             // where nesting goes beyond maxNesting; -1 where nowhere
}

const maxNesting = 16

func locate(src string) *positions {
	p := &positions{src: src, keys: map[string]span{}, values: map[string]span{}, arrays: map[string]int{}, tooDeep: -1}
	table := ""
	for i := 0; i < len(src); {
		start := i
		switch c := src[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
		case c == '#':
			i = p.lineEnd(i)
		case strings.HasPrefix(src[i:], "[["):
			parts, at, end := p.key(i + 2)
			table = p.resolve(parts, true)
			p.note(p.keys, table, at)
			i = p.lineEnd(end)
		case c == '[':
			parts, at, end := p.key(i + 1)
			table = p.resolve(parts, false)
			p.note(p.keys, table, at)
			i = p.lineEnd(end)
		default:
			i = p.pair(i, table, 0)
			i = p.lineEnd(i)
		}
		if i <= start {
			i = start + 1
		}
	}
	return p
}

// resolve names the table of a header; array says that the header begins a new element.
func (p *positions) resolve(parts []string, array bool) string {
	path := ""
	for i, part := range parts {
		path = join(path, part)
		switch n := p.arrays[path]; {
		case array && i == len(parts)-1:
			p.arrays[path] = n + 1
			path += "[" + strconv.Itoa(n) + "]"
		case n > 0:
			path += "[" + strconv.Itoa(n-1) + "]"
		}
	}
	return path
}

// pair reads key = value and returns where it ends.
func (p *positions) pair(i int, table string, depth int) int {
	parts, at, end := p.key(i)
	path := table
	for _, part := range parts {
		path = join(path, part)
	}
	p.note(p.keys, path, at)
	i = p.blanks(end)
	if i >= len(p.src) || p.src[i] != '=' {
		return i
	}
	return p.value(p.blanks(i+1), path, depth+len(parts))
}

// value reads one value and returns where it ends.
func (p *positions) value(i int, path string, depth int) int {
	if depth > maxNesting {
		if p.tooDeep < 0 {
			p.tooDeep = min(i, len(p.src))
		}
		return len(p.src)
	}
	start := i
	switch {
	case i >= len(p.src):
		return i
	case p.src[i] == '[' || p.src[i] == '{':
		open := p.src[i]
		i++
		for n := 0; ; {
			i = p.space(i)
			before := i
			switch {
			case i >= len(p.src):
				return i
			case p.src[i] == ']' || p.src[i] == '}':
				p.note(p.values, path, span{start, i + 1})
				return i + 1
			case p.src[i] == ',':
				i++
			case open == '[':
				i = p.value(i, path+"["+strconv.Itoa(n)+"]", depth+1)
				n++
			default:
				i = p.pair(i, path, depth+1)
			}
			if i <= before {
				i = before + 1
			}
		}
	case p.src[i] == '"' || p.src[i] == '\'':
		i = p.str(i)
	default:
		for i < len(p.src) && !strings.ContainsRune(" \t\r\n,]}#", rune(p.src[i])) {
			i++
		}
	}
	p.note(p.values, path, span{start, i})
	return i
}

// str skips a string of any of TOML's four kinds.
func (p *positions) str(i int) int {
	quote := p.src[i : i+1]
	if strings.HasPrefix(p.src[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i += len(quote); i < len(p.src); i++ {
		switch {
		case quote[0] == '"' && p.src[i] == '\\':
			i++
		case strings.HasPrefix(p.src[i:], quote):
			return i + len(quote)
		case len(quote) == 1 && p.src[i] == '\n':
			return i
		}
	}
	return len(p.src)
}

// key reads a dotted key and returns its parts, its place and where it ends.
func (p *positions) key(i int) (parts []string, at span, end int) {
	i = p.blanks(i)
	at.start = i
	for i < len(p.src) {
		from := i
		if c := p.src[i]; c == '"' || c == '\'' {
			i = p.str(i)
			part := p.src[from:i]
			if unquoted, err := strconv.Unquote(part); err == nil && c == '"' {
				part = unquoted
			} else {
				part = strings.Trim(part, string(c))
			}
			parts = append(parts, part)
		} else {
			for i < len(p.src) && !strings.ContainsRune(" \t\r\n.=]#,[{}\"'", rune(p.src[i])) {
				i++
			}
			parts = append(parts, p.src[from:i])
		}
		if len(parts) > maxNesting {
			if p.tooDeep < 0 {
				p.tooDeep = from
			}
			return parts, at, len(p.src)
		}
		at.end = i
		next := p.blanks(i)
		if next >= len(p.src) || p.src[next] != '.' {
			return parts, at, i
		}
		i = p.blanks(next + 1)
	}
	return parts, at, i
}

func (p *positions) note(in map[string]span, path string, at span) {
	if _, seen := in[path]; !seen && len(path) < 512 {
		in[path] = at
	}
}

func (p *positions) blanks(i int) int {
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
		i++
	}
	return i
}

// space skips blanks, line ends and comments, as between the elements of an array.
func (p *positions) space(i int) int {
	for i < len(p.src) {
		switch p.src[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '#':
			i = p.lineEnd(i)
		default:
			return i
		}
	}
	return i
}

func (p *positions) lineEnd(i int) int {
	if i >= len(p.src) {
		return len(p.src)
	}
	if n := strings.IndexByte(p.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(p.src)
}

// find returns the best place for a path: the element or value (where value is wanted), the key,
// or the nearest enclosing table.
func (p *positions) find(path string, value bool) (span, bool) {
	for {
		if at, ok := p.values[path]; ok && value {
			return at, true
		}
		if at, ok := p.keys[path]; ok {
			return at, true
		}
		if at, ok := p.values[path]; ok {
			return at, true
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return span{}, false
		}
		path, value = path[:i], false
	}
}

// point fills an error's line, column, width and source from a place.
func (p *positions) point(e *Error, at span) {
	start := strings.LastIndexByte(p.src[:at.start], '\n') + 1
	end := p.lineEnd(start)
	e.Line = strings.Count(p.src[:at.start], "\n") + 1
	e.Column = utf8.RuneCountInString(p.src[start:at.start]) + 1
	e.Width = max(1, utf8.RuneCountInString(p.src[at.start:max(at.start, min(at.end, end))]))
	e.Source = strings.TrimRight(p.src[start:end], "\r")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
