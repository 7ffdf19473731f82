package tmux

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Words of a pane's start command: SELF pane-exec [--after] TOKEN NONCE DIR.
const (
	verb      = "pane-exec"
	afterFlag = "--after"
	reapFlag  = "--reap"
	tokenHead = "v1"
)

var b64 = base64.RawURLEncoding.Strict()

// errToken is every refusal of a birth token.
var errToken = errors.New("not a birth token")

// birth is what a pane's own start command says: its birth certificate.
type birth struct {
	nonce string
	after bool // the shell that follows a program that ended
	meta  map[metadata.Key][]byte
	dir   string // of the transaction that made it
}

// newNonce is 26 characters of base32: 130 random bits.
func newNonce() string { return strings.ToLower(rand.Text()) }

func validNonce(s string) bool {
	if len(s) < 16 || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// encodeToken writes the record and the facts, in that order; an absent one is empty. The live
// identity is not in it: it is descriptive, and a pane option from the first.
func encodeToken(meta map[metadata.Key][]byte) string {
	return tokenHead + "." + b64.EncodeToString(meta[metadata.KeyAgentSession]) + "." + b64.EncodeToString(meta[metadata.KeyAgentLaunch])
}

func decodeToken(s string) (map[metadata.Key][]byte, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || parts[0] != tokenHead {
		return nil, errToken
	}
	meta := make(map[metadata.Key][]byte, 2)
	for i, k := range []metadata.Key{metadata.KeyAgentSession, metadata.KeyAgentLaunch} {
		if parts[i+1] == "" {
			continue
		}
		v, err := decodeValue(parts[i+1])
		if err != nil {
			return nil, err
		}
		if err := host.CheckValue(k, v); err != nil {
			return nil, fmt.Errorf("%w: %w", errToken, err)
		}
		meta[k] = v
	}
	return meta, nil
}

func decodeValue(s string) ([]byte, error) {
	// The decoder skips line ends.
	if strings.ContainsAny(s, "\r\n") || len(s) > base64.RawURLEncoding.EncodedLen(host.MaxValue) {
		return nil, errToken
	}
	v, err := b64.DecodeString(s)
	if err != nil || len(v) == 0 {
		return nil, errToken
	}
	return v, nil
}

// parseBirth reads the arguments of pane-exec.
func parseBirth(args []string) (birth, error) {
	var b birth
	if len(args) > 0 && args[0] == afterFlag {
		b.after = true
		args = args[1:]
	}
	if len(args) != 3 || !validNonce(args[1]) || !filepath.IsAbs(args[2]) {
		return birth{}, errToken
	}
	meta, err := decodeToken(args[0])
	if err != nil {
		return birth{}, err
	}
	b.meta, b.nonce, b.dir = meta, args[1], args[2]
	return b, nil
}

// args are the words of pane-exec; parseBirth reads them.
func (b birth) args() []string {
	words := []string{verb}
	if b.after {
		words = append(words, afterFlag)
	}
	return append(words, encodeToken(b.meta), b.nonce, b.dir)
}

// parseStartCommand reads #{pane_start_command}. It is ours only where the program has our
// name and the words have the shape of pane-exec's: a shell command that contains the same text
// is one word.
func parseStartCommand(s, program string) (birth, bool) {
	if !strings.Contains(s, verb) {
		return birth{}, false
	}
	words, ok := splitCommand(s, 7)
	if !ok || len(words) < 2 || words[1] != verb || !ourName(filepath.Base(words[0]), program) {
		return birth{}, false
	}
	b, err := parseBirth(words[2:])
	return b, err == nil
}

// ourName reports a name that this program goes by: its own, and what a release or a package may have
// called the one that started the pane (phux-agent-linux-amd64). A program that was renamed since must
// not take its own panes for somebody else's; what tells them is the shape of the words.
func ourName(base, program string) bool {
	rest, ours := strings.CutPrefix(base, verbProgram)
	return base == program || ours && (rest == "" || strings.ContainsRune("-_.", rune(rest[0])))
}

// verbProgram is what the program is called where nobody renames it.
const verbProgram = "phux-agent"

// splitCommand takes apart what tmux prints of an argv: words joined by spaces, each quoted where
// it must be, and in either kind of quotes and outside them with vis(3)'s escapes. More than max
// words, or a quote that does not end, is not one.
func splitCommand(s string, max int) ([]string, bool) {
	var words []string
	for i := 0; i < len(s); {
		if s[i] == ' ' {
			return nil, false
		}
		if len(words) == max {
			return nil, false
		}
		var b strings.Builder
		var quote byte
		for ; i < len(s) && (quote != 0 || s[i] != ' '); i++ {
			switch c := s[i]; {
			case c == quote:
				quote = 0
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == '\\':
				if i+1 == len(s) {
					return nil, false
				}
				if n, r := octal(s[i+1:]); n == 3 {
					b.WriteByte(r)
					i += 3
					continue
				}
				i++
				switch s[i] {
				case 'n':
					b.WriteByte('\n')
				case 't':
					b.WriteByte('\t')
				case 'r':
					b.WriteByte('\r')
				case 's':
					b.WriteByte(' ')
				default:
					b.WriteByte(s[i])
				}
			default:
				b.WriteByte(c)
			}
		}
		if quote != 0 {
			return nil, false
		}
		words = append(words, b.String())
		if i < len(s) {
			if i++; i == len(s) {
				return nil, false
			}
		}
	}
	return words, true
}

// octal reads up to three octal digits of one byte.
func octal(s string) (n int, b byte) {
	v := 0
	for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		v = v<<3 | int(s[n]-'0')
		n++
	}
	if v > 0xff {
		return 0, 0
	}
	return n, byte(v)
}

// The pane options that hold current values, in the order of keys.
var options = [...]struct {
	key  metadata.Key
	name string
}{
	{metadata.KeyAgentSession, "@phux-agent-session"},
	{metadata.KeyAgentLaunch, "@phux-agent-launch"},
	{metadata.KeyAgent, "@phux-agent"},
}

// txOption marks a session that is being built: no observer is shown it. Its value names the
// session too (see sessionValue).
const txOption = "@phux-agent-tx"

// sessionValue is what we store on a session, as a format that the session's own id is put into.
// #{@name} shows what a window, a session or the whole server was given under that name just as
// well; only a value that names its session is that session's.
func sessionValue(id string) string { return "#{session_id}." + id }

// onSession takes the id from a value that the session was given by us; empty from any other.
func onSession(sessionID, value string) string {
	of, id, _ := strings.Cut(value, ".")
	if of != sessionID {
		return ""
	}
	return id
}

func optionOf(k metadata.Key) (string, error) {
	for _, o := range options {
		if o.key == k {
			return o.name, nil
		}
	}
	return "", fmt.Errorf("%w: tmux stores no %q", host.ErrRequest, k)
}

// tombstone stands for a value that was removed: an option that is unset would let the birth
// value come back.
const tombstone = "-"

// thisPane stands for the pane's id in a value that is set with set-option -F.
const thisPane = "#{pane_id}"

// encodeOption binds a value to a pane, and in it to an owner: a birth nonce, or a process.
// Without the pane a copy of the option would speak for whichever pane it was set on, and one
// that is set on a window or on the server for all of them.
func encodeOption(owner, pane string, v []byte) string {
	if len(v) == 0 {
		return owner + pane + "." + tombstone
	}
	return owner + pane + "." + b64.EncodeToString(v)
}

// option is one pane option, read.
type option struct {
	owner string
	value []byte // nil: removed
}

// decodeOption reads an option of that pane; what was made for another pane is not one.
func decodeOption(k metadata.Key, pane, s string) (option, bool) {
	bound, v, ok := strings.Cut(s, ".")
	if !ok || !validID(pane, '%') {
		return option{}, false
	}
	owner, ok := strings.CutSuffix(bound, pane)
	if !ok {
		return option{}, false
	}
	if _, _, process := parseBinding(owner); !process && !validNonce(owner) {
		return option{}, false
	}
	if v == tombstone {
		return option{owner: owner}, true
	}
	b, err := decodeValue(v)
	if err != nil || host.CheckValue(k, b) != nil {
		return option{}, false
	}
	return option{owner: owner, value: b}, true
}

// binding is the owner of a value that is bound to a process. It is shorter than any nonce or
// holds a '-', which none does.
func binding(pid int, start uint64) string {
	return "p" + strconv.Itoa(pid) + "-" + strconv.FormatUint(start, 10)
}

func parseBinding(s string) (pid int, start uint64, ok bool) {
	s, ok = strings.CutPrefix(s, "p")
	if !ok {
		return 0, 0, false
	}
	p, t, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(p)
	if err != nil || pid <= 0 {
		return 0, 0, false
	}
	start, err = strconv.ParseUint(t, 10, 64)
	if err != nil || binding(pid, start) != "p"+s {
		return 0, 0, false
	}
	return pid, start, true
}

// identity is what a pane's start command and options say together.
type identity struct {
	origin host.Origin
	birth  birth // of ours
	nonce  string
	pid    int // of a binding
	start  uint64
	meta   map[metadata.Key][]byte
}

// judge reads a pane. alive tells whether a process still is the one that a value was bound to.
func judge(pane, command string, opts [len(options)]string, program string, alive func(pid int, start uint64) bool) identity {
	b, ours := parseStartCommand(command, program)
	var read [len(options)]option
	var owner, bound string
	for i, s := range opts {
		if s == "" {
			continue
		}
		o, ok := decodeOption(options[i].key, pane, s)
		if !ok {
			continue
		}
		read[i] = o
		if _, _, ok := parseBinding(o.owner); ok {
			bound = o.owner
		} else if owner == "" || o.owner == b.nonce {
			owner = o.owner
		}
	}
	id := identity{meta: make(map[metadata.Key][]byte)}
	take := func(owner string) {
		for i, o := range read {
			if o.owner != owner {
				continue
			}
			if o.value == nil {
				delete(id.meta, options[i].key)
			} else {
				id.meta[options[i].key] = o.value
			}
		}
	}
	if bound != "" {
		id.pid, id.start, _ = parseBinding(bound)
		live := alive(id.pid, id.start)
		// A binding that is gone does not unmake a program of ours that runs.
		if live || !ours || b.after {
			id.origin = host.BoundGone
			if live {
				id.origin = host.Bound
			}
			take(bound)
			return id
		}
		id.pid, id.start = 0, 0
	}
	switch {
	case ours:
		id.origin, id.birth, id.nonce = host.Ours, b, b.nonce
		if b.after {
			id.origin = host.Ended
		}
		for k, v := range b.meta {
			id.meta[k] = v
		}
		take(b.nonce)
	case owner != "":
		id.origin, id.nonce = host.Replaced, owner
		take(owner)
	}
	return id
}
