package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
)

// textOf is what stood on a pane of the source; nothing of one that is not the store's own.
func (m *maker) textOf(session string, window, pane int) *archive.Text {
	if !m.src.Own {
		return nil
	}
	for i := range m.src.Texts {
		if t := &m.src.Texts[i]; t.Session == session && t.Window == window && t.Pane == pane {
			return t
		}
	}
	return nil
}

// showsText says that the pane begins with what stood there: a shell, or a program of the user's.
func (p *PanePlan) showsText() bool {
	return p.text != nil && (p.Start.Mode == host.Shell || p.Verdict == ProgramPane)
}

const (
	prefaceHead = "preface-"
	// prefaceAge is when one that no pane took is swept away.
	prefaceAge = 10 * time.Minute
)

// preface writes what the pane shows first. That it cannot is no reason to have no shell.
func (k *work) preface(pp *PanePlan, spec *host.PaneSpec) {
	if !pp.showsText() || k.e.Runtime == "" {
		return
	}
	f, err := os.CreateTemp(k.e.Runtime, prefaceHead) // 0600
	if err != nil {
		return
	}
	_, err = f.WriteString(pp.text.Text + k.textEnd(pp.text))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return
	}
	spec.Start.Preface = f.Name()
}

// textEnd is the line between what was and what is.
func (k *work) textEnd(t *archive.Text) string {
	from := "restored"
	if n := k.p.Source.Archive.Generation; n > 0 {
		from = fmt.Sprintf("restored from generation %d", n)
	}
	return fmt.Sprintf("\x1b[0;2m── %s, saved %s ──\x1b[0m\n", from, t.SavedAt.Local().Format("2006-01-02 15:04"))
}

// dropPrefaces removes those of a session that did not come to be.
func dropPrefaces(c host.CreateSession) {
	for _, w := range c.Windows {
		for _, p := range w.Panes {
			if p.Start.Preface != "" {
				_ = os.Remove(p.Start.Preface)
			}
		}
	}
}

// sweepPrefaces removes what panes that were killed left.
func (e Env) sweepPrefaces() {
	if e.Runtime == "" {
		return
	}
	entries, err := os.ReadDir(e.Runtime)
	if err != nil {
		return
	}
	for _, d := range entries {
		if i, err := d.Info(); err == nil && strings.HasPrefix(d.Name(), prefaceHead) && i.Mode().IsRegular() && time.Since(i.ModTime()) > prefaceAge {
			_ = os.Remove(filepath.Join(e.Runtime, d.Name()))
		}
	}
}
