package restore

import (
	"slices"

	"github.com/phux-agent/phux-agent/plugin"
)

// Verdict is one word of docs/restore.md.
type Verdict string

// What will happen.
const (
	Resume      Verdict = "resume"
	FreshSameID Verdict = "fresh-same-id"
	ShellPane   Verdict = "shell"
	EndedPane   Verdict = "ended"
	// PendingPane waits where it is: its session exists, and is never touched.
	PendingPane Verdict = "pending"
	// AskPane and ManualPane would start, and wait to be asked: by Enter, or by word.
	AskPane    Verdict = "ask"
	ManualPane Verdict = "manual"
	// ProgramPane runs a program that the configuration lists, as it ran at the save.
	ProgramPane Verdict = "program"
)

// Authority: the session is not created. The first six are plugin.Reason's words.
const (
	IntegrationMissing   Verdict = Verdict(plugin.Missing)
	IntegrationDisabled  Verdict = Verdict(plugin.Disabled)
	IntegrationAmbiguous Verdict = Verdict(plugin.Ambiguous)
	IntegrationInvalid   Verdict = Verdict(plugin.Invalid)
	OwnerChanged         Verdict = Verdict(plugin.OwnerChanged)
	Untrusted            Verdict = Verdict(plugin.Untrusted)
	NotRestorable        Verdict = "not-restorable"
	InvalidRecord        Verdict = "invalid-record"
	ForeignMachine       Verdict = "foreign-machine"
	HostUnsupported      Verdict = "host-unsupported"
	DuplicateIdentity    Verdict = "duplicate-identity"
)

// Circumstance: the session is created, the pane is a placeholder.
const (
	CwdMissing        Verdict = "cwd-missing"
	CwdUnreadable     Verdict = "cwd-unreadable"
	BinaryMissing     Verdict = "binary-missing"
	TranscriptMissing Verdict = "transcript-missing"
	NeverDurable      Verdict = "never-durable"
	AlreadyLive       Verdict = "already-live"
	RequirementUnmet  Verdict = "requirement-unmet"
	ProfileMissing    Verdict = "profile-missing"
	UnknownBlank      Verdict = "unknown-blank"
)

var (
	happens = []Verdict{Resume, FreshSameID, ShellPane, EndedPane, PendingPane, AskPane, ManualPane, ProgramPane}

	authority = []Verdict{
		IntegrationMissing, IntegrationDisabled, IntegrationAmbiguous, IntegrationInvalid, OwnerChanged,
		Untrusted, NotRestorable, InvalidRecord, ForeignMachine, HostUnsupported, DuplicateIdentity,
	}

	circumstance = []Verdict{
		CwdMissing, CwdUnreadable, BinaryMissing, TranscriptMissing, NeverDurable, AlreadyLive,
		RequirementUnmet, ProfileMissing, UnknownBlank,
	}
)

// Authority reports whether the verdict refuses its session whole.
func (v Verdict) Authority() bool { return slices.Contains(authority, v) }

// Circumstance reports whether the verdict makes its pane a placeholder.
func (v Verdict) Circumstance() bool { return slices.Contains(circumstance, v) }

// Starts reports whether the verdict starts an agent.
func (v Verdict) Starts() bool { return v == Resume || v == FreshSameID }

// Verdicts returns every verdict that a pane can have.
func Verdicts() []Verdict { return slices.Concat(happens, authority, circumstance) }
