package workspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
	words := &pyscan.Words{Names: map[string]bool{"f0": true, "f1": true}, Far: 4}
	moved := 0
	for range 200 {
		all := []*nameIndex{indexFile(text()), indexFile(text())}
		more := []*nameIndex{indexFile(text()), indexFile(text())}
		base := measure(words, all)
		want := measure(words, append(more, all...))
		if got := base.with(words, more, all); !maps.Equal(got, want) {
			t.Fatalf("got %v, wanted %v", got, want)
		}
		if !maps.Equal(base, want) {
			moved++
		}
	}
	if moved < 100 {
		t.Errorf("only %d of the cases changed anything", moved)
	}
}
