package output

import (
	"fmt"
	"io"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

// Advice that is the same in many places is printed once for people, with the places of the rest: it is one decision for all of them.
const (
	alike     = 4 // so many are one
	alikeMore = 8 // places are listed besides; the other formats list all
)

// repeated gives, for findings that are advice and say the same as several others, with the same places besides, all of them by number.
func repeated(findings []check.Finding) map[int][]int {
	type saying struct {
		rule, message, related string
	}
	all := map[saying][]int{}
	for i, finding := range findings {
		if finding.Severity != lint.Info || finding.Fails {
			continue
		}
		key := saying{rule: finding.Rule.Name, message: finding.Message}
		for _, related := range finding.Related {
			key.related += fmt.Sprintln(related.At.Path, related.At.Span, related.Message)
		}
		all[key] = append(all[key], i)
	}
	same := map[int][]int{}
	for _, list := range all {
		if len(list) < alike {
			continue
		}
		for _, i := range list {
			same[i] = list
		}
	}
	return same
}

// writeRest lists the places of all but the first of findings that say the same.
func writeRest(out io.Writer, report *check.Report, paint Paint, gutter int, same []int) {
	if len(same) < 2 {
		return
	}
	fmt.Fprintf(out, "%s the same in %s:\n", paint.Dim(blanks(gutter)+" ="), count(len(same)-1, "other place"))
	where := func(at source.Place) string {
		start, _ := span(report, at)
		return Escape(at.Path) + ":" + start.String()
	}
	for _, i := range same[1:min(len(same), alikeMore+1)] {
		fmt.Fprintf(out, "%s %s\n", paint.Dim(blanks(gutter)+":::"), where(report.Findings[i].At))
	}
	if more := len(same) - 1 - alikeMore; more > 0 {
		fmt.Fprintf(out, "%s and %d more, which --format concise lists\n", paint.Dim(blanks(gutter)+":::"), more)
	}
}
