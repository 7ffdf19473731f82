package integrations

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// MaxTemplate bounds a template file, in bytes.
const MaxTemplate = 64 << 10

// Parse reads and validates one template. file names it in errors, which carry line and caret
// and say what to write instead: an *Error, or several joined, in the order of the file.
// Unknown keys load, and come back as warnings.
func Parse(file string, data []byte) (*Template, []Warning, error) {
	t, r, err := parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	return t, r.warnings(), nil
}

func parse(file string, data []byte) (*Template, *reader, error) {
	if len(data) > MaxTemplate {
		return nil, nil, &Error{File: file, Problem: fmt.Sprintf("%d bytes, at most %d", len(data), MaxTemplate), Instead: "a template says what is true of one CLI: move the rest out"}
	}
	r := &reader{file: file, at: locate(string(data))}
	if r.at.tooDeep >= 0 {
		e := &Error{File: file, Problem: "nested too deeply", Instead: fmt.Sprintf("no key or value needs more than %d levels", maxNesting)}
		r.at.point(e, span{r.at.tooDeep, r.at.tooDeep + 1})
		return nil, nil, e
	}
	var m map[string]any
	if _, err := toml.Decode(string(data), &m); err != nil {
		return nil, nil, r.syntax(err)
	}
	r.m = m
	t := r.template()
	r.validate(t)
	if len(r.bad) > 0 {
		slices.SortStableFunc(r.bad, func(a, b *Error) int { return a.Line - b.Line })
		if len(r.bad) == 1 {
			return nil, nil, r.bad[0]
		}
		all := make([]error, len(r.bad))
		for i, e := range r.bad {
			all[i] = e
		}
		return nil, nil, errors.Join(all...)
	}
	return t, r, nil
}

// reader collects what is wrong with one file.
type reader struct {
	file  string
	at    *positions
	m     map[string]any // as decoded
	bad   []*Error
	found []Warning
}

func (r *reader) syntax(err error) error {
	e := &Error{File: r.file, Problem: err.Error()}
	var at toml.ParseError
	if errors.As(err, &at) {
		e.Problem, e.Instead = at.Message, `text stands in quotes, a list in [ ], and a [table]'s name on a line of its own`
		if strings.Contains(at.Message, "already been defined") {
			e.Instead = "keep one of them"
		}
		if start := at.Position.Start; start >= 0 && start <= len(r.at.src) {
			r.at.point(e, span{start, start + max(at.Position.Len, 1)})
		}
	}
	return e
}

// refuse notes an error at a key's value, or at the key where it is only a table.
func (r *reader) refuse(path, instead, problem string, args ...any) {
	e := &Error{File: r.file, Key: path, Problem: fmt.Sprintf(problem, args...), Instead: instead}
	if at, ok := r.at.find(path, true); ok {
		r.at.point(e, at)
	}
	r.bad = append(r.bad, e)
}

func (r *reader) warn(path, text string) {
	w := Warning{Text: text}
	if at, ok := r.at.find(path, false); ok {
		var e Error
		r.at.point(&e, at)
		w.Line = e.Line
	}
	r.found = append(r.found, w)
}

func (r *reader) warnings() []Warning {
	slices.SortStableFunc(r.found, func(a, b Warning) int { return a.Line - b.Line })
	return r.found
}

// template turns the decoded file into a Template, refusing wrong types. Keys are looked up as
// they are written: TOML is case sensitive, and a struct decoder is not.
func (r *reader) template() *Template {
	m := r.m
	t := &Template{File: r.file, SchemaVersion: 1}
	top := table{r, "", "", m}
	if v, ok := m["schema_version"]; ok { // optional, and not looked at, in phux
		n, isInt := v.(int64)
		switch {
		case !isInt:
			r.warn("schema_version", "schema_version is not an integer; this reader knows 1")
		case n != 1:
			r.warn("schema_version", fmt.Sprintf("schema_version %d: this reader knows 1", n))
		}
		if isInt && n > 0 && n < 1<<16 {
			t.SchemaVersion = int(n)
		}
	}
	t.ID = strings.TrimSpace(top.str("id"))
	t.DisplayName = strings.TrimSpace(top.str("display_name"))
	t.Kind = strings.TrimSpace(top.str("kind"))
	if c, ok := top.sub("cli"); ok {
		t.CLI = CLI{VersionArgs: c.strs("version_args"), Verified: c.strs("verified"), MinVersion: c.str("min_version")}
	}
	t.Launch = Launch{WorkingDirectory: "workspace", AfterExit: "shell"}
	if l, ok := top.sub("launch"); ok {
		t.Launch = Launch{
			Command:          l.strs("command"),
			WorkingDirectory: l.word("working_directory", "workspace", "plugin-root"),
			Env:              l.words("env"),
			ScrubEnv:         l.strs("scrub_env"),
			AfterExit:        l.word("after_exit", "shell", "hold", "close"),
			SurvivesHangup:   l.boolean("survives_hangup"),
			Passthrough:      l.strs("passthrough"),
		}
	}
	if s, ok := top.sub("session_identity"); ok {
		t.Identity = SessionIdentity{
			Mode:        s.required("mode", "native-or-phux", "phux"),
			Restore:     s.required("restore", "external-cli", "phux-session"),
			NativeEnv:   strings.TrimSpace(s.str("native_env")),
			IDPattern:   s.str("id_pattern"),
			ResumeArgs:  s.strs("resume_args"),
			FreshArgs:   s.strs("fresh_args"),
			ForkArgs:    s.strs("fork_args"),
			MintCommand: s.strs("mint_command"),
			ForkCommand: s.strs("fork_command"),
			ResumeCwd:   s.word("resume_cwd", "launch", "any"),
			UnknownID:   s.word("unknown_id", "exits", "blank"),
			Never:       s.strs("never"),
		}
		if t.Identity.FreshArgs != nil {
			t.Identity.NeverPrompted = s.word("never_prompted", FreshAgain, FreshUntilFile, Lost)
		} else {
			t.Identity.NeverPrompted = s.word("never_prompted", Lost, FreshAgain, FreshUntilFile)
		}
	}
	if c, ok := top.sub("transcript"); ok {
		t.Transcript = &Transcript{Root: c.str("root"), Paths: c.strs("paths"), HeadID: c.str("head_id"), Contains: c.str("contains")}
	}
	for _, o := range top.subs("observe") {
		t.Observe = append(t.Observe, Observe{
			Kind: o.required("kind", "file", "open-file", "hook"),
			Path: o.str("path"), ID: o.str("id"), PID: o.str("pid"), Start: o.str("start"),
			StartUnit: o.word("start_unit", "", "ticks", "s", "ms"),
			Where:     o.scalars("where"), On: o.strs("on"), Event: o.str("event"),
		})
	}
	for _, q := range top.subs("require") {
		t.Require = append(t.Require, Require{
			File: q.str("file"), JSON: q.str("json"), Equals: q.scalar("equals"), Default: q.scalar("default"),
			At: q.required("at", "restore", "launch"), Consequence: q.str("consequence"),
		})
	}
	for _, h := range top.subs("hooks") {
		t.Hooks = append(t.Hooks, Hook{
			File: h.str("file"), Format: h.required("format", FormatJSON, FormatBlock, FormatFile),
			Events: h.strs("events"), Into: h.str("into"), Entry: h.str("entry"), Note: h.str("note"),
		})
	}
	for _, l := range top.subs("live") {
		t.Live = append(t.Live, Live{
			On: l.strs("on"), Event: l.str("event"), Where: l.scalars("where"), ID: l.str("id"),
			State:     l.required("state", "idle", "working", "blocked", "done"),
			Attention: l.word("attention", "", "none", "low", "normal", "high"),
		})
	}
	if a, ok := top.sub("agent_identity"); ok {
		t.Agent = AgentIdentity{Name: strings.TrimSpace(a.str("name")), Kind: strings.TrimSpace(a.str("kind"))}
	}
	r.unknown("", "", m)
	for _, name := range []string{"detect", "link"} { // phux's, read by nobody here
		if sub, ok := m[name].(map[string]any); ok {
			r.unknown(name, name, sub)
		}
	}
	return t
}

// table is one decoded table: path is its place in the file, name its place in the vocabulary.
type table struct {
	r          *reader
	path, name string
	m          map[string]any
}

func (t table) wrongType(key, want string, v any) {
	t.r.refuse(join(t.path, key), "write "+key+" = "+want, "must not be %s", typeName(v))
}

func (t table) str(key string) string {
	v, ok := t.m[key]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		t.wrongType(key, `"…"`, v)
	}
	return s
}

func (t table) boolean(key string) bool {
	v, ok := t.m[key]
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		t.wrongType(key, "true or false", v)
	}
	return b
}

// strs reads an array of strings; nil where the key is absent, empty where it is an empty array.
func (t table) strs(key string) []string {
	v, ok := t.m[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		t.wrongType(key, `["…", "…"]`, v)
		return nil
	}
	out := make([]string, 0, len(list))
	for i, e := range list {
		s, ok := e.(string)
		if !ok {
			t.r.refuse(join(t.path, key)+"["+strconv.Itoa(i)+"]", "every element is a string in quotes", "must not be %s", typeName(e))
			return nil
		}
		out = append(out, s)
	}
	return out
}

// word reads one of a few words; the first is the default.
func (t table) word(key string, words ...string) string {
	if _, ok := t.m[key]; !ok {
		return words[0]
	}
	before := len(t.r.bad)
	s := t.str(key)
	if len(t.r.bad) == before && (s == "" || !slices.Contains(words, s)) {
		t.r.refuse(join(t.path, key), "write "+choice(words), "%s is not known", quote(s))
	}
	return s
}

// required is word without a default.
func (t table) required(key string, words ...string) string {
	if _, ok := t.m[key]; !ok {
		t.r.refuse(join(t.path, key), "write "+key+" = "+choice(words), "is missing")
		return ""
	}
	return t.word(key, words...)
}

// words reads a table of strings.
func (t table) words(key string) map[string]string {
	s, ok := t.sub(key)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, k := range sortedKeys(s.m) {
		out[k] = s.str(k)
	}
	return out
}

// scalars reads a table of strings, booleans and numbers.
func (t table) scalars(key string) map[string]any {
	s, ok := t.sub(key)
	if !ok {
		return nil
	}
	out := map[string]any{}
	for _, k := range sortedKeys(s.m) {
		out[k] = s.scalar(k)
	}
	return out
}

func (t table) scalar(key string) any {
	switch v := t.m[key].(type) {
	case nil, string, bool, int64, float64:
		return v
	default:
		t.wrongType(key, "a string, a boolean or a number", v)
		return nil
	}
}

// sub opens a table within the table, and reports its unknown keys.
func (t table) sub(key string) (table, bool) {
	v, ok := t.m[key]
	if !ok {
		return table{}, false
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.r.refuse(join(t.path, key), "write ["+join(t.name, key)+"] and its keys below", "must not be %s", typeName(v))
		return table{}, false
	}
	s := table{t.r, join(t.path, key), join(t.name, key), m}
	t.r.unknown(s.path, s.name, m)
	return s, true
}

// subs opens an array of tables.
func (t table) subs(key string) []table {
	var list []map[string]any
	switch v := t.m[key].(type) {
	case nil:
	case []map[string]any:
		list = v
	case []any:
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				t.r.refuse(key, "write [["+key+"]] and its keys below", "must hold tables alone, not %s", typeName(e))
				return nil
			}
			list = append(list, m)
		}
	default:
		t.r.refuse(key, "write [["+key+"]] and its keys below", "must not be %s", typeName(v))
	}
	if len(list) > maxTables {
		t.r.refuse(key, "keep those that count", "%d tables, at most %d", len(list), maxTables)
		return nil
	}
	out := make([]table, len(list))
	for i, m := range list {
		out[i] = table{t.r, key + "[" + strconv.Itoa(i) + "]", key, m}
		t.r.unknown(out[i].path, key, m)
	}
	return out
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "an array"
	}
	return "a date"
}

func choice(words []string) string {
	var quoted []string
	for _, w := range words {
		if w != "" {
			quoted = append(quoted, quote(w))
		}
	}
	return strings.Join(quoted, " or ")
}

// quote shows a value of the file, shortened: a message is no place for 4096 bytes.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
