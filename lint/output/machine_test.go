package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

func strict(t *testing.T, text string, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Fatalf("more than one value: %v", err)
	}
}

// validSARIF reads a log by the structs of go-sarif, of which no field may be unknown, and holds it against the schema.
func validSARIF(t *testing.T, text string) (*sarif.Report, error) {
	t.Helper()
	strict(t, text, &sarif.Report{})
	log, err := sarif.FromString(text) // with empty lists in place of those left out, which it would write as null
	if err != nil {
		t.Fatal(err)
	}
	return log, log.Validate()
}

func TestSARIF(t *testing.T) {
	for name, make := range reports {
		t.Run(name, func(t *testing.T) {
			report := make(t)
			log, err := validSARIF(t, written(t, "sarif", report))
			if err != nil {
				t.Fatal(err)
			}
			run := log.Runs[0]
			if *run.ColumnKind != "unicodeCodePoints" || run.Results == nil || run.Tool.Driver.Rules == nil || len(run.Results) != len(report.Findings) {
				t.Fatalf("%d results of kind %s", len(run.Results), *run.ColumnKind)
			}
			seen := map[string]bool{}
			for i, result := range run.Results {
				finding := report.Findings[i]
				if id := run.Tool.Driver.Rules[result.RuleIndex].ID; *id != finding.Rule.Name || *result.RuleID != *id {
					t.Errorf("result %d is of rule %s, %s; want %s", i, *result.RuleID, *id, finding.Rule.Name)
				}
				print := result.PartialFingerprints["trainvetIdentity/v1"]
				if print == "" || seen[print] {
					t.Errorf("result %d has the fingerprint %q, again", i, print)
				}
				seen[print] = true
				artifact := result.Locations[0].PhysicalLocation.ArtifactLocation
				uri, err := url.Parse(*artifact.URI)
				if err != nil {
					t.Fatal(err)
				}
				if uri.Path != path.Clean(finding.At.Path) || uri.IsAbs() == (artifact.URIBaseID != nil) || uri.IsAbs() != path.IsAbs(finding.At.Path) {
					t.Errorf("%q became %q under %v", finding.At.Path, *artifact.URI, artifact.URIBaseID)
				}
			}
		})
	}
	broken := strings.Replace(written(t, "sarif", sample(t)), `"level": "error"`, `"level": "info"`, 1)
	if _, err := validSARIF(t, broken); err == nil {
		t.Error("the schema takes a level that does not exist")
	}
}

// edited makes replacements in a text whose columns count as column says, from the last to the first.
func edited(text string, edits []replacement, column func(source.Spot, string) int) string {
	lines := strings.SplitAfter(text, "\n")
	offset := func(at source.Spot) int {
		return len(strings.Join(lines[:at.Line-1], "")) + column(at, lines[at.Line-1])
	}
	slices.SortFunc(edits, func(a, b replacement) int { return cmp.Compare(offset(b.start), offset(a.start)) })
	for _, edit := range edits {
		text = text[:offset(edit.start)] + edit.text + text[offset(edit.end):]
	}
	return text
}

func byBytes(at source.Spot, _ string) int { return at.Byte - 1 }

func byRunes(at source.Spot, line string) int { return len(string([]rune(line)[:at.Column-1])) }

// afterFix is the text of a file, as tools see it, after the edits of a fix.
func afterFix(t *testing.T, report *check.Report, name string, fix lint.Fix) (before, after string) {
	t.Helper()
	file := report.File(name)
	var edits []lint.Edit
	for _, edit := range fix.Edits {
		if edit.At.Path == name {
			edits = append(edits, edit)
		}
	}
	fixed, err := check.Edited(file, edits)
	if err != nil {
		t.Fatal(err)
	}
	seen := func(file *source.File) string {
		if file.Kind == source.Notebook {
			return strings.TrimPrefix(string(file.Raw), "\xEF\xBB\xBF")
		}
		return string(file.Text)
	}
	return seen(file), seen(fixed)
}

// TestFixesOfSARIF makes the edits as another tool would, and compares with what --fix does.
func TestFixesOfSARIF(t *testing.T) {
	report := hostile(t)
	var log sarifLog
	strict(t, written(t, "sarif", report), &log)
	var titles []string
	for i, result := range log.Runs[0].Results {
		fixes := slices.Clone(report.Findings[i].Fixes)
		fixes = slices.DeleteFunc(fixes, func(fix lint.Fix) bool {
			return fix.Safety == lint.Display || report.File(fix.Edits[0].At.Path) == nil
		})
		if len(fixes) != len(result.Fixes) {
			t.Fatalf("result %d has %d fixes, want %d", i, len(result.Fixes), len(fixes))
		}
		for j, fix := range result.Fixes {
			titles = append(titles, fix.Description.Text)
			for _, change := range fix.Changes {
				name, err := url.PathUnescape(change.Artifact.URI)
				if err != nil {
					t.Fatal(err)
				}
				var edits []replacement
				for _, edit := range change.Replacements {
					d := edit.Deleted
					edits = append(edits, replacement{start: source.Spot{Line: d.StartLine, Column: d.StartColumn}, end: source.Spot{Line: d.EndLine, Column: d.EndColumn}, text: edit.Inserted.Text})
				}
				before, want := afterFix(t, report, name, fixes[j])
				if got := edited(before, edits, byRunes); got != want {
					t.Errorf("%s: got %q, want %q", fix.Description.Text, got, want)
				}
			}
		}
	}
	if got := strings.Join(titles, "; "); got != `two edits (unsafe fix); elsewhere (safe fix); insert \[c\](1) (safe fix); write a quote (safe fix)` {
		t.Errorf("fixes: %s", got)
	}
}

func TestRDJSON(t *testing.T) {
	for name, make := range reports {
		report := make(t)
		var result rdResult
		strict(t, written(t, "rdjson", report), &result)
		if result.Diagnostics == nil || len(result.Diagnostics) != len(report.Findings) {
			t.Errorf("%s: %d diagnostics", name, len(result.Diagnostics))
		}
		suggested := 0
		for i, diagnostic := range result.Diagnostics {
			finding := report.Findings[i]
			if len(diagnostic.Suggestions) == 0 {
				continue
			}
			suggested++
			var edits []replacement
			for _, s := range diagnostic.Suggestions {
				edits = append(edits, replacement{start: source.Spot{Line: s.Range.Start.Line, Byte: s.Range.Start.Column}, end: source.Spot{Line: s.Range.End.Line, Byte: s.Range.End.Column}, text: s.Text})
			}
			first := slices.IndexFunc(finding.Fixes, func(fix lint.Fix) bool { return fix.Safety != lint.Display && !elsewhere(fix, finding.At.Path) })
			before, want := afterFix(t, report, finding.At.Path, finding.Fixes[first])
			if got := edited(before, edits, byBytes); got != want {
				t.Errorf("%s: got %q, want %q", finding.Message, got, want)
			}
		}
		if want := map[string]int{"sample": 1, "hostile": 3}[name]; suggested != want {
			t.Errorf("%s: %d findings with suggestions, want %d", name, suggested, want)
		}
	}
	// behind two characters of three bytes, a colon and a blank; the byte order mark counts for nothing
	var result rdResult
	strict(t, written(t, "rdjson", sample(t)), &result)
	if got := result.Diagnostics[0].Location.Range; got != (rdRange{rdPosition{1, 9}, rdPosition{1, 12}}) {
		t.Errorf("the first finding is at %v", got)
	}
}

// carried is a text without what XML cannot carry.
func carried(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r':
			fmt.Fprintf(&out, `\x%02x`, r)
		case r == 0xFFFE:
			out.WriteString(`\ufffe`)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// TestXML reads both formats back: attributes are as they were, but for what XML cannot carry.
func TestXML(t *testing.T) {
	for name, make := range reports {
		report := make(t)
		var style struct {
			Files []struct {
				Name   string `xml:"name,attr"`
				Errors []struct {
					Line     int    `xml:"line,attr"`
					Severity string `xml:"severity,attr"`
					Message  string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"file"`
		}
		var tests struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Suites   []struct {
				Name  string `xml:"name,attr"`
				Cases []struct {
					Name    string `xml:"name,attr"`
					Failure []struct {
						Type    string `xml:"type,attr"`
						Message string `xml:"message,attr"`
						Text    string `xml:",chardata"`
					} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		for format, into := range map[string]any{"checkstyle": &style, "junit": &tests} {
			if err := xml.Unmarshal([]byte(written(t, format, report)), into); err != nil {
				t.Fatalf("%s, %s: %v", format, name, err)
			}
		}
		n := len(report.Findings)
		if tests.Failures != n || tests.Tests != max(1, n) || len(tests.Suites) == 0 {
			t.Errorf("%s: %d tests, %d failures, %d suites", name, tests.Tests, tests.Failures, len(tests.Suites))
		}
		seen := 0
		for i, file := range style.Files {
			names := map[string]bool{}
			for j, found := range file.Errors {
				at := slices.IndexFunc(report.Findings, func(f check.Finding) bool { return strings.HasPrefix(found.Message, carried(f.Message)) })
				if at < 0 {
					t.Errorf("%s: no finding says %q", name, found.Message)
					continue
				}
				finding := report.Findings[at]
				seen++
				if file.Name != carried(finding.At.Path) || found.Severity != finding.Severity.String() {
					t.Errorf("%s: got %q, %s", finding.Message, file.Name, found.Severity)
				}
				test := tests.Suites[i].Cases[j]
				if tests.Suites[i].Name != file.Name || test.Failure[0].Message != carried(finding.Message) || test.Failure[0].Type != found.Severity || names[test.Name] {
					t.Errorf("%s: the test is %+v", finding.Message, test)
				}
				names[test.Name] = true
			}
		}
		if seen != n {
			t.Errorf("%s: %d errors, want %d", name, seen, n)
		}
	}
}

// TestXMLLint lets another parser of XML read both formats.
func TestXMLLint(t *testing.T) {
	program, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("NO xmllint: our XML is read by Go's parser alone")
	}
	for name, make := range reports {
		for _, format := range []string{"junit", "checkstyle"} {
			command := exec.Command(program, "--noout", "--nonet", "-")
			command.Stdin = strings.NewReader(written(t, format, make(t)))
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s, %s: %v\n%s", format, name, err, output)
			}
		}
	}
}

// TestGitHub undoes the escapes as the runner of GitHub Actions does.
func TestGitHub(t *testing.T) {
	report := hostile(t)
	data := strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%")
	property := strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
	safe := func(text string) string {
		return strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(Escape(text))
	}
	last := 0
	for line := range strings.Lines(written(t, "github", report)) {
		head, message, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "::"), "::")
		command, list, _ := strings.Cut(head, " ")
		properties := map[string]string{}
		for pair := range strings.SplitSeq(list, ",") {
			key, value, _ := strings.Cut(pair, "=")
			properties[key] = property.Replace(value)
		}
		rank := slices.Index([]string{"error", "warning", "notice"}, command)
		if rank < last {
			t.Errorf("%s comes too late", line)
		}
		last = rank
		if !slices.ContainsFunc(report.Findings, func(f check.Finding) bool {
			return strings.HasPrefix(data.Replace(message), safe(f.Message)) && properties["file"] == safe(f.At.Path) && properties["title"] == "trainvet ("+f.Rule.Name+")"
		}) {
			t.Errorf("no finding gives %q", line)
		}
		for _, key := range []string{"line", "col", "endLine", "endColumn"} {
			if strings.Trim(properties[key], "0123456789") != "" || properties[key] == "" {
				t.Errorf("%s is %q", key, properties[key])
			}
		}
	}
}

// TestNoCommands holds that a CI service finds no command of its own in a log that shows our output, whatever names and texts hold.
func TestNoCommands(t *testing.T) {
	report := hostile(t)
	for _, format := range Names() {
		for line := range strings.Lines(written(t, format, report)) {
			if start := strings.TrimSpace(line); strings.HasPrefix(start, "::") && format != "github" && !strings.HasPrefix(start, "::: ") { // no command begins with a colon
				t.Errorf("%s: GitHub Actions obeys %q", format, line)
			}
			if logCommand().MatchString(line) {
				t.Errorf("%s: a service may obey %q", format, line)
			}
		}
	}
	if got := LinePath(" ::a"); got != "./ ::a" {
		t.Errorf("a line begins with %q", got)
	}
}

// TestGitHubRest holds that what GitHub does not show is counted, in a place where the count itself is shown.
func TestGitHubRest(t *testing.T) {
	for _, test := range []struct {
		errors, warnings, infos int
		want                    string // of the notice
		line                    int    // its place, from 0
	}{
		{10, 10, 10, "", 0},
		{11, 3, 2, "1 more error in", 16},
		{30, 11, 0, "20 more errors, 1 more warning in", 41},
		{0, 12, 10, "2 more warnings, 1 more info in", 12},
		{1, 0, 11, "2 more info in", 1},
	} {
		var findings []check.Finding
		for severity, n := range map[lint.Severity]int{lint.Error: test.errors, lint.Warning: test.warnings, lint.Info: test.infos} {
			for range n {
				findings = append(findings, check.Finding{Rule: rule, Diagnostic: lint.Diagnostic{At: source.Place{Path: "a.py"}, Severity: severity, Message: "m"}})
			}
		}
		report := check.NewReport(func(string) *source.File { return nil }, findings...)
		lines := strings.Split(strings.TrimSpace(written(t, "github", report)), "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "title=trainvet::") })
		switch {
		case test.want == "" && at >= 0, test.want != "" && (at != test.line || !strings.Contains(lines[at], "::"+test.want)):
			t.Errorf("%+v: line %d of\n%s", test, at, strings.Join(lines, "\n"))
		case len(lines) != len(findings)+min(1, len(test.want)):
			t.Errorf("%+v: %d lines", test, len(lines))
		}
	}
}

func TestLists(t *testing.T) {
	for name, make := range reports {
		report := make(t)
		lines := 0
		for line := range strings.Lines(written(t, "jsonl", report)) {
			var finding jsonFinding
			strict(t, line, &finding)
			if want := toJSON(report, report.Findings[lines]); finding.Rule != want.Rule || finding.Start != want.Start || finding.Severity != want.Severity {
				t.Errorf("%s: got %+v, want %+v", name, finding, want)
			}
			lines++
		}
		var issues []gitlabIssue
		strict(t, written(t, "gitlab", report), &issues)
		if lines != len(report.Findings) || issues == nil || len(issues) != lines {
			t.Errorf("%s: %d lines, %d issues, want %d", name, lines, len(issues), len(report.Findings))
		}
		prints := fingerprints(report)
		for i, issue := range issues {
			if issue.Fingerprint != prints[i] || issue.Location.Lines.Begin < 1 || !slices.Contains([]string{"critical", "major", "info"}, issue.Severity) {
				t.Errorf("%s: got %+v", name, issue)
			}
		}
	}
}

// TestFingerprints holds that a shift changes none, and that equal lines have different ones.
func TestFingerprints(t *testing.T) {
	prints := func(text string) []string {
		file := &source.File{Path: "./a.py", Kind: source.Python, Text: []byte(text), Raw: []byte(text)}
		var findings []check.Finding
		for at := 0; ; at++ {
			next := strings.Index(text[at:], "f()")
			if next < 0 {
				break
			}
			at += next
			findings = append(findings, check.Finding{Rule: rule, Diagnostic: lint.Diagnostic{At: file.At(source.Span{Start: uint32(at), End: uint32(at + 3)})}})
		}
		return fingerprints(check.NewReport(func(string) *source.File { return file }, findings...))
	}
	before, after := prints("f()\nx\nf()\n"), prints("# new\nif x:\n  f()\n  f()\nf() # more\n")
	if !slices.Equal(before, after[:2]) || before[0] == before[1] || slices.Contains(before, after[2]) {
		t.Errorf("got %v, then %v", before, after)
	}
}

func FuzzXML(f *testing.F) {
	f.Add(hostileMessage)
	f.Fuzz(func(t *testing.T, text string) {
		safe := xmlText(text)
		if !utf8.ValidString(safe) || strings.ContainsFunc(safe, unprintable) {
			t.Fatalf("%q stays raw", safe)
		}
		var back struct {
			A    string `xml:"a,attr"`
			Text string `xml:",chardata"`
		}
		if err := xml.NewDecoder(bytes.NewReader([]byte(`<x a="` + safe + `">` + safe + `</x>`))).Decode(&back); err != nil {
			t.Fatalf("%v: %q", err, safe)
		}
		if back.A != back.Text {
			t.Fatalf("%q is not %q", back.A, back.Text)
		}
	})
}
