package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/nearest"
	"github.com/phux-agent/phux-agent/metadata"
)

// FileError says what is wrong in a configuration file, and where.
type FileError struct {
	File string
	Line int // 1-based; 0 where it is not about one line
	Text string
	Src  string // the line, empty where Line is 0
	Col  int    // 1-based column of the caret, in bytes of Src
	Help string // what to write instead; may be empty
}

func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": " + e.Text)
	if e.Src != "" {
		pad := strings.Map(func(r rune) rune {
			if r == '\t' {
				return r
			}
			return ' '
		}, e.Src[:min(max(e.Col-1, 0), len(e.Src))])
		fmt.Fprintf(&b, "\n  %s\n  %s^", e.Src, pad)
	}
	if e.Help != "" {
		b.WriteString("\n  " + e.Help)
	}
	return b.String()
}

// source is a file's text with the means to point into it.
type source struct {
	file string
	text string
}

// fail points at the line that defines key, or at the file where it cannot be found.
func (s source) fail(key toml.Key, help, format string, args ...any) *FileError {
	e := &FileError{File: s.file, Text: fmt.Sprintf(format, args...), Help: help}
	e.Line, e.Col = s.find(key)
	if e.Line > 0 {
		e.Src = strings.Split(s.text, "\n")[e.Line-1]
	}
	return e
}

// find looks for the line of a key: under its own table header, or in the header itself. The
// decoder does not tell where a key stood, so this reads the file as people write it; for an
// inline table it finds the line of the table.
func (s source) find(key toml.Key) (line, col int) {
	for n := len(key); n > 0; n-- {
		if line, col := s.exact(key[:n]); line > 0 {
			if n < len(key) { // an inline table: point at the inner key where it stands on that line
				if at := strings.Index(strings.Split(s.text, "\n")[line-1], key[len(key)-1]); at >= 0 {
					col = at + 1
				}
			}
			return line, col
		}
	}
	return 0, 0
}

func (s source) exact(key toml.Key) (line, col int) {
	var table []string
	for i, text := range strings.Split(s.text, "\n") {
		trimmed := strings.TrimSpace(text)
		indent := strings.Index(text, trimmed) + 1
		if strings.HasPrefix(trimmed, "[") {
			table = keyParts(strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t"))
			if begins(table, key) {
				return i + 1, indent + strings.IndexFunc(trimmed, func(r rune) bool { return r != '[' })
			}
			continue
		}
		name, _, ok := strings.Cut(trimmed, "=")
		if ok && begins(append(slices.Clone(table), keyParts(name)...), key) {
			return i + 1, indent
		}
	}
	return 0, 0
}

func begins(key, with []string) bool {
	return len(key) >= len(with) && slices.Equal(key[:len(with)], with)
}

// keyParts takes a dotted key apart: bare and quoted parts.
func keyParts(s string) []string {
	var parts []string
	for s = strings.TrimSpace(s); s != ""; {
		var part string
		if q := s[0]; q == '"' || q == '\'' {
			end := strings.IndexByte(s[1:], q)
			if end < 0 {
				return append(parts, s)
			}
			part, s = s[1:1+end], s[end+2:]
		} else if dot := strings.IndexByte(s, '.'); dot >= 0 {
			part, s = s[:dot], s[dot:]
		} else {
			part, s = s, ""
		}
		parts = append(parts, strings.TrimSpace(part))
		s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "."))
	}
	return parts
}

// parse decodes TOML into v and returns the keys that stood there.
func (s source) parse(v any) ([]toml.Key, error) {
	if !utf8.ValidString(s.text) {
		return nil, &FileError{File: s.file, Text: "the file is not UTF-8"}
	}
	md, err := toml.Decode(s.text, v)
	if err == nil {
		return md.Keys(), nil
	}
	var pe toml.ParseError
	if errors.As(err, &pe) {
		e := &FileError{File: s.file, Line: pe.Position.Line, Col: pe.Position.Col, Text: pe.Message}
		if lines := strings.Split(s.text, "\n"); e.Line > 0 && e.Line <= len(lines) {
			e.Src = lines[e.Line-1]
		}
		return nil, e
	}
	// A value of the wrong type: the library names the line and the key in its text.
	e := &FileError{File: s.file, Text: err.Error()}
	if m := badType().FindStringSubmatch(err.Error()); m != nil {
		fmt.Sscanf(m[1], "%d", &e.Line)
		e.Text = fmt.Sprintf("%s: %s", m[2], strings.NewReplacer(
			"incompatible types: TOML value has type", "this is a", "; destination has type", ", but what is wanted is a",
			"slice", "list").Replace(m[3]))
		if lines := strings.Split(s.text, "\n"); e.Line > 0 && e.Line <= len(lines) {
			e.Src = lines[e.Line-1]
			e.Col = strings.Index(e.Src, strings.TrimSpace(e.Src)) + 1
		}
	}
	return nil, e
}

// Compiled when first wanted: every verb loads a configuration, few have anything to match.
var badType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^toml: line (\d+) \(last key "(.*)"\): (?:toml: )?(.*)$`)
})

// The keys of config.toml; "*" stands for a name of the user's.
var known = map[string][]string{
	"":             {"host", "save_after_launch", "adopt_at_save", "attach_prefix", "autosave", "keep", "notify", "restore", "plugins", "profiles", "programs", "scrollback"},
	"autosave":     {"enabled", "debounce_seconds", "heartbeat_minutes"},
	"keep":         {"generations", "days"},
	"notify":       {"command"},
	"restore":      {"parallel", "settle_ms", "deadline_seconds", "pending_days", "allow_unverified", "mode", "boot_mode", "modes", "old_days", "husk"},
	"plugins":      {"path", "enabled"},
	"profiles":     {"*"},
	"profiles.*":   {"*"},
	"profiles.*.*": {"args", "env", "mode"},
	"programs":     {"*"},
	"programs.*":   {"command", "args"},

	"scrollback":    {"lines"},
	"restore.modes": {"*"},
}

// check refuses the first key that nobody reads, so that a slip of the pen is not a setting that
// silently does not hold.
func (s source) check(keys []toml.Key, known map[string][]string) error {
	for _, key := range keys {
		pattern := ""
		for i, part := range key {
			names, ok := known[pattern]
			if !ok { // below a leaf: env's own names
				break
			}
			switch {
			case slices.Contains(names, part):
			case slices.Contains(names, "*"):
				part = "*"
			default:
				help := "the keys here are: " + strings.Join(names, ", ")
				if near := nearest.Word(part, names); near != "" {
					help = fmt.Sprintf("did you mean %q?", near)
				}
				return s.fail(key[:i+1], help, "unknown key %q", key[:i+1].String())
			}
			pattern = strings.TrimPrefix(pattern+"."+part, ".")
		}
	}
	return nil
}

type fileForm struct {
	Host            string                            `toml:"host"`
	SaveAfterLaunch *bool                             `toml:"save_after_launch"`
	AdoptAtSave     *bool                             `toml:"adopt_at_save"`
	AttachPrefix    string                            `toml:"attach_prefix"`
	Autosave        autosaveForm                      `toml:"autosave"`
	Keep            keepForm                          `toml:"keep"`
	Notify          notifyForm                        `toml:"notify"`
	Restore         restoreForm                       `toml:"restore"`
	Plugins         []pluginForm                      `toml:"plugins"`
	Profiles        map[string]map[string]profileForm `toml:"profiles"`
	Programs        map[string]programForm            `toml:"programs"`
	Scrollback      scrollbackForm                    `toml:"scrollback"`
}

type scrollbackForm struct {
	Lines *int `toml:"lines"`
}

type keepForm struct {
	Generations *int `toml:"generations"`
	Days        *int `toml:"days"`
}

type restoreForm struct {
	Parallel    *int `toml:"parallel"`
	Settle      *int `toml:"settle_ms"`
	Deadline    *int `toml:"deadline_seconds"`
	PendingDays *int `toml:"pending_days"`

	AllowUnverified []string `toml:"allow_unverified"`

	Mode     Mode            `toml:"mode"`
	BootMode Mode            `toml:"boot_mode"`
	Modes    map[string]Mode `toml:"modes"`
	OldDays  *int            `toml:"old_days"`
	Husk     *bool           `toml:"husk"`
}

type pluginForm struct {
	Path    string `toml:"path"`
	Enabled *bool  `toml:"enabled"`
}

type profileForm struct {
	Args []string          `toml:"args"`
	Env  map[string]string `toml:"env"`
	Mode Mode              `toml:"mode"`
}

type programForm struct {
	Command []string `toml:"command"`
	Args    string   `toml:"args"`
}

func isEnvName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// carriesIdentity reports whether a variable of that name is one that agents take an identity
// from; pane-exec strips every one of them.
func carriesIdentity(s string) bool {
	return strings.HasPrefix(s, "PHUX_") && strings.HasSuffix(s, "_SESSION_ID")
}

// Bounds on what a profile may hold.
const (
	maxProfileArgs = 256
	maxProfileText = 32 << 10
)

func decode(file string, b []byte, c *Config) error {
	s := source{file: file, text: string(b)}
	var f fileForm
	keys, err := s.parse(&f)
	if err != nil {
		return err
	}
	if err := s.check(keys, known); err != nil {
		return err
	}
	switch f.Host {
	case "", "tmux", "embedded":
		c.Host = f.Host
	default:
		return s.fail(toml.Key{"host"}, `write "tmux" or "embedded", or leave it out`, "host %q is not known", f.Host)
	}
	if f.SaveAfterLaunch != nil {
		c.SaveAfterLaunch = *f.SaveAfterLaunch
	}
	c.AttachPrefix = f.AttachPrefix
	if f.Autosave.Enabled != nil {
		c.Autosave.Enabled = *f.Autosave.Enabled
	}
	if f.AdoptAtSave != nil {
		c.AdoptAtSave = *f.AdoptAtSave
	}
	for _, n := range []struct {
		key    toml.Key
		from   *int
		to     *int
		lo, hi int
	}{
		{toml.Key{"autosave", "debounce_seconds"}, f.Autosave.Debounce, &c.Autosave.DebounceSeconds, 1, 3600},
		{toml.Key{"autosave", "heartbeat_minutes"}, f.Autosave.Heartbeat, &c.Autosave.HeartbeatMinutes, 1, 1440},
		{toml.Key{"keep", "generations"}, f.Keep.Generations, &c.Keep.Generations, 1, 100000},
		{toml.Key{"keep", "days"}, f.Keep.Days, &c.Keep.Days, 1, 36500},
		{toml.Key{"restore", "parallel"}, f.Restore.Parallel, &c.Restore.Parallel, 1, 256},
		{toml.Key{"restore", "settle_ms"}, f.Restore.Settle, &c.Restore.SettleMillis, 0, 60000},
		{toml.Key{"restore", "deadline_seconds"}, f.Restore.Deadline, &c.Restore.DeadlineSecs, 1, 3600},
		{toml.Key{"restore", "pending_days"}, f.Restore.PendingDays, &c.Restore.PendingDays, 1, 36500},
		{toml.Key{"restore", "old_days"}, f.Restore.OldDays, &c.Restore.OldDays, 1, 36500},
		{toml.Key{"scrollback", "lines"}, f.Scrollback.Lines, &c.Scrollback.Lines, 0, 10000},
	} {
		if n.from == nil {
			continue
		}
		if *n.from < n.lo || *n.from > n.hi {
			return s.fail(n.key, fmt.Sprintf("write a number from %d to %d", n.lo, n.hi), "%s = %d is out of bounds", n.key, *n.from)
		}
		*n.to = *n.from
	}
	for _, id := range f.Restore.AllowUnverified {
		if err := metadata.CheckID("id", id); err != nil {
			return s.fail(toml.Key{"restore", "allow_unverified"}, "name integrations: phux-agent integration list", "%q is no integration", id)
		}
	}
	c.Restore.AllowUnverified = f.Restore.AllowUnverified
	for _, p := range f.Plugins {
		if p.Path == "" {
			return s.fail(toml.Key{"plugins"}, `write path = "/absolute/directory"`, "a [[plugins]] entry has no path")
		}
		if !filepath.IsAbs(p.Path) {
			return s.fail(toml.Key{"plugins", "path"}, "write an absolute path: packages never come from the current project", "plugin path %q is relative", p.Path)
		}
		if p.Enabled == nil || *p.Enabled {
			c.Plugins = append(c.Plugins, PluginEntry{Path: filepath.Clean(p.Path)})
		}
	}
	if f.Restore.Husk != nil {
		c.Restore.Husk = *f.Restore.Husk
	}
	if err := s.modes(f.Restore, c); err != nil {
		return err
	}
	if err := s.programs(f.Programs, c); err != nil {
		return err
	}
	if err := s.notify(f.Notify, c); err != nil {
		return err
	}
	return s.profiles(f.Profiles, c)
}

// mode takes one over where it is given.
func (s source) mode(key toml.Key, from Mode, to *Mode) error {
	switch {
	case from == "":
	case !from.Valid():
		return s.fail(key, `write "auto", "ask" or "manual"`, "%s = %q is no mode", key, from)
	default:
		*to = from
	}
	return nil
}

func (s source) modes(f restoreForm, c *Config) error {
	if err := s.mode(toml.Key{"restore", "mode"}, f.Mode, &c.Restore.Mode); err != nil {
		return err
	}
	if err := s.mode(toml.Key{"restore", "boot_mode"}, f.BootMode, &c.Restore.BootMode); err != nil {
		return err
	}
	c.Restore.Modes = map[string]Mode{}
	for _, id := range slices.Sorted(maps.Keys(f.Modes)) {
		key := toml.Key{"restore", "modes", id}
		if err := metadata.CheckID("id", id); err != nil {
			return s.fail(key, "name an integration: phux-agent integration list", "%q is no integration", id)
		}
		m := Auto
		if err := s.mode(key, f.Modes[id], &m); err != nil {
			return err
		}
		c.Restore.Modes[id] = m
	}
	return nil
}

// Bounds on what may be a program's command.
const (
	maxProgramWords = 64
	maxProgramText  = 16 << 10
)

func (s source) programs(from map[string]programForm, c *Config) error {
	c.Programs = map[string]Program{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		p, key := from[name], toml.Key{"programs", name}
		if err := metadata.CheckID("name", name); err != nil {
			return s.fail(key, "", "[programs.%s]: %v", name, err)
		}
		if len(p.Command) == 0 || p.Command[0] == "" {
			return s.fail(key, fmt.Sprintf("write command = [%q]", name), "[programs.%s] has no command", name)
		}
		if at := p.Command[0]; strings.Contains(at, "/") && !filepath.IsAbs(at) {
			return s.fail(append(key, "command"), "write a name that PATH has, or an absolute path", "the program %q is a relative path", at)
		}
		size := 0
		for _, w := range p.Command {
			if strings.ContainsRune(w, 0) {
				return s.fail(append(key, "command"), "", "a word of [programs.%s] holds a NUL", name)
			}
			size += len(w) + 1
		}
		if len(p.Command) > maxProgramWords || size > maxProgramText {
			return s.fail(append(key, "command"), "", "[programs.%s] has over %d words or %d bytes", name, maxProgramWords, maxProgramText)
		}
		out := Program{Name: name, Command: p.Command, SavedArgs: true}
		switch p.Args {
		case "", "saved":
		case "none":
			out.SavedArgs = false
		default:
			return s.fail(append(key, "args"), `write "saved" or "none"`, "args = %q is not known", p.Args)
		}
		c.Programs[name] = out
	}
	return nil
}

func (s source) profiles(from map[string]map[string]profileForm, c *Config) error {
	c.profiles = make(map[string]map[string]integrations.Profile)
	c.modes = make(map[string]map[string]Mode)
	for _, name := range slices.Sorted(maps.Keys(from)) {
		of := make(map[string]integrations.Profile)
		for _, id := range slices.Sorted(maps.Keys(from[name])) {
			p, key := from[name][id], toml.Key{"profiles", name, id}
			size := 0
			for _, a := range p.Args {
				if strings.ContainsRune(a, 0) {
					return s.fail(append(key, "args"), "", "an argument of profile %q holds a NUL", name)
				}
				size += len(a) + 1
			}
			if len(p.Args) > maxProfileArgs || size > maxProfileText {
				return s.fail(append(key, "args"), "", "profile %q has over %d arguments or %d bytes", name, maxProfileArgs, maxProfileText)
			}
			for _, n := range slices.Sorted(maps.Keys(p.Env)) {
				at := append(slices.Clone(key), "env", n)
				switch {
				case !isEnvName(n):
					return s.fail(at, "write letters, digits and _", "%q is not a name of an environment variable", n)
				case carriesIdentity(n):
					return s.fail(at, "use phux-agent launch --resume ID", "%s carries an identity, and a profile may not", n)
				case strings.ContainsRune(p.Env[n], 0):
					return s.fail(at, "", "the value of %s holds a NUL", n)
				}
			}
			of[id] = integrations.Profile{Name: name, Args: p.Args, Env: p.Env}
			m := Mode("")
			if err := s.mode(append(slices.Clone(key), "mode"), p.Mode, &m); err != nil {
				return err
			}
			if c.modes[name] == nil {
				c.modes[name] = map[string]Mode{}
			}
			c.modes[name][id] = m
		}
		c.profiles[name] = of
	}
	return nil
}

func sorted(names []string) []string { slices.Sort(names); return names }
