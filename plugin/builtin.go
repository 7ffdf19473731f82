package plugin

import (
	"io/fs"

	"github.com/phux-agent/phux-agent/integrations"
)

// builtin is the package that this binary embeds.
func builtin() fs.FS { return integrations.Builtin }
