package foreign

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON is a text of JSON whose values' places are known. Comments (// and /* */), a comma behind
// the last element, and a byte order mark are allowed, as agents allow them in their settings.
type JSON struct {
	text string
	root *node // nil where there is no value at all
}

type node struct {
	kind       byte // '{' '[' or 'v'
	start, end int
	items      []item
}

// item is an element, or a member with its key.
type item struct {
	key   string
	start int // of the key, or of the element
	value *node
}

// SyntaxError says where a text is no JSON.
type SyntaxError struct {
	Line, Column int
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

const maxNesting = 200

// ParseJSON reads a text. One without any value is an empty object to be.
func ParseJSON(text string) (*JSON, error) {
	p := &parser{text: text}
	p.at = len(bom(text))
	j := &JSON{text: text}
	p.skip()
	if p.err == nil && p.at < len(text) {
		j.root = p.value(0)
		p.skip()
		if p.err == nil && p.at < len(text) {
			p.fail("something follows the value")
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return j, nil
}

func bom(text string) string {
	if strings.HasPrefix(text, "\uFEFF") {
		return "\uFEFF"
	}
	return ""
}

type parser struct {
	text string
	at   int
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err != nil {
		return
	}
	before := p.text[:min(p.at, len(p.text))]
	line := strings.Count(before, "\n") + 1
	p.err = &SyntaxError{Line: line, Column: len(before) - strings.LastIndexByte(before, '\n'), Problem: fmt.Sprintf(format, args...)}
	p.at = len(p.text)
}

// skip goes over white space and comments.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case isSpace(rest[0]):
			p.at++
		case strings.HasPrefix(rest, "//"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.text)
			}
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest[2:], "*/")
			if i < 0 {
				p.fail("a comment has no end")
				return
			}
			p.at += i + 4
		default:
			return
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value(depth int) *node {
	n := &node{kind: 'v', start: p.at}
	switch c := p.peek(); {
	case depth > maxNesting:
		p.fail("nested too deeply")
	case c == '{' || c == '[':
		n.kind = c
		p.container(n, depth)
	case c == '"':
		p.str()
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}/:\"{[", p.text[p.at]) < 0 {
			p.at++
		}
		if !jsontext.Value(p.text[n.start:p.at]).IsValid() {
			p.at = n.start
			p.fail("a value was expected")
		}
	}
	n.end = p.at
	return n
}

func (p *parser) container(n *node, depth int) {
	shut := byte('}')
	if n.kind == '[' {
		shut = ']'
	}
	p.at++
	for p.err == nil {
		p.skip()
		if p.peek() == shut {
			p.at++
			return
		}
		it := item{start: p.at}
		if n.kind == '{' {
			if p.peek() != '"' {
				p.fail("a name in quotes, or } was expected")
				return
			}
			it.key = p.str()
			p.skip()
			if p.peek() != ':' {
				p.fail("a colon was expected")
				return
			}
			p.at++
			p.skip()
		}
		it.value = p.value(depth + 1)
		n.items = append(n.items, it)
		p.skip()
		switch p.peek() {
		case ',':
			p.at++
		case shut:
		default:
			p.fail("a comma or %c was expected", shut)
		}
	}
}

func (p *parser) str() string {
	start := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			p.at++
		case '\n':
			p.fail("a string has no end")
			return ""
		case '"':
			p.at++
			b, err := jsontext.AppendUnquote(nil, p.text[start:p.at])
			if err != nil {
				p.at = start
				p.fail("a string is not valid")
			}
			return string(b)
		}
	}
	p.fail("a string has no end")
	return ""
}

// split takes a JSON pointer apart.
func split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return parts
}

func join(parts []string) string {
	var b strings.Builder
	for _, t := range parts {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// walk goes down objects as far as there are members, and returns the last node with what is left
// of the way. A name that stands twice on the way is an error: readers differ in which one counts.
func (j *JSON) walk(parts []string) (n *node, left []string, err error) {
	n = j.root
	for i, key := range parts {
		var next *node
		switch n.kind {
		case '[':
			k, err := strconv.Atoi(key)
			if err != nil || k < 0 || k >= len(n.items) {
				return nil, nil, fmt.Errorf("%s is an array without element %q", join(parts[:i]), key)
			}
			next = n.items[k].value
		case '{':
			for _, it := range n.items {
				if it.key != key {
					continue
				}
				if next != nil {
					return nil, nil, fmt.Errorf("%s stands in it twice, and which one counts cannot be told", join(parts[:i+1]))
				}
				next = it.value
			}
		default:
			return nil, nil, fmt.Errorf("%s is no object", orRoot(join(parts[:i])))
		}
		if next == nil {
			return n, parts[i:], nil
		}
		n = next
	}
	return n, nil, nil
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the whole"
	}
	return pointer
}

// array returns the node of an array, nil where it is not there.
func (j *JSON) array(pointer string) (*node, error) {
	if j.root == nil {
		return nil, nil
	}
	n, left, err := j.walk(split(pointer))
	if err != nil || len(left) > 0 {
		return nil, err
	}
	if n.kind != '[' {
		return nil, fmt.Errorf("%s is no array", orRoot(pointer))
	}
	return n, nil
}

// Elements returns the text of each element of the array that a pointer names; none where it is
// not there.
func (j *JSON) Elements(pointer string) ([]string, error) {
	n, err := j.array(pointer)
	if err != nil || n == nil {
		return nil, err
	}
	out := make([]string, len(n.items))
	for i, it := range n.items {
		out[i] = j.text[it.value.start:it.value.end]
	}
	return out, nil
}

// Strings calls yield with each string value at or below a pointer, and with the pointer to it.
func (j *JSON) Strings(pointer string, yield func(pointer, value string)) {
	if j.root == nil {
		return
	}
	n, left, err := j.walk(split(pointer))
	if err != nil || len(left) > 0 {
		return
	}
	var visit func(n *node, at []string)
	visit = func(n *node, at []string) {
		if n.kind == 'v' {
			if j.text[n.start] == '"' {
				if b, err := jsontext.AppendUnquote(nil, j.text[n.start:n.end]); err == nil {
					yield(join(at), string(b))
				}
			}
			return
		}
		for i, it := range n.items {
			key := it.key
			if n.kind == '[' {
				key = strconv.Itoa(i)
			}
			visit(it.value, append(at[:len(at):len(at)], key))
		}
	}
	visit(n, split(pointer))
}

// Append puts a value at the end of the array that a pointer names, and makes the objects and the
// array that are missing on the way; created are the pointers of those.
func (j *JSON) Append(pointer, value string) (text string, created []string, err error) {
	parts := split(pointer)
	if len(parts) == 0 {
		return "", nil, errors.New("a pointer to the array is wanted")
	}
	if j.root == nil {
		// Nothing but white space or comments: the document begins behind them.
		nl := newline(j.text)
		doc := wrap(parts, value)
		for i := range parts {
			created = append(created, join(parts[:i+1]))
		}
		text = j.text
		if body := text[len(bom(text)):]; body != "" && !strings.HasSuffix(body, "\n") {
			text += nl
		}
		return text + indented(doc, "", "  ", nl) + nl, created, nil
	}
	n, left, err := j.walk(parts)
	if err != nil {
		return "", nil, err
	}
	depth := len(parts) - len(left)
	var body string
	switch {
	case len(left) == 0 && n.kind != '[':
		return "", nil, fmt.Errorf("%s is no array", pointer)
	case len(left) == 0:
		body = value
	case n.kind != '{':
		return "", nil, fmt.Errorf("%s is no object", orRoot(join(parts[:depth])))
	default:
		for i := range left {
			created = append(created, join(parts[:depth+i+1]))
		}
		body = wrap(left[1:], value)
	}
	return j.insert(n, left, body), created, nil
}

// wrap puts a value into an array, and that into objects of these names.
func wrap(names []string, value string) string {
	value = "[" + value + "]"
	for i := len(names) - 1; i >= 0; i-- {
		value = "{" + quote(names[i]) + ":" + value + "}"
	}
	return value
}

func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// indented lays a value out over lines, the first one without indentation.
func indented(value, prefix, unit, nl string) string {
	v := jsontext.Value(value).Clone()
	if err := v.Indent(jsontext.WithIndentPrefix(prefix), jsontext.WithIndent(unit)); err != nil {
		return value
	}
	return strings.ReplaceAll(string(v), "\n", nl)
}

// insert puts an item behind the last one of a container, in the manner of its neighbours. left
// names a member to be made, or is empty for an element.
func (j *JSON) insert(n *node, left []string, body string) string {
	t := j.text
	nl := newline(t)
	outer := lineIndent(t, n.start)
	unit := j.unit()
	inner := outer + unit
	var lines bool
	if len(n.items) > 0 {
		last := n.items[len(n.items)-1].start
		lines = strings.Contains(t[n.start:last], "\n")
		if ind := lineIndent(t, last); lines && strings.TrimSpace(t[lineStart(t, last):last]) == "" {
			inner = ind
		}
	} else if !strings.Contains(t[j.root.start:j.root.end], "\n") {
		lines = n == j.root // a document on one line stays there, an empty one need not
	} else {
		lines = true
	}
	key := ""
	if len(left) > 0 {
		key = quote(left[0]) + ": "
	}
	text := key + body
	if lines {
		text = key + indented(body, inner, unit, nl)
	}
	if len(n.items) == 0 {
		at := lastToken(t, n.start+1, n.end-1)
		switch {
		case !lines:
			return t[:at] + text + t[at:]
		case strings.Contains(t[at:n.end], "\n"):
			return t[:at] + nl + inner + text + t[at:]
		}
		return t[:at] + nl + inner + text + nl + outer + t[at:]
	}
	end := n.items[len(n.items)-1].value.end
	p := &parser{text: t, at: end}
	p.skip()
	lead := " "
	if lines {
		lead = nl + inner
	}
	if p.peek() == ',' { // the manner of this file: a comma behind the last one too
		at := p.at + 1
		if lines {
			at = sameLine(t, at)
		}
		return t[:at] + lead + text + "," + t[at:]
	}
	at := end
	if lines { // else a comment that follows would swallow it
		at = sameLine(t, end)
	}
	return t[:end] + "," + t[end:at] + lead + text + t[at:]
}

// unit is one step of the document's indentation.
func (j *JSON) unit() string {
	if len(j.root.items) > 0 {
		at := j.root.items[0].start
		if start := lineStart(j.text, at); start > j.root.start && strings.TrimSpace(j.text[start:at]) == "" && at > start {
			return strings.TrimPrefix(j.text[start:at], lineIndent(j.text, j.root.start))
		}
	}
	return "  "
}

func lineStart(t string, at int) int {
	start := strings.LastIndexByte(t[:at], '\n') + 1
	if start == 0 {
		start = len(bom(t))
	}
	return start
}

// lineIndent is the white space at the front of the line.
func lineIndent(t string, at int) string {
	line := t[lineStart(t, at):at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// lastToken is the end of the last comment between two places without values, or the first place.
func lastToken(t string, from, to int) int {
	end := to
	for end > from && isSpace(t[end-1]) {
		end--
	}
	return end
}

// sameLine is the end of a comment that follows on the same line, or the place itself.
func sameLine(t string, at int) int {
	i := at
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	rest := t[i:]
	switch {
	case strings.HasPrefix(rest, "//"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return i + len(strings.TrimRight(rest[:end], "\r"))
		}
		return len(t)
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest, "*/")
		if end >= 0 && !strings.Contains(rest[:end], "\n") {
			return i + end + 2
		}
	}
	return at
}

// Remove takes out the element or member that a pointer names, with one comma.
func (j *JSON) Remove(pointer string) (string, error) {
	parts := split(pointer)
	if j.root == nil || len(parts) == 0 {
		return "", fmt.Errorf("%s is not there", orRoot(pointer))
	}
	n, left, err := j.walk(parts[:len(parts)-1])
	if err != nil {
		return "", err
	}
	at := -1
	if len(left) == 0 {
		for i, it := range n.items {
			if n.kind == '{' && it.key == parts[len(parts)-1] || n.kind == '[' && strconv.Itoa(i) == parts[len(parts)-1] {
				at = i
			}
		}
	}
	if at < 0 {
		return "", fmt.Errorf("%s is not there", pointer)
	}
	t := j.text
	it := n.items[at]
	start, end := it.start, it.value.end
	for start > n.start+1 && isSpace(t[start-1]) {
		start--
	}
	p := &parser{text: t, at: end}
	p.skip()
	if p.peek() == ',' {
		next := p.at + 1
		if at == 0 && start == it.start { // the next one stands where this one stood
			if i := next + len(t[next:]) - len(strings.TrimLeft(t[next:], " \t")); len(n.items) > 1 && i == n.items[1].start {
				next = i
			}
		}
		return t[:start] + t[end:p.at] + t[next:], nil
	}
	if at > 0 {
		q := &parser{text: t, at: n.items[at-1].value.end}
		q.skip()
		return t[:q.at] + t[q.at+1:start] + t[end:], nil
	}
	// It was the only one: what is left of white space is closed up.
	out := t[:start] + t[end:]
	rest := strings.TrimLeft(out[start:], " \t\r\n")
	if start == n.start+1 {
		return out[:start] + rest, nil
	}
	return out, nil
}

// Empty reports that a pointer names an array or object without anything in it, comments included.
func (j *JSON) Empty(pointer string) bool {
	if j.root == nil {
		return false
	}
	n, left, err := j.walk(split(pointer))
	if err != nil || len(left) > 0 || n.kind == 'v' || len(n.items) > 0 {
		return false
	}
	return strings.TrimSpace(j.text[n.start+1:n.end-1]) == ""
}

// Strict is a text as a strict reader wants it: without comments, without a comma behind the last
// element, without a byte order mark. A text that ParseJSON refuses comes back as it is, to be
// refused there.
func Strict(text string) string {
	j, err := ParseJSON(text)
	if err != nil || j.root == nil {
		return text
	}
	var b strings.Builder
	var write func(n *node)
	write = func(n *node) {
		if n.kind == 'v' {
			b.WriteString(text[n.start:n.end])
			return
		}
		b.WriteByte(n.kind)
		for i, it := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.kind == '{' {
				b.WriteString(quote(it.key) + ":")
			}
			write(it.value)
		}
		b.WriteByte(n.kind + 2) // ] and } stand two behind their openings
	}
	write(j.root)
	return b.String()
}
