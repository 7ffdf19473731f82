package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func screenOf(session string, window, pane int, text string) Text {
	return Text{Session: session, Window: window, Pane: pane, SavedAt: time.Unix(1e9, 0).UTC(), Text: text}
}

func (b *bench) texts(n uint64) []string {
	b.Helper()
	e, err := b.Get(n)
	if err != nil {
		b.Fatal(err)
	}
	texts, err := b.Texts(e)
	if err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, t := range texts {
		out = append(out, t.Session+" "+strings.TrimSpace(t.Text))
	}
	return out
}

func (b *bench) wantTexts(n uint64, want ...string) {
	b.Helper()
	if got := b.texts(n); !slices.Equal(got, want) {
		b.Errorf("beside generation %d stands %q, not %q", n, got, want)
	}
}

func keeping(texts ...Text) SaveOptions {
	return SaveOptions{KeepTexts: true, Texts: append([]Text{}, texts...)}
}

func TestTextsLiveWithTheirGeneration(t *testing.T) {
	b := newBench(t)
	old := unix.Umask(0)
	defer unix.Umask(old)
	off := b.save(ws("L1", "work=a"))
	b.wantTexts(off.Generation)
	if _, err := os.Stat(filepath.Join(b.Dir, textsFile(off.Generation))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nobody asked: %v", err)
	}
	on := b.save(ws("L1", "work=a,b"), keeping(screenOf("work", 0, 0, "one\n"), screenOf("work", 0, 1, "two\n")))
	b.wantTexts(on.Generation, "work one", "work two")
	path := filepath.Join(b.Dir, textsFile(on.Generation))
	before, err := os.Stat(path)
	if err != nil || before.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", before, err)
	}
	// An unchanged generation has the text of the last save, and is written for a change alone.
	same := keeping(screenOf("work", 0, 0, "one\n"), screenOf("work", 0, 1, "two\n"))
	same.Texts[0].SavedAt = time.Unix(2e9, 0)
	b.save(ws("L1", "work=a,b"), same)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same text was written again: %v", err)
	}
	if s := b.save(ws("L1", "work=a,b"), keeping(screenOf("work", 0, 0, "one\nmore\n"))); !s.Unchanged || s.TextsErr != nil {
		t.Errorf("%+v", s)
	}
	b.wantTexts(on.Generation, "work one\nmore")
	b.save(ws("L1", "work=a,b"), SaveOptions{KeepTexts: true}) // it could not be read
	b.save(ws("L1", "work=a,b"))                               // nobody asked
	b.wantTexts(on.Generation, "work one\nmore")
	b.save(ws("L1", "work=a,b"), keeping())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty screens have a file: %v", err)
	}
}

// What waits keeps its text, under the name that it is listed by, until it is forgotten.
func TestTextsAreCarriedOn(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a", "play=b"), keeping(screenOf("work", 0, 0, "of work\n"), screenOf("play", 0, 0, "of play\n")))
	two := b.save(ws("L2", "work=c"), keeping(screenOf("work", 0, 0, "new\n")))
	b.wantTexts(two.Generation, "work new", "work (pending 1) of work", "play of play")
	three := b.save(ws("L3", "x=y"), SaveOptions{KeepTexts: true})
	b.wantTexts(three.Generation, "work new", "work (pending 1) of work", "play of play")
	if err := b.Forget("play"); err != nil {
		t.Fatal(err)
	}
	b.wantTexts(three.Generation, "work new", "work (pending 1) of work")
	b.wantTexts(two.Generation, "work new", "work (pending 1) of work")
	four := b.save(ws("L3", "x=y,z"), SaveOptions{KeepTexts: true})
	b.wantTexts(four.Generation, "work new", "work (pending 1) of work")
}

func TestTextsGoWithTheirGeneration(t *testing.T) {
	b := newBench(t)
	for _, agents := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		b.save(ws("L1", "work="+agents), keeping(screenOf("work", 0, 0, agents+"\n")))
	}
	if _, err := b.PruneNow(3, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.ForceRemove(8); err != nil {
		t.Fatal(err)
	}
	left := generations(t, b.Store)
	files, err := filepath.Glob(filepath.Join(b.Dir, "*"+textsSuffix))
	if err != nil || len(files) != len(left) || len(left) == 0 {
		t.Errorf("%d generations, and %q, %v", len(left), files, err)
	}
	// Of one whose generation went by hand, the next save takes it away.
	if err := os.Remove(filepath.Join(b.Dir, slot{n: left[0]}.file())); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=i"))
	if _, err := os.Stat(filepath.Join(b.Dir, textsFile(left[0]))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it outlived its generation: %v", err)
	}
}

// Text that is not the generation's, as it is now, is nobody's.
func TestTextsOfAnotherAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(b *bench, path string, raw []byte){
		"more":       func(b *bench, path string, raw []byte) { b.put(path, string(raw)+"x") },
		"other text": func(b *bench, path string, raw []byte) { b.put(path, strings.Replace(string(raw), "one", "two", 1)) },
		"cut":        func(b *bench, path string, raw []byte) { b.put(path, string(raw[:len(raw)-1])) },
		"empty":      func(b *bench, path string, _ []byte) { b.put(path, "") },
		"later version": func(b *bench, path string, raw []byte) {
			b.put(path, strings.Replace(string(raw), `"scrollback":1`, `"scrollback":2`, 1))
		},
		"other number": func(b *bench, path string, raw []byte) {
			b.put(path, strings.Replace(string(raw), `"generation":1`, `"generation":2`, 1))
		},
		"other bytes": func(b *bench, path string, raw []byte) {
			e, _ := b.Get(1)
			b.put(path, strings.Replace(string(raw), e.Digest, Digest(nil), 1))
		},
		"an edited one's": func(b *bench, path string, raw []byte) {
			p := filepath.Join(b.Dir, slot{n: 1}.file())
			file, _ := os.ReadFile(p)
			edited := strings.Replace(string(file), "work", "w0rk", 1)
			b.put(p, edited)
			b.put(path, strings.Replace(string(raw), Digest(file), Digest([]byte(edited)), 1))
		},
		"another size": func(b *bench, path string, raw []byte) {
			b.put(path, strings.Replace(string(raw), `"size":4`, `"size":3`, 1))
		},
		"huge size": func(b *bench, path string, raw []byte) {
			b.put(path, strings.Replace(string(raw), `"size":4`, `"size":4444`, 1))
		},
		"a negative size": func(b *bench, path string, raw []byte) {
			b.put(path, strings.Replace(string(raw), `"size":4`, `"size":-4`, 1))
		},
		"the generation": func(b *bench, _ string, _ []byte) {
			p := filepath.Join(b.Dir, slot{n: 1}.file())
			file, _ := os.ReadFile(p)
			b.put(p, strings.Replace(string(file), "work", "w0rk", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.save(ws("L1", "work=a"), keeping(screenOf("work", 0, 0, "one\n")))
			path := filepath.Join(b.Dir, textsFile(1))
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			spoil(b, path, raw)
			e, err := b.Get(s.Generation)
			if err != nil {
				t.Fatal(err)
			}
			if texts, err := b.Texts(e); !errors.Is(err, ErrTexts) {
				t.Errorf("%d texts, %v", len(texts), err)
			}
		})
	}
}

func (b *bench) put(path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

func TestTextsHaveBounds(t *testing.T) {
	long := strings.Repeat("x", MaxTextSize)
	var texts []Text
	for range MaxTextsSize/MaxTextSize + 2 {
		texts = append(texts, screenOf("work", 0, 0, long))
	}
	texts = append(texts, screenOf("work", 0, 1, long+"x"), screenOf("work", 0, 2, ""))
	raw, err := encodeTexts(1, "sha256:1", texts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeTexts(raw, 1, "sha256:1")
	if err != nil || len(got) != MaxTextsSize/MaxTextSize {
		t.Errorf("%d texts, %v", len(got), err)
	}
}

func FuzzTexts(f *testing.F) {
	b, _ := encodeTexts(1, "d", []Text{screenOf("work", 0, 1, "one\n"), screenOf("w\"", 2, 0, "\x1b[31m")})
	f.Add(b)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := decodeTexts(b, 1, "d")
		if err != nil {
			return
		}
		again, err := encodeTexts(1, "d", texts)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeTexts(again, 1, "d")
		if err != nil || !slices.EqualFunc(back, texts, sameText) {
			t.Fatalf("%v of %q", err, b)
		}
	})
}
