// Package boot renders what starts a restore after the machine did: a systemd user unit, and a
// launchd agent. It runs nothing: where the files go, and what loads them, is the front door's.
package boot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Service is what is to run at login.
type Service struct {
	Name    string   // of the unit: letters, digits and -
	Program string   // absolute
	Args    []string // the words after it
	Env     []string // KEY=VALUE, in this order
}

// ErrService is wrapped by every refusal of a service that neither form can hold.
var ErrService = errors.New("not a service")

func (s Service) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrService, fmt.Sprintf(format, args...))
	}
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		return bad("the name %q", s.Name)
	}
	if !filepath.IsAbs(s.Program) {
		return bad("the program %q is not an absolute path", s.Program)
	}
	for _, w := range append(append([]string{s.Program}, s.Args...), s.Env...) {
		if !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
			return bad("%q holds what a line of text cannot", w)
		}
	}
	for _, kv := range s.Env {
		if strings.IndexByte(kv, '=') < 1 {
			return bad("an environment value without a name")
		}
	}
	return nil
}

// Unit is the text of a systemd user unit. It runs once at login (or at boot, for a user who
// lingers), and stays active: the terminal server that it starts is in its control group, and is
// left alone when the unit is stopped.
func (s Service) Unit() (string, error) {
	if err := s.check(); err != nil {
		return "", fmt.Errorf("render the unit: %w", err)
	}
	var b strings.Builder
	b.WriteString("# Written by phux-agent boot install; boot uninstall takes it away.\n")
	b.WriteString("[Unit]\nDescription=Bring the coding agents back (phux-agent)\nDocumentation=man:phux-agent(1)\n\n")
	b.WriteString("[Service]\nType=oneshot\nRemainAfterExit=yes\n")
	b.WriteString("# The server that holds the agents outlives this unit.\nKillMode=process\n")
	b.WriteString("# 3: some pane came back as a placeholder; 4: some session was refused. Both are said in the journal.\nSuccessExitStatus=3 4\n")
	b.WriteString("TimeoutStartSec=10min\n")
	for _, kv := range s.Env {
		b.WriteString("Environment=" + unitWord(kv) + "\n")
	}
	words := []string{unitWord(s.Program)} // which is not searched for variables, as its arguments are
	for _, w := range s.Args {
		words = append(words, unitWord(strings.ReplaceAll(w, "$", "$$")))
	}
	b.WriteString("ExecStart=" + strings.Join(words, " ") + "\n\n")
	b.WriteString("[Install]\nWantedBy=default.target\n")
	return b.String(), nil
}

// unitWord quotes one word as systemd.syntax(7) reads it: '%' is a specifier, '\' an escape.
func unitWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s) + `"`
}

// Plist is the text of a launchd agent. It runs once at login; what it started stays.
func (s Service) Plist() (string, error) {
	if err := s.check(); err != nil {
		return "", fmt.Errorf("render the plist: %w", err)
	}
	var b strings.Builder
	b.WriteString(xml.Header)
	b.WriteString("<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n")
	b.WriteString("<!-- Written by phux-agent boot install; boot uninstall takes it away. -->\n<plist version=\"1.0\">\n<dict>\n")
	key := func(name, value string) { fmt.Fprintf(&b, "\t<key>%s</key>\n%s\n", text(name), value) }
	key("Label", "\t<string>"+text(Label(s.Name))+"</string>")
	words := "\t<array>\n"
	for _, w := range append([]string{s.Program}, s.Args...) {
		words += "\t\t<string>" + text(w) + "</string>\n"
	}
	key("ProgramArguments", words+"\t</array>")
	if len(s.Env) > 0 {
		env := "\t<dict>\n"
		for _, kv := range s.Env {
			k, v, _ := strings.Cut(kv, "=")
			env += "\t\t<key>" + text(k) + "</key>\n\t\t<string>" + text(v) + "</string>\n"
		}
		key("EnvironmentVariables", env+"\t</dict>")
	}
	key("RunAtLoad", "\t<true/>")
	// Or launchd would kill the server that holds the agents when this program has ended.
	key("AbandonProcessGroup", "\t<true/>")
	b.WriteString("</dict>\n</plist>\n")
	return b.String(), nil
}

// Label is the name of a service in launchd's domain.
func Label(name string) string { return "dev.phux." + name }

func text(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes it all
	return b.String()
}
