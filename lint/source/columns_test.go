package source

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestCounted holds that characters are counted the same from the start of a line and from a mark.
func TestCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	starts := []uint32{0}
	for len(text) < 10*markStep {
		text = utf8.AppendRune(text, []rune{'a', 'é', '漢', '😀', '\n'}[random.IntN(5)%(4+len(text)/(8*markStep))])
		starts = append(starts, uint32(len(text)))
	}
	f := &File{Text: text}
	for range 2000 {
		from, to := starts[random.IntN(len(starts))], starts[random.IntN(len(starts))]
		if from > to {
			from, to = to, from
		}
		pairs := 0
		for _, r := range string(text[from:to]) {
			if r > 0xFFFF {
				pairs++
			}
		}
		runes, two := f.counted(from, to)
		if want := utf8.RuneCount(text[from:to]); runes != want || two != pairs {
			t.Fatalf("%d to %d: %d and %d, want %d and %d", from, to, runes, two, want, pairs)
		}
	}
}
