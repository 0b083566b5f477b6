package output

import (
	"bufio"
	"fmt"
	"io"

	"github.com/trainvet/trainvet/lint/check"
)

func writeConcise(to io.Writer, report *check.Report, paint Paint) error {
	out := bufio.NewWriter(to)
	for _, finding := range report.Findings {
		start, _ := span(report, finding.At)
		fmt.Fprintf(out, "%s: %s %s\n", paint.Bold(LinePath(finding.At.Path)+":"+start.String()),
			paint.Severity(finding.Severity, finding.Severity.String()+"["+finding.Rule.Name+"]"), Escape(finding.Message))
	}
	return out.Flush()
}
