package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/restore"
)

// The bounds of what is worth a word.
const (
	leastFree = 64 << 20 // bytes: an archive of 8192 panes is some 6 MiB, written beside the last one
	longAgo   = 24 * time.Hour
)

// checks are in the order in which a person mends things.
var checks = []struct {
	name string
	look func(*Facts) []Finding
}{
	{"program", program},
	{"configuration", configuration},
	{"directories", directories},
	{"host", theHost},
	{"plugins", plugins},
	{"agents", agents},
	{"hooks", theHooks},
	{"panes", panes},
	{"history", history},
	{"reboot", reboot},
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Grade: OK, Text: fmt.Sprintf(format, args...)}}
}

func orOK(found []Finding, format string, args ...any) []Finding {
	if len(found) > 0 {
		return found
	}
	return ok(format, args...)
}

func program(f *Facts) []Finding {
	p := f.Program
	var out []Finding
	switch {
	case p.OnPath == "":
		out = append(out, Finding{
			Grade: Warn, Text: fmt.Sprintf("phux-agent is not on the PATH; this one is %s", p.Self),
			Remedy: fmt.Sprintf("mkdir -p ~/.local/bin && ln -s %s ~/.local/bin/, with ~/.local/bin on the PATH: hooks and shell functions call it by name", quoted(p.Self)),
		})
	case !p.Same:
		out = append(out, Finding{
			Grade: Warn, Text: fmt.Sprintf("the PATH finds another phux-agent, %s; this one is %s", p.OnPath, p.Self),
			Remedy: fmt.Sprintf("keep one of them, as in ln -sf %s %s: panes call the one that started them", quoted(p.Self), quoted(p.OnPath)),
		})
	}
	if p.Trust != nil {
		out = append(out, Finding{
			Grade: Warn, Text: "somebody else could change the program: " + p.Trust.Error(),
			Remedy: "install it where only you or root can write",
		})
	}
	return orOK(out, "%s", p.Self)
}

func configuration(f *Facts) []Finding {
	if f.Config != nil {
		text, _, _ := strings.Cut(f.Config.Error(), "\n") // what follows shows the line
		return []Finding{{Grade: Fail, Text: text, Remedy: "mend the file; until then every verb refuses"}}
	}
	return ok("it reads")
}

func directories(f *Facts) []Finding {
	var out []Finding
	for _, d := range []struct {
		Directory
		what, holds string
	}{{f.State, "state", "the archives"}, {f.Runtime, "runtime", "claims and what panes are handed"}} {
		switch {
		case errors.Is(d.Err, syscall.ENOTDIR):
			out = append(out, Finding{
				Grade: Fail, Text: fmt.Sprintf("the %s directory %s cannot be used: %v", d.what, d.Path, d.Err),
				Remedy: fmt.Sprintf("mv %[1]s %[1]s.away: a file stands where %[2]s belong", quoted(d.Path), d.holds),
			})
		case d.Err != nil:
			out = append(out, Finding{
				Grade: Fail, Text: fmt.Sprintf("the %s directory %s cannot be used: %v", d.what, d.Path, d.Err),
				Remedy: fmt.Sprintf("mkdir -p %[1]s && chmod 700 %[1]s, and chown it to you where it is not yours: it holds %[2]s", quoted(d.Path), d.holds),
			})
		case d.Free < leastFree:
			out = append(out, Finding{
				Grade: Warn, Text: fmt.Sprintf("%d MiB are free in the %s directory %s", d.Free>>20, d.what, d.Path),
				Remedy: "make room: a save that does not fit is refused, and the last one stays",
			})
		}
	}
	if f.Runtime.Temporary && f.Runtime.Err == nil {
		out = append(out, Finding{
			Grade: Note, Text: fmt.Sprintf("XDG_RUNTIME_DIR is not set: claims are kept in %s", f.Runtime.Path),
			Remedy: "nothing, where every shell of yours has the same environment; else set it for all of them",
		})
	}
	return orOK(out, "archives in %s", f.State.Path)
}

func theHost(f *Facts) []Finding {
	h := f.Host
	if h.Err != nil && !errors.Is(h.Err, host.ErrNoServer) {
		return []Finding{{Grade: Fail, Text: h.Err.Error(), Remedy: "install tmux 3.2a or later (apt install tmux, brew install tmux), or use --host embedded"}}
	}
	var out []Finding
	for _, w := range h.Info.Warnings {
		out = append(out, Finding{Grade: Warn, Text: w})
	}
	if !h.Info.AtomicRecord && h.Info.Running {
		out = append(out, Finding{
			Grade: Fail, Text: "this server cannot store a record together with its pane: restore refuses it",
			Remedy: "restart it with a current version",
		})
	}
	running := "no server runs"
	if h.Info.Running {
		running = "its server runs"
	}
	return orOK(out, "%s %s; %s", h.Kind, h.Info.Version, running)
}

func plugins(f *Facts) []Finding {
	var out []Finding
	owners := map[string][]string{}
	n := 0
	for _, p := range f.Plugins {
		if p.Err != nil {
			out = append(out, Finding{
				Grade: Fail, Text: fmt.Sprintf("plugin %s is not used: %v", p.ID, p.Err),
				Remedy: "phux-agent plugin validate " + strconv.Quote(p.Root),
			})
			continue
		}
		for _, in := range p.Integrations {
			switch {
			case !p.Enabled || !in.Enabled:
			case in.Err != nil:
				out = append(out, Finding{
					Grade: Fail, Text: fmt.Sprintf("integration %s of %s is not used: %v", in.ID, p.ID, in.Err),
					Remedy: "phux-agent integration lint " + strconv.Quote(in.File),
				})
			default:
				n++
				owners[in.ID] = append(owners[in.ID], p.ID)
			}
		}
	}
	for _, id := range sortedKeys(owners) {
		if of := owners[id]; len(of) > 1 {
			out = append(out, Finding{
				Grade: Fail, Text: fmt.Sprintf("integration %s has %d owners (%s): nothing of it is started or restored", id, len(of), strings.Join(of, ", ")),
				Remedy: "phux-agent plugin disable ID, all but one",
			})
		}
	}
	return orOK(out, "%s of %s", many(n, "integration"), many(len(f.Plugins), "plugin"))
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func agents(f *Facts) []Finding {
	var out []Finding
	var fine []string
	for _, a := range f.Agents {
		if a.ProgramErr != nil {
			if a.Used {
				out = append(out, Finding{
					Grade: Fail, Text: fmt.Sprintf("%s is in use, and its program is not found: %v", a.Integration, a.ProgramErr),
					Remedy: "put its directory on the PATH that restore runs with",
				})
			}
			continue
		}
		bad := len(out)
		switch {
		case a.Unverified != nil && a.Used:
			out = append(out, Finding{
				Grade: Warn, Text: fmt.Sprintf("%s is in use, and is not resumed: %v", a.Integration, a.Unverified),
				Remedy: "phux-agent integration test " + a.Integration + " --real, then allow it",
			})
		case a.Unverified != nil:
			out = append(out, Finding{Grade: Note, Text: fmt.Sprintf("%s is installed; its template was run on no version of it", a.Integration)})
		case a.Version != "" && a.MinVersion != "" && older(a.Version, a.MinVersion):
			out = append(out, Finding{
				Grade: Warn, Text: fmt.Sprintf("%s is %s; its template is for %s and later", a.Integration, a.Version, a.MinVersion),
				Remedy: "upgrade it",
			})
		case a.Version != "" && len(a.Verified) > 0 && !slices.Contains(a.Verified, a.Version):
			out = append(out, Finding{
				Grade: Note, Text: fmt.Sprintf("%s is %s; its template was run on %s", a.Integration, a.Version, strings.Join(a.Verified, ", ")),
				Remedy: "phux-agent integration test " + a.Integration + " --real shows whether it still holds",
			})
		}
		for _, u := range a.Unmet {
			grade := Note
			if a.Used {
				grade = Warn
			}
			out = append(out, Finding{Grade: grade, Text: fmt.Sprintf("%s, at %s: %s; else %s", a.Integration, u.At, u.Detail, u.Consequence), Remedy: u.Remedy})
		}
		if len(out) == bad {
			fine = append(fine, strings.TrimSpace(a.Integration+" "+a.Version))
		}
	}
	if len(fine) > 0 || len(out) == 0 {
		text := "no agent is installed that an integration knows"
		if len(fine) > 0 {
			text = strings.Join(fine, ", ")
		}
		out = append(ok("%s", text), out...)
	}
	return out
}

// older compares dotted numbers. What is none is not older.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range b {
		if i >= len(a) {
			return false
		}
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

func theHooks(f *Facts) []Finding {
	var out []Finding
	var have, without []string
	for _, a := range f.Agents {
		if a.Hooks == "" || a.ProgramErr != nil && !a.Used {
			continue
		}
		install := "phux-agent hooks install " + a.Integration
		switch a.Hooks {
		case hooks.Installed:
			have = append(have, a.Integration)
		case hooks.Missing, hooks.Elsewhere:
			switch {
			case a.NeedsHooks && a.Used:
				out = append(out, Finding{Grade: Warn, Text: a.Integration + " has no hook: after a new conversation is begun in it, the old one would come back", Remedy: install})
			case a.NeedsHooks:
				without = append(without, a.Integration)
			}
		case hooks.Stale:
			out = append(out, Finding{Grade: Warn, Text: fmt.Sprintf("the hook of %s is stale: it calls a phux-agent that is not there any more", a.Integration), Remedy: install})
		default:
			out = append(out, Finding{Grade: Warn, Text: fmt.Sprintf("the hook of %s is %s", a.Integration, a.Hooks), Remedy: install + " --dry-run shows why"})
		}
	}
	if len(without) > 0 {
		out = append(out, Finding{Grade: Note, Text: "not in use yet, and only a hook would tell of a new conversation in it: " + strings.Join(without, ", "), Remedy: "phux-agent hooks install"})
	}
	if len(have) > 0 {
		return append(ok("installed for %s", strings.Join(have, ", ")), out...)
	}
	return orOK(out, "none are needed")
}

func panes(f *Facts) []Finding {
	if f.Unseen != nil {
		return []Finding{{Grade: Fail, Text: "the panes cannot be looked at: " + f.Unseen.Error()}}
	}
	var out []Finding
	running := 0
	for _, p := range f.Panes {
		place := fmt.Sprintf("%s:%d.%d", p.Session, p.Window, p.Index)
		switch {
		case p.Err != nil:
			out = append(out, Finding{
				Pane: place, Grade: Fail, Text: fmt.Sprintf("pane %s: its record cannot be read and is not saved: %v", place, p.Err),
				Remedy: "phux-agent " + f.Server + "record forget " + p.Terminal.ID,
			})
		case p.State == capture.Running && p.Restorable && p.Facts.Unconfirmed != "":
			running++
			out = append(out, Finding{Pane: place, Grade: Note, Text: fmt.Sprintf("pane %s: its conversation is unconfirmed: %s", place, p.Facts.Unconfirmed)})
		case p.State == capture.Running && p.Restorable:
			running++
		case p.State == capture.Running || p.State == capture.Program && p.Reason != "":
			out = append(out, Finding{Pane: place, Grade: Warn, Text: fmt.Sprintf("pane %s would not come back as itself: %s", place, p.Reason)})
		case p.State == capture.Exited || p.State == capture.Pending:
			out = append(out, Finding{Pane: place, Grade: Note, Text: fmt.Sprintf("pane %s is %s: %s", place, p.State, p.Reason)})
		}
	}
	if running > 0 || len(out) == 0 {
		out = append(ok("%d of %d run an agent that can come back", running, len(f.Panes)), out...)
	}
	return out
}

func history(f *Facts) []Finding {
	h := f.History
	save := "phux-agent " + f.Server + "save"
	if h.nothing() {
		grade := Note
		if len(f.Panes) > 0 {
			grade = Fail
		}
		return []Finding{{Grade: grade, Text: "nothing was saved yet", Remedy: save}}
	}
	if h.Err != nil {
		return []Finding{{Grade: Fail, Text: "no generation can be restored: " + h.Err.Error(), Remedy: save}}
	}
	var out []Finding
	for _, n := range h.Best.Newer {
		why := n.Reason
		if why == "" && n.Err != nil {
			why = n.Err.Error()
		}
		if n.State == archive.Settling {
			out = append(out, Finding{Grade: Note, Text: fmt.Sprintf("generation %d is newer and waits for its proof: %s", n.Generation, why)})
			continue
		}
		remedy := "phux-agent " + f.Server + "archive show " + strconv.FormatUint(n.Generation, 10)
		if n.State != archive.Corrupt && n.State != archive.Edited {
			remedy = save + " --accept, if the workspace is right as it is"
		}
		out = append(out, Finding{Grade: Warn, Text: fmt.Sprintf("generation %d is newer than the one that a restore would use, and is passed over (%s: %s)", n.Generation, n.State, why), Remedy: remedy})
	}
	if h.Best.Missing > 0 {
		out = append(out, Finding{Grade: Warn, Text: fmt.Sprintf("generation %d was written, and its file is gone", h.Best.Missing), Remedy: save})
	}
	age := f.Now.Sub(h.Best.SavedAt)
	switch {
	case !h.Saving && h.SavingWhy != "":
		out = append(out, Finding{Grade: Warn, Text: h.SavingWhy, Remedy: "phux-agent " + f.Server + "autosave on"})
	case len(f.Panes) > 0 && age > longAgo:
		out = append(out, Finding{Grade: Warn, Text: fmt.Sprintf("the last good save is %d hours old", int(age.Hours())), Remedy: save})
	}
	return append(ok("%s; a restore would use %d, of %s", many(len(h.Entries), "generation"), h.Best.Generation, h.Best.SavedAt.Local().Format("2006-01-02 15:04")), out...)
}

func reboot(f *Facts) []Finding {
	if f.Stage != nil {
		return []Finding{{Grade: Warn, Text: "what a restore would do cannot be told: " + f.Stage.Error()}}
	}
	if f.Reboot == nil {
		return ok("nothing would have to come back")
	}
	told := map[string]bool{}
	for _, p := range panes(f) {
		told[p.Pane] = p.Grade == Warn
	}
	var out []Finding
	back, shells := 0, 0
	for _, s := range f.Reboot.Sessions {
		if s.Action == restore.Refuse {
			out = append(out, Finding{Grade: Fail, Text: fmt.Sprintf("session %s would not be created: %s", s.Name, s.Reason)})
		}
		for _, p := range s.Panes {
			place := fmt.Sprintf("%s:%d.%d", s.Name, p.Window, p.Index)
			switch {
			case s.Action == restore.Refuse && !p.Verdict.Authority():
			case p.Verdict == restore.NeverDurable && told[place]: // of a pane that runs, and needs no other one
			case s.Action == restore.Refuse, p.Verdict.Circumstance():
				out = append(out, Finding{Pane: place, Grade: Warn, Text: fmt.Sprintf("pane %s: %s: %s", place, p.Verdict, p.Reason), Remedy: p.Hint})
			case p.Record != nil:
				back++
			default:
				shells++
			}
		}
	}
	return append(ok("%s and %s would come back", many(back, "conversation"), many(shells, "other pane")), out...)
}
