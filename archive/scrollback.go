package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// Bounds on the text that is kept beside a generation. In bytes, but for MaxTextLines.
const (
	MaxTextLines = 10000
	MaxTextSize  = 1 << 20  // of a pane
	MaxTextsSize = 64 << 20 // of a generation
	maxTextsHead = 4 << 20
)

// Text is what stood on a pane's terminal and above it. It is for eyes, and never leaves the
// store but into the pane that stands in its place.
type Text struct {
	Session      string // as the archive lists it
	Window, Pane int    // positions in the archive
	SavedAt      time.Time
	Text         string
}

// textHead is the first line of the file. Everything in it is checked before a text is used.
type textHead struct {
	Scrollback int        `json:"scrollback"` // version of this form
	Generation uint64     `json:"generation"`
	Digest     string     `json:"digest"` // of the generation's file: a text belongs to it alone
	Body       string     `json:"body"`   // digest of what follows the line
	Texts      []textLine `json:"texts"`
}

type textLine struct {
	Session string    `json:"session"`
	Window  int       `json:"window"`
	Pane    int       `json:"pane"`
	SavedAt time.Time `json:"saved_at"`
	Size    int       `json:"size"`
}

const textVersion = 1

// ErrTexts is wrapped by every refusal of a file of texts that is not its generation's.
var ErrTexts = errors.New("the scrollback beside it is not its own")

// encodeTexts leaves out what breaks the bounds: a text describes, and identifies nothing.
func encodeTexts(n uint64, digest string, texts []Text) ([]byte, error) {
	h := textHead{Scrollback: textVersion, Generation: n, Digest: digest, Texts: []textLine{}}
	var body []byte
	for _, t := range texts {
		if t.Text == "" || len(t.Text) > MaxTextSize || len(body)+len(t.Text) > MaxTextsSize || len(h.Texts) == MaxPanes {
			continue
		}
		h.Texts = append(h.Texts, textLine{t.Session, t.Window, t.Pane, t.SavedAt, len(t.Text)})
		body = append(body, t.Text...)
	}
	h.Body = Digest(body)
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(b) >= maxTextsHead {
		return nil, &FormatError{Reason: "the head of the scrollback is too long"}
	}
	return append(append(b, '\n'), body...), nil
}

// decodeTexts accepts what encodeTexts wrote for that generation, all of it and nothing more.
func decodeTexts(b []byte, n uint64, digest string) ([]Text, error) {
	at := bytes.IndexByte(b[:min(len(b), maxTextsHead)], '\n')
	if at < 0 {
		return nil, fmt.Errorf("%w: it has no head", ErrTexts)
	}
	var h textHead
	if err := json.Unmarshal(b[:at], &h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTexts, err)
	}
	body := b[at+1:]
	switch {
	case h.Scrollback != textVersion:
		return nil, fmt.Errorf("%w: version %d, where %d is known", ErrTexts, h.Scrollback, textVersion)
	case h.Generation != n || h.Digest != digest:
		return nil, fmt.Errorf("%w: it belongs to generation %d as it was written", ErrTexts, h.Generation)
	case len(h.Texts) > MaxPanes || len(body) > MaxTextsSize:
		return nil, fmt.Errorf("%w: it is over its bounds", ErrTexts)
	case h.Body != Digest(body):
		return nil, fmt.Errorf("%w: its text is another than was written", ErrTexts)
	}
	var out []Text
	for _, l := range h.Texts {
		if l.Size < 1 || l.Size > MaxTextSize || l.Size > len(body) {
			return nil, fmt.Errorf("%w: a text of %d bytes", ErrTexts, l.Size)
		}
		out = append(out, Text{l.Session, l.Window, l.Pane, l.SavedAt, string(body[:l.Size])})
		body = body[l.Size:]
	}
	if len(body) > 0 {
		return nil, fmt.Errorf("%w: text that is no pane's", ErrTexts)
	}
	return out, nil
}

func textsFile(n uint64) string { return fmt.Sprintf("%0*d%s", digits, n, textsSuffix) }

// Texts returns what was kept of the screens of a generation that Get, Best and the like returned;
// none where nothing was. An ErrTexts where what is there is not this generation's, as it is now.
func (s Store) Texts(e Entry) ([]Text, error) {
	b, err := s.read(textsFile(e.Generation), MaxTextsSize+maxTextsHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the scrollback of generation %d: %w", e.Generation, err)
	}
	if e.State == Edited || e.State == Corrupt {
		return nil, fmt.Errorf("%w: the generation is %s", ErrTexts, e.State)
	}
	return decodeTexts(b, e.Generation, e.Digest)
}

func (s Store) saveTexts(e Entry, o SaveOptions, c *carrier, unchanged bool) error {
	if !o.KeepTexts || unchanged && o.Texts == nil {
		return nil
	}
	return s.keepTexts(e, slices.Concat(o.Texts, s.carriedTexts(c)))
}

// keepTexts makes exactly these the texts beside a generation. With the lock held.
func (s Store) keepTexts(e Entry, texts []Text) error {
	path := filepath.Join(s.Dir, textsFile(e.Generation))
	b, err := encodeTexts(e.Generation, e.Digest, texts)
	switch old, rerr := s.Texts(e); {
	case err != nil:
	case len(texts) == 0:
		err = s.writer().Remove(path)
	case rerr == nil && slices.EqualFunc(old, texts, sameText): // written once
	default:
		err = s.writer().Replace(path, b)
	}
	if err != nil {
		return fmt.Errorf("keep the scrollback: %w", err)
	}
	return nil
}

// sameText compares two but for their times.
func sameText(a, b Text) bool {
	b.SavedAt = a.SavedAt
	return a == b
}

// carriedTexts are those of the sessions that a save carries on, from where it has them.
func (s Store) carriedTexts(c *carrier) (out []Text) {
	known := map[uint64][]Text{}
	for i := range c.out {
		from := c.sources[i]
		texts, ok := known[from.entry.Generation]
		if !ok {
			texts, _ = s.Texts(*from.entry) // what cannot be used is not carried
			known[from.entry.Generation] = texts
		}
		for _, t := range texts {
			if t.Session == from.name {
				t.Session = c.out[i].Name
				out = append(out, t)
			}
		}
	}
	return out
}

// forgetTexts takes the texts of dismissed sessions out of every generation that offers them.
func (s Store) forgetTexts(l *listing, ws []waiting) error {
	for _, sl := range l.slots {
		if !l.texts[sl.n] {
			continue
		}
		e := s.entry(l, sl)
		texts, err := s.Texts(e)
		if err != nil || len(texts) == 0 {
			continue
		}
		gone := map[string]bool{}
		for i := range e.Archive.Sessions {
			x := &e.Archive.Sessions[i]
			gone[x.Name] = slices.Contains(ws, x.waiting(e.Generation))
		}
		left := slices.DeleteFunc(slices.Clone(texts), func(t Text) bool { return gone[t.Session] })
		if len(left) == len(texts) {
			continue
		}
		if err := s.keepTexts(e, left); err != nil {
			return err
		}
	}
	return nil
}
