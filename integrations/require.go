package integrations

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/internal/foreign"
)

// maxSettings bounds a provider's settings file, in bytes.
const maxSettings = 1 << 20

// Holds reports whether the requirement holds in a pane's environment; where it does not, detail
// says what was found. A file that is not there has the default; what cannot be read does not
// hold, for the consequence is a lost conversation.
func (r Require) Holds(env Env) (detail string, ok bool) {
	path, err := ExpandRoot(r.File, env)
	if err != nil {
		return fmt.Sprintf("%s cannot be found: %v", r.File, err), false
	}
	found, where := r.Default, fmt.Sprintf("%s, which is not set in %s and is %v by default", r.JSON, path, r.Default)
	b, err := readSettings(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", path, err), false
	default:
		var doc any
		// Agents allow comments in their settings.
		if err := json.Unmarshal([]byte(foreign.Strict(string(b))), &doc); err != nil {
			return fmt.Sprintf("%s cannot be read: %v", path, err), false
		}
		if v, there := follow(doc, r.JSON); there {
			found, where = v, fmt.Sprintf("%s in %s is %v", r.JSON, path, v)
		}
	}
	if sameValue(found, r.Equals) {
		return "", true
	}
	return fmt.Sprintf("%s, and must be %v", where, r.Equals), false
}

func readSettings(path string) ([]byte, error) {
	// Not to wait: a fifo in the file's place would hold every plan.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(b) > maxSettings {
		err = fmt.Errorf("larger than %d bytes", maxSettings)
	}
	return b, err
}

// follow follows an RFC 6901 JSON pointer.
func follow(doc any, ptr string) (any, bool) {
	if ptr == "" {
		return doc, true
	}
	if ptr[0] != '/' {
		return nil, false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for step := range strings.SplitSeq(ptr[1:], "/") {
		step = unescape.Replace(step)
		switch at := doc.(type) {
		case map[string]any:
			v, ok := at[step]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			doc = at[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// sameValue compares a JSON value with a TOML one: numbers by value, the rest by kind and value.
func sameValue(a, b any) bool {
	x, xok := asNumber(a)
	y, yok := asNumber(b)
	if xok || yok {
		return xok && yok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}
