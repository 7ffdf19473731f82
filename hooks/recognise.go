package hooks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/phux-agent/phux-agent/internal/foreign"
)

// whose says which phux-agent a call starts.
type whose int

const (
	ours   whose = iota + 1 // this one, whatever the spelling of its path
	gone                    // one that is not there any more
	others                  // another one
)

// call is one call of `phux-agent hook` in a file of another program.
type call struct {
	pointer string // to the string that holds it
	program string
	event   string
	whose   whose
}

// name is what every phux-agent is called.
const name = "phux-agent"

// command is the shell's command line that calls us.
func (e Env) command(integration string) string {
	return shellWord(e.Program) + " hook " + shellWord(integration)
}

// shellWord quotes a word where a shell would take it apart.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+=@%:,", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// calls finds what calls `phux-agent hook INTEGRATION` below a pointer, in order.
func (e Env) calls(j *foreign.JSON, pointer, integration string) []call {
	var out []call
	j.Strings(pointer, func(at, value string) {
		words, ok := shellWords(value)
		if !ok || len(words) < 3 || len(words) > 4 || words[1] != "hook" || words[2] != integration || !e.named(words[0]) {
			return
		}
		c := call{pointer: at, program: words[0], whose: e.whose(words[0])}
		if len(words) == 4 {
			c.event = words[3]
		}
		out = append(out, c)
	})
	return out
}

func (e Env) named(program string) bool {
	base := filepath.Base(program)
	return base == name || base == filepath.Base(e.Program)
}

// whose compares programs by what they are, not by how they are spelled.
func (e Env) whose(program string) whose {
	at := program
	home, _ := e.Getenv("HOME")
	for _, prefix := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(at, prefix); ok && home != "" {
			at = filepath.Join(home, rest)
		}
	}
	if !strings.Contains(at, "/") {
		path, _ := e.Getenv("PATH")
		for _, dir := range filepath.SplitList(path) {
			if info, err := os.Stat(filepath.Join(dir, at)); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() {
				at = filepath.Join(dir, at)
				break
			}
		}
	}
	if filepath.Clean(at) == filepath.Clean(e.Program) {
		return ours
	}
	there, err := os.Stat(at)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return gone
		}
		return others
	}
	if self, err := os.Stat(e.Program); err == nil && os.SameFile(there, self) {
		return ours
	}
	return others
}

// shellWords takes a plain command line apart, as a shell would; false where it is more than one
// simple command.
func shellWords(s string) ([]string, bool) {
	var words []string
	var b strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
			in = true
		case '"':
			in = true
			for i++; ; i++ {
				if i >= len(s) {
					return nil, false
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`", s[i+1]) >= 0 {
					i++
				}
				b.WriteByte(s[i])
			}
		case '\\':
			if i++; i >= len(s) {
				return nil, false
			}
			b.WriteByte(s[i])
			in = true
		case ';', '|', '&', '<', '>', '(', ')', '`', '\n', '#':
			return nil, false
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words, true
}

var inQuotes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// programsIn finds the phux-agents that a text of ours calls: a quoted string that is its path, or
// a command line.
func programsIn(text string) []string {
	var out []string
	for _, q := range inQuotes().FindAllString(text, -1) {
		s, err := strconv.Unquote(q)
		if err != nil {
			continue
		}
		program := s
		if words, ok := shellWords(s); ok && len(words) > 1 && words[1] == "hook" {
			program = words[0]
		}
		if filepath.IsAbs(program) && strings.HasPrefix(filepath.Base(program), name) && !slices.Contains(out, program) {
			out = append(out, program)
		}
	}
	return out
}
