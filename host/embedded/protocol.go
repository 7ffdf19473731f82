package embedded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Version of the wire. It grows only when an old client could not work with a new server; all
// else is a feature, or a key that is skipped where it is unknown.
const Version = 1

// What kind of frame it is: key 0. Key 1 is the number of the request, which its reply repeats.
const (
	keyKind    = 0
	keyRequest = 1
)

const (
	kindHello    = 1
	kindOK       = 2
	kindError    = 3
	kindCancel   = 4
	kindState    = 5
	kindSpawn    = 6
	kindSet      = 7
	kindGet      = 8
	kindSwap     = 9
	kindDelete   = 10
	kindList     = 11
	kindWatch    = 12 // subscribe
	kindUnwatch  = 13
	kindAttach   = 14
	kindDetach   = 15
	kindInput    = 16
	kindResize   = 17
	kindKill     = 18
	kindRead     = 19
	kindFocus    = 20
	kindBind     = 21
	kindEnviron  = 22
	kindEvents   = 23
	kindShutdown = 24
	kindRespawn  = 25
	kindReplace  = 26

	// From the server, without a request.
	kindOutput  = 32
	kindEvent   = 33
	kindChanged = 34 // a metadata value that is watched
)

// Keys of the frames, by kind; docs/embedded-protocol.md is the table.
const (
	helloVersion  = 2
	helloFeatures = 3
	helloLimits   = 4
	helloPID      = 5
	helloLife     = 6
	helloBoot     = 7
	helloSocket   = 8
	helloName     = 9
	helloProgram  = 10 // version of the program
	helloSessions = 11

	limitFrame    = 1
	limitClients  = 2
	limitWatches  = 3
	limitResults  = 4
	limitValue    = 5
	limitRecord   = 6
	limitPending  = 7
	limitTerminal = 8

	errorCode = 2
	errorText = 3

	cancelRequest = 2

	spawnPlace      = 2
	spawnSession    = 3
	spawnTarget     = 4
	spawnWindow     = 5
	spawnBackground = 6
	spawnStart      = 7
	spawnTitle      = 8
	spawnRecord     = 9 // ADR-0068 §4
	spawnSatellite  = 10
	spawnMeta       = 11

	replacePID     = 12 // beside the keys of a pane, and the target
	replaceCommand = 13

	startedTerminal = 2
	startedNonce    = 3
	startedPID      = 4
	startedError    = 5
	startedRecord   = 9
	startedMeta     = 11

	metaScope   = 2 // a terminal's id; empty is the server's own scope
	metaKey     = 3
	metaValue   = 4
	metaOld     = 5
	metaPresent = 6
	metaValues  = 7
	metaWatch   = 8

	termID      = 2
	termCols    = 3
	termRows    = 4
	termData    = 5
	termSession = 6
	termLines   = 7 // of history, for READ; -1 is all
	termSignal  = 8
	termHold    = 9  // with RESIZE: the view is to show nothing until another RESIZE
	termLooks   = 10 // with READ: the text with SGR sequences
	termBelow   = 11 // with READ: with looks, and of a full screen what stands below it

	screenText   = 5
	screenCursor = 6
	screenRow    = 7
	screenHidden = 8
	screenTitle  = 9
	screenKeys   = 10

	bindPID    = 3
	bindStart  = 4
	bindRecord = 9
	bindMeta   = 11

	eventWhat = 2
	eventTerm = 3
	eventCols = 4
	eventRows = 5
	eventName = 6

	environValues = 2
	stateSessions = 2
)

// Features that a server may have, in HELLO.
const (
	featureRecord   = "spawn-record"   // field 9 is stored inside the spawn
	featureReserved = "reserved-names" // the namespace of results is the server's own
)

// Names of this host's wire alone: see ADR-0068 §6.
const (
	createKey     = "phux.session.create/v1"
	createdPrefix = "phux.session.created/v1/"
)

// Bounds of the server, told in HELLO.
const (
	maxClients   = 256
	maxWatches   = 64      // subscriptions of one client
	maxResults   = 16      // results of one client that nobody has read
	maxRequests  = 16      // of one client at once
	maxTerminals = 4096    // of a server
	maxKeys      = 256     // values of one scope
	maxScope     = 1 << 20 // bytes of one scope
	maxKeyName   = 256
	maxToken     = 64
	maxQueue     = 8 << 20 // bytes that wait for one client, beyond which it is dropped
	maxInput     = 1 << 20 // bytes that wait for one program
)

// Error codes: what went wrong, for programs.
var codes = []struct {
	code string
	err  error
}{
	{"no-session", host.ErrNoSession},
	{"session-exists", host.ErrSessionExists},
	{"no-terminal", host.ErrNoTerminal},
	{"conflict", host.ErrConflict},
	{"occupied", host.ErrOccupied},
	{"no-space", host.ErrNoSpace},
	{"layout", host.ErrLayout},
	{"name", host.ErrName},
	{"request", host.ErrRequest},
	{"reserved", ErrReserved},
	{"satellite", ErrSatellite},
	{"busy", ErrBusy},
	{"dead", ErrDead},
	{"cancelled", errCancelled},
	{"frame", ErrFrame},
	{"version", ErrVersion},
}

var (
	// ErrReserved: the name belongs to the server.
	ErrReserved = errors.New("the name is reserved for the server")
	// ErrSatellite: the spawn is for another machine; this server has none, and would not send
	// a record there.
	ErrSatellite = errors.New("a record does not go to another machine, and this server has none")
	// ErrBusy: a bound of the server is reached.
	ErrBusy = errors.New("the server is at one of its limits")
	// ErrDead: the terminal's program has ended.
	ErrDead = errors.New("the terminal's program has ended")
	// ErrVersion: the server speaks another version of the protocol.
	ErrVersion = errors.New("the server speaks another version of the protocol")

	errCancelled = errors.New("the request was given up")
)

// RemoteError is what the server answered. It unwraps to the sentinel that its code stands for.
type RemoteError struct {
	Code string
	Text string
}

func (e *RemoteError) Error() string { return e.Text }

func (e *RemoteError) Unwrap() error {
	for _, c := range codes {
		if c.code == e.Code {
			return c.err
		}
	}
	return nil
}

const maxErrorText = 4096

func errorFields(err error) fields {
	code := "failed"
	for _, c := range codes {
		if errors.Is(err, c.err) {
			code = c.code
			break
		}
	}
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "")
	}
	return fields{keyKind: kindError, errorCode: code, errorText: text}
}

// remote is the error of a reply, nil where it is none.
func remote(f fields) error {
	r := reading{fields: f}
	if r.number(keyKind) != kindError {
		return nil
	}
	e := &RemoteError{Code: r.text(errorCode), Text: r.text(errorText)}
	if e.Text == "" {
		e.Text = "the server refused, and does not say why"
	}
	return e
}

// A record goes in a field of its own; the other values of a spawn in a list beside it.

func metaFields(m map[metadata.Key][]byte) []fields {
	var out []fields
	for _, k := range sortedKeys(m) {
		if k != metadata.KeyAgentSession && len(m[k]) > 0 {
			out = append(out, fields{1: string(k), 2: m[k]})
		}
	}
	return out
}

func readMeta(record []byte, list []fields) (map[metadata.Key][]byte, error) {
	if len(list) > maxKeys {
		return nil, fmt.Errorf("%w: %d values, where %d may be", host.ErrRequest, len(list), maxKeys)
	}
	out := make(map[metadata.Key][]byte, len(list)+1)
	if len(record) > 0 {
		out[metadata.KeyAgentSession] = record
	}
	for _, f := range list {
		r := reading{fields: f}
		k, v := metadata.Key(r.text(1)), r.data(2)
		if r.err != nil {
			return nil, r.err
		}
		if _, twice := out[k]; twice {
			return nil, badFrame("a value of %q stands twice", k)
		}
		out[k] = v
	}
	return out, nil
}
