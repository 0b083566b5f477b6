package workspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
)

// Distances that are brought up to date are those that are measured anew.
func TestDistancesWith(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() []byte {
		var b strings.Builder
		for range 12 {
			fmt.Fprintf(&b, "def f%d(x):\n    f%d(x)\n    y = f%d\n    x.f%d()\n", random.IntN(60), random.IntN(60), random.IntN(60), random.IntN(60))
		}
		return []byte(b.String())
	}
	names := map[string]bool{"f0": true, "f1": true}
	for _, words := range []*pyscan.Words{{Names: names, Far: 4}, {Names: names, Alias: true}} {
		distancesWith(t, words, text)
	}
}

func distancesWith(t *testing.T, words *pyscan.Words, text func() []byte) {
	moved := 0
	for range 200 {
		texts := [][]byte{text(), text(), text(), text()}
		all := indexTexts(texts[:2]...)
		more := []*nameIndex{indexFile(texts[2]), indexFile(texts[3])}
		base := measure(words, all)
		want := measure(words, indexTexts(texts...)).all()
		if got := base.with(words, more, all).all(); !maps.Equal(got, want) {
			t.Fatalf("got %v, wanted %v", got, want)
		}
		if !maps.Equal(base.all(), want) {
			moved++
		}
	}
	if moved < 100 {
		t.Errorf("only %d of the cases changed anything", moved)
	}
}

// What stands for a word is told from what calls one, and a function that gives one from both.
func TestAliases(t *testing.T) {
	text := `import word as imported
assigned = word
chosen = pick(word)
result = word(1)
fetched = getattr(library, "word")
def calls():
    word(1)
def caller():
    calls()
def gives():
    return word
def later():
    word(1)
    return word
def byname():
    return getattr(library, "word")
def hidden():
    return assigned
given = gives()
late = later()
named = byname()
class C:
    @property
    def held(self):
        return word
`
	words := &pyscan.Words{Names: map[string]bool{"word": true}, Alias: true}
	d := measure(words, indexFile([]byte(text)))
	for name, near := range map[string]bool{"word": true, "imported": true, "assigned": true, "chosen": true, "fetched": true, "given": true, "late": true, "named": true, "held": true,
		"result": false, "calls": false, "caller": false, "gives": false, "later": false, "byname": false, "hidden": false, "library": false} {
		if got := d.of(name) <= maxAliases; got != near {
			t.Errorf("%s: %v, wanted %v", name, got, near)
		}
	}
}

// indexTexts is the index of files that were read by one indexer each.
func indexTexts(texts ...[]byte) *nameIndex {
	var ins []*indexer
	for i, text := range texts {
		in := newIndexer(1)
		in.read(int32(i), text)
		ins = append(ins, in)
	}
	return joined(make([]string, len(texts)), ins)
}

// all are the distances of all names that have one.
func (d *distances) all() map[string]far {
	all := map[string]far{}
	for n := range d.names.count() {
		if d.far != nil && d.far[n] > 0 {
			all[string(d.names.name(int32(n)))] = d.far[n]
		}
	}
	maps.Copy(all, d.more)
	return all
}

// An index says the same whether its files were read by one goroutine or by several.
func TestJoined(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	words := &pyscan.Words{Names: map[string]bool{"f0": true, "f1": true}, Far: 4}
	for range 100 {
		var texts [][]byte
		for range 6 {
			var b strings.Builder
			fmt.Fprintf(&b, "import f%d\n", random.IntN(60))
			for range 8 {
				fmt.Fprintf(&b, "def f%d(x):\n    f%d(x)\n    y = f%d\n    x.f%d()\n", random.IntN(60), random.IntN(60), random.IntN(60), random.IntN(60))
			}
			if random.IntN(2) == 0 {
				b.WriteString("if __name__ == '__main__':\n    f3()\n")
			}
			texts = append(texts, []byte(b.String()))
		}
		in := newIndexer(1)
		for i, text := range texts {
			in.read(int32(i), text)
		}
		one, many := joined(make([]string, len(texts)), []*indexer{in}), indexTexts(texts...)
		for n := range 60 {
			name := fmt.Sprint("f", n)
			for _, key := range []string{name, importKeyword + name, guardedMain} {
				if !slices.Equal(one.with(key), many.with(key)) {
					t.Fatalf("%q: %v and %v", key, one.with(key), many.with(key))
				}
			}
			if one.flags(name) != many.flags(name) {
				t.Fatalf("%q: %v and %v", name, one.flags(name), many.flags(name))
			}
		}
		if got, want := measure(words, many).all(), measure(words, one).all(); !maps.Equal(got, want) {
			t.Fatalf("got %v, wanted %v", got, want)
		}
	}
}
