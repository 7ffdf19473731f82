package owner

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Answer is what an observation proved.
type Answer struct {
	Kind   AnswerKind
	ID     string // for Confirmed: as the CLI stores it
	Reason string // for Unknown and Gone
	By     string // the observer that proved it: "file" | "open-file" | "hook"
	// Open are the ids that it has open where those are several, sorted: one of them is the active
	// one, and a hook may say which.
	Open []string
}

type AnswerKind string

const (
	Confirmed AnswerKind = "confirmed"
	Gone      AnswerKind = "ended"
	Unknown   AnswerKind = "unknown"
)

// Observer reads processes. One Observer serves one verb: it reads the process table once, and
// each provider's registry at most once. Its methods may be called concurrently.
type Observer struct {
	table *proc.Table
	self  Process

	mu       sync.Mutex
	argv     map[int][]string
	environ  map[int]environment
	scans    map[string]*scan
	real     map[string]string // a root with its links resolved
	byArg    func() map[string][]proc.Info
	byTarget func() map[string][]proc.Info
}

type environment struct {
	vars map[string]string
	err  error
}

// Bounds of a provider's registry.
const (
	maxEntry   = 1 << 20 // bytes of one file
	maxScanned = 1 << 14 // files of one observer, over all processes
)

// slack is how much earlier than its process a file may claim to be: providers round to seconds,
// and a file's time lags behind the clock by a tick. It guards against a reused pid, whose
// earlier owner was dead by then.
const slack = 2 * time.Second

// NewObserver reads the process table. An error where this system has none that can be read.
func NewObserver() (*Observer, error) {
	table, err := proc.ReadTable()
	if err != nil {
		return nil, err
	}
	return newObserver(table), nil
}

func newObserver(table *proc.Table) *Observer {
	o := &Observer{table: table, argv: map[int][]string{}, environ: map[int]environment{}, scans: map[string]*scan{}, real: map[string]string{}}
	if self, err := proc.Self(); err == nil {
		o.self = Process(self)
	}
	o.byArg = sync.OnceValue(o.readArgs)
	o.byTarget = sync.OnceValue(o.readTargets)
	return o
}

// Observe says which conversation the agent that root became (or started) has open now.
//
// Only the owner's own processes are asked: root and, where that is a wrapper, those that it
// handed its arguments to. The template's `file` and `open-file` observers decide; if they show
// more than one conversation, nothing is chosen. A template's root is expanded in root's own
// environment. A `hook` needs its event and proves nothing here.
func (o *Observer) Observe(t *integrations.Template, root Process) Answer {
	info, ok := o.table.Get(root.PID)
	if !ok || info.Start != root.Start || info.Dead() {
		// Not there, or begun after the table was read.
		now, err := proc.Stat(root.PID)
		switch {
		case err != nil && !errors.Is(err, proc.ErrGone):
			return Answer{Kind: Unknown, Reason: err.Error()}
		case err != nil || now.Start != root.Start || now.Dead():
			return Answer{Kind: Gone, Reason: fmt.Sprintf("process %d has ended", root.PID)}
		}
		info = now
	}
	if t == nil {
		return Answer{Kind: Unknown, Reason: "no template says how to recognise it"}
	}
	found := map[string]string{} // id -> the observer that proved it
	var reasons []string
	asked := false
	for n := range t.Observe {
		ob := &t.Observe[n]
		if ob.Kind != kindFile && ob.Kind != kindOpenFile {
			continue
		}
		asked = true
		ids, reason := o.ask(t, ob, info)
		if reason != "" {
			reasons = append(reasons, reason)
		}
		for _, id := range ids {
			norm, err := t.NormalizeID(id)
			if err != nil {
				return Answer{Kind: Unknown, Reason: fmt.Sprintf("process %d has a conversation open whose id is none: %v", root.PID, err)}
			}
			if found[norm] == "" {
				found[norm] = ob.Kind
			}
		}
	}
	switch {
	case !asked:
		return Answer{Kind: Unknown, Reason: "its template has no observer that can be read"}
	case len(found) > 1:
		return Answer{Kind: Unknown, Reason: fmt.Sprintf("%d conversations open", len(found)), Open: slices.Sorted(maps.Keys(found))}
	case len(found) == 0:
		if len(reasons) == 0 {
			reasons = []string{"nothing shows which conversation it has open"}
		}
		return Answer{Kind: Unknown, Reason: strings.Join(reasons, "; ")}
	}
	for id, by := range found {
		return Answer{Kind: Confirmed, ID: id, By: by}
	}
	return Answer{Kind: Unknown}
}

const (
	kindFile     = "file"
	kindOpenFile = "open-file"
	kindHook     = "hook"
)

// ask evaluates one observer over the owner's block: every id that it proves, and why it proves
// none.
func (o *Observer) ask(t *integrations.Template, ob *integrations.Observe, root proc.Info) (ids []string, reason string) {
	dir, err := o.rootOf(t, root.PID)
	if err != nil {
		return nil, err.Error()
	}
	block := o.block(t, root)
	if ob.Kind == kindOpenFile {
		return o.held(ob, dir, block)
	}
	for _, member := range block {
		entries, err := o.entriesOf(ob, dir, member.PID)
		if err != nil {
			return nil, err.Error()
		}
		for _, e := range entries {
			if e.pid != member.PID {
				continue
			}
			switch why := e.refuse(ob, member, true); {
			case why == "":
				ids = append(ids, e.id)
			case reason == "":
				reason = fmt.Sprintf("%s %s", e.path, why)
			}
		}
	}
	if len(ids) > 0 {
		return ids, ""
	}
	if reason == "" {
		reason = fmt.Sprintf("no file of process %d in %s", block[len(block)-1].PID, dir)
	}
	return nil, reason
}

// held returns the ids of the conversations that the block's processes hold open.
func (o *Observer) held(ob *integrations.Observe, dir string, block []proc.Info) (ids []string, reason string) {
	gone := 0
	for _, member := range block {
		files, err := proc.OpenFiles(member.PID)
		if err != nil {
			return nil, err.Error() // what it holds besides cannot be known
		}
		pattern, err := patternOf(ob, dir, member.PID, "")
		if err != nil {
			return nil, err.Error()
		}
		for _, f := range files {
			if ok, _ := path.Match(pattern, f.Target); !ok {
				continue
			}
			id, ok := ob.IDFromPath(dir, member.PID, f.Target)
			if !ok {
				continue
			}
			ids = append(ids, id)
			if f.Deleted {
				gone++
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if gone > 0 && len(ids) == 1 {
		return nil, "the file that it holds open has been deleted"
	}
	if len(ids) == 0 {
		return nil, fmt.Sprintf("process %d holds no such file open", block[len(block)-1].PID)
	}
	return ids, ""
}

// rootOf expands the template's root in the environment of a process, links resolved, for the
// kernel names open files by their resolved path.
func (o *Observer) rootOf(t *integrations.Template, pid int) (string, error) {
	env := o.env(pid)
	if env.err != nil {
		return "", env.err
	}
	return o.realRoot(t, func(name string) (string, bool) {
		v, ok := env.vars[name]
		return v, ok
	})
}

// realRoot expands a template's root in an environment and follows its links, each root once.
func (o *Observer) realRoot(t *integrations.Template, env integrations.Env) (string, error) {
	if t.Transcript == nil {
		return "", nil
	}
	root, err := expandRoot(t.Transcript.Root, env)
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	real, ok := o.real[root]
	if !ok {
		real = resolve(root)
		o.real[root] = real
	}
	return real, nil
}

// env and args are read beside each other, for many panes; what was read first of a process counts.
func (o *Observer) env(pid int) environment {
	return remembered(&o.mu, o.environ, pid, func() environment {
		list, err := proc.Environ(pid)
		e := environment{err: err, vars: make(map[string]string, len(list))}
		for _, kv := range list {
			name, value, ok := strings.Cut(kv, "=")
			if _, twice := e.vars[name]; ok && !twice { // getenv takes the first
				e.vars[name] = value
			}
		}
		return e
	})
}

func (o *Observer) args(i proc.Info) []string {
	return remembered(&o.mu, o.argv, i.PID, func() []string {
		a, _ := proc.Cmdline(i.PID)
		return a
	})
}

// remembered is what a memory holds of a process, or what is read of it now, without the lock.
func remembered[V any](mu *sync.Mutex, memory map[int]V, pid int, read func() V) V {
	mu.Lock()
	v, ok := memory[pid]
	mu.Unlock()
	if ok {
		return v
	}
	v = read()
	mu.Lock()
	defer mu.Unlock()
	if earlier, ok := memory[pid]; ok {
		return earlier
	}
	memory[pid] = v
	return v
}

// entry is one file of a provider's registry.
type entry struct {
	path  string
	id    string
	pid   int
	start *float64 // as written; nil where the observer names none
	mtime time.Time
	where bool // the filter holds
}

// refuse says why the entry is no proof for a process; empty where it is. The filter is left
// out where any running conversation counts, whoever started it.
func (e entry) refuse(ob *integrations.Observe, p proc.Info, filter bool) string {
	switch {
	case filter && !e.where:
		return "is of another kind of run"
	case e.start == nil && e.mtime.Before(proc.Time(p.Start).Add(-slack)):
		return "is older than the process"
	case e.start == nil:
		return ""
	}
	var at time.Time
	switch ob.StartUnit {
	case "s":
		at = time.UnixMilli(int64(*e.start * 1000))
	case "ms":
		at = time.UnixMilli(int64(*e.start))
	default:
		if *e.start != float64(p.Start) {
			return "is of an earlier process of that number"
		}
		return ""
	}
	if at.Before(proc.Time(p.Start).Add(-slack)) {
		return "is of an earlier process of that number"
	}
	return ""
}

// entriesOf reads what a process has in the registry. Where the path does not name the process
// the whole registry is read, once.
func (o *Observer) entriesOf(ob *integrations.Observe, dir string, pid int) ([]entry, error) {
	if !strings.Contains(ob.Path, "${PID}") {
		s := o.scan(ob, dir)
		return s.byPID[pid], s.err
	}
	pattern, err := patternOf(ob, dir, pid, "")
	if err != nil {
		return nil, err
	}
	paths, err := glob(pattern, maxMatches)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, p := range paths {
		e, err := readEntry(ob, dir, p, pid)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// scan is a whole registry, read once.
type scan struct {
	byPID map[int][]entry
	byID  map[string][]entry
	err   error // it is not whole
}

func (o *Observer) scan(ob *integrations.Observe, dir string) *scan {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := strings.Join([]string{dir, ob.Path, ob.ID, ob.PID, ob.Start}, "\x00")
	if s, ok := o.scans[key]; ok {
		return s
	}
	s := &scan{byPID: map[int][]entry{}, byID: map[string][]entry{}}
	o.scans[key] = s
	pattern, err := patternOf(ob, dir, 0, "")
	if err != nil {
		s.err = err
		return s
	}
	paths, err := glob(pattern, maxScanned)
	s.err = err
	for _, p := range paths {
		e, err := readEntry(ob, dir, p, 0)
		if err != nil {
			continue // one that is being written, or is no such file
		}
		s.byPID[e.pid] = append(s.byPID[e.pid], e)
		s.byID[e.id] = append(s.byID[e.id], e)
	}
	return s
}

// readEntry reads one file. pid is the process that the path was made for, 0 for any.
func readEntry(ob *integrations.Observe, dir, file string, pid int) (entry, error) {
	e := entry{path: file, pid: pid, where: true}
	f, err := openRegular(file)
	if err != nil {
		return e, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	e.mtime = info.ModTime()
	if pid == 0 {
		e.pid, _ = ob.PIDFromPath(dir, "", file) // else a pointer names it
	}
	if ob.ID == "" {
		id, ok := ob.IDFromPath(dir, e.pid, file)
		if !ok {
			return e, fmt.Errorf("%s names no id", file)
		}
		e.id = id
	}
	if ob.ID == "" && ob.PID == "" && ob.Start == "" && len(ob.Where) == 0 && e.pid != 0 {
		return e, nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEntry+1))
	if err != nil {
		return e, err
	}
	if len(b) > maxEntry {
		return e, fmt.Errorf("%s is longer than %d bytes", file, maxEntry)
	}
	doc, err := decodeForeign(b)
	if err != nil {
		return e, fmt.Errorf("%s is not JSON", file)
	}
	if ob.ID != "" {
		v, _ := follow(doc, ob.ID)
		if e.id, _ = v.(string); e.id == "" {
			return e, fmt.Errorf("%s has no %s", file, ob.ID)
		}
	}
	if ob.PID != "" {
		v, _ := follow(doc, ob.PID)
		n, ok := number(v)
		if !ok || n != float64(int(n)) || n <= 0 || pid != 0 && int(n) != pid {
			return e, fmt.Errorf("%s has no %s of the process", file, ob.PID)
		}
		e.pid = int(n)
	}
	if e.pid == 0 {
		return e, fmt.Errorf("%s names no process", file)
	}
	if ob.Start != "" {
		v, _ := follow(doc, ob.Start)
		n, ok := number(v)
		if !ok {
			return e, fmt.Errorf("%s has no %s", file, ob.Start)
		}
		e.start = &n
	}
	for pointer, want := range ob.Where {
		if got, ok := follow(doc, pointer); !ok || !same(got, want) {
			e.where = false
		}
	}
	return e, nil
}
