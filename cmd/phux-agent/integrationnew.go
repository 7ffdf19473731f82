package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/plugin"
)

func (a *app) integrationNew() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Write the skeleton of a plugin with one integration",
		Long: `Write the skeleton of a plugin with one integration: its manifest, and a template
whose comments say what each key is for. It loads as it is; lint names what is to
be filled in. Nothing that exists is overwritten.`,
		Example: `  phux-agent integration new my-agent
  phux-agent integration new my-agent --dir ~/src/phux-my-agent`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("dir") && dir == "" {
				return usage(cmd, "--dir needs a directory")
			}
			return a.integrationNewAt(cmd, args[0], dir)
		},
		Annotations: exits("0 written", "1 it exists already, or cannot be written", "2 usage"),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write it to `DIR` (default: a directory called ID)")
	return cmd
}

func (a *app) integrationNewAt(cmd *cobra.Command, id, dir string) error {
	files, err := integrations.Skeleton(id)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if dir == "" {
		dir = id
	}
	if dir, err = a.abs(dir); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names { // looked at first, so that a refusal leaves nothing behind
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return &takenError{Path: path, Err: err}
		}
	}
	for _, name := range names {
		if err := create(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
			return err
		}
	}
	template := filepath.Join(dir, "integrations", id+".toml")
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			ID            string `json:"id"`
			Dir           string `json:"dir"`
			Template      string `json:"template"`
		}{schemaVersion, id, dir, template})
	}
	a.say("wrote %s", a.tilde(filepath.Join(dir, plugin.ManifestFile)))
	a.say("wrote %s", a.tilde(template))
	a.say("next:")
	a.say("  fill it in, then  phux-agent integration lint %s", shellQuote(template))
	a.say("  install it:       phux-agent plugin add %s", shellQuote(dir))
	a.say("  rehearse it:      phux-agent integration test %s", id)
	return nil
}

// create writes a file that is not there yet.
func create(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("new integration: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &takenError{Path: path, Err: err}
	}
	if err != nil {
		return fmt.Errorf("new integration: %w", err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("new integration: %w", err)
	}
	return nil
}

// takenError is a place where something stands already.
type takenError struct {
	Path string
	Err  error // nil where it is simply there
}

func (e *takenError) Error() string {
	if e.Err != nil && !errors.Is(e.Err, fs.ErrExist) {
		return fmt.Sprintf("new integration: %v", e.Err)
	}
	return fmt.Sprintf("new integration: %s exists, and is not overwritten", e.Path)
}

func (e *takenError) Unwrap() error { return e.Err }
