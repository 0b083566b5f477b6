package linttest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
)

// block is a fenced block of a rule's document that is executed.
type block struct {
	heading, mark string
	file          file
	from, to      int // its text in the document
}

// usualNames are the files that blocks stand for, by language.
var usualNames = map[string]string{"python": "train.py", "json": "ds_config.json", "yaml": "config.yaml", "toml": "config.toml", "sh": "run.sh", "bash": "run.sh"}

// blocks finds the marked blocks of a document.
func blocks(document string) (all []block, faults []string) {
	heading, offset := "", 0
	var open *block
	fenced := false
	for line := range strings.Lines(document) {
		info, fence := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "```")
		switch {
		case fence && fenced:
			if open != nil {
				open.to = offset
				open.file.text = document[open.from:open.to]
				all = append(all, *open)
			}
			open, fenced = nil, false
		case fence:
			fenced = true
			words := strings.Fields(info)
			if len(words) < 2 {
				break
			}
			open = &block{heading: heading, mark: words[1], from: offset + len(line)}
			if !slices.Contains([]string{"bad", "good", "fixed", "output"}, open.mark) {
				faults = append(faults, fmt.Sprintf("a block is marked %q; there are bad, good, fixed and output", open.mark))
			}
			open.file.name = usualNames[words[0]]
			if len(words) > 2 {
				open.file.name = words[2]
			}
			if open.file.name == "" && open.mark != "output" {
				faults = append(faults, fmt.Sprintf("a block of language %q names no file", words[0]))
			}
		case !fenced && strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(line[3:])
		}
		offset += len(line)
	}
	return all, faults
}

// runDocument executes the blocks of a rule's document.
func runDocument(t *testing.T, rule *lint.Rule, rules []*lint.Rule, name string) {
	t.Helper()
	all, faults := blocks(rule.Doc)
	for _, fault := range faults {
		t.Errorf("%s: %s", name, fault)
	}
	var bad *runner
	var updates []block
	seen := map[string]bool{}
	for i := 0; i < len(all); {
		group := all[i : i+1]
		for i += len(group); i < len(all) && all[i].mark == group[0].mark && all[i].heading == group[0].heading && group[0].mark != "output"; i++ {
			group = append(group, all[i])
		}
		mark := group[0].mark
		seen[mark] = true
		switch {
		case mark == "bad" || mark == "good":
			var files project
			for _, b := range group {
				files = append(files, b.file)
			}
			run := newRunner(rule, rules, files, nil)
			report := run.sixWays(t)
			if report == nil {
				continue
			}
			if found := run.tested(report); mark == "bad" == (len(found) == 0) {
				t.Errorf("%s: the %s block under %q gives:\n%s", name, mark, group[0].heading, strings.Join(run.golden(report), "\n"))
			}
			run.safeFixes(t, report)
			if mark == "bad" {
				bad = run
			}
		case bad == nil:
			t.Errorf("%s: a block marked %s stands before any bad one", name, mark)
		case mark == "output":
			report := bad.sixWays(t)
			text := ""
			for _, finding := range report.Findings {
				if bad.under(finding) {
					text += fmt.Sprintf("%s:%s: %s[%s] %s\n", finding.At.Path, report.File(finding.At.Path).Position(finding.At.Span.Start), finding.Severity, finding.Rule.Name, finding.Message)
				}
			}
			if text != group[0].file.text {
				if !*update {
					t.Errorf("%s: the output is:\n%s\nthe document says:\n%s", name, text, group[0].file.text)
				}
				changed := group[0]
				changed.file.text = text
				updates = append(updates, changed)
			}
		case mark == "fixed":
			for _, b := range group {
				if got := bad.fixed(t, b.file.name); got != b.file.text {
					t.Errorf("%s: %s after the fixes:\n%s\nthe document says:\n%s", name, b.file.name, got, b.file.text)
				}
			}
		}
	}
	if !seen["bad"] || !seen["good"] && !seen["fixed"] {
		t.Errorf("%s needs a block marked bad, and one marked good or fixed", name)
	}
	if *update && len(updates) > 0 {
		writeUpdates(t, name, rule.Doc, updates)
	}
}

func writeUpdates(t *testing.T, name, document string, updates []block) {
	slices.Reverse(updates)
	for _, b := range updates {
		document = document[:b.from] + b.file.text + document[b.to:]
	}
	if err := os.WriteFile(name, []byte(document), 0o666); err != nil {
		t.Error(err)
	}
}

// fixed is the text of a file after all fixes, unsafe ones included. A second application must change nothing.
func (r *runner) fixed(t testing.TB, name string) string {
	t.Helper()
	snapshot := workspace.NewSnapshot(r.project.fs())
	options := check.Options{Rules: r.rules, Settings: r.resolver(snapshot)}
	done, err := check.Fix(context.Background(), snapshot, r.project.targets(), options, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range done.Refused {
		t.Errorf("%s: %s: %s", fault.Path, fault.Rule, fault.Reason)
	}
	again, err := check.Fix(context.Background(), snapshot.With(done.Files...), r.project.targets(), options, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Files) > 0 {
		t.Errorf("a second application of the fixes changes %s again", again.Files[0].Path)
	}
	for _, file := range done.Files {
		if file.Path == name {
			return string(file.Raw)
		}
	}
	return r.project.get(name)
}
