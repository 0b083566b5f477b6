package dialect

import (
	"math/rand/v2"
	"testing"

	"github.com/trainvet/trainvet/configs"
)

// TestItem holds that a key is found as by a look at all of them, whatever the set of keys says.
func TestItem(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	spelling := func() string {
		word := make([]byte, random.IntN(5))
		for i := range word {
			word[i] = "ab-_."[random.IntN(5)]
		}
		return string(word)
	}
	for range 30_000 {
		n := &configs.Node{Kind: configs.Mapping}
		for range random.IntN(4) {
			n.Items = append(n.Items, configs.Item{Key: spelling(), Value: &configs.Node{Kind: configs.Scalar}, Merge: random.IntN(4) == 0})
		}
		key, folded := spelling(), random.IntN(2) == 0
		want := n.Item(key)
		for i := range n.Items {
			if last := &n.Items[len(n.Items)-1-i]; want == nil && folded && fold(last.Key) == key {
				want = last
			}
		}
		if got := (doc{root: n, keys: keysOf(n), folded: folded}).item(n, key); got != want {
			t.Fatalf("%q of %+v, folded %v: %v, want %v", key, n.Items, folded, got, want)
		}
	}
}
