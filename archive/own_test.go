package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// edit changes what a generation says, as somebody with an editor does.
func (b *bench) edit(path, from, to string) {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	changed := bytes.ReplaceAll(text, []byte(from), []byte(to))
	if bytes.Equal(changed, text) {
		b.Fatalf("%q is not in %s", from, path)
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) wantState(n uint64, want State) {
	b.Helper()
	e, err := b.Get(n)
	if err != nil || e.State != want {
		b.Errorf("generation %d: %s %s, %v; want %s", n, e.State, e.Reason, err, want)
	}
}

// three is a history of three generations.
func three(t *testing.T) (*bench, []Saved) {
	b := newBench(t)
	return b, []Saved{b.save(ws("L1", "work=aa")), b.save(ws("L1", "work=aa,bb"), SaveOptions{Name: "keep"}), b.save(ws("L1", "work=aa,bb,cc"))}
}

// TestAnEditedGenerationIsNotOwn: the newest is known by the last save, an older one by the next.
func TestAnEditedGenerationIsNotOwn(t *testing.T) {
	for n := range 3 {
		b, all := three(t)
		b.edit(all[n].Path, `"aa"`, `"ee"`)
		for i := range 3 {
			want := Good
			if i == n {
				want = Edited
			}
			b.wantState(all[i].Generation, want)
			text, err := os.ReadFile(all[i].Path)
			if own := b.Own(text); err != nil || own != (i != n) {
				t.Errorf("%d edited: generation %d is own: %v, %v", n+1, i+1, own, err)
			}
		}
		c := b.best()
		if want := uint64(3); n == 2 && (c.Generation != 2 || len(c.Newer) != 1 || c.Newer[0].State != Edited) || n < 2 && c.Generation != want {
			t.Errorf("%d edited: the best is %d, above it %+v", n+1, c.Generation, c.Newer)
		}
	}
}

// TestWhatWasEditedGoesNoFurther: a later save neither carries it on nor vouches for it.
func TestWhatWasEditedGoesNoFurther(t *testing.T) {
	b, all := three(t)
	b.edit(all[2].Path, `"aa"`, `"ee"`)
	next := b.save(ws("L2", "new=dd"))
	if next.Archive.Prev != all[2].Digest {
		t.Errorf("prev is %s, not %s, which was written", next.Archive.Prev, all[2].Digest)
	}
	b.wantSaid(next.Archive, "new=dd", "[work=aa,bb from 2]")
	b.wantState(3, Edited)
	b.wantState(4, Good)
	// The same again in the same life: what was edited is not what was saved.
	b, all = three(t)
	b.edit(all[2].Path, `"/src"`, `"/etc"`)
	if again := b.save(ws("L1", "work=aa,bb,cc")); again.Unchanged || again.Generation != 4 {
		t.Errorf("%+v", again)
	}
}

// TestAnEditedWitness: an edited prev takes nothing from the generation before it.
func TestAnEditedWitness(t *testing.T) {
	b, all := three(t)
	b.edit(all[1].Path, all[0].Digest, Digest([]byte("x")))
	b.wantState(1, Good)
	b.wantState(2, Edited)
	b.wantState(3, Good)
}

// TestTheWordOutlivesItsWitness: what a generation knows of the one before it is kept when it goes.
func TestTheWordOutlivesItsWitness(t *testing.T) {
	b, all := three(t)
	b.edit(all[1].Path, `"saved_at": "2`, `"saved_at":  "2`) // says the same
	b.wantState(2, Edited)
	b, all = three(t)
	if err := b.ForceRemove(3); err != nil {
		t.Fatal(err)
	}
	b.wantState(2, Good)
	if !b.exported(all[1].Digest) {
		t.Error("what generation 3 knew of 2 is forgotten")
	}
	for range 4 {
		b.save(ws("L1", "work=aa,bb,dd"))
		b.save(ws("L1", "work=aa,bb"))
	}
	if _, err := b.Prune(2, 0); err != nil {
		t.Fatal(err)
	}
	b.wantState(2, Good) // the named one
	b.edit(all[1].Path, `"aa"`, `"ee"`)
	b.wantState(2, Edited)
}

// TestWithoutAWord: a power loss takes the word of the last save, somebody removes a file by
// hand. What the file says is then compared with its own digest of it.
func TestWithoutAWord(t *testing.T) {
	b, all := three(t)
	if err := os.Remove(filepath.Join(b.Dir, lastFile)); err != nil {
		t.Fatal(err)
	}
	b.wantState(3, Good)
	if err := os.Remove(all[1].Path); err != nil {
		t.Fatal(err)
	}
	b.wantState(1, Good)
	b.edit(all[2].Path, `"aa"`, `"ee"`)
	b.edit(all[0].Path, `"aa"`, `"ee"`)
	b.wantState(1, Edited)
	b.wantState(3, Edited)
	if _, err := b.Best(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
