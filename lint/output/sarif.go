package output

import (
	"cmp"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifRoot   = "%SRCROOT%"
	sarifTongue = "en-US" // the default; some readers (go-sarif) want it written
	maxSummary  = 1024    // characters that GitHub keeps of a rule's descriptions
)

// writeSARIF prints a log of one run. Its rules are those of the findings, by name.
func writeSARIF(to io.Writer, report *check.Report, _ Paint) error {
	run := sarifRun{Language: sarifTongue, ColumnKind: "unicodeCodePoints", NewlineSequence: []string{"\r\n", "\n", "\r"}, Results: []sarifResult{},
		BaseIDs: map[string]sarifBase{sarifRoot: {sarifText{Text: "the folder that trainvet ran in"}}}}
	run.Tool.Driver = sarifDriver{Name: "trainvet", Version: report.Version, InformationURI: home, Language: sarifTongue, Rules: []sarifRule{}}
	rules := sarifRules(report)
	for _, rule := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, toSARIFRule(rule))
	}
	prints := fingerprints(report)
	for i, finding := range report.Findings {
		result := sarifResult{RuleID: finding.Rule.Name, RuleIndex: slices.Index(rules, finding.Rule), Level: sarifLevel(finding.Severity),
			Message: sarifMessage(told(report, finding.At, finding.Message)), Fingerprints: map[string]string{"trainvetIdentity/v1": prints[i]}}
		at := sarifLocation{Physical: toSARIFPlace(report, finding.At)}
		if finding.Key != "" {
			at.Logical = []sarifLogical{{finding.Key}}
		}
		result.Locations = []sarifLocation{at}
		for i, related := range finding.Related {
			message := sarifMessage(told(report, related.At, related.Message))
			result.Related = append(result.Related, sarifLocation{ID: i + 1, Physical: toSARIFPlace(report, related.At), Message: &message})
		}
		for _, fix := range finding.Fixes {
			if edits := replacements(report, fix); len(edits) > 0 {
				result.Fixes = append(result.Fixes, toSARIFFix(report, fix, edits))
			}
		}
		run.Results = append(run.Results, result)
	}
	return WriteObject(to, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifRules(report *check.Report) (rules []*lint.Rule) {
	for _, finding := range report.Findings {
		if !slices.Contains(rules, finding.Rule) {
			rules = append(rules, finding.Rule)
		}
	}
	slices.SortFunc(rules, func(a, b *lint.Rule) int { return cmp.Compare(a.Name, b.Name) })
	return rules
}

func toSARIFRule(rule *lint.Rule) sarifRule {
	r := sarifRule{ID: rule.Name, Name: oneWord(rule.Name), HelpURI: rule.URL()}
	summary := cmp.Or(rule.Summary(), rule.Name)
	r.Short.Text, r.Full.Text = firstRunes(summary, maxSummary), firstRunes(cmp.Or(rule.Section(lint.WhatItDoes), summary), maxSummary)
	r.Help = sarifText{Text: strings.TrimSpace(summary + "\n\n" + rule.Section(lint.Why)), Markdown: cmp.Or(rule.Doc, summary)}
	r.Configuration.Level = sarifLevel(rule.Severity)
	r.Properties.Tags = []string{rule.Family}
	return r
}

// oneWord writes a name with capitals in place of hyphens, as SARIF wants names of rules (3.49.7).
func oneWord(name string) string {
	var word strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			word.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return word.String()
}

func firstRunes(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

func sarifLevel(severity lint.Severity) string {
	switch severity {
	case lint.Error:
		return "error"
	case lint.Warning:
		return "warning"
	}
	return "note"
}

// sarifLink is a link inside a message (SARIF 3.11.6): a number names a related location, anything with a scheme another page.
var sarifLink = source.Pattern(`\[([^\[\]]*)\]\((\d+|[A-Za-z][A-Za-z0-9+.-]*:[^)]*)\)`)

// sarifMessage is a message in which nothing that stands in a file, such as f[0](1), becomes a link.
func sarifMessage(text string) sarifText {
	return sarifText{Text: sarifLink().ReplaceAllString(text, `\[$1\]($2)`)}
}

func toSARIFPlace(report *check.Report, at source.Place) sarifPhysical {
	return sarifPhysical{toSARIFArtifact(report, at.Path), toSARIFRegion(onDisk(report, at))}
}

func toSARIFRegion(start, end source.Spot) sarifRegion {
	return sarifRegion{start.Line, start.Column, end.Line, end.Column}
}

// toSARIFArtifact names a file by a URI: below the current folder a relative one, else one of scheme file.
func toSARIFArtifact(report *check.Report, name string) sarifArtifact {
	name = report.Relative(name)
	if path.IsAbs(name) || filepath.IsAbs(name) {
		return sarifArtifact{URI: "file:///" + strings.Replace(percentEncode(strings.TrimLeft(name, "/")), "%3A/", ":/", 1)}
	}
	return sarifArtifact{percentEncode(name), sarifRoot}
}

// toSARIFFix groups the edits of a fix by file.
func toSARIFFix(report *check.Report, fix lint.Fix, edits []replacement) sarifFix {
	f := sarifFix{Description: sarifMessage(help([]lint.Fix{fix}))}
	for _, edit := range edits {
		artifact := toSARIFArtifact(report, edit.path)
		i := slices.IndexFunc(f.Changes, func(c sarifChange) bool { return c.Artifact == artifact })
		if i < 0 {
			i = len(f.Changes)
			f.Changes = append(f.Changes, sarifChange{Artifact: artifact})
		}
		f.Changes[i].Replacements = append(f.Changes[i].Replacements, sarifReplacement{toSARIFRegion(edit.start, edit.end), sarifText{Text: edit.text}})
	}
	return f
}
