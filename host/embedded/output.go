package embedded

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
)

// Bounds of what is kept of a terminal's output.
const (
	// keepBytes is what waits for the emulator at most: the newest of it. More lines than the
	// scrollback holds fit into it, so that a flood costs no line that would be shown.
	keepBytes = 256 << 10
	// feedBytes is how much may wait before it is fed without being asked for.
	feedBytes = 64 << 10
	// feedPause is between two feeds of one terminal, so that a flood does not spend the
	// processor on screens that nobody sees.
	feedPause = 20 * time.Millisecond
	// Scrollback is how many lines above the screen are kept of one terminal.
	Scrollback = 2000
)

// emulator keeps the screen that a program's output makes.
type emulator interface {
	// Write takes output. A sequence may be divided between two writes.
	Write(b []byte)
	Resize(cols, rows int)
	// Lost says that output is missing here: a sequence that was begun is given up.
	Lost()
	// Paint returns what makes a cleared terminal of the same size show this screen, its
	// cursor and its modes.
	Paint() []byte
	// Text returns the screen as text, with at most that many lines of scrollback above.
	Text(history int) string
	// Looks is Text with the looks of it, as SGR sequences; a line begins and ends without any.
	Looks(history int) string
	Below(history int) string
	// Picture makes a window of another size, which shows p, show this screen. The zero picture
	// is of a window that may show anything.
	Picture(p *picture, cols, rows int) []byte
	// Cursor returns the place of the cursor, from 0, and whether it is shown.
	Cursor() (col, row int, shown bool)
	// AppCursor says that the program wants the cursor's keys in their other form.
	AppCursor() bool
	// FullScreen says that a program has the other screen.
	FullScreen() bool
	// Title is the one that the program has set, if any.
	Title() string
	// Begun is the output since the last character or sequence that was whole. Of a string that
	// is longer than any question it is the beginning, and long is true.
	Begun() (b []byte, long bool)
}

// output is the way of the bytes from a terminal's program to those who look. The emulator is
// beside it: bytes wait for it, up to a bound, and are fed when somebody asks, or when many wait.
//
// A program's questions are answered once: by the terminal of the viewer that answers, or by the
// emulator where there is none. The other viewers do not get them.
type output struct {
	mu         sync.Mutex
	cols, rows int
	waiting    []byte
	lost       bool
	feeding    bool
	fed        time.Time
	viewers    []*viewer
	answers    *viewer // has a window, and is not behind; stays for as long as that is so
	asker      asker   // for the other viewers with a window
	drawing    bool    // pictures will be drawn

	screenMu sync.Mutex // taken after mu
	screen   emulator
	begun    atomic.Bool  // the screen stands within a sequence
	alone    bool         // nobody was there to answer when what is being fed was written
	answer   func([]byte) // types what the emulator answers
}

// viewer is a client that looks at a terminal.
type viewer struct {
	peer       *peer
	terminal   *terminal
	cols, rows int  // of its window; one without looks only, and nothing answers there
	behind     bool // it gets no bytes until it has read what waits, and then the whole screen
	held       bool // it wants to see nothing for a while, and is behind
	strained   bool // it gets the output without questions
	// pictured: its window has not the terminal's size, for another one's is smaller. It gets
	// pictures, for bytes that are made for one size make another picture at another.
	pictured bool
	picture  picture
}

func (v *viewer) window() bool { return v.cols > 0 && v.rows > 0 }

// answers says that the program's questions can be its terminal's to answer.
func (v *viewer) answers() bool { return v.window() && !v.behind && !v.pictured }

// drawPause is between two pictures.
const drawPause = 30 * time.Millisecond

// elect sees to it that one who can answer does. mu is held, and everything that was written is
// delivered.
func (o *output) elect() {
	if v := o.answers; v != nil && v.answers() && slices.Contains(o.viewers, v) {
		return
	}
	o.answers = nil
	for _, v := range o.viewers {
		if !v.answers() {
			continue
		}
		if o.answers = v; v.strained {
			if v.strained = false; o.asker.begun() {
				o.paint(v) // what was held back is its own now
			}
		}
		return
	}
}

func (o *output) size() (cols, rows int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cols, o.rows
}

func (o *output) watched() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.viewers)
}

// stall is how long a program waits for a client that does not read. After that the client is
// behind, and the program goes on.
const stall = 500 * time.Millisecond

// deliver is on the byte path: it keeps the bytes and hands them to those who look.
func (o *output) deliver(id string, b []byte) {
	var full []*viewer
	o.mu.Lock()
	o.elect()
	o.keep(b)
	var frame, strained []byte
	for _, v := range o.viewers {
		switch {
		case v.behind:
			continue
		case v.pictured:
			o.drawLater()
			continue
		case !v.strained && frame == nil:
			frame = dataFrame(kindOutput, id, b)
		case v.strained && strained == nil:
			strained = dataFrame(kindOutput, id, o.asker.strain(b))
		}
		f := frame
		if v.strained {
			f = strained
		}
		if v.peer.output(f) {
			full = append(full, v)
		}
	}
	o.mu.Unlock()
	for _, v := range full {
		if !v.peer.drained(stall) {
			o.mu.Lock()
			o.catchUp() // as what it may have answered
			v.behind = true
			o.elect()
			o.mu.Unlock()
			v.peer.fallBehind(v)
		}
	}
}

// keep adds to what waits for the emulator.
func (o *output) keep(b []byte) {
	if len(o.waiting)+len(b) > 2*keepBytes {
		o.waiting = append(o.waiting[:0], o.waiting[len(o.waiting)-min(keepBytes, len(o.waiting)):]...)
		o.lost = true
	}
	o.waiting = append(o.waiting, b...)
	if o.feeding {
		return
	}
	// Where nobody answers, a program's questions are the emulator's, and soon.
	asks := o.answers == nil && (o.begun.Load() || bytes.IndexByte(b, esc) >= 0)
	if asks || len(o.waiting) >= feedBytes {
		o.feedLater(asks)
	}
}

func (o *output) feedLater(soon bool) {
	o.feeding = true
	pause := feedPause
	if soon && time.Since(o.fed) > feedPause {
		pause = time.Millisecond
	}
	time.AfterFunc(pause, o.feed)
}

// feed gives the emulator what waits; the byte path goes on meanwhile.
func (o *output) feed() {
	o.mu.Lock()
	b, lost := o.take()
	o.screenMu.Lock()
	o.fed, o.alone = time.Now(), o.answers == nil
	o.mu.Unlock()
	o.write(b, lost)
	o.screenMu.Unlock()
	if o.begun.Load() {
		// The rest of a question may have come meanwhile.
		o.mu.Lock()
		if len(o.waiting) > 0 && !o.feeding {
			o.feedLater(true)
		}
		o.mu.Unlock()
	}
}

func (o *output) take() (b []byte, lost bool) {
	b, lost = o.waiting, o.lost
	if n := len(b) - keepBytes; n > 0 {
		b, lost = b[n:], true
	}
	o.waiting, o.lost, o.feeding = nil, false, false
	return b, lost
}

func (o *output) write(b []byte, lost bool) {
	if o.screen == nil {
		o.screen = newScreen(o.cols, o.rows, func(b []byte) {
			if o.alone && o.answer != nil {
				o.answer(b)
			}
		})
	}
	if lost {
		o.screen.Lost()
	}
	o.screen.Write(b)
	begun, _ := o.screen.Begun()
	o.begun.Store(len(begun) > 0)
}

// catchUp feeds what waits; mu is held.
func (o *output) catchUp() {
	o.screenMu.Lock()
	o.alone = o.answers == nil
	o.write(o.take())
	o.screenMu.Unlock()
}

// see runs f on the screen as it is after the last byte. Nothing comes between it and f.
func (o *output) see(f func(emulator)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	o.screenMu.Lock()
	defer o.screenMu.Unlock()
	f(o.screen)
}

// shownTitle is the title that the program set, if any.
func (o *output) shownTitle() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.screen == nil && bytes.IndexByte(o.waiting, esc) < 0 {
		return ""
	}
	o.catchUp()
	o.screenMu.Lock()
	defer o.screenMu.Unlock()
	return o.screen.Title()
}

// attach adds a viewer. What was written before is not its business but as a picture, which
// repaint gives it: until then it is behind.
func (o *output) attach(v *viewer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	v.behind = true
	o.viewers = append(o.viewers, v)
}

// paint shows a viewer what is there: no byte is missing after it, and none comes twice.
// It says whether more waits for it than a program should go on for.
func (o *output) paint(v *viewer) (wait bool) {
	o.catchUp()
	o.screenMu.Lock()
	defer o.screenMu.Unlock()
	if v.pictured {
		if b := o.screen.Picture(&v.picture, v.cols, v.rows); len(b) > 0 {
			return v.peer.output(dataFrame(kindOutput, v.terminal.id, b))
		}
		return false
	}
	picture := o.screen.Paint()
	begun, long := o.screen.Begun()
	if v.strained {
		o.asker.resume(begun, long)
	}
	if !v.strained || len(begun) > 0 && begun[0] != esc { // a character is no question
		picture = append(picture, begun...)
	}
	return v.peer.output(dataFrame(kindOutput, v.terminal.id, picture))
}

// repaint brings a viewer up that was behind.
func (o *output) repaint(v *viewer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.behind && !v.held && slices.Contains(o.viewers, v) {
		o.renew(v)
	}
}

// renew shows a viewer everything anew. mu is held.
func (o *output) renew(v *viewer) {
	o.catchUp() // as what was written before it could answer
	v.behind, v.strained = false, false
	v.pictured, v.picture = v.window() && (v.cols != o.cols || v.rows != o.rows), picture{}
	o.elect()
	v.strained = v.window() && !v.pictured && v != o.answers
	o.paint(v)
}

// hold shows a viewer nothing until it is released.
func (o *output) hold(v *viewer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp() // as what it may have answered
	v.held, v.behind = true, true
	o.elect()
}

func (o *output) release(v *viewer) {
	o.mu.Lock()
	held := v.held
	v.held = false
	o.mu.Unlock()
	if held {
		o.repaint(v)
	}
}

// drawLater draws the pictures soon. mu is held.
func (o *output) drawLater() {
	if !o.drawing {
		o.drawing = true
		time.AfterFunc(drawPause, o.draw)
	}
}

func (o *output) draw() {
	var full []*viewer
	o.mu.Lock()
	o.drawing = false
	for _, v := range o.viewers {
		if v.pictured && !v.behind && o.paint(v) {
			v.behind = true // until it has read that
			full = append(full, v)
		}
	}
	o.mu.Unlock()
	for _, v := range full {
		v.peer.fallBehind(v)
	}
}

// look gives a view another size. One that comes to have a window, or has none any more, is shown
// everything anew, for whether it gets questions may be another matter now.
func (o *output) look(v *viewer, cols, rows int) {
	o.mu.Lock()
	before := v.window()
	v.cols, v.rows = cols, rows
	odd := v.window() && (cols != o.cols || rows != o.rows)
	changed := (before != v.window() || odd || v.pictured) && !v.behind
	v.behind = v.behind || changed
	o.mu.Unlock()
	if changed {
		o.repaint(v)
	}
}

func (o *output) detach(v *viewer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp() // as what the viewers have answered
	for i, w := range o.viewers {
		if w == v {
			o.viewers = append(o.viewers[:i:i], o.viewers[i+1:]...)
			break
		}
	}
	o.elect()
}

// fit is the smallest size of those who look.
func (o *output) fit() (cols, rows int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.viewers {
		if v.cols < 1 || v.rows < 1 {
			continue
		}
		if !ok {
			cols, rows, ok = v.cols, v.rows, true
		}
		cols, rows = min(cols, v.cols), min(rows, v.rows)
	}
	return cols, rows, ok
}

// resize gives the program its new size. A terminal that somebody looks at keeps theirs, unless
// it is the viewers' own.
func (o *output) resize(cols, rows int, ptmx *master, viewers bool) (changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cols == cols && o.rows == rows || !viewers && len(o.viewers) > 0 {
		return false
	}
	if len(o.waiting) > 0 {
		o.catchUp()
	}
	o.screenMu.Lock()
	if o.screen != nil {
		o.screen.Resize(cols, rows)
	}
	o.cols, o.rows = cols, rows
	o.screenMu.Unlock()
	for _, v := range o.viewers {
		if odd := v.cols != cols || v.rows != rows; v.window() && !v.behind && (odd || v.pictured) {
			o.renew(v)
		}
	}
	setSize(ptmx, cols, rows)
	return true
}

func setSize(ptmx *master, cols, rows int) {
	w := winsize(cols, rows)
	_ = ptmx.raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
}

// input is the way of what is typed to a terminal's program, which may not read it: then it
// waits, and nobody with it.
type input struct {
	mu      sync.Mutex
	ptmx    *master
	waiting []byte
	running *master // the one that is being written to
}

// to leads input to another program; what waited for the one before is given up.
func (in *input) to(ptmx *master) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ptmx, in.waiting, in.running = ptmx, nil, nil
}

// send queues b. ErrBusy where too much waits already.
func (in *input) send(b []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.waiting)+len(b) > maxInput {
		return ErrBusy
	}
	if in.running == nil && in.ptmx != nil {
		if b = b[in.ptmx.writeNow(b):]; len(b) == 0 {
			return nil
		}
	}
	in.waiting = append(in.waiting, b...)
	if in.running == nil && in.ptmx != nil {
		in.running = in.ptmx
		go in.write(in.ptmx)
	}
	return nil
}

func (in *input) write(ptmx *master) {
	for {
		in.mu.Lock()
		if in.running != ptmx {
			in.mu.Unlock()
			return
		}
		b := in.waiting
		in.waiting = nil
		if len(b) == 0 {
			in.running = nil
			in.mu.Unlock()
			return
		}
		in.mu.Unlock()
		if _, err := ptmx.Write(b); err != nil {
			in.mu.Lock()
			if in.running == ptmx {
				in.waiting, in.running = nil, nil
			}
			in.mu.Unlock()
			return
		}
	}
}

// maxCells bounds a screen, which is 16 bytes a cell: no window of a person's is as large.
const maxCells = 1 << 21

func checkSize(cols, rows int) error {
	if cols < 0 || rows < 0 || cols > host.MaxSide || rows > host.MaxSide || cols*rows > maxCells {
		return fmt.Errorf("%w: a screen of %dx%d", host.ErrRequest, cols, rows)
	}
	return nil
}
