package rehearsal

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Fake is a stand-in for any agent's CLI: it does what its template says that the agent does, and
// no more. It takes the arguments that the template builds, refuses an unknown id and one that
// exists already, keeps conversations where [transcript] says, and shows which it has open as
// [[observe]] says. Lines on its terminal are prompts; /exit ends it.
type Fake struct {
	Template *integrations.Template
	Store    string   // directory: its own memory, and its log
	Args     []string // behind the program
	Environ  []string
	Self     string // phux-agent, for hooks
	In       io.Reader
	Out      io.Writer

	id      string
	prompts int
	held    []*os.File
	made    []string // files that show what is open, to be removed at the end
}

// The words by which a fake is asked for what mint_command and fork_command do.
const (
	FakeMint = "--fake-mint"
	FakeFork = "--fake-fork" // followed by the source's id
)

// Event is a line of a fake's log.
type Event struct {
	Event   string   `json:"event"` // start, blank, prompt, refuse, exit
	Op      string   `json:"op"`
	ID      string   `json:"id"`
	Args    []string `json:"args"`
	Dir     string   `json:"dir"`
	PID     int      `json:"pid"`
	Prompts int      `json:"prompts"` // of the conversation so far
	Native  string   `json:"native"`  // the value of native_env
	Left    []string `json:"left"`    // variables of scrub_env that are set
	Words   string   `json:"words"`
}

// memory is what the fake knows of one conversation.
type memory struct {
	Dir     string   `json:"dir"` // where it began
	Minted  bool     `json:"minted"`
	Prompts []string `json:"prompts"`
}

// Run returns the exit code.
func (f *Fake) Run() int {
	t := f.Template
	dir, err := os.Getwd()
	if err == nil {
		err = os.MkdirAll(f.Store, 0o700)
	}
	if err != nil {
		return f.refuse("", "%v", err)
	}
	if i := slices.Index(f.Args, FakeMint); i >= 0 {
		return f.mint(dir, nil)
	}
	if i := slices.Index(f.Args, FakeFork); i >= 0 && i+1 < len(f.Args) {
		m, _ := f.recall(f.Args[i+1])
		return f.mint(dir, m.Prompts)
	}
	op, id, newID := t.Recognise(f.Args)
	m, known := f.recall(id)
	switch op {
	case integrations.Fresh:
		if known && (len(m.Prompts) > 0 || t.Identity.NeverPrompted == integrations.Lost) {
			return f.refuse(id, "conversation %s exists already", id)
		}
		f.id, m = id, memory{Dir: dir}
	case integrations.Resume, integrations.Fork:
		switch {
		case known && t.Identity.ResumeCwd == "launch" && m.Dir != dir:
			return f.refuse(id, "conversation %s is of %s, and this is %s", id, m.Dir, dir)
		case known && (m.Minted || len(m.Prompts) > 0) && f.there(id, m):
			f.id = id
		case t.Identity.UnknownID == "blank":
			f.log(Event{Event: "blank", ID: id, Words: "no conversation " + id})
			fmt.Fprintf(f.Out, "no conversation %s\n> ", id)
			return f.wait(func(string) {})
		default:
			return f.refuse(id, "no conversation %s", id)
		}
		if op == integrations.Fork {
			if f.id = newID; newID == "" {
				f.id, err = t.SampleID()
			}
			m.Dir = dir
		}
	default:
		f.id, err = t.SampleID()
		m = memory{Dir: dir}
	}
	if err == nil {
		err = f.remember(m)
	}
	if err == nil {
		err = f.show()
	}
	if err != nil {
		return f.refuse(f.id, "%v", err)
	}
	f.prompts = len(m.Prompts)
	f.log(Event{Event: "start", Op: op.String(), Dir: dir})
	f.hooks()
	fmt.Fprintf(f.Out, "%s (a stand-in), conversation %s\n", t.ID, f.id)
	for _, p := range m.Prompts {
		fmt.Fprintf(f.Out, "I remember: %s\n", p)
	}
	fmt.Fprint(f.Out, "> ")
	return f.wait(func(text string) {
		m.Prompts = append(m.Prompts, text)
		f.prompts = len(m.Prompts)
		if err := errors.Join(f.write(text), f.remember(m)); err != nil {
			f.log(Event{Event: "refuse", Words: err.Error()})
			fmt.Fprintf(f.Out, "%v\n> ", err)
			return
		}
		f.hooks()
		f.log(Event{Event: "prompt", Dir: dir})
		fmt.Fprintf(f.Out, "noted, %d so far\n> ", len(m.Prompts))
	})
}

// wait reads prompts until the terminal or the person ends it.
func (f *Fake) wait(prompt func(string)) int {
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGHUP, syscall.SIGTERM)
	lines, ended := make(chan string), make(chan struct{})
	go func() {
		s := bufio.NewScanner(f.In)
		for s.Scan() {
			lines <- s.Text()
		}
		close(ended)
	}()
	leave := func(code int) int {
		for _, name := range f.made {
			_ = os.Remove(name) // it shows nothing from now on, as good as it goes
		}
		f.log(Event{Event: "exit"})
		return code
	}
	for {
		select {
		case got := <-sig:
			if got == syscall.SIGHUP && f.Template.Launch.SurvivesHangup {
				ended = nil
				continue
			}
			return leave(129)
		case <-ended:
			if f.Template.Launch.SurvivesHangup {
				ended = nil
				continue
			}
			return leave(0)
		case line := <-lines:
			switch line = strings.TrimSpace(line); line {
			case "":
			case "/exit":
				return leave(0)
			default:
				prompt(line)
			}
		}
	}
}

func (f *Fake) mint(dir string, prompts []string) int {
	id, err := f.Template.SampleID()
	if err == nil {
		f.id = id
		err = f.remember(memory{Dir: dir, Minted: true, Prompts: prompts})
	}
	if err != nil {
		return f.refuse("", "%v", err)
	}
	fmt.Fprintln(f.Out, id)
	return 0
}

func (f *Fake) refuse(id, format string, args ...any) int {
	words := fmt.Sprintf(format, args...)
	f.log(Event{Event: "refuse", ID: id, Words: words})
	fmt.Fprintln(f.Out, words)
	return 1
}

func (f *Fake) log(e Event) {
	if e.ID == "" {
		e.ID = f.id
	}
	e.Args, e.PID, e.Prompts = f.Args, os.Getpid(), f.prompts
	e.Native, _ = f.env(f.Template.Identity.NativeEnv)
	for _, name := range f.Template.Launch.ScrubEnv {
		if _, ok := f.env(name); ok {
			e.Left = append(e.Left, name)
		}
	}
	b, err := json.Marshal(e)
	if err != nil {
		return
	}
	log, err := os.OpenFile(filepath.Join(f.Store, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	_, _ = log.Write(append(b, '\n')) // one write: lines stay whole
}

// Events reads the log of the fakes that shared a store.
func Events(store string) ([]Event, error) {
	b, err := os.ReadFile(filepath.Join(store, "log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Event
	for line := range bytes.Lines(b[:bytes.LastIndexByte(b, '\n')+1]) {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the log of the fakes: %w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (f *Fake) env(name string) (string, bool) {
	for i := len(f.Environ) - 1; i >= 0 && name != ""; i-- {
		if v, ok := strings.CutPrefix(f.Environ[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func (f *Fake) file(id string) string {
	return filepath.Join(f.Store, "of-"+hex.EncodeToString([]byte(id)))
}

func (f *Fake) recall(id string) (m memory, known bool) {
	b, err := os.ReadFile(f.file(id))
	if id == "" || err != nil {
		return memory{}, false
	}
	return m, json.Unmarshal(b, &m) == nil
}

func (f *Fake) remember(m memory) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(f.file(f.id), b, 0o600)
}

// there reports whether the conversation lies where the template says: one that was taken away is
// not remembered either.
func (f *Fake) there(id string, m memory) bool {
	c := f.Template.Transcript
	if c == nil || len(m.Prompts) == 0 {
		return true
	}
	root, err := integrations.ExpandRoot(c.Root, f.env)
	if err != nil {
		return false
	}
	for _, p := range c.Patterns(root, id) {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// write adds a turn to the transcript, where the template says that there is one.
func (f *Fake) write(text string) error {
	c := f.Template.Transcript
	if c == nil {
		return nil
	}
	root, err := integrations.ExpandRoot(c.Root, f.env)
	if err != nil {
		return fmt.Errorf("[transcript] root: %w", err)
	}
	name := c.Example(root, f.id)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("[transcript]: %w", err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("[transcript]: %w", err)
	}
	defer file.Close()
	var b bytes.Buffer
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		head := map[string]any{}
		if c.HeadID != "" {
			point(head, c.HeadID, f.id)
		}
		if err := line(&b, head); err != nil {
			return err
		}
		if c.Contains != "" {
			b.WriteString(c.Contains + "\n")
		}
	}
	if err := line(&b, map[string]any{"user": text}); err != nil {
		return err
	}
	_, err = file.Write(b.Bytes())
	return err
}

func line(b *bytes.Buffer, v any) error {
	out, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		b.Write(append(out, '\n'))
	}
	return err
}

// show makes and opens the files by which [[observe]] sees what is open.
func (f *Fake) show() error {
	c := f.Template.Transcript
	for i, o := range f.Template.Observe {
		if o.Kind == "hook" || c == nil {
			continue
		}
		root, err := integrations.ExpandRoot(c.Root, f.env)
		if err != nil {
			return fmt.Errorf("[transcript] root: %w", err)
		}
		name := o.Example(root, os.Getpid(), f.id)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return fmt.Errorf("[[observe]] %d: %w", i+1, err)
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("[[observe]] %d: %w", i+1, err)
		}
		if o.Kind == "open-file" {
			f.held = append(f.held, file)
			continue
		}
		f.made = append(f.made, name)
		var b bytes.Buffer
		doc, err := f.shown(o)
		if err == nil {
			err = line(&b, doc)
		}
		if err == nil {
			_, err = file.Write(b.Bytes())
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("[[observe]] %d: %w", i+1, err)
		}
	}
	return nil
}

func (f *Fake) shown(o integrations.Observe) (map[string]any, error) {
	doc := map[string]any{}
	if o.ID != "" {
		point(doc, o.ID, f.id)
	}
	if o.PID != "" {
		point(doc, o.PID, os.Getpid())
	}
	for p, v := range o.Where {
		point(doc, p, v)
	}
	if o.Start == "" {
		return doc, nil
	}
	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	switch o.StartUnit {
	case "s":
		point(doc, o.Start, proc.Time(start).Unix())
	case "ms":
		point(doc, o.Start, proc.Time(start).UnixMilli())
	default:
		point(doc, o.Start, start)
	}
	return doc, nil
}

// hooks reports the conversation as each hook of the template would. That nobody hears it is no
// business of an agent's.
func (f *Fake) hooks() {
	for _, o := range f.Template.Observe {
		if o.Kind != "hook" || len(o.On) == 0 {
			continue
		}
		doc := map[string]any{}
		point(doc, o.ID, f.id)
		for p, v := range o.Where {
			point(doc, p, v)
		}
		if o.Event != "" {
			point(doc, o.Event, o.On[0])
		}
		b, err := json.Marshal(doc)
		if err != nil {
			continue
		}
		cmd := exec.Command(f.Self, "hook", f.Template.ID, o.On[0])
		cmd.Env, cmd.Stdin = f.Environ, bytes.NewReader(b)
		_ = cmd.Run()
	}
}

// point sets the member that a JSON pointer names.
func point(doc map[string]any, pointer string, v any) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if i == len(parts)-1 {
			doc[part] = v
			return
		}
		next, ok := doc[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			doc[part] = next
		}
		doc = next
	}
}
