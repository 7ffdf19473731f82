package embedded

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func TestSpawnOnTheWire(t *testing.T) {
	here := host.Instance{Kind: Kind, PID: 7}
	want := host.Spawn{
		Place: host.SplitV, Target: host.Terminal{Instance: here, ID: "%3"}, Background: true,
		Pane: host.PaneSpec{
			Title: "a title",
			Start: host.Start{
				Mode: host.Program, Argv: []string{"/bin/x", "", "\xff\x00"}, Dir: "/a\xff", Set: []string{"A=\xfe"}, Unset: []string{"B"},
				AfterExit: "hold", Guard: []byte{0, 1}, Reason: "r", Hint: "h",
			},
			Meta: map[metadata.Key][]byte{metadata.KeyAgentSession: {0, 255}, metadata.KeyAgentLaunch: []byte("l")},
		},
	}
	f, err := decodeFields(spawnFields(want).encode())
	if err != nil {
		t.Fatal(err)
	}
	if got := f[spawnRecord]; !bytes.Equal(got.([]byte), []byte{0, 255}) {
		t.Errorf("field 9 is %v", got)
	}
	got, err := readSpawn(f, here)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// FuzzFrame: no bytes break the decoder, what passes is small, and what it reads it writes again.
func FuzzFrame(f *testing.F) {
	add := func(b []byte) { f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)) }
	add(fields{keyKind: kindHello, helloVersion: 1}.encode())
	add(spawnFields(host.Spawn{Session: "work", Pane: sleeper("r")}).encode())
	add(createFields(newNonce(), sessionOf("work", sleeper("r"), sleeper("s"))).encode())
	add(append([]byte{0x81, 2}, bytes.Repeat([]byte{0x91}, 50)...))
	add([]byte{0x82, 0, 5, 0, 5})
	add([]byte{0x81, 0, 0xdd, 0xff, 0xff, 0xff, 0xff})
	add([]byte{0xde, 0, 1, 1, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255})
	add([]byte{0x81, 1, 0xc7, 1, 0xff, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readFrame(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		_, _ = readSpawn(m, host.Instance{})
		_, _ = readPane(m)
		_, _ = readWorkspace(nil, host.Instance{})
		_, _ = readWindow(m, host.Instance{})
		_, _ = readStarted(m, host.Instance{})
		_ = remote(m)
		body := b[4 : 4+binary.BigEndian.Uint32(b)]
		_, _, _ = readCreate(body)
		_, _ = readCreated(body, host.Instance{})
		r := reading{fields: m}
		for k := range m {
			r.number(k)
			r.unsigned(k)
			r.text(k)
			r.data(k)
			r.flag(k)
			r.words(k)
			r.maps(k)
			r.sub(k)
		}
	})
}
