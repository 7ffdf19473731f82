package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ProgramError says that a program cannot be run, and where it was looked for.
type ProgramError struct {
	Name string
	Path string // the PATH that was searched; empty where the name held a slash
	Why  string
}

func (e *ProgramError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("find program %q: %s", e.Name, e.Why)
	}
	return fmt.Sprintf("find program %q: %s (PATH=%s)", e.Name, e.Why, e.Path)
}

// LookProgram resolves argv[0] once, absolute, by a PATH whose relative and empty entries are
// skipped: those mean the current project. A name with a slash must be absolute, as a template's
// ${PHUX_PLUGIN_ROOT} makes it. The error is a *ProgramError, which names the PATH used.
func LookProgram(name, path string) (string, error) {
	switch {
	case name == "":
		return "", &ProgramError{Why: "the name is empty"}
	case strings.ContainsRune(name, 0):
		return "", &ProgramError{Name: name, Why: "the name holds a NUL"}
	case filepath.IsAbs(name):
		if why := runnable(name); why != "" {
			return "", &ProgramError{Name: name, Why: why}
		}
		return filepath.Clean(name), nil
	case strings.Contains(name, "/"):
		return "", &ProgramError{Name: name, Why: "a path must be absolute, or begin with ${PHUX_PLUGIN_ROOT}"}
	}
	why := "it is in no directory of PATH"
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		at := filepath.Join(dir, name)
		w := runnable(at)
		if w == "" {
			return at, nil
		}
		if w != absent {
			why = at + " " + w
		}
	}
	if path == "" {
		why = "PATH is empty"
	}
	return "", &ProgramError{Name: name, Path: path, Why: why}
}

const absent = "is not there"

func runnable(path string) string {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return absent
	case err != nil:
		return "cannot be looked at: " + err.Error()
	case info.IsDir():
		return "is a directory"
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case unix.Access(path, unix.X_OK) != nil || info.Mode().Perm()&0o111 == 0:
		return "is not executable"
	}
	return ""
}
