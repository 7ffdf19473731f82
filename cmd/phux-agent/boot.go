package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/boot"
	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/plugin"
)

func (a *app) bootVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "boot",
		Short: "Restore by itself when you log in, or when the machine starts",
		Long: `Restore by itself when you log in: a systemd user unit on Linux, a launchd agent on
macOS. It needs no terminal and no client: it starts the server, and every pane is
there, with its agent, when you attach.

The unit calls this program by its absolute path, and with the PATH of the shell that
installed it, so that agents are found that a bare PATH does not have. Install it once
more after that has changed; boot status says when.

At boot nobody may be there: boot_mode in [restore] of the configuration says whether
agents are resumed, or wait to be asked.`,
		Example: `  phux-agent boot install
  phux-agent boot install --print
  phux-agent boot status
  phux-agent boot uninstall`,
		Annotations: exits("0 done", "1 failed", "2 usage", "3 written, but not switched on"),
	})
	var show, launchd bool
	install := &cobra.Command{
		Use: "install", Short: "Write the unit, and switch it on",
		Long: `Write the unit, and switch it on for the next login. Where systemd cannot be asked
(no user manager runs), the link that switches it on is made by hand.

A user's units run from the first login to the last logout. To have them from the
start of the machine: loginctl enable-linger. That is said, and never done unasked.`,
		Example: "  phux-agent boot install\n  phux-agent boot install --print\n  phux-agent -L work boot install",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bootInstall(cmd.Context(), show, launchd || runtime.GOOS == "darwin")
		},
		Annotations: exits("0 it is switched on", "1 failed", "2 usage", "3 written, but not switched on"),
	}
	install.Flags().BoolVar(&show, "print", false, "print the file, and write nothing")
	install.Flags().BoolVar(&launchd, "launchd", false, "with --print: the launchd agent")
	uninstall := &cobra.Command{
		Use: "uninstall", Short: "Switch the unit off, and take it away", Args: cobra.NoArgs,
		Example:     "  phux-agent boot uninstall",
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.bootUninstall(cmd.Context()) },
		Annotations: exits("0 it is gone, or never was", "1 failed", "2 usage"),
	}
	status := &cobra.Command{
		Use: "status", Short: "Say whether it is installed, and right", Args: cobra.NoArgs,
		Example:     "  phux-agent boot status\n  phux-agent boot status --json",
		RunE:        func(*cobra.Command, []string) error { return a.bootStatus() },
		Annotations: exits("0 said", "1 failed", "2 usage"),
	}
	run := &cobra.Command{
		Use: "run", Short: "What the unit runs: restore, where nobody may be there",
		Long: `What the unit runs: phux-agent restore --unattended --no-wait. That nothing was ever
saved is no failure.`,
		Example: "  phux-agent boot run",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.bootRun(cmd.Context()) },
		Annotations: exits("0 every pane as asked, or nothing was ever saved", "1 failed",
			"3 partial, as restore says it", "4 refused, likewise"),
	}
	cmd.AddCommand(install, uninstall, status, run)
	return cmd
}

func (a *app) bootRun(ctx context.Context) error {
	err := a.again(ctx, "restore", "--unattended", "--no-wait")
	if errors.Is(err, archive.ErrNone) {
		a.say("nothing was ever saved: there is nothing to restore")
		return nil
	}
	return err
}

// service is the unit for the server that is meant.
func (a *app) service() (boot.Service, error) {
	s := boot.Service{Name: "phux-agent"}
	var err error
	if s.Program, err = a.ownPath(); err != nil {
		return s, err
	}
	if a.hostKind != "" {
		s.Args = append(s.Args, "--host", a.hostKind)
		s.Name += "-" + a.hostKind
	}
	switch {
	case a.socketName != "":
		s.Args = append(s.Args, "-L", a.socketName)
		s.Name += "-L-" + strings.Map(unitLetter, a.socketName)
	case a.socketPath != "":
		path, err := a.abs(a.socketPath)
		if err != nil {
			return s, err
		}
		s.Args = append(s.Args, "-S", path)
		s.Name += "-S" + strings.Map(unitLetter, path)
	}
	s.Args = append(s.Args, "boot", "run")
	s.Env = append(s.Env, "PATH="+cleanPath(a.getenv("PATH")))
	for _, name := range append([]string{"SHELL", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMUX_TMPDIR"}, a.storeVariables()...) {
		if v := a.getenv(name); v != "" {
			s.Env = append(s.Env, name+"="+v)
		}
	}
	return s, nil
}

func unitLetter(r rune) rune {
	if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
		return r
	}
	return '-'
}

// cleanPath leaves out of a PATH what is relative, and what stands there again.
func cleanPath(path string) string {
	var out []string
	for dir := range strings.SplitSeq(path, ":") {
		if filepath.IsAbs(dir) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, ":")
}

// storeVariables are those that say where the agents keep their conversations: a server that is
// started without them looks in the wrong place.
func (a *app) storeVariables() []string {
	reg, err := a.registry()
	if err != nil {
		return nil
	}
	name := regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)(:-[^}]*)?\}`)
	var out []string
	for _, t := range a.enabled(reg) {
		if t.Transcript == nil {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(t.Transcript.Root, -1) {
			if !strings.HasPrefix(m[1], "PHUX_") && !strings.HasPrefix(m[1], "XDG_") && m[1] != "HOME" {
				out = append(out, m[1])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bootFile is where a unit lies, and the link that switches it on; empty on launchd.
func (a *app) bootFile(s boot.Service, launchd bool) (file, link string, err error) {
	d, err := a.dirs()
	if err != nil {
		return "", "", err
	}
	if launchd {
		return filepath.Join(d.Home, "Library", "LaunchAgents", boot.Label(s.Name)+".plist"), "", nil
	}
	units := filepath.Join(filepath.Dir(d.Config), "systemd", "user")
	name := s.Name + ".service"
	return filepath.Join(units, name), filepath.Join(units, "default.target.wants", name), nil
}

func render(s boot.Service, launchd bool) (string, error) {
	if launchd {
		return s.Plist()
	}
	return s.Unit()
}

// bootDocument is what the verbs print with --json.
type bootDocument struct {
	SchemaVersion int      `json:"schema_version"`
	File          string   `json:"file"`
	Installed     bool     `json:"installed"`
	Enabled       bool     `json:"enabled"` // at the next login
	Current       bool     `json:"current"` // what install would write now
	Linger        bool     `json:"linger"`  // from the start of the machine
	Program       string   `json:"program"`
	Notes         []string `json:"notes"`
}

// foreignUnitError is a file of that name which we did not write.
type foreignUnitError struct{ Path string }

func (e *foreignUnitError) Error() string { return e.Path + " is not ours" }

const ourUnit = "Written by phux-agent boot install"

// ours reads a unit of ours; nil where there is none.
func ourFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !strings.Contains(string(b), ourUnit):
		return nil, &foreignUnitError{path}
	}
	return b, nil
}

func (a *app) bootInstall(ctx context.Context, show, launchd bool) error {
	s, err := a.service()
	if err != nil {
		return err
	}
	text, err := render(s, launchd)
	if err != nil {
		return err
	}
	if show {
		fmt.Fprint(a.stdout, text)
		return nil
	}
	launchd = runtime.GOOS == "darwin"
	if text, err = render(s, launchd); err != nil {
		return err
	}
	file, link, err := a.bootFile(s, launchd)
	if err != nil {
		return err
	}
	if _, err := ourFile(file); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	w := atomicfile.Writer{}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if err := w.Replace(file, []byte(text)); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	var notes []string
	if launchd {
		if err := a.manager(ctx, "launchctl", "bootstrap", fmt.Sprintf("gui/%d", os.Getuid()), file); err != nil {
			notes = append(notes, "launchd was not asked to load it now; it does at the next login")
		}
	} else {
		notes = a.enable(ctx, s, file, link)
	}
	return a.sayBoot(s, launchd, "", notes)
}

// enable switches a unit on: by systemd, or, where that cannot be asked, as it would.
func (a *app) enable(ctx context.Context, s boot.Service, file, link string) (notes []string) {
	err := a.manager(ctx, "systemctl", "--user", "daemon-reload")
	if err == nil {
		err = a.manager(ctx, "systemctl", "--user", "enable", s.Name+".service")
	}
	if _, there := os.Lstat(link); there == nil && err == nil {
		return nil
	}
	if err != nil {
		notes = append(notes, "systemd was not asked: "+err.Error())
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err == nil {
		_ = os.Remove(link)
		if err = os.Symlink(file, link); err == nil {
			return append(notes, "the link that switches it on was made by hand: "+a.tilde(link))
		}
	}
	return append(notes, "it is not switched on: systemctl --user enable "+s.Name+".service")
}

// manager asks the service manager, for some seconds at most.
func (a *app) manager(ctx context.Context, name string, args ...string) error {
	program, err := plugin.LookProgram(name, a.getenv("PATH"))
	if err != nil {
		return fmt.Errorf("no %s", name)
	}
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = a.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		words := strings.TrimSpace(string(out))
		words, _, _ = strings.Cut(words, "\n")
		return fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), words)
	}
	return nil
}

func (a *app) bootUninstall(ctx context.Context) error {
	launchd := runtime.GOOS == "darwin"
	s, err := a.service()
	if err != nil {
		return err
	}
	file, link, err := a.bootFile(s, launchd)
	if err != nil {
		return err
	}
	had, err := ourFile(file)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if had != nil {
		if launchd {
			_ = a.manager(ctx, "launchctl", "bootout", fmt.Sprintf("gui/%d/%s", os.Getuid(), boot.Label(s.Name)))
		} else {
			_ = a.manager(ctx, "systemctl", "--user", "disable", s.Name+".service") // the link is removed besides
		}
	}
	for _, path := range []string{link, file} {
		if path == "" || had == nil && path == file {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("boot: %w", err)
		}
	}
	if had != nil && !launchd {
		_ = a.manager(ctx, "systemctl", "--user", "daemon-reload")
	}
	return a.sayBoot(s, launchd, "", nil)
}

func (a *app) bootStatus() error {
	s, err := a.service()
	if err != nil {
		return err
	}
	return a.sayBoot(s, runtime.GOOS == "darwin", "status", nil)
}

// sayBoot says what is there now.
func (a *app) sayBoot(s boot.Service, launchd bool, verb string, notes []string) error {
	file, link, err := a.bootFile(s, launchd)
	if err != nil {
		return err
	}
	doc := bootDocument{SchemaVersion: schemaVersion, File: file, Notes: append([]string{}, notes...), Linger: launchd || lingers()}
	b, err := ourFile(file)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	doc.Installed, doc.Enabled = b != nil, b != nil && launchd
	if _, err := os.Lstat(link); err == nil && !launchd {
		doc.Enabled = doc.Installed
	}
	if text, err := render(s, launchd); err == nil {
		doc.Current = text == string(b)
	}
	if doc.Installed {
		doc.Program = unitProgram(string(b))
		switch info, err := os.Stat(doc.Program); {
		case doc.Program != "" && (err != nil || info.IsDir()):
			doc.Notes = append(doc.Notes, doc.Program+", which it runs, is not there any more: phux-agent boot install")
		case !doc.Current:
			doc.Notes = append(doc.Notes, "PATH or another setting has changed since it was installed: phux-agent boot install")
		}
		if !doc.Linger {
			doc.Notes = append(doc.Notes, "it runs at your first login, and what it started ends with your last logout; to have it from the start of the machine: loginctl enable-linger")
		}
	}
	switch {
	case a.json:
		if err := writeDocument(a.stdout, doc); err != nil {
			return err
		}
	case !doc.Installed:
		a.say("nothing restores at login: %s is not there", a.tilde(file))
	default:
		state := "switched on"
		if !doc.Enabled {
			state = "not switched on"
		}
		a.say("restore at login is %s: %s", state, a.tilde(file))
		for _, n := range doc.Notes {
			a.say("  %s", n)
		}
	}
	if verb == "" && doc.Installed && !doc.Enabled {
		return &statusError{code: partial}
	}
	return nil
}

// unitProgram is what a unit of ours runs; empty of a plist, whose text says it otherwise.
func unitProgram(unit string) string {
	_, rest, ok := strings.Cut(unit, "\nExecStart=\"")
	word, _, end := strings.Cut(rest, "\" \"")
	if !ok || !end {
		return ""
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `%%`, `%`).Replace(word)
}

// lingers reports a user whose units run without a login.
func lingers() bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join("/var/lib/systemd/linger", u.Username))
	return err == nil
}
