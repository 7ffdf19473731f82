package owner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxEntries bounds the names that are read of one directory, and of all of one pattern.
const maxEntries = 1 << 17

var errTooMany = errors.New("too many files match")

// glob returns the paths that a pattern matches, as path.Match reads it (a backslash escapes), at
// most max of them and in no order that means anything. What it could not look into is an error
// beside the matches: then their absence proves nothing.
func glob(pattern string, max int) ([]string, error) {
	g := globber{max: max, budget: maxEntries}
	rest := strings.TrimPrefix(path.Clean(pattern), "/")
	g.walk("/", strings.Split(rest, "/"))
	return g.found, g.err
}

type globber struct {
	max, budget int
	found       []string
	err         error
}

func (g *globber) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

func (g *globber) walk(dir string, parts []string) {
	for len(parts) > 0 {
		name, literal := unescape(parts[0])
		if !literal {
			break
		}
		dir, parts = filepath.Join(dir, name), parts[1:]
	}
	if len(parts) == 0 {
		_, err := os.Lstat(dir)
		switch {
		case isMissing(err):
		case err != nil:
			g.fail(err)
		case len(g.found) >= g.max:
			g.fail(errTooMany)
		default:
			g.found = append(g.found, dir)
		}
		return
	}
	names, err := g.list(dir)
	if err != nil {
		g.fail(err)
	}
	for _, name := range names {
		if ok, err := path.Match(parts[0], name); err != nil {
			g.fail(fmt.Errorf("pattern %q: %w", parts[0], err))
			return
		} else if ok {
			g.walk(filepath.Join(dir, name), parts[1:])
		}
		if errors.Is(g.err, errTooMany) {
			return
		}
	}
}

func (g *globber) list(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, directoryOnly, 0)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(g.budget + 1)
	if err != nil && err != io.EOF {
		return names, err
	}
	if len(names) > g.budget {
		return nil, errTooMany
	}
	g.budget -= len(names)
	return names, nil
}

// unescape returns a pattern element as the name that it is, if it is one.
func unescape(part string) (name string, literal bool) {
	if !strings.ContainsAny(part, `*?[\`) {
		return part, true
	}
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(part) {
				return "", false
			}
		}
		b.WriteByte(part[i])
	}
	return b.String(), true
}
