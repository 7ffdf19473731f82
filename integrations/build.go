package integrations

// An Op is what a command line is built for. Create and resume are two operations.
type Op int

const (
	Plain  Op = iota // no identity: the CLI as it is
	Fresh            // fresh_args with an id that we minted, or the same id again
	Resume           // resume_args
	Fork             // fork_args: ID is the source, NewID the optional new one
)

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

// Build is the one argument vector builder.
func (t *Template) Build(r Request) (Command, error) { return Command{}, errNotBuilt }

// Env looks a name up in the environment of the pane in question, not in ours.
type Env func(name string) (value string, ok bool)

// ExpandRoot expands a transcript root: ${NAME}, ${NAME:-default}, a leading ~.
func ExpandRoot(root string, env Env) (string, error) { return "", errNotBuilt }
