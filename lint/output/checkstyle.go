package output

import (
	"bufio"
	"fmt"
	"io"

	"github.com/trainvet/trainvet/lint/check"
)

// writeCheckstyle prints the XML of Checkstyle, whose severities have the names of ours.
func writeCheckstyle(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	fmt.Fprint(out, xmlHeader, "<checkstyle version=\"4.3\">\n")
	for _, file := range byFile(report) {
		fmt.Fprintf(out, "  <file name=\"%s\">\n", xmlText(report.Relative(file.path)))
		for _, finding := range file.findings {
			start, _ := onDisk(report, finding.At)
			fmt.Fprintf(out, "    <error line=\"%d\" column=\"%d\" severity=\"%s\" message=\"%s\" source=\"trainvet.%s\"/>\n", start.Line, start.Column,
				finding.Severity, xmlText(told(report, finding.At, finding.Message)), xmlText(finding.Rule.Name))
		}
		fmt.Fprint(out, "  </file>\n")
	}
	fmt.Fprint(out, "</checkstyle>\n")
	return out.Flush()
}
