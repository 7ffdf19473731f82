package tmux

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

// The options of the tmux plugin, which people set in their configuration, by the name that is used
// here.
var pluginOptions = []string{"autosave", "save-key", "restore-key", "picker-key", "popup", "status-right", "binary"}

const (
	pluginHead    = "@phux-agent-"
	pluginProgram = "@phux-agent-program" // a server option: what the keys run
	pluginTold    = "@phux-agent-told"    // what was explained to the user in this life of the server
	// pluginLabel is what an earlier version put at the end of status-right, and pluginStatus what this
	// one does: the label, and whether a heartbeat of autosave is overdue, which no program of ours would
	// be there to say.
	pluginLabel  = " #{" + labelOption + "}"
	pluginStatus = pluginLabel + "#{?#{&&:#{" + autoBeat + "},#{e|>:#{T:" + autoNow + "},#{e|+:#{" + autoBeat + "},#{e|+:60,#{e|*:2,#{" + autoEvery + "}}}}}}, (autosave overdue),}"
	helloSlot    = "client-attached" + autosaveSlot
)

// Setup is what a server's configuration says to the plugin, and what stands in its way.
type Setup struct {
	Options map[string]string // of pluginOptions, those that are set
	Keys    map[string]string // of the prefix table: what each key runs
	Ours    map[string]bool   // of Keys, those that the plugin bound
	Program string            // what the keys run; empty where the plugin is not in place
	Status  string            // status-right
	Told    string
	Clients int
	// Neighbours are other plugins that save or restore: "tmux-resurrect", "tmux-continuum".
	Neighbours []string
	Processes  string // @resurrect-processes
}

// Setup reads it. ErrNoServer where none runs.
func (h *Host) Setup(ctx context.Context) (*Setup, error) {
	// list-keys would start a server.
	if _, err := h.probe(ctx); err != nil {
		return nil, fmt.Errorf("look at the plugin: %w", err)
	}
	m := newMark()
	f := make([]string, 0, len(pluginOptions)+4)
	for _, o := range pluginOptions {
		f = append(f, "#{"+pluginHead+o+"}")
	}
	f = append(f, "#{"+pluginProgram+"}", "#{"+pluginTold+"}", "#{@resurrect-processes}")
	out, err := h.tool.run(ctx, "",
		"display-message", "-p", "-t", nowhere(m), m+"{"+strings.Join(f, m)+m+"}",
		then, "show-options", "-gv", "status-right", then, "display-message", "-p", "-t", nowhere(m), m+"keys",
		then, "list-keys", "-T", "prefix", then, "display-message", "-p", "-t", nowhere(m), m+"options",
		then, "show-options", "-g", then, "display-message", "-p", "-t", nowhere(m), m+"clients", then, "list-clients", "-F", "client")
	// While the configuration is read there is no session, and so no list of clients.
	if e := (*CommandError)(nil); err != nil && (!errors.As(err, &e) || e.Stderr != "no current target") {
		return nil, fmt.Errorf("look at the plugin: %w", err)
	}
	head, rest, ok := strings.Cut(string(out), m+"}")
	_, head, found := strings.Cut(head, m+"{")
	values := strings.Split(head, m)
	status, rest, okStatus := strings.Cut(strings.TrimPrefix(rest, "\n"), m+"keys\n")
	keys, rest, okKeys := strings.Cut(rest, m+"options\n")
	options, clients, okOptions := strings.Cut(rest, m+"clients")
	if !ok || !found || !okStatus || !okKeys || !okOptions || len(values) != len(f) {
		return nil, fmt.Errorf("look at the plugin: %w", errListing)
	}
	s := &Setup{Options: map[string]string{}, Keys: map[string]string{}, Ours: map[string]bool{}, Status: strings.TrimSuffix(status, "\n")}
	for i, o := range pluginOptions {
		if values[i] != "" {
			s.Options[o] = values[i]
		}
	}
	n := len(pluginOptions)
	s.Program, s.Told, s.Processes = values[n], values[n+1], values[n+2]
	s.Clients = strings.Count(clients, "client\n")
	for line := range strings.Lines(keys) {
		key, command, ok := boundKey(strings.TrimSuffix(line, "\n"))
		if !ok {
			continue
		}
		s.Keys[key] = command
		s.Ours[key] = strings.Contains(command, pluginProgram) || s.Program != "" && strings.Contains(command, " tmux key ") && strings.Contains(command, filepath.Base(s.Program))
	}
	for _, name := range []string{"resurrect", "continuum"} {
		if strings.Contains(options, "\n@"+name+"-") || strings.HasPrefix(options, "@"+name+"-") || strings.Contains(keys, "tmux-"+name+"/") {
			s.Neighbours = append(s.Neighbours, "tmux-"+name)
		}
	}
	return s, nil
}

// boundKey reads a line of list-keys: bind-key [-r] -T prefix KEY COMMAND.
func boundKey(line string) (key, command string, ok bool) {
	_, rest, found := strings.Cut(line, "-T prefix")
	if !strings.HasPrefix(line, "bind-key") || !found {
		return "", "", false
	}
	key, command, ok = strings.Cut(strings.TrimLeft(rest, " "), " ")
	if len(key) == 2 && key[0] == '\\' {
		key = key[1:]
	}
	return key, strings.TrimLeft(command, " "), ok
}

// Keys are what the plugin binds in the prefix table; an empty key is not bound.
type Keys struct{ Save, Restore, Picker string }

// Plug is what is set on a server.
type Plug struct {
	Program string // absolute
	Keys    Keys
	Popup   bool // else a window
	Status  bool // the label is shown at the end of status-right
	Told    string
	Message string // shown to whoever is attached, or to the first who comes
	Greet   bool   // instead: "tmux key greet CLIENT" is run for them, and says what is true then
}

// Plug puts the plugin in place, in one list. What an earlier one bound, and this one does not, is
// taken away.
func (h *Host) Plug(ctx context.Context, now *Setup, p Plug) error {
	if !filepath.IsAbs(p.Program) || strings.ContainsAny(p.Program, "\n\x00") {
		return fmt.Errorf("plug: %w: %q is not an absolute path", host.ErrRequest, p.Program)
	}
	var l list
	l.add("set-option", "-s", pluginProgram, p.Program)
	if p.Told != "" {
		l.add("set-option", "-s", pluginTold, p.Told)
	}
	for key, ours := range now.Ours {
		if ours && key != p.Keys.Save && key != p.Keys.Restore && key != p.Keys.Picker {
			l.add("unbind-key", "-T", "prefix", key)
		}
	}
	screen := func(words ...string) []string {
		if p.Popup {
			return append([]string{"display-popup", "-E", "-w", "90%", "-h", "90%", "--", p.Program}, words...)
		}
		return append([]string{"new-window", "-n", "phux-agent", "--", p.Program}, words...)
	}
	for _, k := range []struct {
		key, note string
		words     []string
	}{
		{p.Keys.Save, "phux-agent: save the workspace", []string{"run-shell", "-b", "#{q:" + pluginProgram + "} tmux key save #{q:client_name}"}},
		{p.Keys.Restore, "phux-agent: restore what was saved", screen("tmux", "key", "restore")},
		{p.Keys.Picker, "phux-agent: pick an agent", screen("tmux", "key", "pick")},
	} {
		if k.key != "" {
			l.add(append([]string{"bind-key", "-T", "prefix", "-N", k.note, "--", k.key}, k.words...)...)
		}
	}
	status, _ := withoutStatus(now.Status)
	if p.Status {
		status += pluginStatus
	}
	if status != now.Status {
		l.add("set-option", "-g", "status-right", status)
	}
	switch {
	case p.Greet:
		var greet list
		greet.add("run-shell", "-b", "#{q:"+pluginProgram+"} tmux key greet #{q:hook_client}")
		l = append(l, toFirst(now.Clients, greet)...)
	case p.Message != "":
		l = append(l, say(now.Clients, p.Message)...)
	}
	if _, err := h.tool.script(ctx, []string{l.String()}); err != nil {
		return fmt.Errorf("plug: %w", err)
	}
	return nil
}

// withoutStatus is status-right without our part of it.
func withoutStatus(s string) (rest string, ours bool) {
	if rest, ours = strings.CutSuffix(s, pluginStatus); ours {
		return rest, true
	}
	return strings.CutSuffix(s, pluginLabel)
}

// say shows a line to whoever is attached, or, once, to the first who comes.
func say(clients int, text string) list {
	var show list
	show.add("display-message", "-d", "8000", strings.ReplaceAll(text, "#", "##"))
	return toFirst(clients, show)
}

// toFirst does something for whoever is attached, or, once, for the first who comes.
func toFirst(clients int, do list) (l list) {
	if clients > 0 {
		return do
	}
	l.add("set-hook", "-g", helloSlot, "set-hook -gu "+word(helloSlot)+" ; "+do.String())
	return l
}

// Say shows a line on the client of that name, or, where that is gone or tmux takes no name (3.2a),
// on the one that was used last.
func (h *Host) Say(ctx context.Context, client, text string) error {
	text = strings.ReplaceAll(text, "#", "##")
	if client != "" {
		if _, err := h.tool.run(ctx, "", "display-message", "-d", "5000", "-c", client, text); err == nil {
			return nil
		}
	}
	_, err := h.tool.run(ctx, "", "display-message", "-d", "5000", text)
	return err
}

// Unplug takes away what Plug made: keys, options, its part of status-right. What people set in
// their configuration is unset, too, until that is read again.
func (h *Host) Unplug(ctx context.Context, now *Setup) error {
	var l list
	for key, ours := range now.Ours {
		if ours {
			l.add("unbind-key", "-T", "prefix", key)
		}
	}
	for _, o := range pluginOptions {
		l.add("set-option", "-gu", pluginHead+o)
	}
	l.add("set-option", "-gu", labelOption)
	l.add("set-option", "-su", pluginProgram)
	l.add("set-option", "-su", pluginTold)
	l.add("set-hook", "-gu", helloSlot)
	if s, ok := withoutStatus(now.Status); ok {
		l.add("set-option", "-g", "status-right", s)
	}
	if _, err := h.tool.script(ctx, []string{l.String()}); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	return nil
}

// ForgetAutosave is StopAutosave that leaves nothing, not even that it was turned off.
func (h *Host) ForgetAutosave(ctx context.Context) error {
	if err := h.StopAutosave(ctx); err != nil {
		return err
	}
	_, err := h.tool.run(ctx, "", "set-option", "-su", autoToken)
	return err
}
