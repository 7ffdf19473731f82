package integrations

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// An Op is what a command line is built for. Create and resume are two operations.
type Op int

const (
	Plain  Op = iota // no identity: the CLI as it is
	Fresh            // fresh_args with an id that we minted, or the same id again
	Resume           // resume_args
	Fork             // fork_args: ID is the source, NewID the optional new one
)

func (o Op) String() string {
	switch o {
	case Fresh:
		return "fresh"
	case Resume:
		return "resume"
	case Fork:
		return "fork"
	}
	return "plain"
}

// Profile is a named, user-owned set of extra arguments and environment for an integration.
type Profile struct {
	Name string
	Args []string
	Env  map[string]string
}

// Request is what Build needs. Nothing in it but ID and NewID may come from an archive.
type Request struct {
	Op         Op
	ID, NewID  string
	Profile    Profile
	Extra      []string // of this launch only
	PluginRoot string
}

// Command is what a pane would run: command + profile args + identity args + extra args, with
// Set laid over the pane's environment after Unset was taken from it.
type Command struct {
	Argv  []string // Argv[0] as the template has it; plugin.LookProgram makes it absolute
	Set   map[string]string
	Unset []string
}

// NeverError is the refusal of an option that would choose a conversation by itself.
type NeverError struct {
	Integration string
	Where       string // "profile" | "extra"
	Arg         string // as given
	Option      string // of `never` or of the identity arguments, or --
}

func (e *NeverError) Error() string {
	if e.Option == "--" {
		return fmt.Sprintf("%s argument \"--\" of %q would turn the identity arguments into text", e.Where, e.Integration)
	}
	return fmt.Sprintf("%s argument %s of %q: %s chooses a conversation, which the template and --resume alone may", e.Where, quote(e.Arg), e.Integration, quote(e.Option))
}

// ErrTooLong is wrapped where the expanded arguments are over 16 KiB.
var ErrTooLong = errors.New("the arguments are longer than 16 KiB")

// ErrNoSuchArgs is wrapped where the template cannot do what the Op asks for.
var ErrNoSuchArgs = errors.New("the template has no arguments for it")

// ErrProfileEnv is wrapped where a profile sets what it may not.
var ErrProfileEnv = errors.New("a profile may not set this variable")

// Build is the one argument vector builder. It checks everything again: the ids at every use,
// the profile and the extra arguments against `never` and the identity options, the bounds.
func (t *Template) Build(r Request) (Command, error) {
	c, err := t.build(r)
	if err != nil {
		return Command{}, fmt.Errorf("build the %s command of %q: %w", r.Op, t.ID, err)
	}
	return c, nil
}

func (t *Template) build(r Request) (c Command, err error) {
	if len(t.Launch.Command) == 0 {
		return c, ErrNotLaunchable
	}
	identity, native, err := t.identityArgs(r)
	if err != nil {
		return c, err
	}
	command, err := expandCommand(t.Launch.Command, r.PluginRoot)
	if err != nil {
		return c, err
	}
	if err := t.checkArgs("profile", r.Profile.Args); err != nil {
		return c, err
	}
	if err := t.checkArgs("extra", r.Extra); err != nil {
		return c, err
	}
	c.Argv = slices.Concat(command, r.Profile.Args, identity, r.Extra)
	if err := checkArgv(c.Argv); err != nil {
		return c, err
	}
	c.Set = map[string]string{}
	for k, v := range t.Launch.Env {
		c.Set[k] = v
	}
	for _, k := range sortedKeys(toAny(r.Profile.Env)) {
		v := r.Profile.Env[k]
		if !envName(k) || identityEnv(k) || k == t.Identity.NativeEnv || strings.IndexByte(v, 0) >= 0 {
			return c, fmt.Errorf("profile %q sets %s: %w", r.Profile.Name, quote(k), ErrProfileEnv)
		}
		c.Set[k] = v
	}
	if native != "" && t.Identity.NativeEnv != "" {
		c.Set[t.Identity.NativeEnv] = native
	}
	c.Unset = slices.Clone(t.Launch.ScrubEnv)
	return c, nil
}

// identityArgs fills the slots of the operation's arguments, and says which id the process runs.
func (t *Template) identityArgs(r Request) (args []string, native string, err error) {
	if r.Op == Plain {
		if r.ID != "" || r.NewID != "" {
			return nil, "", errors.New("a plain start takes no id")
		}
		return nil, "", nil
	}
	if err := t.Restorable(); err != nil {
		return nil, "", err
	}
	s := t.Identity
	native = r.ID
	switch r.Op {
	case Fresh:
		args = s.FreshArgs
	case Resume:
		args = s.ResumeArgs
	case Fork:
		args = s.ForkArgs
	}
	if len(args) == 0 {
		return nil, "", ErrNoSuchArgs
	}
	if err := t.CheckID(r.ID); err != nil {
		return nil, "", err
	}
	takesNew := slices.Contains(args, slotNewID)
	switch {
	case takesNew:
		if err := t.CheckID(r.NewID); err != nil {
			return nil, "", err
		}
		if r.NewID == r.ID || strings.EqualFold(r.NewID, r.ID) {
			return nil, "", errors.New("a fork needs an id of its own, not its source's")
		}
	case r.NewID != "":
		return nil, "", errors.New("the CLI makes the new id itself")
	}
	if r.Op == Fork {
		native = r.NewID // empty where the CLI mints
	}
	return fill(args, r.ID, r.NewID), native, nil
}

// fill replaces whole elements alone: an id never becomes part of an argument, and what an id
// says is never looked at again.
func fill(args []string, id, newID string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		switch arg {
		case slotID:
			out[i] = id
		case slotNewID:
			out[i] = newID
		default:
			out[i] = arg
		}
	}
	return out
}

func expandCommand(command []string, root string) ([]string, error) {
	out := make([]string, len(command))
	for i, arg := range command {
		if strings.Contains(arg, slotRoot) && (!path.IsAbs(root) || strings.IndexByte(root, 0) >= 0) {
			return nil, fmt.Errorf("plugin root %s is not an absolute path", quote(root))
		}
		out[i] = strings.ReplaceAll(arg, slotRoot, root)
	}
	return out, nil
}

func checkArgv(argv []string) error {
	total := 0
	for _, arg := range argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return errors.New("an argument holds a NUL")
		}
		total += len(arg) + 1
	}
	if total > maxArgv {
		return fmt.Errorf("%d bytes: %w", total, ErrTooLong)
	}
	return nil
}

// NeverOptions returns what profile and extra arguments may not hold: `never` and every literal
// of the identity arguments, each once.
func (t *Template) NeverOptions() []string {
	var out []string
	add := func(list []string) {
		for _, opt := range list {
			if opt != slotID && opt != slotNewID && opt != "--" && !slices.Contains(out, opt) {
				out = append(out, opt)
			}
		}
	}
	s := t.Identity
	add(s.Never)
	add(s.ResumeArgs)
	add(s.FreshArgs)
	add(s.ForkArgs)
	return out
}

func (t *Template) checkArgs(where string, args []string) error {
	never := t.NeverOptions()
	for _, arg := range args {
		if where == "profile" && arg == "--" { // the identity arguments come after it
			return &NeverError{t.ID, where, arg, "--"}
		}
		for _, opt := range never {
			if means(arg, opt) {
				return &NeverError{t.ID, where, arg, opt}
			}
		}
	}
	return nil
}

// means reports whether an argument is, or may be, the option: itself; --option=value; a short
// one with its value attached (-rID) or in a bundle (-pc). A bundle cannot be told from a short
// option with a value, so -mcodex is refused for -c: written as two arguments it is allowed.
func means(arg, opt string) bool {
	switch {
	case arg == opt:
		return true
	case !strings.HasPrefix(opt, "-"):
		return false
	case strings.HasPrefix(arg, opt+"="):
		return true
	case len(opt) == 2 && opt[1] != '-' && len(arg) > 2 && arg[0] == '-' && arg[1] != '-':
		bundle, _, _ := strings.Cut(arg[1:], "=")
		return strings.Contains(bundle, opt[1:])
	}
	return false
}

// MintCommand returns the argv that prints one new id, which is then resumed; nil where the
// template has none. It is run in the launch directory, and read by ParseMinted.
func (t *Template) MintCommand(root string) ([]string, error) {
	return t.side("mint", t.Identity.MintCommand, root, "")
}

// ForkCommand returns the argv that forks the conversation id and prints the new one; nil where
// the template has none.
func (t *Template) ForkCommand(root, id string) ([]string, error) {
	if t.Identity.ForkCommand == nil {
		return nil, nil
	}
	if err := t.CheckID(id); err != nil {
		return nil, fmt.Errorf("build the fork command of %q: %w", t.ID, err)
	}
	return t.side("fork", t.Identity.ForkCommand, root, id)
}

func (t *Template) side(what string, command []string, root, id string) ([]string, error) {
	if command == nil {
		return nil, nil
	}
	argv, err := expandCommand(command, root)
	if err == nil {
		for i, arg := range command { // by the template's element, so that no root can be a slot
			if arg == slotID {
				argv[i] = id
			}
		}
		err = checkArgv(argv)
	}
	if err != nil {
		return nil, fmt.Errorf("build the %s command of %q: %w", what, t.ID, err)
	}
	return argv, nil
}
