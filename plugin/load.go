package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/trust"
)

// Load reads every package of the source. A broken package does not stop the others: it is
// listed with its error. The first-party package is materialised below DataDir where it is not
// there yet, and repaired where it was changed.
func Load(src Source) (*Registry, error) {
	if !filepath.IsAbs(src.DataDir) {
		return nil, fmt.Errorf("load plugins: data directory %q is not absolute", src.DataDir)
	}
	l := loader{src: src, roots: make(map[string]bool), later: make(map[string]func(*Integration))}
	l.firstParty()
	l.dataDir()
	for _, dir := range src.Added {
		l.add(dir, Added)
	}
	slices.SortStableFunc(l.found, func(a, b Plugin) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Root, b.Root))
	})
	return &Registry{plugins: l.found, allowed: src.Unverified, later: l.later}, nil
}

// LoadDir reads one directory as a package, whatever its place: for `plugin add` and `plugin
// validate`. The path is absolute.
func LoadDir(dir string) Plugin {
	l := loader{roots: make(map[string]bool)}
	l.add(dir, Added)
	return l.found[0]
}

type loader struct {
	src   Source
	check trust.Checker
	roots map[string]bool
	found []Plugin
	later map[string]func(*Integration)
}

func (l *loader) dataDir() {
	dir := filepath.Join(l.src.DataDir, "plugins")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.list(Plugin{ID: filepath.Base(dir), Root: dir, Origin: Data, Err: err})
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue // a stray file is not a package
		}
		l.add(path, Data)
	}
}

// add reads the package in dir and lists it. The same directory by two names is one package.
func (l *loader) add(dir, origin string) {
	p := Plugin{ID: filepath.Base(dir), Root: dir, Origin: origin}
	if !filepath.IsAbs(dir) {
		p.Err = fmt.Errorf("plugin %s: the path is relative, and packages never come from the current project", dir)
		l.list(p)
		return
	}
	if filepath.Base(dir) == ManifestFile { // as phux's configuration names packages
		dir = filepath.Dir(dir)
		p.ID, p.Root = filepath.Base(dir), dir
	}
	root, err := l.check.Check(dir)
	if err != nil {
		p.Err = fmt.Errorf("plugin %s: %w", dir, err)
		var te *TrustError
		if errors.As(err, &te) {
			// Named so that `untrusted` can be said of its integrations; nothing in it is read.
			names, _ := templates(dir)
			for _, n := range names {
				p.Integrations = append(p.Integrations, Integration{ID: stem(n), File: filepath.Join(dir, integrationsDir, n), Err: p.Err})
			}
		}
		l.list(p)
		return
	}
	if l.roots[root] {
		return
	}
	l.roots[root] = true
	p.Root = root
	l.read(&p)
	l.list(p)
}

// list adds a package, with what is switched off marked.
func (l *loader) list(p Plugin) {
	p.Enabled = !slices.Contains(l.src.Off.Plugins, p.ID)
	for i := range p.Integrations {
		in := &p.Integrations[i]
		in.PluginID = p.ID
		in.Enabled = p.Enabled && !slices.Contains(l.src.Off.Integrations, in.ID)
	}
	l.found = append(l.found, p)
}

// read fills in manifest and templates of a package whose root is trusted.
func (l *loader) read(p *Plugin) {
	file := filepath.Join(p.Root, ManifestFile)
	b, err := l.check.ReadFile(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no %s in it: %w", ManifestFile, err)
	}
	if err == nil {
		var m Manifest
		if m, p.Warnings, err = ParseManifest(file, b); err == nil {
			p.ID, p.Name, p.Version = m.ID, m.Name, m.Version
		}
	}
	if err != nil {
		p.Err = fmt.Errorf("plugin %s: %w", p.Root, err)
	}
	names, err := templates(p.Root)
	if err != nil {
		if p.Err == nil {
			p.Err = fmt.Errorf("plugin %s: %w", p.Root, err)
		}
		return
	}
	for _, n := range names {
		in := Integration{ID: stem(n), File: filepath.Join(p.Root, integrationsDir, n)}
		switch {
		case p.Err != nil:
			in.Err = p.Err
		case p.Origin == Embedded:
			// Its bytes are those of the binary, and each file is named by its id: a verb that
			// wants one template need not parse them all.
			l.later[in.File] = func(in *Integration) { l.template(p.Root, in) }
		default:
			l.template(p.Root, &in)
		}
		p.Integrations = append(p.Integrations, in)
	}
}

// template reads and parses one template, or says in its place what is wrong.
func (l *loader) template(root string, in *Integration) {
	if in.Err = l.parse(root, in); in.Err != nil {
		in.Template = nil
	}
}

func (l *loader) parse(root string, in *Integration) error {
	b, err := l.check.ReadFile(in.File, maxFile)
	if err != nil {
		return err
	}
	t, warnings, err := integrations.Parse(in.File, b)
	in.Warnings = warnings
	if err != nil {
		return err
	}
	in.ID, in.Template = t.ID, t
	return l.programs(root, t)
}

// programs checks every file of the package that a template runs: what is executed must be as
// trusted as what says so, and must lie in the package. One that is absent is not judged here.
func (l *loader) programs(root string, t *integrations.Template) error {
	for _, argv := range [][]string{t.Launch.Command, t.Identity.MintCommand, t.Identity.ForkCommand} {
		for _, arg := range argv {
			rel, ok := strings.CutPrefix(arg, "${PHUX_PLUGIN_ROOT}/")
			if !ok {
				continue
			}
			path := filepath.Join(root, rel)
			resolved, err := l.check.Check(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if resolved != root && !strings.HasPrefix(resolved, root+"/") {
				return &TrustError{Path: path, Owner: -1, Mode: fs.ModeSymlink, Why: fmt.Sprintf("leads out of the plugin, to %s", resolved)}
			}
		}
	}
	return nil
}

// templates names the files of integrations/*.toml, flat and sorted; none where there is no such
// directory. The directory itself must not be a link.
func templates(root string) ([]string, error) {
	dir := filepath.Join(root, integrationsDir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &TrustError{Path: dir, Owner: -1, Mode: info.Mode(), Why: "is not a directory of the plugin itself"}
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".toml") && n != ".toml" && !e.IsDir() {
			names = append(names, n)
		}
	}
	if len(names) > maxTemplates {
		return nil, fmt.Errorf("%s: %d templates, at most %d", dir, len(names), maxTemplates)
	}
	return names, nil
}

func stem(file string) string { return strings.TrimSuffix(file, ".toml") }
