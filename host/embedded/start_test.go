package embedded

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Where no log can be written (a home directory that is read-only), a server starts without one.
func TestServerStartsWithoutALog(t *testing.T) {
	s := newStage(t)
	opt := s.host.opt
	opt.Log = "/proc/nobody/can/write/here.log"
	h, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	s.host = h
	s.start()
}

// However much a server is made to say, its log ends.
func TestLogIsBounded(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(BoundLog(&b), nil))
	for range 3 * maxLog / 100 {
		log.Warn("a client is dropped", "reason", strings.Repeat("x", 100))
	}
	if b.Len() > maxLog+100 || !strings.HasSuffix(b.String(), "no more is written\n") {
		t.Errorf("%d bytes, and the end is %q", b.Len(), b.String()[b.Len()-100:])
	}
}
