package integrations

import (
	"embed"
	"io/fs"
)

//go:embed builtin/phux-plugin.toml builtin/integrations/*.toml builtin/scripts/*.sh
var builtin embed.FS

// Builtin is the first-party package phux.agents as a plugin lies on disk: phux-plugin.toml,
// integrations/*.toml and scripts/*.sh. Scripts are run by sh and need no execute bit.
var Builtin = func() fs.FS {
	root, err := fs.Sub(builtin, "builtin")
	if err != nil { // only for a path that is none
		return builtin
	}
	return root
}()
