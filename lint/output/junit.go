package output

import (
	"bufio"
	"fmt"
	"io"

	"github.com/trainvet/trainvet/lint/check"
)

// writeJUnit prints each file with findings as a suite, and each finding as a test that failed. A clean run is one test that passed,
// since some readers (Jenkins) take a report without tests for a broken one.
func writeJUnit(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	n := len(report.Findings)
	fmt.Fprintf(out, "%s<testsuites name=\"trainvet\" tests=\"%d\" failures=\"%d\" errors=\"0\">\n", xmlHeader, max(1, n), n)
	if n == 0 {
		fmt.Fprint(out, "  <testsuite name=\"trainvet\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\">\n",
			"    <testcase name=\"no findings\" classname=\"trainvet\"/>\n  </testsuite>\n")
	}
	for _, file := range byFile(report) {
		writeSuite(out, report, file)
	}
	fmt.Fprint(out, "</testsuites>\n")
	return out.Flush()
}

// writeSuite names the tests by rule and ordinal, so that they keep their names when lines shift.
func writeSuite(out io.Writer, report *check.Report, file fileFindings) {
	name := xmlText(report.Relative(file.path))
	fmt.Fprintf(out, "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"0\">\n", name, len(file.findings), len(file.findings))
	seen := map[string]int{}
	for _, finding := range file.findings {
		test := finding.Rule.Name
		if seen[test]++; seen[test] > 1 {
			test = fmt.Sprintf("%s #%d", test, seen[test])
		}
		start, _ := onDisk(report, finding.At)
		fmt.Fprintf(out, "    <testcase name=\"%s\" classname=\"%s\" file=\"%s\" line=\"%d\">\n", xmlText(test), name, name, start.Line)
		fmt.Fprintf(out, "      <failure type=\"%s\" message=\"%s\">%s</failure>\n    </testcase>\n", finding.Severity, xmlText(finding.Message), explain(report, finding))
	}
	fmt.Fprint(out, "  </testsuite>\n")
}

// explain is a finding as lines for people: where it stands, what else bears on it, and what to do.
func explain(report *check.Report, finding check.Finding) string {
	start, _ := span(report, finding.At)
	text := fmt.Sprintf("%s:%s: %s[%s] %s", xmlText(finding.At.Path), start, finding.Severity, xmlText(finding.Rule.Name), xmlText(finding.Message))
	for _, related := range finding.Related {
		start, _ := span(report, related.At)
		text += fmt.Sprintf("\n%s:%s: %s", xmlText(related.At.Path), start, xmlText(related.Message))
	}
	if title := help(finding.Fixes); title != "" {
		text += "\nhelp: " + xmlText(title)
	}
	return text
}
