package integrations

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/metadata"
)

// Bounds of a template. Those on identity vectors and on the expanded argv are phux's.
const (
	maxIdentityArgs = 16
	maxArg          = 4096
	maxArgv         = 16 << 10 // of an expanded argv, each argument counted with its NUL
	maxList         = 64       // elements of any other list
	maxTables       = 16       // [[observe]] and [[require]]
	maxText         = 1024     // any other string
	maxEnvName      = 128
)

// The slots. Each is a whole argument, never a part of one, and never reaches a shell.
const (
	slotID      = "${PHUX_AGENT_SESSION_ID}"
	slotNewID   = "${PHUX_AGENT_NEW_SESSION_ID}"
	slotRoot    = "${PHUX_PLUGIN_ROOT}"
	slotIDOpen  = "${PHUX_AGENT_SESSION_ID"
	slotNewOpen = "${PHUX_AGENT_NEW_SESSION_ID"
)

func (r *reader) validate(t *Template) {
	r.names(t)
	r.launch(t)
	r.identity(t)
	r.transcript(t)
	for i := range t.Observe {
		r.observe(t, i)
	}
	for i := range t.Require {
		r.require(t, i)
	}
	for i := range t.Hooks {
		r.hook(t, i)
	}
	for i := range t.Live {
		r.live(t, i)
	}
}

func (r *reader) names(t *Template) {
	switch {
	case t.ID == "" && !r.refused("id"):
		r.refuse("id", `write id = "my-agent"`, "is missing or empty")
	case t.ID != "":
		if err := metadata.CheckID("id", t.ID); err != nil {
			r.refuse("id", "a record names the integration by its id", "%v", bare(err))
		}
	}
	r.short("display_name", t.DisplayName)
	r.short("kind", t.Kind)
	r.short("cli.min_version", t.CLI.MinVersion)
	r.short("agent_identity.name", t.Agent.Name)
	r.short("agent_identity.kind", t.Agent.Kind)
	r.list("cli.version_args", t.CLI.VersionArgs)
	r.list("cli.verified", t.CLI.Verified)
}

func (r *reader) launch(t *Template) {
	const key = "launch.command"
	if !r.has("launch") || r.refused("launch") {
		return // without it the template loads, and cannot be launched
	}
	switch c := t.Launch.Command; {
	case r.refusedWithin(key):
	case len(c) == 0:
		r.refuse(key, `write command = ["my-agent"]`, "must hold a program")
	case strings.TrimSpace(c[0]) == "":
		r.refuse(key+"[0]", "the first element is the program", "must not be blank")
	default:
		r.command(key, c, true)
		for i, arg := range c {
			if strings.Contains(arg, slotIDOpen) || strings.Contains(arg, slotNewOpen) {
				r.refuse(elem(key, i), "put it into resume_args, where it is an argument of its own", "the command itself holds no session id")
			}
		}
	}
	for _, name := range sortedKeys(toAny(t.Launch.Env)) {
		value := t.Launch.Env[name]
		at := "launch.env." + name
		switch {
		case !envName(name):
			r.refuse(at, "write letters, digits and _, not beginning with a digit", "is not the name of an environment variable")
		case identityEnv(name):
			r.refuse(at, "the native id is set from native_env alone", "the names PHUX_*_SESSION_ID carry identities")
		case strings.IndexByte(value, 0) >= 0 || len(value) > maxArg:
			r.refuse(at, "shorten it, or set it in the plugin's script", "must be at most %d bytes without NUL", maxArg)
		}
	}
	r.list("launch.passthrough", t.Launch.Passthrough)
	r.list("launch.scrub_env", t.Launch.ScrubEnv)
	for i, name := range t.Launch.ScrubEnv {
		if !envName(name) {
			r.refuse(elem("launch.scrub_env", i), "list exact names: a pattern also takes tokens and proxies away", "%s is not the name of an environment variable", quote(name))
		}
	}
}

// command checks an argv that the template gives whole. own says that it is the launch command,
// in which phux allows empty arguments.
func (r *reader) command(key string, argv []string, own bool) {
	if len(argv) > maxList {
		r.refuse(key, "move fixed arguments into a script of the plugin", "%d elements, at most %d", len(argv), maxList)
		return
	}
	total := 0
	for i, arg := range argv {
		total += len(arg) + 1
		switch {
		case strings.IndexByte(arg, 0) >= 0:
			r.refuse(elem(key, i), `leave the \u0000 out`, "no argument holds a NUL")
		case len(arg) > maxArg:
			r.refuse(elem(key, i), "shorten it", "%d bytes, at most %d", len(arg), maxArg)
		case arg == "" && !own:
			r.refuse(elem(key, i), "leave it out", "must not be empty")
		}
	}
	if total > maxArgv {
		r.refuse(key, "move fixed arguments into a script of the plugin", "%d bytes in all, at most %d", total, maxArgv)
	}
}

func (r *reader) identity(t *Template) {
	const in = "session_identity."
	s := &t.Identity
	if s.Mode == "" && s.Restore == "" {
		return // no table, or refused already
	}
	if s.NativeEnv != "" || r.has("session_identity", "native_env") {
		if !envName(s.NativeEnv) || !identityEnv(s.NativeEnv) || len(s.NativeEnv) > maxEnvName {
			r.refuse(in+"native_env", `write native_env = "PHUX_MYAGENT_SESSION_ID"`, "must be a dedicated name PHUX_*_SESSION_ID of at most %d bytes", maxEnvName)
		}
	}
	native := s.Mode == "native-or-phux" && s.Restore == "external-cli"
	for _, v := range []struct {
		key  string
		args []string
	}{{"resume_args", s.ResumeArgs}, {"fresh_args", s.FreshArgs}, {"fork_args", s.ForkArgs}, {"mint_command", s.MintCommand}, {"fork_command", s.ForkCommand}} {
		switch {
		case v.args == nil:
		case v.key == "resume_args" && !native && !r.refused(in+"mode") && !r.refused(in+"restore"):
			r.refuse(in+v.key, `write mode = "native-or-phux" and restore = "external-cli", or leave resume_args out`, "needs a CLI that resumes its own conversations")
		case v.key != "resume_args" && s.ResumeArgs == nil && !r.refused(in+"resume_args"):
			r.refuse(in+v.key, "write resume_args = [\"--resume\", \""+slotID+"\"] as well", "needs resume_args: an identity that cannot be resumed is no identity")
		}
	}
	if s.FreshArgs != nil && s.MintCommand != nil {
		r.refuse(in+"mint_command", "keep fresh_args where the CLI takes a caller's id, else mint_command", "is a second way to mint beside fresh_args")
	}
	if s.ForkArgs != nil && s.ForkCommand != nil {
		r.refuse(in+"fork_command", "keep the one that was verified", "is a second way to fork beside fork_args")
	}
	r.identityArgs(in+"resume_args", s.ResumeArgs, 1, 0)
	r.identityArgs(in+"fresh_args", s.FreshArgs, 1, 0)
	r.identityArgs(in+"fork_args", s.ForkArgs, 1, 1)
	r.identityArgs(in+"fork_command", s.ForkCommand, 1, 0)
	r.identityArgs(in+"mint_command", s.MintCommand, 0, 0)
	if _, err := compileID(s.IDPattern); err != nil {
		r.refuse(in+"id_pattern", `write "uuid4", "uuid" or an anchored expression as '^ses_[0-9A-Za-z]+$'`, "%v", err)
	} else if s.FreshArgs != nil && !t.CanMint() {
		r.refuse(in+"fresh_args", `write id_pattern = "uuid4", or learn the id by mint_command or [[observe]]`, "a fresh id is a random lower-case UUID, which id_pattern does not allow")
	}
	if (s.NeverPrompted == FreshAgain || s.NeverPrompted == FreshUntilFile) && s.FreshArgs == nil && !r.refused(in+"never_prompted") && !r.refused(in+"fresh_args") {
		r.refuse(in+"never_prompted", `write never_prompted = "lost"`, "a fresh start under the same id needs fresh_args")
	}
	r.list(in+"never", s.Never)
	for i, opt := range s.Never {
		if strings.ContainsAny(opt, "= \t\n") {
			r.refuse(elem(in+"never", i), "write the option alone: its value and --option=value are refused with it", "%s is not one option", quote(opt))
		}
	}
	if native && s.ResumeArgs != nil {
		r.program("launch.command", t.Launch.Command)
		r.program(in+"mint_command", s.MintCommand)
		r.program(in+"fork_command", s.ForkCommand)
	}
}

// identityArgs checks a vector for its slots: ids of them are wanted, news at most.
func (r *reader) identityArgs(key string, args []string, ids, news int) {
	if args == nil {
		return
	}
	if len(args) == 0 || len(args) > maxIdentityArgs {
		r.refuse(key, "write the option and the id, and put what every start needs into command", "must hold 1 to %d elements, not %d", maxIdentityArgs, len(args))
		return
	}
	seenID, seenNew := 0, 0
	for i, arg := range args {
		switch {
		case arg == "":
			r.refuse(elem(key, i), "leave it out", "must not be empty")
		case len(arg) > maxArg:
			r.refuse(elem(key, i), "shorten it", "%d bytes, at most %d", len(arg), maxArg)
		case strings.IndexByte(arg, 0) >= 0:
			r.refuse(elem(key, i), `leave the \u0000 out`, "no argument holds a NUL")
		case arg == slotID:
			if seenID++; ids == 0 {
				r.refuse(elem(key, i), "a minting command is given no id", "has no place for a session id")
			} else if seenID > ids {
				r.refuse(elem(key, i), "keep one", "the session id fills exactly one argument")
			}
		case arg == slotNewID:
			if seenNew++; news == 0 {
				r.refuse(elem(key, i), "only fork_args give a new id beside the source", "has no place for a new session id")
			} else if seenNew > news {
				r.refuse(elem(key, i), "keep one", "the new session id fills at most one argument")
			}
		case strings.Contains(arg, slotIDOpen) || strings.Contains(arg, slotNewOpen):
			r.refuse(elem(key, i), "write "+unglue(arg), "the session id must be an argument of its own")
		}
	}
	if ids == 1 && seenID == 0 && !r.refusedWithin(key) {
		r.refuse(key, "add the element \""+slotID+"\": without it the CLI would pick a conversation itself", "holds no session id")
	}
}

// unglue says how an argument with a slot in its text is written: --opt=${…} as two.
func unglue(arg string) string {
	for _, slot := range []string{slotID, slotNewID} {
		if opt, ok := strings.CutSuffix(arg, "="+slot); ok && opt != "" {
			return quote(opt) + `, "` + slot + `"`
		}
		if opt, ok := strings.CutSuffix(arg, slot); ok && strings.HasPrefix(opt, "-") {
			return quote(opt) + `, "` + slot + `"`
		}
	}
	return `"` + slotID + `" alone`
}

// Programs that take source from their arguments: phux's lists, exactly, so that a template
// loads in both or in neither. Hygiene, not a wall: a program under another name, or one that
// runs its arguments, is not seen. Lint names more of them.
var (
	shells       = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe"}
	interpreters = []string{"python", "python3", "python.exe", "node", "node.exe", "deno", "bun", "ruby", "perl", "lua", "php", "osascript"}
	launchers    = []string{"env", "busybox"} // what they run is their next argument
)

// program checks what a natively restorable template runs: where the program evaluates source,
// the source must be a fixed file of the plugin, and the plugin root must not be left.
func (r *reader) program(key string, argv []string) {
	if len(argv) == 0 || r.refused(key) || r.refused(elem(key, 0)) {
		return
	}
	name := programName(argv[0])
	switch {
	case slices.Contains(launchers, name):
		r.refuse(elem(key, 0), "name the agent's program itself; [launch] env sets variables", "%s runs whatever its arguments say, and the session id is one of them", quote(name))
	case slices.Contains(shells, name) || slices.Contains(interpreters, name):
		i := min(1, len(argv)-1)
		switch rest, rooted := strings.CutPrefix(argv[i], slotRoot); {
		case i == 1 && rooted && fixedFile(rest):
		case i == 1 && rooted:
			r.refuse(elem(key, i), `write "`+slotRoot+`/scripts/my-agent.sh"`, "the script must be a file below the plugin root, without .. or empty parts")
		default:
			r.refuse(elem(key, i), `name the agent's program itself, or a script of the plugin: ["`+name+`", "`+slotRoot+`/scripts/my-agent.sh"]`,
				"%s would evaluate its arguments, and the session id is one of them", quote(name))
		}
	default:
		if rest, rooted := strings.CutPrefix(argv[0], slotRoot); rooted && !fixedFile(rest) {
			r.refuse(elem(key, 0), `write "`+slotRoot+`/bin/my-agent"`, "the program must be a file below the plugin root, without .. or empty parts")
		}
	}
}

// fixedFile reports whether what follows the plugin root is a file below it: the separator is
// / alone, for on this platform a \ would be a part of a name beside the root.
func fixedFile(rest string) bool {
	return len(rest) > 1 && rest[0] == '/' && path.Clean(rest) == rest && rest != "/" && !strings.Contains(rest, `\`) && !strings.Contains(rest, "${")
}

func programName(program string) string {
	return strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:])
}

func (r *reader) transcript(t *Template) {
	c := t.Transcript
	if c == nil {
		return
	}
	const in = "transcript."
	r.root(in+"root", c.Root)
	if len(c.Paths) == 0 && !r.refused(in+"paths") {
		r.refuse(in+"paths", "write paths = [\"projects/*/"+slotID+".jsonl\"]", "must say where a conversation lies")
	}
	r.list(in+"paths", c.Paths)
	for i, p := range c.Paths {
		if s := r.path(elem(in+"paths", i), p, false); s != nil && s.ids == 0 {
			r.refuse(elem(in+"paths", i), "put "+slotID+" into the name: a file that any conversation has proves none", "holds no session id")
		} else if s != nil && s.short && c.HeadID == "" {
			r.refuse(elem(in+"paths", i), `write head_id = "/sessionId" as well, or the whole id`, "a shortened id names several conversations")
		}
	}
	r.pointer(in+"head_id", c.HeadID)
	r.short(in+"contains", c.Contains)
}

func (r *reader) observe(t *Template, i int) {
	o := &t.Observe[i]
	in := elem("observe", i) + "."
	for _, p := range []struct{ key, value string }{{"id", o.ID}, {"pid", o.PID}, {"start", o.Start}, {"event", o.Event}} {
		r.pointer(in+p.key, p.value)
	}
	for _, p := range sortedKeys(o.Where) {
		if !validPointer(p) {
			r.refuse(in+"where."+p, `write where = { "/kind" = "cli" }`, "the left side is a JSON pointer")
		}
	}
	r.list(in+"on", o.On)
	if o.Kind == "hook" {
		if o.Path != "" {
			r.refuse(in+"path", "a hook's payload has no path: leave it out", "has no use here")
		}
		if o.ID == "" && !r.refused(in+"id") {
			r.refuse(in+"id", `write id = "/session_id"`, "must say where the payload holds the id")
		}
		if len(o.On) == 0 && !r.refused(in+"on") {
			r.refuse(in+"on", `write on = ["SessionStart"]`, "must name the events that carry the active id")
		}
		return
	}
	if o.Kind == "" || r.refused(in+"path") {
		return
	}
	if o.Path == "" {
		r.refuse(in+"path", `write path = "${root}/sessions/${PID}.json"`, "is missing")
		return
	}
	if t.Transcript == nil || t.Transcript.Root == "" {
		r.refuse(in+"path", `write [transcript] and its root: "~/.my-agent" or "${MY_AGENT_HOME:-~/.my-agent}"`, "lies below the transcript's root, which is missing")
	}
	s := r.path(in+"path", o.Path, true)
	switch {
	case s == nil:
	case s.short:
		r.refuse(in+"path", "write "+slotID, "a shortened id names several conversations")
	case o.Kind == "open-file" && s.ids == 0:
		r.refuse(in+"path", "put "+slotID+" into the name", "an open file proves an id only by its name")
	case o.Kind == "open-file" && (o.ID != "" || o.PID != "" || o.Start != "" || len(o.Where) > 0):
		r.refuse(elem("observe", i), "leave id, pid, start and where out, or write kind = \"file\"", "the content of an open file is not read")
	case s.ids == 0 && o.ID == "" && !r.refused(in+"id"):
		r.refuse(in+"id", `write id = "/sessionId", or put `+slotID+` into the path`, "must say where the id stands")
	case s.ids > 0 && o.ID != "":
		r.refuse(in+"id", "keep the one in the path", "the id stands in the path already")
	case o.Kind == "file" && s.pids == 0 && o.PID == "" && !r.refused(in+"pid"):
		r.refuse(in+"pid", `write pid = "/pid", or put ${PID} into the path`, "must say which process the file is of")
	case s.ids > 0 && s.loose:
		r.refuse(in+"path", "write the text between them", "an id beside * or ? in one name cannot be read back")
	}
	switch {
	case o.Start != "" && o.StartUnit == "":
		r.refuse(in+"start_unit", `write start_unit = "ticks", "s" or "ms"`, "is missing beside start")
	case o.Start == "" && o.StartUnit != "":
		r.refuse(in+"start_unit", `write start = "/procStart"`, "says nothing without start")
	}
}

func (r *reader) require(t *Template, i int) {
	q := &t.Require[i]
	in := elem("require", i) + "."
	r.root(in+"file", q.File)
	if q.JSON == "" && !r.refused(in+"json") {
		r.refuse(in+"json", `write json = "/general/setting"`, "must say which member of the file counts")
	}
	r.pointer(in+"json", q.JSON)
	if q.Equals == nil && !r.refused(in+"equals") {
		r.refuse(in+"equals", "write equals = false", "must say what the member has to be")
	}
	if q.Consequence == "" && !r.refused(in+"consequence") {
		r.refuse(in+"consequence", `write consequence = "…"`, "must say what breaks otherwise")
	}
	r.short(in+"consequence", q.Consequence)
}

// root checks a path that ExpandRoot will expand.
func (r *reader) root(key, value string) {
	if r.refused(key) {
		return
	}
	const instead = `write "~/.my-agent" or "${MY_AGENT_HOME:-~/.my-agent}"`
	if value == "" {
		r.refuse(key, instead, "is missing")
		return
	}
	r.short(key, value)
	if err := checkRoot(value); err != nil {
		r.refuse(key, instead, "%v", err)
	}
}

// path checks a path below the root; root says that it may begin with ${root}/.
func (r *reader) path(key, value string, root bool) *slots {
	if len(value) > maxText {
		r.refuse(key, "shorten it", "%d bytes, at most %d", len(value), maxText)
		return nil
	}
	parts, err := splitPath(value, root)
	if err != nil {
		r.refuse(key, "a path is relative to the root, with / between names and *, ? as the only patterns", "%v", err)
		return nil
	}
	return countSlots(parts)
}

func (r *reader) pointer(key, value string) {
	if value != "" && !validPointer(value) {
		r.refuse(key, `a JSON pointer begins with /, as "/session/id"`, "%s is not a JSON pointer", quote(value))
	}
}

func validPointer(p string) bool {
	if p == "" || p[0] != '/' || len(p) > 256 {
		return false
	}
	for i := range len(p) {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return false
		}
	}
	return true
}

func (r *reader) short(key, value string) {
	if len(value) > maxText {
		r.refuse(key, "shorten it", "%d bytes, at most %d", len(value), maxText)
	}
}

func (r *reader) list(key string, list []string) {
	if len(list) > maxList {
		r.refuse(key, "keep those that count", "%d elements, at most %d", len(list), maxList)
		return
	}
	for i, v := range list {
		if v == "" || len(v) > maxText || strings.IndexByte(v, 0) >= 0 {
			r.refuse(elem(key, i), "write a word, or leave the element out", "must be 1 to %d bytes without NUL", maxText)
		}
	}
}

// has reports whether the file has the key, whatever its value.
func (r *reader) has(path ...string) bool {
	m := r.m
	for i, key := range path {
		v, ok := m[key]
		if !ok || i == len(path)-1 {
			return ok
		}
		if m, ok = v.(map[string]any); !ok {
			return false
		}
	}
	return false
}

// refused reports whether the key was refused already: one mistake, one message.
func (r *reader) refused(path string) bool {
	return slices.ContainsFunc(r.bad, func(e *Error) bool { return e.Key == path })
}

func (r *reader) refusedWithin(path string) bool {
	return slices.ContainsFunc(r.bad, func(e *Error) bool { return e.Key == path || strings.HasPrefix(e.Key, path+"[") })
}

func elem(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// envName is phux's rule for the name of an environment variable.
func envName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= maxText
}

// identityEnv reports whether the name is one of those that carry identities.
func identityEnv(name string) bool {
	return strings.HasPrefix(name, "PHUX_") && strings.HasSuffix(name, "_SESSION_ID")
}

// bare drops the field's name from a bound's text: the message has the key already.
func bare(err error) string {
	_, text, _ := strings.Cut(fmt.Sprint(err), ": ")
	return text
}

func toAny(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k := range m {
		out[k] = nil
	}
	return out
}
