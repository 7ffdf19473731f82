package integrations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// What a stand-in for a CLI needs: a template read the other way round. Nothing here decides what
// is launched or restored.

// Recognise says which operation an argument vector is, by the template's own vectors, and which
// ids stand in it: the inverse of Build. Plain where none of them is found.
func (t *Template) Recognise(args []string) (op Op, id, newID string) {
	s := t.Identity
	for _, v := range []struct {
		op   Op
		args []string
	}{{Fork, s.ForkArgs}, {Fresh, s.FreshArgs}, {Resume, s.ResumeArgs}} { // resume's may begin fork's
		for i := range args {
			if id, newID, ok := unfill(v.args, args[i:]); ok && len(v.args) > 0 {
				return v.op, id, newID
			}
		}
	}
	return Plain, "", ""
}

func unfill(vector, args []string) (id, newID string, ok bool) {
	if len(args) < len(vector) {
		return "", "", false
	}
	for i, v := range vector {
		switch v {
		case slotID:
			id = args[i]
		case slotNewID:
			newID = args[i]
		default:
			if args[i] != v {
				return "", "", false
			}
		}
	}
	return id, newID, true
}

// Example is a file that Patterns would match for this id: the first path, each * and ? filled.
func (c Transcript) Example(root, id string) string {
	if len(c.Paths) == 0 {
		return ""
	}
	pieces, err := splitPath(c.Paths[0], false)
	if err != nil {
		return ""
	}
	return example(root, pieces, 0, id)
}

// Example is a file that Pattern would match for this process and this id.
func (o Observe) Example(root string, pid int, id string) string {
	pieces, err := splitPath(o.Path, true)
	if err != nil {
		return ""
	}
	return example(root, pieces, pid, id)
}

func example(root string, pieces []piece, pid int, id string) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(root, "/") + "/")
	for _, p := range pieces {
		switch p.kind {
		case 'l':
			b.WriteString(p.text)
		case 'p':
			fmt.Fprint(&b, pid)
		case 'i':
			b.WriteString(shorten(id, p.n))
		default:
			b.WriteByte('x')
		}
	}
	return b.String()
}

// SampleID returns a random id that the template's id_pattern allows. It names no conversation.
func (t *Template) SampleID() (string, error) {
	try := func() string { return uuid.NewString() }
	if p := t.Identity.IDPattern; p != "" && aliases[p] == "" {
		tree, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return "", fmt.Errorf("sample an id of %q: %w", t.ID, err)
		}
		try = func() string {
			var b strings.Builder
			sample(&b, tree)
			return b.String()
		}
	}
	for range 64 {
		if id := try(); t.CheckID(id) == nil {
			return id, nil
		}
	}
	return "", fmt.Errorf("sample an id of %q: %w", t.ID, errors.New("none was found that id_pattern and the bounds of ids allow"))
}

// sample writes a text that the expression matches, of repetitions a few.
func sample(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > 256 {
		return
	}
	times := func(least, most int) {
		if most < 0 || most > least+12 {
			most = least + 12
		}
		for range least + rand.IntN(most-least+1) {
			sample(b, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		var printable []rune // ranges whose first rune can be typed
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if lo, hi := max(re.Rune[i], '!'), min(re.Rune[i+1], '~'); lo <= hi {
				printable = append(printable, lo, hi)
			}
		}
		if len(printable) == 0 {
			printable = re.Rune
		}
		if n := len(printable) / 2; n > 0 {
			i := 2 * rand.IntN(n)
			b.WriteRune(printable[i] + rune(rand.IntN(int(printable[i+1]-printable[i])+1)))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("abcdefgh"[rand.IntN(8)])
	case syntax.OpStar:
		times(1, -1)
	case syntax.OpPlus:
		times(8, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	case syntax.OpAlternate:
		sample(b, re.Sub[rand.IntN(len(re.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			sample(b, sub)
		}
	}
}

// WithCommands returns a template's source with other programs in it: launch.command, and
// mint_command and fork_command where the template has them. Everything else stays byte for byte.
func WithCommands(file string, src []byte, launch, mint, fork []string) ([]byte, error) {
	t, r, err := parse(file, src)
	if err != nil {
		return nil, err
	}
	type edit struct {
		at   span
		text string
	}
	var edits []edit
	for _, c := range []struct {
		key      string
		has, new []string
	}{
		{"launch.command", t.Launch.Command, launch},
		{"session_identity.mint_command", t.Identity.MintCommand, mint},
		{"session_identity.fork_command", t.Identity.ForkCommand, fork},
	} {
		if c.has == nil || c.new == nil {
			continue
		}
		at, ok := r.at.values[c.key]
		if !ok {
			return nil, &Error{File: file, Key: c.key, Problem: "cannot be found in the file", Instead: "write it as a key of its table"}
		}
		quoted := make([]string, len(c.new))
		for i, arg := range c.new {
			quoted[i] = `"` + inString(arg) + `"`
		}
		edits = append(edits, edit{at, "[" + strings.Join(quoted, ", ") + "]"})
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.at.start - a.at.start }) // from the end
	out := string(src)
	for _, e := range edits {
		out = out[:e.at.start] + e.text + out[e.at.end:]
	}
	return []byte(out), nil
}
