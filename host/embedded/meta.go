package embedded

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// write is one change of a metadata value. The scope is a terminal's id, or empty: the server's.
type write struct {
	scope, key string
	value, old []byte
	compare    bool // only if it is still old; empty is absent
	delete     bool
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyName || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return fmt.Errorf("%w: a key is 1 to %d bytes of text", host.ErrRequest, maxKeyName)
	}
	return nil
}

// reserved says whether a name is the server's own: results of creates, which their owner alone
// reads, once, and nobody writes, deletes, lists or watches.
func (s *Server) reserved(scope, key string) bool {
	return scope == "" && strings.HasPrefix(key, createdPrefix) && !s.opt.Older
}

// values is a scope that is there. The lock is held.
func (s *Server) values(id string) (scope, error) {
	if id == "" {
		return s.globals, nil
	}
	if t := s.terminals[id]; t != nil {
		return t.meta, nil
	}
	return nil, host.ErrNoTerminal
}

func (s *Server) write(w write) error {
	if err := checkKey(w.key); err != nil {
		return err
	}
	if s.reserved(w.scope, w.key) {
		return ErrReserved
	}
	if w.scope == "" && w.key == createKey {
		return fmt.Errorf("%w: it is a request, and holds no value", ErrReserved)
	}
	k := metadata.Key(w.key)
	if err := host.CheckValue(k, w.value); err != nil {
		return err
	}
	if !w.delete && len(w.value) == 0 {
		return fmt.Errorf("%w: an empty value; what is not wanted any more is deleted", host.ErrRequest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.values(w.scope)
	if err != nil {
		return err
	}
	if w.compare && !bytes.Equal(in[k], w.old) {
		return host.ErrConflict
	}
	if w.delete {
		delete(in, k)
	} else {
		if err := in.fits(k, w.value); err != nil {
			return err
		}
		in[k] = bytes.Clone(w.value)
	}
	s.announce(w.scope, w.key, w.value)
	return nil
}

// announce tells those who watch a scope. The lock is held.
func (s *Server) announce(scope, key string, value []byte) {
	var frame []byte
	for p := range s.peers {
		if !p.watches[scope] {
			continue
		}
		if frame == nil {
			frame = fields{
				keyKind: kindChanged, metaScope: scope, metaKey: key, metaValue: value, metaPresent: len(value) > 0,
			}.frame()
		}
		p.push(frame)
	}
}

func (s *Server) get(p *peer, id, key string) (value []byte, present bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved(id, key) {
		token := strings.TrimPrefix(key, createdPrefix)
		r := s.results[token]
		if r == nil || r.owner != p {
			// The same answer for both: whether there is one is nobody else's business.
			return nil, false, ErrReserved
		}
		delete(s.results, token)
		p.results--
		return r.value, true, nil
	}
	in, err := s.values(id)
	if err != nil {
		return nil, false, err
	}
	v, ok := in[metadata.Key(key)]
	return v, ok, nil
}

func (s *Server) list(id string) ([]fields, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.values(id)
	if err != nil {
		return nil, err
	}
	var out []fields
	for _, k := range sortedKeys(in) {
		out = append(out, fields{1: string(k), 2: in[k]})
	}
	return out, nil
}

func (s *Server) watch(p *peer, id string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !on {
		delete(p.watches, id)
		return nil
	}
	if _, err := s.values(id); err != nil {
		return err
	}
	if len(p.watches) >= maxWatches {
		return fmt.Errorf("%w: %d subscriptions of one client", ErrBusy, maxWatches)
	}
	p.watches[id] = true
	return nil
}

// result is what a create came to: for its owner, once.
type result struct {
	owner *peer
	value []byte
}

// createByKey is what a SET of the create key does: the value is the envelope of a create, and the
// result comes to stand under the reserved name of its token.
func (s *Server) createByKey(ctx context.Context, p *peer, value []byte) error {
	token, c, err := readCreate(value)
	if err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return err
	}
	mine := &result{owner: p}
	s.mu.Lock()
	switch {
	case ctx.Err() != nil: // its owner is gone, and has been cleaned up after
		err = fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
	case s.results[token] != nil:
		err = fmt.Errorf("%w: the token is in use", host.ErrRequest)
	case p.results >= maxResults:
		err = fmt.Errorf("%w: %d results that were not read", ErrBusy, maxResults)
	default:
		p.results++
		s.results[token] = mine
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	created, err := s.create(ctx, c)
	var out fields
	if err != nil {
		out = fields{resultError: errorFields(err)}
	} else {
		out = createdFields(created)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.results[token] != mine { // its owner is gone
		return nil
	}
	if s.opt.Older {
		delete(s.results, token)
		p.results--
		s.globals[metadata.Key(createdPrefix+token)] = out.encode()
		return nil
	}
	mine.value = out.encode()
	return nil
}

func checkToken(t string) error {
	ok := len(t) >= 16 && len(t) <= maxToken
	for _, c := range []byte(t) {
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_')
	}
	if !ok {
		return fmt.Errorf("%w: a token is 16 to %d letters and digits", host.ErrRequest, maxToken)
	}
	return nil
}

// bind replaces the values of a terminal by those of a process that we did not start.
func (s *Server) bind(id string, pid int, start uint64, meta map[metadata.Key][]byte) error {
	if pid <= 0 || start == 0 {
		return fmt.Errorf("%w: process %d", host.ErrRequest, pid)
	}
	for k, v := range meta {
		if err := checkKey(string(k)); err != nil {
			return err
		}
		if err := host.CheckValue(k, v); err != nil {
			return err
		}
		if len(v) == 0 {
			delete(meta, k)
		}
	}
	values, err := newScope(meta)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminals[id]
	if t == nil {
		return host.ErrNoTerminal
	}
	t.meta, t.bound = values, proc.ID{PID: pid, Start: start}
	for k, v := range values {
		s.announce(id, string(k), v)
	}
	return nil
}
