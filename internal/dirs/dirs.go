// Package dirs finds the XDG directories, reading the environment when asked and not before.
package dirs

// Dirs are absolute paths of phux-agent's own directories. None is created by looking.
type Dirs struct {
	Config  string // $XDG_CONFIG_HOME/phux-agent
	Data    string // $XDG_DATA_HOME/phux-agent
	State   string // $XDG_STATE_HOME/phux-agent
	Runtime string // $XDG_RUNTIME_DIR/phux-agent, else a private fallback
}
