package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint/check"
)

// Statistics counts the findings of each rule, the most frequent first.
func Statistics(out io.Writer, report *check.Report) {
	counts := map[string]int{}
	for _, finding := range report.Findings {
		counts[finding.Rule.Name]++
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for _, name := range names {
		fmt.Fprintf(out, "%6d  %s\n", counts[name], name)
	}
}

// Unverified is one line about the runs whose memory could not be checked; "" where there are none.
func Unverified(report *check.Report) string {
	runs := report.Unverified
	if len(runs) == 0 {
		return ""
	}
	var missing memory.Missing
	for _, run := range runs {
		for _, name := range run.Missing {
			if !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	return fmt.Sprintf("memory not checked for %s: %s", count(len(runs), "run"), Escape(missing.Supply()))
}
