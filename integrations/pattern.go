package integrations

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
)

const maxPattern = 512 // bytes of id_pattern

// The aliases of id_pattern. uuid4 is what we mint and the only form that every CLI keeps as it
// is: qwen 0.24.4 refuses version 7, and claude, copilot and pi compare case-sensitively. uuid
// is any version in either case, for CLIs that mint their own (codex 0.171.0: version 7).
var aliases = map[string]string{
	"uuid4": `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
	"uuid":  `^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`,
}

// Expressions are compiled when they are first used: every pane starts this program, and a pane
// uses none.
var multiLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(\?[a-zA-Z]*m`) })

// compiled keeps each id_pattern's expression: a save matches hundreds of ids against a few.
var compiled sync.Map // string -> *regexp.Regexp

// compileID compiles an id_pattern: an alias, or an RE2 whose anchors nothing escapes. nil
// where the pattern is empty. In Go, $ without the m flag is the end of the text, so a trailing
// newline does not slip past it; with the m flag it would, and that flag is refused.
func compileID(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	if re, ok := compiled.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := compile(pattern)
	if err == nil {
		compiled.Store(pattern, re)
	}
	return re, err
}

func compile(pattern string) (*regexp.Regexp, error) {
	if text, ok := aliases[pattern]; ok {
		return regexp.Compile(text)
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("%d bytes, at most %d", len(pattern), maxPattern)
	}
	if multiLine().MatchString(pattern) {
		return nil, errors.New("the m flag is refused: it lets ^ and $ match inside the id")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("is no RE2 expression: %w", err)
	}
	// Anchored means: a sequence that begins with ^ and ends with $, both outside of any choice.
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[len(tree.Sub)-1].Op != syntax.OpEndText {
		return nil, fmt.Errorf("%s is not anchored: one ^ before and one $ after all of it, and a choice in parentheses, ^(?:a|b)$", quote(pattern))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("is no RE2 expression: %w", err)
	}
	return re, nil
}
