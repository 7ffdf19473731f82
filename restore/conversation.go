package restore

import (
	"fmt"

	"github.com/phux-agent/phux-agent/owner"
)

// Archived durability of a conversation.
const (
	durPresent       = "present"
	durNeverPrompted = "never-prompted"
)

// converse is the table of docs/restore.md: what was archived of a conversation, against now.
func converse(archived, archivedStore string, a Agent, now Talk) trouble {
	id := a.Owner.Template.Identity
	switch now.Presence {
	case owner.Present:
		return trouble{Resume, join("its conversation is there", now.Detail), ""}
	case owner.Absent, owner.Begun:
	default:
		if id.UnknownID == "blank" {
			return trouble{
				UnknownBlank, join("whether its conversation is there cannot be told, and for an unknown one this CLI opens a blank one", now.Detail),
				"make its store readable, then press Enter in the pane",
			}
		}
		return trouble{Resume, join("its conversation is not looked for: the CLI says itself when it is not there", now.Detail), ""}
	}

	fresh := "to begin a new one: phux-agent launch " + quoteArg(a.Owner.Template.ID)
	if archivedStore == "" || archivedStore != a.Store {
		return trouble{
			TranscriptMissing,
			join(fmt.Sprintf("its conversation is not in the store that its pane would use now (%s); it was saved with store %s",
				orUnknown(a.Store), orUnknown(archivedStore)), now.Detail),
			"restore with the environment or profile that it was launched with, then press Enter in the pane; " + fresh,
		}
	}
	switch archived {
	case durNeverPrompted:
		if a.Owner.Template.StartsAgain(now.Presence == owner.Begun) {
			return trouble{FreshSameID, "it was never prompted: it starts afresh under the same id", ""}
		}
		return trouble{
			NeverDurable, join("it was never prompted, so this CLI kept nothing that could be resumed", now.Detail), fresh,
		}
	case durPresent:
		return trouble{
			TranscriptMissing, join("its conversation was there when it was saved, and is gone", now.Detail),
			"bring its file back, then press Enter in the pane; " + fresh,
		}
	}
	return trouble{
		TranscriptMissing, join("its conversation is not there", now.Detail),
		"bring its file back, then press Enter in the pane; " + fresh,
	}
}
