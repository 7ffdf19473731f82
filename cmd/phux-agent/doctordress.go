package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/doctor"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

// dressCuts is how often the power is cut.
const dressCuts = 2

// dress is the dress rehearsal: the workspace on a server of its own, with stand-ins, restored
// after each power cut and compared with what it was.
func (a *app) dress(ctx context.Context) error {
	h, err := a.host(ctx)
	if err != nil {
		return err
	}
	saved, from, err := a.dressed(ctx, h)
	if err != nil {
		return err
	}
	st, err := a.newStage()
	if err != nil {
		return err
	}
	defer st.close()
	st.environ = withoutServer(a.environ)
	run := filepath.Join(st.base, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	sleep, err := plugin.LookProgram("sleep", a.getenv("PATH"))
	if err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	private, err := tmux.New(tmux.Options{Tmux: st.tmux, Path: st.socket, Self: st.self, RuntimeDir: run, Getenv: a.getenv})
	if err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	stage := doctor.Understudy{Host: private, Words: []string{sleep, "86400"}}
	store := archive.Store{Dir: filepath.Join(st.base, "archives"), Now: a.now, Machine: machine()}
	e, err := a.restoreEnv(ctx, &hosted{Host: stage}, store)
	if err != nil {
		return err
	}
	e.Info, e.Save, e.Runtime, e.Claims = nil, nil, "", owner.Claims{Dir: filepath.Join(run, "claims")}
	var found []doctor.Finding
	src := restore.Source{Archive: saved, Path: from, Own: true}
	for cut := range dressCuts {
		what := fmt.Sprintf("power cut %d", cut+1)
		if cut > 0 {
			if err := st.Cut(ctx); err != nil {
				return fmt.Errorf("rehearse: %w", err)
			}
		}
		back, report, err := a.curtain(ctx, st, stage, e, src)
		if err != nil {
			return fmt.Errorf("rehearse: %w", err)
		}
		found = append(found, a.judge(what, src.Archive, back, report)...)
		src.Archive = back
	}
	if !a.json {
		a.say("rehearsed %s, on a private tmux server, with a stand-in for each agent", from)
	}
	return a.findings(found)
}

// dressed is what is rehearsed: the live workspace, else the last good generation.
func (a *app) dressed(ctx context.Context, h *hosted) (*archive.Archive, string, error) {
	if h.info.Running {
		ar, _, err := a.asSaved(ctx, h)
		if err != nil || ar != nil {
			return ar, "the workspace as it is", err
		}
	}
	st, err := a.store(h.info)
	if err != nil {
		return nil, "", err
	}
	best, err := st.Best()
	if err != nil {
		return nil, "", fmt.Errorf("choose a generation: %w", err)
	}
	return best.Archive, fmt.Sprintf("generation %d", best.Generation), nil
}

// curtain restores an archive on the stage, and returns what stands there then.
func (a *app) curtain(ctx context.Context, st *stage, stage host.Host, e restore.Env, src restore.Source) (*archive.Archive, *restore.Report, error) {
	// The user's own configuration may save, restore and start things by itself: none is read.
	if err := st.raise(ctx); err != nil {
		return nil, nil, err
	}
	facts, err := restore.Gather(ctx, e, src, restore.Options{})
	if err != nil {
		return nil, nil, err
	}
	here := facts.Host
	facts = facts.Rebooted() // whom the real agents belong to is nobody's business here
	facts.Host = here
	plan, err := restore.Make(src, facts, restore.Options{})
	if err != nil {
		return nil, nil, err
	}
	report, err := restore.Apply(ctx, e, plan)
	if err != nil {
		return nil, nil, err
	}
	back, _, err := capture.Capture(ctx, capture.Request{
		Host: stage, Registry: e.Registry, Claims: e.Claims, Now: a.now, Machine: machine(), Getenv: a.lookup,
	})
	if err != nil {
		return nil, nil, err
	}
	back.Sessions = withoutPrompter(back.Sessions)
	return back, report, nil
}

func withoutPrompter(in []archive.Session) []archive.Session {
	var out []archive.Session
	for _, s := range in {
		if s.Name != prompter {
			out = append(out, s)
		}
	}
	return out
}

func (a *app) judge(what string, saved, back *archive.Archive, r *restore.Report) []doctor.Finding {
	var out []doctor.Finding
	conversations, panes := 0, 0
	for _, s := range r.Sessions {
		if s.Action == restore.Refuse || s.Error != "" {
			out = append(out, doctor.Finding{Check: what, Grade: doctor.Fail, Text: fmt.Sprintf("session %s: %s", s.Name, s.Reason)})
			continue
		}
		for _, p := range s.Panes {
			panes++
			place := fmt.Sprintf("%s:%d.%d", s.Name, p.Window, p.Index)
			switch {
			case p.Verdict.Circumstance():
				out = append(out, doctor.Finding{Check: what, Grade: doctor.Warn, Text: fmt.Sprintf("pane %s waits: %s: %s", place, p.Verdict, p.Reason), Remedy: p.Hint})
			case p.Result != nil && *p.Result == restore.Exited:
				out = append(out, doctor.Finding{Check: what, Grade: doctor.Fail, Text: fmt.Sprintf("pane %s did not start: %s", place, p.Reason)})
			case p.Record != nil && p.Verdict != restore.ShellPane && p.Verdict != restore.EndedPane:
				conversations++
			}
		}
	}
	differ, without := doctor.Differences(saved, back, func(dir string) bool {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir() && unix.Access(dir, unix.X_OK) == nil
	})
	for _, w := range without {
		out = append(out, doctor.Finding{Check: what, Grade: doctor.Note, Text: "pane " + w})
	}
	for _, d := range differ {
		out = append(out, doctor.Finding{Check: what, Grade: doctor.Fail, Text: d, Remedy: "this is a fault of ours, or of this tmux: please report it, with phux-agent version"})
	}
	text := fmt.Sprintf("%s came back in %s, %s with a conversation of their own", plural(panes, "pane"), plural(len(r.Sessions), "session"), plural(conversations, "pane"))
	return append([]doctor.Finding{{Check: what, Grade: doctor.OK, Text: text}}, out...)
}

// prompter is the session that keeps the private server up; no user's is called so.
const prompter = "phux-agent-prompter"

// raise starts the private server, without a configuration.
func (s *stage) raise(ctx context.Context) error {
	_, err := s.ask(ctx, "-f", "/dev/null", "new-session", "-d", "-s", prompter, "-x", "200", "-y", "50", "sleep", "86400")
	return err
}

// nearestDir is the path, or the nearest directory above it that exists.
func nearestDir(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
