package output

import (
	"io"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
)

// gitlabIssue is an entry of GitLab's code quality report.
type gitlabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

// writeGitLab prints a list, which is there also when it is empty: GitLab compares the reports of two branches.
func writeGitLab(to io.Writer, report *check.Report, _ Paint) error {
	issues := []gitlabIssue{}
	prints := fingerprints(report)
	for i, finding := range report.Findings {
		issue := gitlabIssue{Description: told(report, finding.At, finding.Message), CheckName: finding.Rule.Name, Fingerprint: prints[i],
			Severity: gitlabSeverity(finding.Severity)}
		start, _ := onDisk(report, finding.At)
		issue.Location.Path, issue.Location.Lines.Begin = report.Relative(finding.At.Path), start.Line
		issues = append(issues, issue)
	}
	return WriteObject(to, issues)
}

func gitlabSeverity(severity lint.Severity) string {
	switch severity {
	case lint.Error:
		return "critical"
	case lint.Warning:
		return "major"
	}
	return "info"
}
