package capture

import (
	"context"
	"fmt"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// Texts is what stands on the terminals of what Capture returned, of at most so many lines each
// and within the bounds of the archive's package. Of agents that come back it is not asked:
// they draw their conversations themselves. Nil where the host does not remember text, or beside an
// error; empty where nothing stands there.
func Texts(ctx context.Context, h host.Host, a *archive.Archive, panes []Pane, lines int) ([]archive.Text, error) {
	reader, ok := h.(host.Historian)
	if !ok || lines < 1 {
		return nil, nil
	}
	of := map[string][]*Pane{}
	for i := range panes {
		of[panes[i].Session] = append(of[panes[i].Session], &panes[i])
	}
	var wanted []host.Terminal
	var out []archive.Text
	for _, s := range a.Sessions {
		left := of[s.Name]
		for w := range s.Windows {
			for p := range s.Windows[w].Panes {
				if len(left) == 0 {
					break
				}
				seen := left[0]
				left = left[1:]
				switch seen.State {
				case Running, Exited, Pending:
					continue
				}
				wanted = append(wanted, seen.Terminal)
				out = append(out, archive.Text{Session: s.Name, Window: w, Pane: p, SavedAt: a.SavedAt})
			}
		}
	}
	if len(wanted) == 0 {
		return []archive.Text{}, nil
	}
	texts, err := reader.History(ctx, wanted, lines)
	if err != nil {
		return nil, fmt.Errorf("read the scrollback: %w", err)
	}
	kept, size := out[:0], 0
	for i, t := range out {
		t.Text = ui.Looks(texts[wanted[i]], min(lines, archive.MaxTextLines), min(archive.MaxTextSize, archive.MaxTextsSize-size))
		delete(texts, wanted[i])
		if t.Text != "" {
			size += len(t.Text)
			kept = append(kept, t)
		}
	}
	return kept, nil
}
