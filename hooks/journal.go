package hooks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// journal is what an install leaves, so that an uninstall can put back what was there. It is of
// one file and one integration; the file's earlier bytes stand beside it.
type journal struct {
	Path    string   `json:"path"`
	Existed bool     `json:"existed"`
	Before  string   `json:"before"` // digests of the file's bytes
	After   string   `json:"after"`
	Created []string `json:"created,omitempty"` // pointers of the containers that were made
	Made    []string `json:"made,omitempty"`    // directories
}

func (e Env) journalPath(ed *Edit) string {
	return filepath.Join(e.State, digest(ed.Integration + "\x00" + ed.file.Target)[:32])
}

const maxJournal = 64 << 10

// journal returns what the last install left, nil where there is nothing that can be read.
func (e Env) journal(ed *Edit) *journal {
	path := e.journalPath(ed) + ".json"
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxJournal {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var j journal
	if json.Unmarshal(b, &j) != nil || j.Path != ed.file.Target {
		return nil
	}
	return &j
}

// note keeps the file's bytes and what the install is about to make of them. An earlier install
// of the same file is continued: what it was before that one is what an uninstall goes back to.
func (e Env) note(ed *Edit, made []string) error {
	j := journal{
		Path: ed.file.Target, Existed: ed.file.Exists, Before: digest(ed.Before), After: digest(ed.After), Created: ed.created, Made: made,
	}
	keep := ed.Before
	if old := e.journal(ed); old != nil && (old.After == j.Before || old.After == j.After) {
		j.Existed, j.Before = old.Existed, old.Before
		j.Created = append(old.Created, ed.created...)
		if made == nil {
			j.Made = old.Made
		}
		if b, err := os.ReadFile(e.journalPath(ed) + ".orig"); err == nil && digest(string(b)) == old.Before {
			keep = string(b)
		}
	} else if ed.State != Missing && ed.State != Elsewhere {
		// Calls of ours stand in it, and the file is not as we left it: no bytes to go back to. What
		// an earlier install made around them is still known.
		if old == nil {
			return e.forget(ed)
		}
		j.Existed, j.Before, j.After = old.Existed, "", ""
		j.Created = append(old.Created, ed.created...)
		if made == nil {
			j.Made = old.Made
		}
		keep = ""
	}
	return e.writeJournal(ed, &j, keep)
}

func (e Env) writeJournal(ed *Edit, j *journal, keep string) error {
	if err := atomicfile.MkdirAll(e.State); err != nil {
		return err
	}
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(e.journalPath(ed)+".orig", []byte(keep)); err != nil {
		return err
	}
	return atomicfile.Replace(e.journalPath(ed)+".json", append(b, '\n'))
}

func (e Env) restoreNote(ed *Edit, old *journal) error {
	if old == nil {
		return e.forget(ed)
	}
	return nil // its digest says that it is not of this state of the file
}

func (e Env) forget(ed *Edit) error {
	var errs []error
	for _, ext := range []string{".json", ".orig"} {
		if err := os.Remove(e.journalPath(ed) + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// exactly makes an uninstall put back the very bytes that were there, where nobody has written
// the file since the install.
func (e Env) exactly(ed *Edit) {
	j := e.journal(ed)
	if j == nil || j.After != digest(ed.Before) {
		return
	}
	b, err := os.ReadFile(e.journalPath(ed) + ".orig")
	if err != nil || digest(string(b)) != j.Before {
		return
	}
	ed.After, ed.Remove = string(b), !j.Existed
}
