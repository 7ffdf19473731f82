package owner

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeForeign reads a provider's own JSON. It is not ours to be strict about: what it repeats
// or misspells is its affair, as long as the value in question can be found.
func decodeForeign(b []byte) (any, error) {
	var doc any
	err := json.Unmarshal(b, &doc, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return doc, err
}

// follow evaluates a JSON pointer (RFC 6901).
func follow(doc any, pointer string) (any, bool) {
	if pointer == "" {
		return doc, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(v) || token != strconv.Itoa(n) {
				return nil, false
			}
			doc = v[n]
		default:
			return nil, false
		}
	}
	return doc, true
}

// number reads a JSON number or a string that is one: providers write both.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// same compares a value of a provider's JSON with one of a template's TOML.
func same(got, want any) bool {
	switch w := want.(type) {
	case int64:
		f, ok := got.(float64)
		return ok && f == float64(w)
	case float64:
		f, ok := got.(float64)
		return ok && f == w
	case string:
		s, ok := got.(string)
		return ok && s == w
	case bool:
		b, ok := got.(bool)
		return ok && b == w
	}
	return false
}
