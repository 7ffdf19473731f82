package integrations

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Env looks a name up in the environment of the pane in question, not in ours.
type Env func(name string) (value string, ok bool)

// UnsetError says which variable a root needs and the environment lacks.
type UnsetError struct{ Name string }

func (e *UnsetError) Error() string { return e.Name + " is not set" }

// ExpandRoot expands a transcript root or a required file: ${NAME}, ${NAME:-default} (a
// default may hold more of them), and a ~ that the template itself put at the front. A variable
// that is empty counts as unset, and its value is taken as it is, without ~. The result is
// absolute and clean, or an error; an *UnsetError where a variable without default is missing.
func ExpandRoot(root string, env Env) (string, error) {
	out, err := expandRoot(root, env)
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", quote(root), err)
	}
	return out, nil
}

func expandRoot(root string, env Env) (string, error) {
	out, err := expand(root, env, true, 0)
	switch {
	case err != nil:
		return "", err
	case strings.IndexByte(out, 0) >= 0:
		return "", errors.New("a path holds no NUL")
	case !path.IsAbs(out):
		return "", fmt.Errorf("%s is not an absolute path", quote(out))
	}
	return path.Clean(out), nil
}

// expand expands text; front says that it stands at the front of the path.
func expand(text string, env Env, front bool, depth int) (string, error) {
	if depth > 4 {
		return "", errors.New("defaults are nested too deeply")
	}
	var out strings.Builder
	if front && strings.HasPrefix(text, "~") {
		if text != "~" && text[1] != '/' {
			return "", errors.New("~ is followed by / alone: no other user's home")
		}
		home, ok := env("HOME")
		if !ok || home == "" {
			return "", &UnsetError{"HOME"}
		}
		out.WriteString(home)
		text = text[1:]
	}
	for text != "" {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		if text = text[i:]; !strings.HasPrefix(text, "${") {
			return "", errors.New("a variable is written ${NAME}")
		}
		end := closing(text)
		if end < 0 {
			return "", errors.New("${ is not closed")
		}
		name, fallback, has := strings.Cut(text[2:end], ":-")
		if !envName(name) {
			return "", fmt.Errorf("%s is not the name of an environment variable", quote(name))
		}
		value, _ := env(name)
		if value == "" {
			if !has {
				return "", &UnsetError{name}
			}
			var err error
			if value, err = expand(fallback, env, front && out.Len() == 0, depth+1); err != nil {
				return "", err
			}
		}
		out.WriteString(value)
		text = text[end+1:]
	}
	return out.String(), nil
}

// closing finds the brace that closes the ${ at the front of text.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			depth++
		case text[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// checkRoot checks the form: absolute with every variable set, and with none of them.
func checkRoot(root string) error {
	all := func(string) (string, bool) { return "/x", true }
	none := func(name string) (string, bool) {
		if name == "HOME" {
			return "/x", true
		}
		return "", false
	}
	if _, err := expandRoot(root, all); err != nil {
		return err
	}
	var unset *UnsetError
	if _, err := expandRoot(root, none); err != nil && !errors.As(err, &unset) {
		return err
	}
	return nil
}

// piece is one part of a path below a root: literal text, or a slot.
type piece struct {
	kind byte // 'l' literal, '*', '?', 'i' id, 'p' pid
	text string
	n    int // of an id: its first n bytes; 0: all
}

var pathSlot = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\*|\?|\$\{PHUX_AGENT_SESSION_ID(?::([1-9][0-9]?))?\}|\$\{PID\}`)
})

// splitPath reads a path of [transcript] or [[observe]]; root allows a leading ${root}/.
func splitPath(value string, root bool) ([]piece, error) {
	if root {
		value = strings.TrimPrefix(value, "${root}/")
	}
	switch {
	case value == "":
		return nil, errors.New("is empty")
	case strings.HasPrefix(value, "/"), strings.HasPrefix(value, "~"):
		return nil, errors.New("is not relative to the root")
	case path.Clean(value) != value || strings.Contains("/"+value+"/", "/../"):
		return nil, errors.New("has .., . or empty parts")
	case strings.ContainsAny(value, "\\[]\x00"):
		return nil, errors.New(`holds \, [, ] or NUL`)
	}
	var pieces []piece
	rest := value
	for rest != "" {
		at := pathSlot().FindStringSubmatchIndex(rest)
		lit := rest
		if at != nil {
			lit = rest[:at[0]]
		}
		if strings.Contains(lit, "${") {
			return nil, errors.New("holds a slot that is not known: " + slotID + ", " + slotIDOpen + ":8}" + ", ${PID}")
		}
		if lit != "" {
			pieces = append(pieces, piece{kind: 'l', text: lit})
		}
		if at == nil {
			break
		}
		switch slot := rest[at[0]:at[1]]; {
		case slot == "*" || slot == "?":
			pieces = append(pieces, piece{kind: slot[0]})
		case slot == "${PID}":
			if !root {
				return nil, errors.New("holds ${PID}: a conversation outlives its process")
			}
			pieces = append(pieces, piece{kind: 'p'})
		default:
			p := piece{kind: 'i'}
			if at[2] >= 0 {
				p.n, _ = strconv.Atoi(rest[at[2]:at[3]])
			}
			pieces = append(pieces, p)
		}
		rest = rest[at[1]:]
	}
	return pieces, nil
}

type slots struct {
	ids, pids int
	short     bool // an id is shortened
	loose     bool // an id shares a name with * or ?, so that it cannot be read back
}

func countSlots(pieces []piece) *slots {
	s := &slots{}
	id, wild := false, false // in the current name
	for _, p := range pieces {
		switch p.kind {
		case 'i':
			s.ids++
			s.short = s.short || p.n > 0
			id = true
		case 'p':
			s.pids++
		case '*', '?':
			wild = true
		case 'l':
			if i := strings.LastIndexByte(p.text, '/'); i >= 0 {
				id, wild = false, false
			}
		}
		s.loose = s.loose || id && wild
	}
	return s
}

// glob writes the pieces as a pattern of filepath.Glob. Everything but the template's own * and
// ? is escaped: the root comes from an environment, the id from a record.
func glob(root string, pieces []piece, pid int, id string) string {
	var b strings.Builder
	b.WriteString(escapeGlob(strings.TrimRight(root, "/")))
	b.WriteByte('/')
	for _, p := range pieces {
		switch {
		case p.kind == 'l':
			b.WriteString(escapeGlob(p.text))
		case p.kind == 'p' && pid > 0:
			b.WriteString(strconv.Itoa(pid))
		case p.kind == 'p':
			b.WriteString("[0-9]*")
		case p.kind == 'i' && id != "":
			b.WriteString(escapeGlob(shorten(id, p.n)))
		case p.kind == '?':
			b.WriteByte('?')
		default:
			b.WriteByte('*')
		}
	}
	return b.String()
}

// shorten returns the first n bytes of an id, and never half a character.
func shorten(id string, n int) string {
	if n <= 0 || n >= len(id) {
		return id
	}
	for n > 0 && !utf8.RuneStart(id[n]) {
		n--
	}
	return id[:n]
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func escapeGlob(s string) string { return globEscaper.Replace(s) }

// Patterns returns the patterns (of filepath.Glob) below an expanded root that an existing
// conversation of this id would match: one for each of Paths, none for an id that cannot be
// part of a file name.
func (c Transcript) Patterns(root, id string) []string {
	if id == "" || !pathSafe(id) {
		return nil
	}
	var out []string
	for _, p := range c.Paths {
		if pieces, err := splitPath(p, false); err == nil {
			out = append(out, glob(root, pieces, 0, id))
		}
	}
	return out
}

// Pattern returns the pattern (of filepath.Glob) below an expanded root that the observed file
// of a process and an id would match. A pid of 0 and an id of "" are unknown, and match any.
// Empty where the observer has no path, or the id cannot be part of a file name.
func (o Observe) Pattern(root string, pid int, id string) string {
	pieces, err := splitPath(o.Path, true)
	if err != nil || id != "" && !pathSafe(id) {
		return ""
	}
	return glob(root, pieces, pid, id)
}

// IDFromPath reads the id out of a path that Pattern(root, pid, "") matched, by the position of
// its slot. False where the observer's path holds no id, or the path is not one of its own.
// The id still has to pass the template's CheckID.
func (o Observe) IDFromPath(root string, pid int, file string) (string, bool) {
	id, _, ok := o.match(root, pid, "", file)
	return id, ok && id != ""
}

// PIDFromPath reads the pid out of a path that Pattern(root, 0, id) matched.
func (o Observe) PIDFromPath(root, id, file string) (int, bool) {
	_, pid, ok := o.match(root, 0, id, file)
	return pid, ok && pid > 0
}

func (o Observe) match(root string, pid int, id, file string) (string, int, bool) {
	pieces, err := splitPath(o.Path, true)
	if err != nil {
		return "", 0, false
	}
	rest, ok := strings.CutPrefix(file, strings.TrimRight(root, "/")+"/")
	if !ok {
		return "", 0, false
	}
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	for _, p := range pieces {
		switch p.kind {
		case 'l':
			b.WriteString(regexp.QuoteMeta(p.text))
		case 'p':
			b.WriteString(`(?P<p>[1-9][0-9]*)`)
		case 'i':
			b.WriteString(`(?P<i>[^/]+)`)
		case '*':
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		}
	}
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return "", 0, false
	}
	m := re.FindStringSubmatch(rest)
	if m == nil {
		return "", 0, false
	}
	// Every slot must say the same, and what the caller knows.
	for i, name := range re.SubexpNames() {
		switch name {
		case "i":
			if id != "" && m[i] != id || !pathSafe(m[i]) {
				return "", 0, false
			}
			id = m[i]
		case "p":
			n, err := strconv.Atoi(m[i])
			if err != nil || pid > 0 && n != pid {
				return "", 0, false
			}
			pid = n
		}
	}
	return id, pid, true
}
