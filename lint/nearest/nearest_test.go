package nearest

import (
	"math/rand/v2"
	"testing"
)

func TestOf(t *testing.T) {
	words := []string{"select", "extend-select", "ignore", "exclude", "fail-on", "run", "known"}
	for word, want := range map[string]string{
		"selct":         "select",
		"slecet":        "select",
		"Extend_Select": "extend-select",
		"fial-on":       "fail-on",
		"rnu":           "run",
		"ru":            "run",
		"x":             "",
		"":              "",
		"severity":      "",
		"knwon":         "known",
		"ïgnore":        "ignore",
	} {
		if got := Of(word, words); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Of("run", words); got != "run" {
		t.Errorf("an exact word gave %q", got)
	}
	if got := Of("abcd", []string{"abce", "abcd"}); got != "abcd" {
		t.Errorf("the closest must win over the first, got %q", got)
	}
}

// TestList holds that a list finds the same word as a look at all of them, the first among equals.
func TestList(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func(letters string) string {
		w := make([]rune, 1+random.IntN(9))
		for i := range w {
			w[i] = []rune(letters)[random.IntN(len([]rune(letters)))]
		}
		return string(w)
	}
	for i := range 3000 {
		letters := "abC_-"
		if i%4 == 0 {
			letters = "abé"
		}
		var words []string
		for range random.IntN(12) {
			words = append(words, word(letters))
		}
		asked, limit := word("abcé"[:3+2*(i%2)]), random.IntN(4)
		if got, want := NewList(words).Within(asked, limit), Within(asked, words, limit); got != want {
			t.Fatalf("%q within %d of %q: got %q, want %q", asked, limit, words, got, want)
		}
	}
}

// TestDistance holds the bounded distance against the plain recurrence.
func TestDistance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() []rune {
		w := make([]rune, random.IntN(9))
		for i := range w {
			w[i] = rune('a' + random.IntN(3))
		}
		return w
	}
	var m matcher
	for range 20000 {
		a, b, limit := word(), word(), random.IntN(5)
		m.other = append(m.other[:0], b...)
		got, want := m.distance(a, limit), reference(a, b)
		if min(got, limit+1) != min(want, limit+1) {
			t.Fatalf("%s %s within %d: got %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

func reference(a, b []rune) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		table[i][0] = i
	}
	for j := range table[0] {
		table[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(table[i-1][j]+1, table[i][j-1]+1, table[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, table[i-2][j-2]+1)
			}
			table[i][j] = d
		}
	}
	return table[len(a)][len(b)]
}

func BenchmarkOf(b *testing.B) {
	words := make([]string, 0, 300)
	for i := range 300 {
		words = append(words, "gradient_accumulation_"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	b.ReportAllocs()
	for b.Loop() {
		Of("gradient_acumulation_steps", words)
	}
}
