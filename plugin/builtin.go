package plugin

import "io/fs"

// builtin is the package that integrations embeds.
func builtin() fs.FS { return nil }
