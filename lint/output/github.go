package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
)

// writeGitHub prints workflow commands, which GitHub Actions turns into annotations. It shows only ten of a kind for each step, so
// the worst come first.
func writeGitHub(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	findings := slices.Clone(report.Findings)
	slices.SortStableFunc(findings, func(a, b check.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	for _, finding := range findings {
		start, end := onDisk(report, finding.At)
		fmt.Fprintf(out, "::%s file=%s,line=%d,col=%d,endLine=%d,endColumn=%d,title=%s::%s\n", githubCommand(finding.Severity),
			githubProperty(report.Relative(finding.At.Path)), start.Line, start.Column, end.Line, end.Column,
			githubProperty("trainvet ("+finding.Rule.Name+")"), githubData(told(report, finding.At, finding.Message)))
	}
	return out.Flush()
}

func githubCommand(severity lint.Severity) string {
	switch severity {
	case lint.Error:
		return "error"
	case lint.Warning:
		return "warning"
	}
	return "notice"
}

// githubData escapes the message of a command: the runner gives line ends back, other control characters stay escaped.
func githubData(text string) string {
	text = replace(text, func(r rune) bool { return unprintable(r) && r != '\r' && r != '\n' }, escaped)
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// githubProperty escapes the value of a property.
func githubProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(text))
}
