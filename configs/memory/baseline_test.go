package memory

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// TestBaseline holds the formulas against testdata/baseline.json: what their first version gave for the runs of measured.json, bytes. No
// later version may be worse than it, by the median and by the run that nine in ten stay below.
func TestBaseline(t *testing.T) {
	text, err := os.ReadFile("testdata/baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	var first []struct {
		ID                          string
		Allocated, Reserved, Device int64
	}
	if err := json.Unmarshal(text, &first); err != nil {
		t.Fatal(err)
	}
	runs := map[string]measured{}
	for _, c := range loadMeasured(t) {
		runs[c.ID] = c
	}
	var before, now []float64
	for _, b := range first {
		c, known := runs[b.ID]
		if !known {
			t.Errorf("%s is in the baseline only", b.ID)
			continue
		}
		then := b.Device
		switch c.Counter {
		case "allocated", "active":
			then = b.Allocated
		case "reserved":
			then = b.Reserved
		}
		off := func(estimate int64) float64 { return math.Abs(float64(estimate)/float64(c.Measured) - 1) }
		usage, _, err := Estimate(native(t, c.Plan))
		if err != nil || usage == nil {
			t.Fatal(c.ID, err)
		}
		before, now = append(before, off(then)), append(now, off(counted(usage, c)))
	}
	slices.Sort(before)
	slices.Sort(now)
	for _, share := range []float64{0.5, 0.9} {
		at := int(share * float64(len(now)))
		t.Logf("of %d runs, the error at %.0f %%: %.1f %% at first, %.1f %% now", len(now), 100*share, 100*before[at], 100*now[at])
		if now[at] > before[at] {
			t.Errorf("the error at %.0f %% of the runs has grown", 100*share)
		}
	}
}
