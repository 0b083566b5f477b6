package linttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
)

// want is a finding that is wanted, by the line that it starts on.
type want struct {
	path     string
	line     int
	rule     string
	severity lint.Severity // RuleSeverity: that of the rule
}

func (w want) String() string {
	text := fmt.Sprintf("%s:%d %s", w.path, w.line, w.rule)
	if w.severity != lint.RuleSeverity {
		text += " " + w.severity.String()
	}
	return text
}

var (
	marker     = regexp.MustCompile(`(?:#|//)[ \t]*want(?:@([+-][0-9]+))?:(.*)$`)
	oneWant    = regexp.MustCompile(`^([a-z0-9-]+)(?:[ \t]+(error|warning|info))?$`)
	sectionRow = regexp.MustCompile(`^(\S.*):([0-9]+) ([a-z0-9-]+)(?: (error|warning|info))?$`)
)

// markers reads the comments that say what is wanted on a line.
func (p project) markers(t testing.TB) []want {
	t.Helper()
	var all []want
	for _, f := range p {
		for i, line := range strings.Split(f.text, "\n") {
			match := marker.FindStringSubmatch(strings.TrimRight(line, "\r"))
			if match == nil {
				continue
			}
			offset := 0
			if match[1] != "" {
				offset, _ = strconv.Atoi(match[1])
			}
			for _, one := range strings.Split(match[2], ",") {
				parts := oneWant.FindStringSubmatch(strings.TrimSpace(one))
				if parts == nil {
					t.Errorf("%s:%d: cannot read %q", f.name, i+1, strings.TrimSpace(match[0]))
					continue
				}
				severity, _ := lint.ParseSeverity(parts[2])
				all = append(all, want{f.name, i + 1 + offset, parts[1], severity})
			}
		}
	}
	return all
}

// readWants reads a section `want`. Exact says that it is one that -update wrote, which is compared as text.
func readWants(t testing.TB, section []string) (all []want, exact bool) {
	t.Helper()
	for _, line := range section {
		match := sectionRow.FindStringSubmatch(line)
		if match == nil {
			return exactWants(section), true
		}
		number, _ := strconv.Atoi(match[2])
		severity, _ := lint.ParseSeverity(match[4])
		all = append(all, want{match[1], number, match[3], severity})
	}
	return all, false
}

var exactRow = regexp.MustCompile(`^(\S.*?):([0-9]+):[0-9]+-[0-9]+:[0-9]+: (error|warning|info)\[([a-z0-9-]+)\] `)

func exactWants(section []string) (all []want) {
	for _, line := range section {
		if match := exactRow.FindStringSubmatch(line); match != nil {
			number, _ := strconv.Atoi(match[2])
			severity, _ := lint.ParseSeverity(match[3])
			all = append(all, want{match[1], number, match[4], severity})
		}
	}
	return all
}

// compare demands that what was found is what was wanted, by file, line, rule and severity.
func compare(t testing.TB, wanted []want, found []want, rules []*lint.Rule) {
	t.Helper()
	var names []string
	for _, w := range wanted {
		rule := lint.Find(rules, w.rule)
		if rule == nil {
			t.Errorf("wanted is %s, which is no rule", w.rule)
			continue
		}
		if w.severity == lint.RuleSeverity {
			w.severity = rule.Severity
		}
		names = append(names, w.String())
	}
	var got []string
	for _, w := range found {
		got = append(got, w.String())
	}
	slices.Sort(names)
	slices.Sort(got)
	for _, name := range names {
		if i := slices.Index(got, name); i >= 0 {
			got = slices.Delete(got, i, i+1)
		} else {
			t.Errorf("wanted but not found: %s", name)
		}
	}
	for _, name := range got {
		t.Errorf("found but not wanted: %s", name)
	}
}

// render writes a finding in full: span, severity, rule, message, then key, related places and fixes.
func render(report *check.Report, finding check.Finding) []string {
	file := report.File(finding.At.Path)
	place := func(path string, start, end uint32) string {
		in := report.File(path)
		if in == nil {
			return path + ":?"
		}
		from, to := in.Position(start), in.Position(end)
		return fmt.Sprintf("%s:%d:%d-%d:%d", path, from.Line, from.Column, to.Line, to.Column)
	}
	if file == nil {
		return []string{finding.At.Path + ": gone"}
	}
	all := []string{fmt.Sprintf("%s: %s[%s] %s", place(finding.At.Path, finding.At.Span.Start, finding.At.Span.End), finding.Severity, finding.Rule.Name, finding.Message)}
	if finding.Key != "" {
		all = append(all, "  key "+finding.Key)
	}
	for _, related := range finding.Related {
		all = append(all, fmt.Sprintf("  note %s: %s", place(related.At.Path, related.At.Span.Start, related.At.Span.End), related.Message))
	}
	for _, fix := range finding.Fixes {
		all = append(all, fmt.Sprintf("  %s fix: %s", fix.Safety, fix.Title))
		for _, edit := range fix.Edits {
			all = append(all, fmt.Sprintf("    %s -> %q", place(edit.At.Path, edit.At.Span.Start, edit.At.Span.End), edit.Text))
		}
	}
	return all
}
