package check

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = "abcd_\xff"[random.IntN(6)]
		}
		return string(text)
	}
	for range 300 {
		var words []string
		for range random.IntN(12) {
			words = append(words, letters(random.IntN(8)))
		}
		m := newMentions(words)
		text := []byte(letters(random.IntN(40)) + " " + letters(random.IntN(40)))
		found := m.in(text)
		for i, word := range words {
			if got, want := found.Has(i), bytes.Contains(text, []byte(word)); got != want {
				t.Fatalf("%q in %q: got %v (words %q)", word, text, got, words)
			}
		}
	}
}

func BenchmarkMentions(b *testing.B) {
	var words []string
	for _, word := range strings.Fields("checkpoint no_sync empty_cache backward warmup bucket_cap_mb autocast GradScaler clip_grad_norm_ zero_optimization deepspeed torchrun accelerate set_epoch find_unused_parameters") {
		words = append(words, word, word+"_a", word+"_b", "x_"+word)
	}
	m := newMentions(words)
	text := bytes.Repeat([]byte("    hidden = self.attention(self.norm(hidden), mask=mask)  # nothing to see here\n"), 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.in(text)
	}
}
