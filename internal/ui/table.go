package ui

import (
	"io"
	"strings"
)

// Width is the number of terminal cells that text takes: two for wide East Asian characters and
// emoji, none for combining ones. It expects escaped text.
func Width(s string) int {
	w, last, joined := 0, 0, false
	for _, r := range s {
		c := RuneWidth(r)
		if joined {
			c = 0
		}
		joined = r == Joiner && last == 2
		if c > 0 {
			last = c
		}
		w += c
	}
	return w
}

// Clip shortens text to width cells, the cut marked by "…".
func Clip(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	return head(s, width-1) + "…"
}

// ClipLeft shortens text to width cells from its front, for paths, whose end tells more.
func ClipLeft(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	runes := []rune(s)
	w, i := 0, len(runes)
	for i > 0 && w+RuneWidth(runes[i-1]) <= width-1 {
		i--
		w += RuneWidth(runes[i])
	}
	return "…" + string(runes[i:])
}

func head(s string, width int) string {
	w := 0
	for i, r := range s {
		if w += RuneWidth(r); w > width {
			return s[:i]
		}
	}
	return s
}

// A Table is printed in columns as wide as their widest cell, two spaces apart. Cells are
// escaped when they are added.
type Table struct {
	header []string
	rows   [][]string
	notes  map[int][]string // by the row that they stand below
}

// NewTable starts a table with a heading; none where no column is named.
func NewTable(header ...string) *Table { return &Table{header: header} }

// Row adds one row.
func (t *Table) Row(cells ...string) {
	for i := range cells {
		cells[i] = Escape(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Note adds text below the row that was added last, indented and, where width is not 0, wrapped
// to it.
func (t *Table) Note(text string, width int) {
	lines := []string{Escape(text)}
	if width > 0 {
		lines = Wrap(lines[0], max(width-4, 20))
	}
	if t.notes == nil {
		t.notes = make(map[int][]string)
	}
	at := len(t.rows) - 1
	t.notes[at] = append(t.notes[at], lines...)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write prints the table. The last column is not padded.
func (t *Table) Write(w io.Writer, indent string) error {
	rows, first := t.rows, 0
	if len(t.header) > 0 {
		rows, first = append([][]string{t.header}, rows...), 1
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		line := indent
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-Width(cell)+2)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, note := range t.notes[n-first] {
			b.WriteString(indent + "    " + note + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Wrap breaks text at spaces into lines of at most width cells; a word that is longer stays whole.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
