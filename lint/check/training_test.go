package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSieve looks for words at every distance from the start and the end of texts, and in texts of pieces of words, and wants what strings.Contains
// says.
func TestSieve(t *testing.T) {
	words := append([]string{"abcde", "aaaaaa", "bcdefgh", "eeeeez", "import ray", "from ray "}, telling...)
	s := newSieve(words)
	for _, word := range words {
		for before := range 7 {
			for after := range 4 {
				text := strings.Repeat(".", before) + word + strings.Repeat("!", after)
				if !s.holds([]byte(text)) {
					t.Errorf("%q is not found in %q", word, text)
				}
				if short := text[:before+len(word)-1]; s.holds([]byte(short)) != slices.ContainsFunc(words, func(w string) bool { return strings.Contains(short, w) }) {
					t.Errorf("%q is found in %q", word, short)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range 20000 {
		var text strings.Builder
		for text.Len() < 40 {
			word := words[random.IntN(len(words))]
			from := random.IntN(len(word))
			text.WriteString(word[from : from+random.IntN(len(word)-from)])
		}
		want := slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text.String(), w) })
		if want {
			hits++
		}
		if got := s.holds([]byte(text.String())); got != want {
			t.Fatalf("%q: %v, wanted %v", text.String(), got, want)
		}
	}
	if hits < 300 || hits > 19000 {
		t.Errorf("%d of 20000 texts hold a word: the test says little", hits)
	}
	for text, want := range map[string]bool{"t.backward(30)": false, "loss.backward()": true, "scaled.backward(retain_graph=True)": true, "x.backward(": true, "t.backward(3) x.backward()": true} {
		if got := newSieve([]string{backward}).holds([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func BenchmarkSieve(b *testing.B) {
	text := []byte(strings.Repeat("    def __init__(self, parent=None, **options):\n        \"\"\"Make the widget from a master, with the options that it takes.\"\"\"\n", 2000))
	s := newSieve(tellingWords(nil))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if s.holds(text) {
			b.Fatal(fmt.Sprint("found"))
		}
	}
}
