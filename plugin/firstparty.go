package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/phux-agent/phux-agent/internal/dirs"
)

// embeddedFile is one file of the first-party package.
type embeddedFile struct {
	path string // slash-separated, relative
	data []byte
}

func (f embeddedFile) mode() fs.FileMode {
	if strings.HasPrefix(f.path, "scripts/") {
		return 0o700
	}
	return 0o600
}

// firstParty makes the package in the binary an ordinary one on disk, so that scripts of it can
// run and nothing else needs to know it, and lists it.
func (l *loader) firstParty() {
	src := l.src.Builtin
	if src == nil {
		if src = builtin(); src == nil {
			return
		}
	}
	p := Plugin{ID: FirstParty, Origin: Embedded}
	root, err := materialise(src, filepath.Join(l.src.DataDir, "first-party"))
	p.Root = root
	if err == nil {
		p.Root, err = l.check.Check(root)
	}
	if err != nil {
		p.Err = fmt.Errorf("first-party plugin: %w", err)
		files, _ := fs.Glob(src, integrationsDir+"/*.toml")
		for _, f := range files {
			p.Integrations = append(p.Integrations, Integration{ID: stem(filepath.Base(f)), File: filepath.Join(root, f), Err: p.Err})
		}
	} else {
		l.roots[p.Root] = true
		l.read(&p)
	}
	l.list(p)
}

// materialise writes the package to base/<digest of its content> and returns that directory. A
// complete one is only compared; it is written whole under another name and renamed, and a file
// of it that differs is replaced.
func materialise(src fs.FS, base string) (string, error) {
	files, digest, err := collect(src)
	if err != nil {
		return "", err
	}
	root := filepath.Join(base, digest)
	if err := repair(root, files); !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := dirs.Private(base); err != nil {
		return root, err
	}
	tmp, err := os.MkdirTemp(base, ".new-") // 0700
	if err != nil {
		return root, err
	}
	defer os.RemoveAll(tmp) // gone already after the rename
	if err := repairFiles(tmp, files); err != nil {
		return root, err
	}
	err = os.Rename(tmp, root)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return root, repair(root, files)
	}
	if err != nil {
		return root, err
	}
	return root, syncDir(base)
}

func collect(src fs.FS) ([]embeddedFile, string, error) {
	var files []embeddedFile
	sum := sha256.New()
	err := fs.WalkDir(src, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path != ManifestFile && !strings.HasPrefix(path, integrationsDir+"/") && !strings.HasPrefix(path, "scripts/") {
			return nil
		}
		b, err := fs.ReadFile(src, path)
		if err != nil {
			return err
		}
		files = append(files, embeddedFile{path, b})
		fmt.Fprintf(sum, "%d %s %d\n", len(path), path, len(b))
		sum.Write(b)
		return nil
	})
	return files, hex.EncodeToString(sum.Sum(nil))[:32], err
}

// repair makes the directory hold exactly the package's bytes. fs.ErrNotExist where there is no
// such directory.
func repair(root string, files []embeddedFile) error {
	info, err := os.Lstat(root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &TrustError{Path: root, Owner: -1, Mode: info.Mode(), Why: "is not a directory"}
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(root, 0o700); err != nil {
			return err
		}
	}
	if err := repairFiles(root, files); err != nil {
		return err
	}
	// A template that does not belong to the package would be listed as one of it.
	names, err := templates(root)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !contains(files, integrationsDir+"/"+n) {
			if err := os.Remove(filepath.Join(root, integrationsDir, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func contains(files []embeddedFile, path string) bool {
	for _, f := range files {
		if f.path == path {
			return true
		}
	}
	return false
}

func repairFiles(root string, files []embeddedFile) error {
	changed := make(map[string]bool)
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		if intact(path, f) {
			continue
		}
		dir := filepath.Dir(path)
		if err := ownDir(root, dir); err != nil {
			return err
		}
		if err := replace(path, f); err != nil {
			return err
		}
		for d := dir; ; d = filepath.Dir(d) {
			changed[d] = true
			if d == root {
				break
			}
		}
	}
	for d := range changed {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// ownDir makes a directory below root a real one, private; a link in its place is removed.
func ownDir(root, dir string) error {
	if dir == root {
		return nil
	}
	if err := ownDir(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return dirs.Private(dir)
}

// intact reports whether path is the file, byte for byte, private, and reached without a link.
func intact(path string, f embeddedFile) bool {
	for _, at := range []string{filepath.Dir(path), path} {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&0o077 != 0 {
			return false
		}
		if at == path && (info.Size() != int64(len(f.data)) || info.Mode() != f.mode()) {
			return false
		}
	}
	b, err := os.ReadFile(path)
	return err == nil && bytes.Equal(b, f.data)
}

func replace(path string, f embeddedFile) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(f.data)
	if err == nil {
		err = tmp.Chmod(f.mode())
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
