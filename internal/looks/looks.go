// Package looks reads lines as tmux capture-pane -e prints them: text, with SGR sequences between.
// It is for tests, which compare screens by it, cell by cell, whoever drew them.
package looks

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Cell is what stands in one cell, or in two where that is wide, and how it looks: the words of
// SGR in a fixed order.
type Cell struct{ Text, Look string }

// Pen is the look that the next character has. The zero value is a plain one.
type Pen struct {
	flags      map[string]bool
	fg, bg, us string
	drawing    bool
}

const drawn = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"

var drawnRunes = []rune(drawn)

// Screen reads the lines of a screen. Empty lines at its end are left out.
func Screen(text string) [][]Cell {
	var pen Pen
	var out [][]Cell
	for _, l := range strings.Split(text, "\n") {
		out = append(out, Line(l, &pen))
	}
	for len(out) > 0 && len(out[len(out)-1]) == 0 {
		out = out[:len(out)-1]
	}
	return out
}

// Line reads a line. Blanks at its end are left out, also coloured ones: tmux does not tell of what
// was erased in a colour to the end of a line. The pen goes on from line to line.
func Line(line string, pen *Pen) []Cell {
	var out []Cell
	r := []rune(line)
	for i := 0; i < len(r); i++ {
		switch {
		case r[i] == 0x0e || r[i] == 0x0f:
			pen.drawing = r[i] == 0x0e
		case r[i] == 0x1b && i+1 < len(r) && r[i+1] == '[':
			end := i + 2
			for end < len(r) && (r[end] < 0x40 || r[end] > 0x7e) {
				end++
			}
			if end < len(r) && r[end] == 'm' {
				pen.set(string(r[i+2 : end]))
			}
			i = end
		default:
			c := string(r[i])
			if pen.drawing && r[i] >= 0x60 && r[i] < 0x7f {
				c = string(drawnRunes[r[i]-0x60])
			}
			if len(out) > 0 && (unicode.In(r[i], unicode.Mn, unicode.Me) || r[i] == 0x200d) {
				out[len(out)-1].Text += c
				continue
			}
			out = append(out, Cell{c, pen.String()})
		}
	}
	for len(out) > 0 {
		if c := out[len(out)-1]; c.Text != " " || c.Look != "" && !strings.HasPrefix(c.Look, "bg") {
			break
		}
		out = out[:len(out)-1]
	}
	return out
}

func (p *Pen) String() string {
	var words []string
	for f, on := range p.flags {
		if on {
			words = append(words, f)
		}
	}
	slices.Sort(words)
	for _, c := range []struct{ name, v string }{{"fg", p.fg}, {"bg", p.bg}, {"us", p.us}} {
		if c.v != "" {
			words = append(words, c.name+c.v)
		}
	}
	return strings.Join(words, " ")
}

// set takes the parameters of one SGR sequence.
func (p *Pen) set(s string) {
	if p.flags == nil {
		p.flags = make(map[string]bool)
	}
	var nums []string
	for _, part := range strings.Split(s, ";") {
		if part == "5:3" { // what tmux 3.3a makes of 53
			part = "53"
		}
		if sub := strings.Split(part, ":"); len(sub) > 1 && sub[0] != "4" {
			for i, n := range sub {
				if i != 2 || n != "" { // no colour space
					nums = append(nums, n)
				}
			}
			continue
		}
		nums = append(nums, part)
	}
	for i := 0; i < len(nums); i++ {
		n := nums[i]
		colour := func() string {
			if i+2 < len(nums) && nums[i+1] == "5" {
				i += 2
				return nums[i]
			}
			if i+4 < len(nums) && nums[i+1] == "2" {
				i += 4
				return nums[i-2] + "/" + nums[i-1] + "/" + nums[i]
			}
			return "?"
		}
		v, _ := strconv.Atoi(n)
		switch {
		case n == "" || n == "0":
			*p = Pen{flags: make(map[string]bool), drawing: p.drawing}
		case n == "38":
			p.fg = colour()
		case n == "48":
			p.bg = colour()
		case n == "58":
			p.us = colour()
		case n == "39":
			p.fg = ""
		case n == "49":
			p.bg = ""
		case n == "59":
			p.us = ""
		case n == "4:0" || n == "24":
			for f := range p.flags {
				if strings.HasPrefix(f, "4") {
					delete(p.flags, f)
				}
			}
		case n == "4:1":
			p.flags["4"] = true
		case v >= 30 && v < 38:
			p.fg = strconv.Itoa(v - 30)
		case v >= 40 && v < 48:
			p.bg = strconv.Itoa(v - 40)
		case v >= 90 && v < 98:
			p.fg = strconv.Itoa(v - 90 + 8)
		case v >= 100 && v < 108:
			p.bg = strconv.Itoa(v - 100 + 8)
		default:
			p.flags[n] = true
		}
	}
}
