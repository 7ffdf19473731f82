package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  phux-agent version\n  phux-agent version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := programVersion()
			if a.json {
				return writeDocument(a.stdout, struct {
					SchemaVersion int    `json:"schema_version"`
					Version       string `json:"version"`
					Go            string `json:"go"`
					OS            string `json:"os"`
					Arch          string `json:"arch"`
				}{schemaVersion, v, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			a.say("phux-agent %s", v)
			return nil
		},
		Annotations: exits("0 printed", "2 usage"),
	}
}

// programVersion is what the build stamped, else what the toolchain recorded.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if rev == "" {
		return "devel"
	}
	return "devel-" + rev[:min(12, len(rev))] + dirty
}
