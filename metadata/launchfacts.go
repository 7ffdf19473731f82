package metadata

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// LaunchFacts is phux.agent-launch/v1: what a launch or a restore knew about the pane it made.
// It explains and it helps to find the owner; it never decides what runs.
type LaunchFacts struct {
	PaneKey       string    `json:"pane_key"`                // stable over generations; 26 characters of base32, ours
	PluginID      string    `json:"plugin_id,omitzero"`      // of the launch, also where no record exists yet
	IntegrationID string    `json:"integration_id,omitzero"` // "
	Profile       string    `json:"profile,omitzero"`        // the name only; empty means "default"
	LaunchDir     string    `json:"launch_cwd,omitzero"`     // absolute; the agent is resumed here
	Store         string    `json:"store,omitzero"`          // fingerprint of the expanded transcript root
	OwnerPID      int       `json:"owner_pid,omitzero"`      // the process that pane-exec became
	OwnerStart    uint64    `json:"owner_start,omitzero"`    // its start time, in clock ticks since boot
	ConfirmedAt   time.Time `json:"confirmed_at,omitzero"`   // when the record was last proven; UTC
	ConfirmedBy   string    `json:"confirmed_by,omitzero"`   // "hook" where only a report of the owner proved it; empty: what the owner keeps
	Opened        int       `json:"opened,omitzero"`         // how many conversations the owner had open then, where those were several
	Unconfirmed   string    `json:"unconfirmed,omitzero"`    // why the last observation did not confirm it
	Previous      []string  `json:"previous,omitempty"`      // earlier native ids, newest first, at most MaxPrevious
	NotPreserved  []string  `json:"not_preserved,omitempty"` // extra arguments that a restore will not bring back
	Pending       bool      `json:"pending,omitzero"`        // the pane is a placeholder: its record waits to be restored
	Durability    string    `json:"durability,omitzero"`     // as archived for a pending record
	Ended         bool      `json:"ended,omitzero"`          // a shell stands where the record's agent ended: shown and carried on, not started
	GoneAt        time.Time `json:"gone_at,omitzero"`        // when the agent was first seen ended, where nothing else tells when; UTC
	Epoch         uint64    `json:"epoch,omitzero"`          // number of the claim under which the owner runs
}

// Bounds of the launch facts, beside MaxRecord for the whole encoded value. Profile, Store and
// Durability are words of at most MaxID bytes.
const (
	MaxPrevious     = 16   // elements of Previous
	MaxNotPreserved = 64   // elements of NotPreserved
	MaxDir          = 3072 // bytes of LaunchDir
	MaxReason       = 512  // bytes of Unconfirmed
)

// Validate reports the first bound that the facts break, as a *BoundError.
func (f LaunchFacts) Validate() error {
	if err := CheckPaneKey("pane_key", f.PaneKey); err != nil {
		return err
	}
	for _, w := range []struct {
		name, value string
		most        int
	}{
		{"plugin_id", f.PluginID, MaxID},
		{"integration_id", f.IntegrationID, MaxID},
		{"profile", f.Profile, MaxID},
		{"store", f.Store, MaxID},
		{"durability", f.Durability, MaxID},
		{"confirmed_by", f.ConfirmedBy, MaxID},
	} {
		if err := checkOptional(w.name, w.value, w.most); err != nil {
			return err
		}
	}
	if err := checkDir("launch_cwd", f.LaunchDir); err != nil {
		return err
	}
	switch {
	case len(f.Unconfirmed) > MaxReason:
		return &BoundError{Field: "unconfirmed", Bound: TooLong, Got: len(f.Unconfirmed), Max: MaxReason}
	case !utf8.ValidString(f.Unconfirmed):
		return &BoundError{Field: "unconfirmed", Bound: NotUTF8}
	case f.OwnerPID < 0:
		return &BoundError{Field: "owner_pid", Bound: Negative}
	case f.Opened < 0:
		return &BoundError{Field: "opened", Bound: Negative}
	case f.ConfirmedAt.Year() < 0 || f.ConfirmedAt.Year() > 9999:
		return &BoundError{Field: "confirmed_at", Bound: BadTime, Want: "a year of four digits"}
	case f.GoneAt.Year() < 0 || f.GoneAt.Year() > 9999:
		return &BoundError{Field: "gone_at", Bound: BadTime, Want: "a year of four digits"}
	case len(f.Previous) > MaxPrevious:
		return &BoundError{Field: "previous", Bound: TooMany, Got: len(f.Previous), Max: MaxPrevious}
	case len(f.NotPreserved) > MaxNotPreserved:
		return &BoundError{Field: "not_preserved", Bound: TooMany, Got: len(f.NotPreserved), Max: MaxNotPreserved}
	}
	for _, id := range f.Previous {
		if err := CheckNativeID("previous", id); err != nil {
			return err
		}
	}
	for _, arg := range f.NotPreserved { // arguments as they were: data, empty ones too
		if !utf8.ValidString(arg) {
			return &BoundError{Field: "not_preserved", Bound: NotUTF8}
		}
	}
	return nil
}

// Encode returns the facts' exact form, at most MaxRecord bytes. Facts that are too long are
// refused; Fitted is the explicit way to make them shorter.
func (f LaunchFacts) Encode() ([]byte, error) {
	f.ConfirmedAt, f.GoneAt = f.ConfirmedAt.UTC(), f.GoneAt.UTC() // the same instants; the form is UTC
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", KeyAgentLaunch, err)
	}
	return marshal(KeyAgentLaunch, f)
}

// DecodeLaunchFacts reads launch facts of this version or a later one: unknown members are
// skipped, everything else is as exact as the record (no repeated member, no null in a member
// that is known, the same bounds as on writing).
func DecodeLaunchFacts(b []byte) (LaunchFacts, error) {
	f, err := decodeLaunchFacts(b)
	if err != nil {
		return LaunchFacts{}, fmt.Errorf("decode %s: %w", KeyAgentLaunch, err)
	}
	return f, nil
}

func decodeLaunchFacts(b []byte) (f LaunchFacts, err error) {
	if err := checkSize(len(b)); err != nil {
		return f, err
	}
	at := map[string]any{
		"pane_key": &f.PaneKey, "plugin_id": &f.PluginID, "integration_id": &f.IntegrationID, "profile": &f.Profile,
		"launch_cwd": &f.LaunchDir, "store": &f.Store, "owner_pid": &f.OwnerPID, "owner_start": &f.OwnerStart,
		"confirmed_at": &f.ConfirmedAt, "unconfirmed": &f.Unconfirmed, "previous": &f.Previous,
		"not_preserved": &f.NotPreserved, "pending": &f.Pending, "durability": &f.Durability,
		"ended": &f.Ended, "epoch": &f.Epoch, "confirmed_by": &f.ConfirmedBy,
		"gone_at": &f.GoneAt, "opened": &f.Opened,
	}
	err = object(b, false, func(name string, d *jsontext.Decoder) error {
		field, known := at[name]
		v, err := value(name, d, !known)
		if err != nil || !known {
			return err
		}
		if err := json.Unmarshal(v, field); err != nil {
			return &BoundError{Field: name, Bound: WrongType, Err: err}
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	f.ConfirmedAt, f.GoneAt = f.ConfirmedAt.UTC(), f.GoneAt.UTC()
	if len(f.Previous) == 0 {
		f.Previous = nil // an empty list is not written either
	}
	if len(f.NotPreserved) == 0 {
		f.NotPreserved = nil
	}
	return f, f.Validate()
}

// Remember puts a native id that the pane no longer holds in front of Previous: once, and at
// most MaxPrevious of them.
func (f *LaunchFacts) Remember(id string) {
	rest := slices.DeleteFunc(slices.Clone(f.Previous), func(p string) bool { return p == id })
	f.Previous = append([]string{id}, rest[:min(len(rest), MaxPrevious-1)]...)
}

// Fitted returns the facts without what only explains and does not fit: the end of Unconfirmed,
// then the last elements of NotPreserved, then the oldest of Previous. What it cannot help,
// Encode refuses.
func (f LaunchFacts) Fitted() LaunchFacts {
	for len(f.Unconfirmed) > MaxReason {
		_, last := utf8.DecodeLastRuneInString(f.Unconfirmed)
		f.Unconfirmed = f.Unconfirmed[:len(f.Unconfirmed)-last]
	}
	f.NotPreserved = f.NotPreserved[:min(len(f.NotPreserved), MaxNotPreserved)]
	f.Previous = f.Previous[:min(len(f.Previous), MaxPrevious)]
	for f.tooLong() && len(f.NotPreserved) > 0 {
		f.NotPreserved = f.NotPreserved[:len(f.NotPreserved)-1]
	}
	for f.tooLong() && len(f.Previous) > 0 {
		f.Previous = f.Previous[:len(f.Previous)-1]
	}
	return f
}

func (f LaunchFacts) tooLong() bool {
	b, err := json.Marshal(f)
	return err == nil && len(b) > MaxRecord
}
