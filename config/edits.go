package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"
	"github.com/gofrs/flock"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/trust"
)

// Edits is what verbs write.
type Edits struct {
	Plugins         []string `toml:"plugins"`
	OffPlugins      []string `toml:"disabled_plugins"`
	OffIntegrations []string `toml:"disabled_integrations"`
}

const editsHeader = "# Written by `phux-agent plugin` and `phux-agent integration`. Your own settings go into " + File + ".\n"

func decodeEdits(file string, b []byte) (Edits, error) {
	var e Edits
	s := source{file: file, text: string(b)}
	keys, err := s.parse(&e)
	if err != nil {
		return Edits{}, err
	}
	if err := s.check(keys, map[string][]string{"": {"plugins", "disabled_plugins", "disabled_integrations"}}); err != nil {
		return Edits{}, err
	}
	for _, p := range e.Plugins {
		if !filepath.IsAbs(p) {
			return Edits{}, s.fail(toml.Key{"plugins"}, "write an absolute path", "plugin path %q is relative", p)
		}
	}
	return e, nil
}

// Edit changes the verbs' own file, durably and under a lock: two verbs at once both take
// effect. change sees the file as it is and edits it in place; where it returns an error nothing
// is written. A file that cannot be read is not replaced.
func Edit(dir string, change func(*Edits) error) error {
	path := filepath.Join(dir, EditsFile)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	var check trust.Checker
	if _, err := check.Check(dir); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer lock.Unlock()
	b, _, err := read(&check, path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	e, err := decodeEdits(path, b)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if err := change(&e); err != nil {
		return err
	}
	for _, list := range []*[]string{&e.Plugins, &e.OffPlugins, &e.OffIntegrations} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	var out bytes.Buffer
	out.WriteString(editsHeader)
	enc := toml.NewEncoder(&out)
	enc.Indent = ""
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if bytes.Equal(out.Bytes(), b) {
		return nil
	}
	if err := atomicfile.Replace(path, out.Bytes()); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return nil
}
