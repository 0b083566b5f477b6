package config

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestElasticAsDeepSpeed compares with what DeepSpeed's own compute_elastic_config said: of 0.19.6 (new), and of 0.19.5 (old).
func TestElasticAsDeepSpeed(t *testing.T) {
	file, err := os.Open("testdata/elastic.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	type verdict struct {
		OK    bool
		Batch int64
		Error string
	}
	lines := bufio.NewScanner(file)
	seen, refused := 0, 0
	for lines.Scan() {
		var c struct {
			Elasticity struct {
				Most    int64   `json:"max_train_batch_size"`
				Micro   []int64 `json:"micro_batch_sizes"`
				Min     int64   `json:"min_gpus"`
				Max     int64   `json:"max_gpus"`
				PerNode int64   `json:"num_gpus_per_node"`
				Prefer  *bool   `json:"prefer_larger_batch"`
				Version float64
			}
			World    int64
			Old, New verdict
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		in := c.Elasticity
		e := elastic{micro: in.Micro, most: in.Most, min: max(in.Min, 1), max: in.Max, perNode: max(in.PerNode, 1), nodes: in.Version != 0.1, preferMore: in.Prefer == nil || *in.Prefer}
		if in.Max == 0 {
			e.max = 10000
		}
		for _, want := range []struct {
			verdict
			overCap bool
		}{{c.New, false}, {c.Old, true}} {
			e.overCap = want.overCap
			seen++
			name, why := e.refuses(c.World)
			fits := true
			for _, micro := range in.Micro { // a micro-batch above the largest batch is told elsewhere
				fits = fits && micro <= in.Most
			}
			if got := name == ""; fits && got != want.OK {
				t.Errorf("%s\nover the cap %v: accepted %v, want %v (%s: %s)", lines.Text(), want.overCap, got, want.OK, name, why)
			}
			if !want.OK {
				refused++
			}
			if !e.nodes && want.OK {
				if batch, _ := e.split(e.most, e.min, e.max); batch != want.Batch {
					t.Errorf("%s\nover the cap %v: batch %d, want %d", lines.Text(), want.overCap, batch, want.Batch)
				}
			}
		}
	}
	if seen < 800 || refused < 200 {
		t.Errorf("%d verdicts, %d refused", seen, refused)
	}
}
