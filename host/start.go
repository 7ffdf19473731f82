package host

// Mode says what kind of thing a pane starts as.
type Mode int

const (
	Shell       Mode = iota // the user's shell, as the host starts it
	Program                 // Argv, by exec; no shell, no process of ours stays
	Placeholder             // our own screen that says why, keeps the record and retries on Enter
)

// Start is what a pane runs. Env values never appear in any process's arguments.
type Start struct {
	Mode  Mode     `json:"mode"`
	Argv  []string `json:"argv,omitempty"` // Argv[0] absolute
	Dir   string   `json:"dir,omitzero"`   // absolute; entered or the start fails, never replaced by $HOME
	Set   []string `json:"set,omitempty"`  // KEY=VALUE, over the pane's own environment
	Unset []string `json:"unset,omitempty"`
	// Every inherited PHUX_*_SESSION_ID is always stripped before Set is applied.
	AfterExit string `json:"after_exit,omitzero"` // "shell" | "hold" | "close", after exit 0; else hold
	// Guard is opaque to the host: what the starting process must prove and claim just before
	// it becomes the program (owner.Guard).
	Guard []byte `json:"guard,omitempty"`
	// For Placeholder.
	Reason string `json:"reason,omitzero"`
	Hint   string `json:"hint,omitzero"`
}

// BirthEnv is set to the birth nonce in the environment of every program that we start, so that
// a later launch below it can tell an inherited native_env value from one that a caller gave.
const BirthEnv = "PHUX_AGENT_BIRTH"

// Exec enters Dir, applies Unset and Set over environ, and replaces this process by Argv. It
// returns only when that could not be done; the directory is never replaced by another.
func (s Start) Exec(environ []string, nonce string) error { return errNotBuilt }
