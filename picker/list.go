package picker

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// List prints what there is to choose from with numbers, for where no terminal can be drawn on,
// and returns the choices by number: 1 is the first.
func List(w io.Writer, d *Data, agents []Agent, width int) ([]Choice, error) {
	var choices []Choice
	b := bufio.NewWriter(w)
	line := func(indent int, c Choice, words ...string) {
		number := ""
		if c.Act != Nothing {
			c.Asked = d.Asked
			choices = append(choices, c)
			number = strconv.Itoa(len(choices)) + ")"
		}
		kept := words[:0]
		for _, word := range words {
			if word != "" {
				kept = append(kept, ui.Escape(word))
			}
		}
		text := fmt.Sprintf("%4s %s%s", number, strings.Repeat("  ", indent), strings.Join(kept, "  "))
		if width > 0 {
			text = ui.Clip(text, width)
		}
		fmt.Fprintln(b, strings.TrimRight(text, " "))
	}
	if d.Generation > 0 {
		fmt.Fprintf(b, "generation %d, saved %s, on %s\n", d.Generation, d.Saved, ui.Escape(d.Server))
	} else {
		fmt.Fprintf(b, "nothing is saved of %s\n", ui.Escape(d.Server))
	}
	if sessions, starts := d.comeBack(); sessions > 0 {
		line(0, Choice{Act: RestoreAll, Generation: d.Generation}, "restore everything: "+everything(sessions, starts))
	}
	for _, r := range d.rows("", nil) {
		s := &d.Sessions[r.session]
		p := d.pane(r)
		if p == nil {
			line(0, d.chosen(r), s.Name, s.word(), s.Reason)
			continue
		}
		win := &s.Windows[r.window]
		line(1, d.chosen(r), fmt.Sprintf("%d.%d", win.Index, p.Index), p.what(), p.word(), p.does(), p.Dir)
	}
	for _, a := range agents {
		line(0, Choice{Act: Launch, Agent: a.ID, Generation: d.Generation}, "launch "+a.ID, a.Note)
	}
	return choices, b.Flush()
}

// Ask reads a number from in, and returns its choice; one whose Act is Nothing where the input ends
// or is empty.
func Ask(in io.Reader, out io.Writer, choices []Choice) (Choice, error) {
	if len(choices) == 0 {
		return Choice{}, nil
	}
	fmt.Fprintf(out, "number (1 to %d, nothing to leave): ", len(choices))
	text, err := bufio.NewReader(io.LimitReader(in, 64)).ReadString('\n')
	if err != nil && err != io.EOF {
		return Choice{}, fmt.Errorf("read the number: %w", err)
	}
	text = strings.TrimSpace(text)
	if text == "" || text == "q" {
		return Choice{}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(choices) {
		return Choice{}, &NumberError{Text: text, Most: len(choices)}
	}
	return choices[n-1], nil
}

// NumberError is an answer that is none of the numbers.
type NumberError struct {
	Text string
	Most int
}

func (e *NumberError) Error() string {
	return fmt.Sprintf("choose: %q is no number from 1 to %d", e.Text, e.Most)
}

// word is a session in a word.
func (s *Session) word() string {
	switch {
	case s.There:
		return "here"
	case s.Action == "create":
		return "to restore"
	case s.Action == "refuse":
		return "refused"
	}
	return s.Action
}

// what is in the pane.
func (p *Pane) what() string {
	switch {
	case p.Agent != "":
		return p.Agent
	case p.Command != "":
		return p.Command
	}
	return "shell"
}

// word is the pane's state where it is there, else its verdict.
func (p *Pane) word() string {
	if p.Terminal != "" {
		return p.State
	}
	return p.Verdict
}

// wants reports an agent that waits for a person, or is done with what it was told.
func (p *Pane) wants() bool {
	return p.Terminal != "" && (strings.HasSuffix(p.State, ", waiting") || strings.HasSuffix(p.State, ", done"))
}

// does says what choosing the pane does, short.
func (p *Pane) does() string {
	switch p.Does {
	case Jump:
		return "go to " + p.Terminal
	case Resume:
		return "resume in a new window"
	case RestorePane:
		return "restore"
	case RestoreSession:
		return "restore its session"
	}
	return ""
}

func everything(sessions, agents int) string {
	text := plural(sessions, "session")
	if agents > 0 {
		text += ", " + plural(agents, "agent")
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
