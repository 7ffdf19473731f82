package owner

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/integrations"
)

// Presence answers whether a conversation exists. Never a way to choose one.
type Presence string

const (
	Present    Presence = "present"
	Absent     Presence = "absent"
	Begun      Presence = "begun" // no conversation, but the store has something under its id: a stub, an empty file
	CannotTell Presence = "cannot tell"
)

// Missing reports that there is no conversation, whatever else stands in the store.
func (p Presence) Missing() bool { return p == Absent || p == Begun }

// Bounds of one probe.
const (
	maxHead    = 1 << 20  // bytes of a transcript's first line
	maxSearch  = 32 << 20 // bytes searched for Transcript.Contains, over all matches
	maxMatches = 64       // files of one id
)

// Probe looks for the id's conversation in the template's transcript store, as the pane's
// environment names it. detail says what was looked at, with size and time for a person.
//
// Several files may match (a stub beside the conversation): it is present if any of them proves
// it. What cannot be read makes it CannotTell, unless another file proves it; so does a template
// without a transcript. A store that is not there at all is Absent.
//
// A file of zero bytes, as a power cut leaves it, is Begun, and the detail says so. The CLIs
// refuse to resume it, so the pane gets a placeholder with these words where a conversation had
// been seen; CannotTell would start an agent that only exits.
func Probe(t *integrations.Template, id string, env integrations.Env) (p Presence, detail string) {
	if t == nil || t.Transcript == nil {
		return CannotTell, "its template names no transcript"
	}
	if err := t.CheckID(id); err != nil {
		return CannotTell, err.Error()
	}
	return probe(t.Transcript, id, env)
}

func probe(tr *integrations.Transcript, id string, env integrations.Env) (Presence, string) {
	root, err := expandRoot(tr.Root, env)
	if err != nil {
		return CannotTell, err.Error()
	}
	patterns := tr.Patterns(root, id)
	if len(patterns) == 0 {
		return CannotTell, "its id cannot be part of a file's name"
	}
	budget := int64(maxSearch)
	var doubts, empties, others []string
	for _, pattern := range patterns {
		matches, err := glob(pattern, maxMatches)
		if err != nil {
			doubts = append(doubts, err.Error())
		}
		for _, path := range matches {
			p, detail := proves(tr, id, path, &budget)
			switch {
			case p == Present:
				return Present, detail
			case p == CannotTell:
				doubts = append(doubts, detail)
			case strings.HasSuffix(detail, emptyFile):
				empties = append(empties, detail)
			default:
				others = append(others, detail)
			}
		}
	}
	switch {
	case len(doubts) > 0:
		return CannotTell, first(doubts)
	case len(empties) > 0:
		return Begun, first(empties)
	case len(others) > 0:
		return Begun, first(others)
	}
	return Absent, "nothing at " + display(patterns)
}

const emptyFile = "is empty (0 bytes)"

func first(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("%s (and %d more)", list[0], len(list)-1)
}

func display(patterns []string) string { return strings.Join(patterns, " or ") }

// proves reports whether one file is the id's conversation.
func proves(tr *integrations.Transcript, id, path string, budget *int64) (Presence, string) {
	info, err := os.Stat(path)
	switch {
	case isMissing(err):
		return Absent, path + " leads nowhere"
	case err != nil:
		return CannotTell, err.Error()
	}
	detail := fmt.Sprintf("%s, %d bytes, %s", path, info.Size(), info.ModTime().UTC().Format(time.RFC3339))
	switch {
	case info.IsDir():
		if tr.HeadID != "" || tr.Contains != "" {
			return Absent, path + " is a directory"
		}
		return Present, fmt.Sprintf("%s, %s", path, info.ModTime().UTC().Format(time.RFC3339))
	case !info.Mode().IsRegular():
		return Absent, path + " is not a file"
	case info.Size() == 0:
		return Absent, path + " " + emptyFile
	}
	if tr.HeadID == "" && tr.Contains == "" {
		if !readable(path) {
			return CannotTell, path + " cannot be read"
		}
		return Present, detail
	}
	f, err := openRegular(path)
	if err != nil {
		return CannotTell, err.Error()
	}
	defer f.Close()
	if tr.HeadID != "" {
		line, err := firstLine(f)
		if err != nil {
			return CannotTell, fmt.Sprintf("%s: %v", path, err)
		}
		doc, err := decodeForeign(line)
		if err != nil {
			return CannotTell, fmt.Sprintf("%s: its first line is not JSON", path)
		}
		value, ok := follow(doc, tr.HeadID)
		if !ok {
			return CannotTell, fmt.Sprintf("%s: its first line has no %s", path, tr.HeadID)
		}
		if got, ok := value.(string); !ok || got != id {
			return Absent, path + " is another conversation's"
		}
	}
	if tr.Contains != "" {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return CannotTell, err.Error()
		}
		found, whole, err := contains(f, tr.Contains, budget)
		switch {
		case err != nil:
			return CannotTell, fmt.Sprintf("%s: %v", path, err)
		case found:
		case !whole:
			return CannotTell, fmt.Sprintf("%s is longer than is searched", path)
		default:
			return Absent, path + " holds no reply yet"
		}
	}
	return Present, detail
}

// openRegular opens a file that is a regular one also at the moment of opening: a pipe in its
// place would never answer.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return f, nil
}

func firstLine(r io.Reader) ([]byte, error) {
	b := bufio.NewReader(io.LimitReader(r, maxHead+1))
	line, err := b.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(line) > maxHead {
		return nil, fmt.Errorf("its first line is longer than %d bytes", maxHead)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// contains searches a stream, and reports whether it was read to its end.
func contains(r io.Reader, text string, budget *int64) (found, whole bool, err error) {
	want := []byte(text)
	buf := make([]byte, 0, 64<<10+len(want))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if bytes.Contains(buf, want) {
			return true, true, nil
		}
		if err == io.EOF {
			return false, true, nil
		}
		if err != nil {
			return false, false, err
		}
		if *budget -= int64(n); *budget <= 0 {
			return false, false, nil
		}
		// The text may lie over the edge of two reads.
		if keep := len(want) - 1; len(buf) > keep {
			buf = append(buf[:0], buf[len(buf)-keep:]...)
		}
	}
}

// isMissing reports that a path leads to nothing, a circle of links included: there is no file
// that anybody could read.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// expandRoot gives an absolute root or says why there is none: a relative one depends on the
// directory of a process that may not run.
func expandRoot(root string, env integrations.Env) (string, error) {
	path, err := integrations.ExpandRoot(root, env)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("the store %q is not an absolute path", path)
	}
	return filepath.Clean(path), nil
}

// Store fingerprints the expanded transcript root, so that a changed configuration directory
// is seen: its path with links resolved, so that a verdict can name it; a hash where the path is
// longer than a record may hold or has characters that it may not. Empty where the template has
// no transcript, or its root cannot be expanded.
func Store(t *integrations.Template, env integrations.Env) string {
	if t == nil || t.Transcript == nil {
		return ""
	}
	root, err := expandRoot(t.Transcript.Root, env)
	if err != nil {
		return ""
	}
	root = resolve(root)
	const most = 120 // metadata.MaxID: what LaunchFacts.Store holds
	if len(root) <= most && utf8.ValidString(root) && strings.TrimSpace(root) == root && strings.IndexFunc(root, unicode.IsControl) < 0 {
		return root
	}
	h := sha256.Sum256([]byte(root))
	return "sha256:" + hex.EncodeToString(h[:16])
}

// resolve follows the links of a path as far as it exists: a store that is not there yet has the
// name that it will have.
func resolve(path string) string {
	rest := ""
	for dir := path; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = up
	}
}
