package metadata

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Validate reports the first bound that the record breaks, as a *BoundError.
func (s AgentSession) Validate() error {
	if err := CheckID("plugin_id", s.PluginID); err != nil {
		return err
	}
	if err := CheckID("integration_id", s.IntegrationID); err != nil {
		return err
	}
	return CheckNativeID("native_id", s.NativeID)
}

// Encode returns the record's one exact form, or the bound that it breaks. The bytes are those
// of serde_json: compact, members in declared order, nothing escaped but " \ and controls.
func (s AgentSession) Encode() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", KeyAgentSession, err)
	}
	return marshal(KeyAgentSession, s)
}

// DecodeAgentSession accepts exactly the three fields and nothing else: any order and white
// space, but no unknown, repeated, differently cased, null or missing one, at most MaxRecord
// bytes as they came. The error wraps a *BoundError.
func DecodeAgentSession(b []byte) (AgentSession, error) {
	s, err := decodeAgentSession(b)
	if err != nil {
		return AgentSession{}, fmt.Errorf("decode %s: %w", KeyAgentSession, err)
	}
	return s, nil
}

func decodeAgentSession(b []byte) (s AgentSession, err error) {
	if err := checkSize(len(b)); err != nil {
		return s, err
	}
	fields := []struct {
		name string
		at   *string
		seen bool
	}{{"plugin_id", &s.PluginID, false}, {"integration_id", &s.IntegrationID, false}, {"native_id", &s.NativeID, false}}
	err = object(b, false, func(name string, d *jsontext.Decoder) (err error) {
		for i := range fields {
			if f := &fields[i]; f.name == name {
				f.seen = true
				*f.at, err = text(name, d)
				return err
			}
		}
		return &BoundError{Field: name, Bound: Unknown}
	})
	if err != nil {
		return s, err
	}
	for _, f := range fields {
		if !f.seen {
			return s, &BoundError{Field: f.name, Bound: Missing}
		}
	}
	return s, s.Validate()
}

// marshal is the one encoder. go-json-experiment escapes what serde_json escapes and refuses
// what is not UTF-8; TestEncodingIsSerdes holds it to that.
func marshal(k Key, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k, err)
	}
	if err := checkSize(len(b)); err != nil {
		return nil, fmt.Errorf("encode %s: %w", k, err)
	}
	return b, nil
}

// ParseIdentity reads INTEGRATION/ID, split at the first slash: a native id may hold more of
// them. Both parts are checked; the error wraps a *BoundError.
func ParseIdentity(s string) (Identity, error) {
	integration, id, ok := strings.Cut(s, "/")
	if !ok {
		return Identity{}, fmt.Errorf("parse identity %q: %w", s, &BoundError{Field: "native id", Bound: Missing, Want: "INTEGRATION/ID"})
	}
	if err := CheckID("integration id", integration); err != nil {
		return Identity{}, fmt.Errorf("parse identity %q: %w", s, err)
	}
	if err := CheckNativeID("native id", id); err != nil {
		return Identity{}, fmt.Errorf("parse identity %q: %w", s, err)
	}
	return Identity{IntegrationID: integration, NativeID: id}, nil
}

const (
	paneKeyLen      = 26 // 128 bits, 5 a character
	paneKeyAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

var paneKeyCoding = base32.NewEncoding(paneKeyAlphabet).WithPadding(base32.NoPadding)

// NewPaneKey mints a pane key: 128 random bits as 26 lower-case characters of base32. It names
// a pane over its generations and is no agent identity.
func NewPaneKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return paneKeyCoding.EncodeToString(b[:])
}
