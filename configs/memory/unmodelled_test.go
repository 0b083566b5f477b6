package memory

import (
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// TestUnmodelled: a plan with something that the formulas do not know gets no number and no verdict, not even where its
// states alone would not fit.
func TestUnmodelled(t *testing.T) {
	p := native(t, run13B(map[string]any{"device": "24GB"}))
	if r, err := Check(p); err != nil || r.Verdict != Overflows {
		t.Fatalf("without it: %v %v", r, err)
	}
	p.CannotModel("GaLore", source.Place{})
	r, err := Check(p)
	if err != nil || r.Usage != nil || r.Verdict != Unknown || r.AtLeast != 0 || len(r.Missing) != 1 || r.Missing[0] != "how GaLore uses memory" {
		t.Errorf("%+v %v", r, err)
	}
	if _, known := Price(p); known {
		t.Error("its step has a price")
	}
	if n, known := StatesLowerBound(p); known {
		t.Errorf("its states need %d", n)
	}
	if n, known := LowerBound(p); known {
		t.Errorf("it needs %d", n)
	}
}
