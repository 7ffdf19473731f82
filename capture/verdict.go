package capture

import (
	"errors"
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// conclude settles what is said of each pane: which record of one conversation counts, whether
// the conversation exists, and whether the pane will come back.
func (l *view) conclude() {
	l.supersede()
	l.each(func(p *pane) {
		if p.fade(); p.State == Running {
			p.Owner = p.root
		}
		if !p.ours() {
			return
		}
		if p.State == Running && p.answer.Kind == owner.Unknown {
			p.Facts.Unconfirmed = p.answer.Reason
		}
		if p.Record != nil {
			p.Durability = l.durability(p)
		}
		p.Restorable, p.Reason = l.restorable(p)
	})
}

// supersede drops the record of a pane whose agent is over where another pane holds the same
// conversation: one of them runs it, or ran it later. A record that waits is not dropped: it is
// compared when it is restored.
func (l *view) supersede() {
	best := map[metadata.Identity]*pane{}
	for _, p := range l.panes {
		if p.Record == nil || p.State == Pending {
			continue
		}
		id := p.Record.Identity()
		if b := best[id]; b == nil || b.State != Running && (p.State == Running || p.Facts.Epoch > b.Facts.Epoch) {
			best[id] = p
		}
	}
	for _, p := range l.panes {
		if p.Record == nil || p.State == Pending || p.State == Running {
			continue
		}
		if b := best[p.Record.Identity()]; b != p {
			p.Facts.Remember(p.Record.NativeID)
			p.superseded = fmt.Sprintf("its conversation went on in pane %s", b.Terminal.ID)
			p.Record = nil
		}
	}
}

// durability says whether the conversation is in its store, looked for as its owner would. One
// that was seen there once counts as present where it is not found now: it is lost, and was not
// never prompted.
func (l *view) durability(p *pane) string {
	known := p.Facts.Durability
	waits := p.State == Pending && known != ""
	if waits && known != NeverPrompted {
		return known
	}
	found := l.stored(p)
	p.begun = found == owner.Begun
	switch {
	case waits:
		return known
	case known == Present || found == owner.Present:
		return Present
	case found.Missing():
		return NeverPrompted
	}
	return Unknown
}

// stored looks for the conversation of a pane where its owner would.
func (l *view) stored(p *pane) owner.Presence {
	if p.ownErr != nil || p.State == Replaced {
		return owner.CannotTell
	}
	t := p.own.Template
	if t.Transcript == nil || t.CheckID(p.Record.NativeID) != nil {
		return owner.CannotTell
	}
	env, ok := l.environment(p, t)
	if !ok {
		return owner.CannotTell
	}
	return l.proofs.probe(t, p.Record.NativeID, env)
}

// environment is the owner's; where the process is gone, the caller's, if that names the same
// store as the pane's did.
func (l *view) environment(p *pane, t *integrations.Template) (integrations.Env, bool) {
	if p.alive {
		if env, err := l.proofs.environ(p.root); err == nil {
			return env, true
		}
	}
	same := p.Facts.Store != "" && owner.Store(t, l.Getenv) == p.Facts.Store
	return l.Getenv, same
}

// restorable says whether the next restore brings the pane back to its conversation, and what a
// person should know. The reason may hold an age; nothing of it goes into an archive.
func (l *view) restorable(p *pane) (bool, string) {
	switch {
	case p.Err != nil:
		return false, fmt.Sprintf("its record is left out: %v", p.Err)
	case p.superseded != "":
		return false, p.superseded
	case p.State == Ended && p.Record == nil && len(p.Facts.Previous) == 0:
		return false, "its agent ended, and which conversation it had was never proven; it comes back as a shell"
	case p.State == Ended:
		return false, "its agent ended; it comes back as a shell"
	case p.State == Replaced:
		return false, "another program was started in its place"
	case p.ownErr != nil:
		return false, unresolved(p.ownErr)
	case p.Record == nil && p.own.Template == nil:
		return false, "its integration is not known"
	}
	t := p.own.Template
	var unverified *plugin.UnverifiedError
	switch err := p.own.Restorable(); {
	case errors.As(err, &unverified):
		return false, fmt.Sprintf("%v; a restore refuses it until there is %s", err, unverified.Allow())
	case err != nil:
		return false, err.Error()
	}
	if p.Record == nil {
		return false, "it has no id yet: " + p.unproven()
	}
	if err := t.CheckID(p.Record.NativeID); err != nil {
		return false, err.Error()
	}
	if p.Durability == NeverPrompted && !t.StartsAgain(p.begun) {
		return false, "it has had no prompt yet, and " + t.ID + " cannot start under the same id again"
	}
	switch {
	case p.State == Pending:
		return true, "it waits to be restored"
	case p.State == Exited:
		return true, exitWords(p)
	case p.answer.Kind == owner.Confirmed:
		return true, ""
	}
	return true, fmt.Sprintf("unconfirmed since %s: %s", ui.Since(p.Facts.ConfirmedAt, l.now), p.unproven())
}

// unresolved is the refusal in one line; a broken template's message has its place in the linter.
func unresolved(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

func (p *pane) unproven() string {
	if p.answer.Reason != "" {
		return p.answer.Reason
	}
	return "no agent of it runs"
}

func exitWords(p *pane) string {
	e := p.host.Exit
	switch {
	case e == nil:
		return "its agent ended, and how is not known"
	case e.Signal != "":
		return "its agent was ended by signal " + e.Signal
	case e.Status < 0:
		return "its agent ended, and how is not known"
	}
	return fmt.Sprintf("its agent exited with status %d", e.Status)
}
