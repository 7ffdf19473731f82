package plugin

import (
	"fmt"
	"slices"
)

// UnverifiedError is the refusal of a template that we ship and nobody has run: what it says of its
// agent was read, and a restore would find out on somebody's conversation.
type UnverifiedError struct{ Integration string }

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("integration %q is unverified: its template was written from documentation and run on no version", e.Integration)
}

// Allow is what a user writes to take that upon themselves, for people.
func (e *UnverifiedError) Allow() string {
	return fmt.Sprintf("allow_unverified = [%q] in [restore] of the configuration", e.Integration)
}

// Restorable returns nil where a restore may resume this owner's conversations: the template says
// how, and it was run on some version ([cli] verified), or the user said otherwise. Only what is
// embedded in the binary needs to have been run: a package that the user installed is their word.
// The error wraps what Template.Restorable says, or is a *UnverifiedError.
func (o Owner) Restorable() error {
	if err := o.Template.Restorable(); err != nil {
		return err
	}
	if o.Unverified {
		return &UnverifiedError{Integration: o.Template.ID}
	}
	return nil
}

func (r *Registry) unverified(c candidate) bool {
	return c.p.Origin == Embedded && len(c.in.Template.CLI.Verified) == 0 && !slices.Contains(r.allowed, c.in.ID)
}
