package memory

import (
	"flag"
	"slices"
	"testing"
)

var heldOut = flag.Bool("held-out", false, "with -cases, print the runs too that were held out while the formulas were improved")

// publicRuns are the runs of testdata/public.json, collected after the formulas had been settled on testdata/measured.json: those
// that the formulas may be improved on, and every third one, held out.
func publicRuns(t testing.TB) (open, held []measured) {
	t.Helper()
	for _, c := range loadRuns(t, "testdata/public.json") {
		if c.HeldOut {
			held = append(held, c)
		} else {
			open = append(open, c)
		}
	}
	return open, held
}

// TestPublicRuns holds the error against public runs of what is thin in testdata/measured.json: Megatron-core, Ascend, ZeRO-2, DDP,
// offloaded FSDP, mixtures of experts.
func TestPublicRuns(t *testing.T) {
	open, held := publicRuns(t)
	groups := errorsOf(t, open)
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		median, p90, within, bias := figures(groups[name])
		t.Logf("%-20s n=%3d median %5.1f %% p90 %5.1f %% within 10 %% %3.0f %% bias %+5.1f %%", name, len(groups[name]), median, p90, within, bias)
	}
	was := *verbose
	*verbose = was && *heldOut
	errors := errorsOf(t, held)[""]
	*verbose = was
	bound(t, "open", groups[""], 4, 13, 80)
	bound(t, "held out", errors, 8, 15, 58)
	median, p90, within, bias := figures(errors)
	t.Logf("held out             n=%3d median %5.1f %% p90 %5.1f %% within 10 %% %3.0f %% bias %+5.1f %%", len(errors), median, p90, within, bias)
}

// bound fails where the errors, in percent, are larger than these.
func bound(t *testing.T, name string, errors []float64, median, p90, within float64) {
	t.Helper()
	if m, p, w, _ := figures(errors); m > median || p > p90 || w < within {
		t.Errorf("%s: median %.1f %%, p90 %.1f %%, within 10 %% %.0f %%; wanted %.1f, %.1f and %.0f", name, m, p, w, median, p90, within)
	}
}
