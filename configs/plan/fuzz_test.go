package plan

import (
	"encoding/json"
	"testing"
)

// FuzzSet: no JSON value may crash a setter, and what a setter takes reads back.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{`4`, `5e8`, `-1`, `1e400`, `"zero3"`, `true`, `["q","v"]`, `[1]`, `null`, `{"rank":8}`, `"\u0000"`} {
		f.Add(seed, "sharding")
		f.Add(seed, "lora.targets")
		f.Add(seed, "batch.micro")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		var raw any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		var p Plan
		for _, k := range NativeKeys() {
			_ = k.Set(&p, raw)
		}
		if err := Set(&p, name, raw, IsWritten, ""); err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if fact, ok := Lookup(&p, name); !ok || !fact.Known() {
			t.Errorf("%s = %s is not known", name, text)
		}
		Derive(&p)
	})
}

func BenchmarkDerive(b *testing.B) {
	p := Plan{Batch: Batch{Micro: Written[int64](4), Global: Written[int64](256)}, Parallel: Parallel{World: Written[int64](8), Tensor: Written[int64](1),
		Pipeline: Written[int64](1), Context: Written[int64](1)}}
	for b.Loop() {
		q := p
		Derive(&q)
	}
}
