// Package linttest runs the cases of rules, which are text files beside them. Adding a case touches no Go.
//
// # Cases
//
// rules/FAMILY/NAME.txtar holds the cases of the rule NAME. A member `case TITLE` begins a case, and `look-alike TITLE` one in
// which the rule must find nothing; what is written in these two is prose. The members that follow are the files of a small
// project. Everything before the first such member is the text of the archive, for people.
//
//	-- case the embedding is recomputed --
//	Why this one is here.
//	-- model.py --
//	x = checkpoint(self.embedding, ids)  # want: checkpoint-embedding
//	-- look-alike a projection of the same name --
//	-- model.py --
//	x = checkpoint(self.embedding_mlp, hidden)
//
// A comment at the end of a line says what is wanted there:
//
//	# want: RULE            a finding of the rule's own severity that starts on this line
//	# want: RULE warning    of this severity
//	# want: RULE, OTHER     two findings
//	# want@-1: RULE         on the line before; @+2: two lines further down
//
// In JSON with comments and in C-like files `//` takes the place of `#`. What is not wanted must not be found. Only the rule
// itself and those that its wants name are run, and syntax-error.
//
// Other members of a case:
//
//	trainvet.toml    settings, as in any project; the default rules are run then
//	want             findings, where the file has no comments, or to hold spans, messages and fixes. A line is either
//	                 `PATH:LINE RULE [SEVERITY]`, or what -update writes
//	fixed PATH       the text of PATH after all its fixes, safe and unsafe
//
// # Documents
//
// In NAME.md, fenced blocks are executed. Their info string is a language and a mark: in a `bad` block the rule must find
// something, in a `good` one nothing, and a `fixed` one is what the fixes make of the bad one before it. An `output` block
// holds what the bad one before it prints. Blocks of one mark under one heading are one project. A third word is the file's
// name, where the usual one of the language (train.py, ds_config.json, config.yaml, config.toml, run.sh) will not do.
//
// # Ways
//
// Every case is taken six ways, and each must find the same: the whole project; one file at a time, nothing kept between
// them; without the prefilter; with a cache that is empty and one that is full; with one thread and with eight; and after
// random edits that are undone. After each edit the cached result must also equal that of a fresh check.
//
// With -update, `want`, `fixed` and `output` are rewritten. A look-alike never gets a finding that way.
package linttest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected results of rules")

// Run runs the cases and documents of all rules. Folder is the one that holds the families.
func Run(t *testing.T, rules []*lint.Rule, folder string) {
	for _, rule := range rules {
		t.Run(rule.Family+"/"+rule.Name, func(t *testing.T) {
			t.Parallel() // rules share nothing
			if err := rule.Validate(); err != nil {
				t.Error(err)
			}
			for _, name := range rule.Hides {
				if lint.Find(rules, name) == nil {
					t.Errorf("it hides %s, which is no rule", name)
				}
			}
			base := filepath.Join(folder, rule.Family, rule.Name)
			runDocument(t, rule, rules, base+".md")
			runArchive(t, rule, rules, base+".txtar")
		})
	}
}

// example is one case.
type example struct {
	title     string
	lookAlike bool
	members   []int // of the archive
	files     project
	want      int // the member, or -1
	fixed     map[string]int
}

func runArchive(t *testing.T, rule *lint.Rule, rules []*lint.Rule, name string) {
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("a rule needs cases: %v", err)
	}
	archive := txtar.Parse(raw)
	examples, faults := split(archive)
	for _, fault := range faults {
		t.Errorf("%s: %s", name, fault)
	}
	found, alike := false, false
	for _, example := range examples {
		found, alike = found || !example.lookAlike, alike || example.lookAlike
		t.Run(example.title, func(t *testing.T) { runExample(t, rule, rules, archive, example) })
	}
	if !found || !alike {
		t.Errorf("%s needs at least one case and one look-alike", name)
	}
	if *update {
		if changed := txtar.Format(archive); string(changed) != string(raw) {
			if err := os.WriteFile(name, changed, 0o666); err != nil {
				t.Error(err)
			}
		}
	}
}

// split finds the cases of an archive.
func split(archive *txtar.Archive) (examples []*example, faults []string) {
	var now *example
	for i, member := range archive.Files {
		if title, ok := strings.CutPrefix(member.Name, "case "); ok {
			now = &example{title: title, want: -1, fixed: map[string]int{}}
			examples = append(examples, now)
			continue
		}
		if title, ok := strings.CutPrefix(member.Name, "look-alike "); ok {
			now = &example{title: title, lookAlike: true, want: -1, fixed: map[string]int{}}
			examples = append(examples, now)
			continue
		}
		if now == nil {
			faults = append(faults, member.Name+" stands before the first `case` or `look-alike`")
			continue
		}
		switch path, isFixed := strings.CutPrefix(member.Name, "fixed "); {
		case isFixed:
			now.fixed[path] = i
		case member.Name == "want":
			now.want = i
		default:
			now.files = append(now.files, file{member.Name, string(member.Data)})
		}
	}
	for _, example := range examples {
		if len(example.files) == 0 {
			faults = append(faults, "`"+example.title+"` has no files")
		}
	}
	return examples, faults
}

func runExample(t *testing.T, rule *lint.Rule, rules []*lint.Rule, archive *txtar.Archive, example *example) {
	wanted := example.files.markers(t)
	var section []string
	exact := false
	if example.want >= 0 {
		section = lines(string(archive.Files[example.want].Data))
		var fromSection []want
		fromSection, exact = readWants(t, section)
		wanted = append(wanted, fromSection...)
	}
	run := newRunner(rule, rules, example.files, wanted)
	report := run.sixWays(t)
	if report == nil {
		return
	}
	found := run.tested(report)
	if example.lookAlike && (len(found) > 0 || len(wanted) > 0 || exact) {
		t.Errorf("a look-alike must find nothing; found:\n%s", strings.Join(run.golden(report), "\n"))
		return
	}
	golden := run.golden(report)
	switch {
	case example.want >= 0 && (exact || len(section) == 0):
		if *update && !example.lookAlike {
			archive.Files[example.want].Data = []byte(strings.Join(golden, "\n") + "\n")
		} else if !slices.Equal(golden, section) {
			t.Errorf("found:\n%s\n\nwanted:\n%s", strings.Join(golden, "\n"), strings.Join(section, "\n"))
		}
		if marked := example.files.markers(t); len(marked) > 0 {
			compare(t, marked, found, rules)
		}
	default:
		compare(t, wanted, found, rules)
	}
	run.safeFixes(t, report)
	for path, member := range example.fixed {
		got := run.fixed(t, path)
		if *update {
			archive.Files[member].Data = []byte(got)
		} else if got != string(archive.Files[member].Data) {
			t.Errorf("%s after the fixes:\n%s\nwanted:\n%s", path, got, archive.Files[member].Data)
		}
	}
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			all = append(all, line)
		}
	}
	return all
}
