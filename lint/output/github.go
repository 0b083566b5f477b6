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

// shownOfKind is how many annotations of one kind GitHub shows of a step; what comes after stands in the log alone.
const shownOfKind = 10

// writeGitHub prints workflow commands, which GitHub Actions turns into annotations. The worst come first; where some will not be
// shown, a notice says how many.
func writeGitHub(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	findings := slices.Clone(report.Findings)
	slices.SortStableFunc(findings, func(a, b check.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	rest := githubRest(report.Summary)
	for i, finding := range findings {
		if notices := len(findings) - i; rest != "" && finding.Severity == lint.Info && notices >= shownOfKind {
			fmt.Fprint(out, rest) // behind them it would not be shown itself
			rest = ""
		}
		start, end := onDisk(report, finding.At)
		fmt.Fprintf(out, "::%s file=%s,line=%d,col=%d,endLine=%d,endColumn=%d,title=%s::%s\n", githubCommand(finding.Severity),
			githubProperty(report.Relative(finding.At.Path)), start.Line, start.Column, end.Line, end.Column,
			githubProperty("trainvet ("+finding.Rule.Name+")"), githubData(told(report, finding.At, finding.Message)))
	}
	fmt.Fprint(out, rest)
	return out.Flush()
}

// githubRest is a notice with the number of findings that GitHub does not show; "" where it shows all.
func githubRest(s check.Summary) string {
	var parts []string
	for _, kind := range []struct {
		n    int
		word string
	}{{s.Errors, "error"}, {s.Warnings, "warning"}} {
		if hidden := kind.n - shownOfKind; hidden > 0 {
			parts = append(parts, count(hidden, "more "+kind.word))
		}
	}
	infos := s.Infos - shownOfKind
	if len(parts) > 0 || infos > 0 {
		infos++ // the place of one is taken by this notice
	}
	if infos > 0 {
		parts = append(parts, fmt.Sprintf("%d more info", infos))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("::notice title=trainvet::%s in the log of this step; GitHub shows %d annotations of a kind, the worst first\n", strings.Join(parts, ", "), shownOfKind)
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
	text = noCommand(replace(text, func(r rune) bool { return unprintable(r) && r != '\r' && r != '\n' }, escaped), `\x5b`)
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// githubProperty escapes the value of a property.
func githubProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(text))
}
