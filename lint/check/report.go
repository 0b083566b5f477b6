package check

import (
	"cmp"
	"path"
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
)

// Finding is a diagnostic with the rule that made it.
type Finding struct {
	Rule *lint.Rule
	lint.Diagnostic
	Fails bool // it is at or above the threshold of the settings that hold for its file
}

// Fault is a failure of trainvet itself.
type Fault struct {
	Path   string
	Rule   string // the rule at work; "" while reading the file
	Reason string
	Stack  string
}

// Unverified is a run whose memory could not be checked, and what is not known about it.
type Unverified struct {
	Run     string
	Missing []string
}

// Report is the result of a check.
type Report struct {
	Findings   []Finding // sorted by path, offset and rule
	Unreadable []Problem
	Skipped    []Skipped // data files
	Faults     []Fault
	Summary    Summary
	Unverified []Unverified
	Gone       []Gone // entries of baselines that hide nothing any more
	Version    string // of trainvet; "" where it is not known

	files    func(name string) *source.File
	relative func(name string) string // nil: names are relative already
}

// Summary counts.
type Summary struct {
	Files      int `json:"files"`
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
	Infos      int `json:"infos"`
	Suppressed int `json:"suppressed"`
	Unreadable int `json:"unreadable"`
	Unverified int `json:"unverified"`
	Skipped    int `json:"skipped,omitempty"`
}

// NewReport is a report of findings as they are; files gives the text that their places count in.
func NewReport(files func(name string) *source.File, findings ...Finding) *Report {
	r := &Report{Findings: findings, files: files}
	r.Summary.count(findings)
	return r
}

// File gives the text in which places of the named file count; nil when it cannot be read (any more).
func (r *Report) File(name string) *source.File { return r.files(name) }

// Relative names a file as seen from the current folder where it lies below that, and absolutely elsewhere: so do tools that read
// reports, whatever the command line said.
func (r *Report) Relative(name string) string {
	if r.relative == nil {
		return path.Clean(name)
	}
	return r.relative(name)
}

// Failed reports whether a finding is at or above the threshold.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Fails })
}

// sortFindings puts findings into their final order and drops repetitions.
func sortFindings(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.At.Path, b.At.Path),
			cmp.Compare(a.At.Span.Start, b.At.Span.Start),
			cmp.Compare(a.Rule.Name, b.Rule.Name),
			cmp.Compare(a.At.Span.End, b.At.Span.End),
			cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Rule == b.Rule && a.At == b.At && a.Message == b.Message
	})
}

func (s *Summary) count(findings []Finding) {
	s.Errors, s.Warnings, s.Infos = 0, 0, 0
	for _, finding := range findings {
		switch finding.Severity {
		case lint.Error:
			s.Errors++
		case lint.Warning:
			s.Warnings++
		default:
			s.Infos++
		}
	}
}
