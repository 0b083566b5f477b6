//go:build ignore

// Command triage compares a fresh check of real repositories with the verdicts that were written down.
//
//	go run ./cmd/gen/triage.go [-select RULES] FOLDER...
//
// A FOLDER holds a checkout a repository, in a folder called OWNER+NAME, at the commit that testdata/corpus/triage.tsv names; or
// single configs and an INDEX.tsv, with a heading, whose columns are file, dialect, repository, path there, commit. Each of these is
// checked alone in an empty folder, and stands in the list under its repository with "file:" before it.
// It prints the errors and warnings that the list does not know (`new`), those of the list, in repositories that are there, that are
// found no more (`gone`)
// and, by rule, how many of the judged ones are true. A line of the list is: repository, commit, path, line, rule, severity,
// verdict (true, false or unsure), reason. Lines may shift by a few; the list is matched by file and rule in order.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules"
)

// judged is a line of the list.
type judged struct {
	repository, path, rule, severity, verdict string
	line                                      int
	seen                                      bool
}

// maxShift is how many lines a finding may stand from where it was judged.
const maxShift = 5

func main() {
	log.SetFlags(0)
	only := flag.String("select", "", "rules or families to compare, separated by commas")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: go run ./cmd/gen/triage.go [-select RULES] FOLDER...")
	}
	_, self, _, _ := runtime.Caller(0)
	list := read(filepath.Join(filepath.Dir(self), "..", "..", "testdata", "corpus", "triage.tsv"))
	var selected []string
	if *only != "" {
		selected = strings.Split(*only, ",")
	}
	added := 0
	compare := func(repository, name string, found []found) {
		for _, f := range found {
			path := name
			if path == "" {
				path = f.At.Path
			}
			file, err := f.file.File(f.At.Path)
			if err != nil {
				log.Fatal(err)
			}
			line := file.Line(f.At.Span.Start) + 1
			if match(list, repository, path, f.Rule.Name, line) {
				continue
			}
			added++
			fmt.Printf("new\t%s\t%s:%d\t%s\t%s\t%s\n", repository, path, line, f.Rule.Name, f.Severity, f.Message)
		}
	}
	looked := map[string]bool{} // at these repositories
	for _, folder := range flag.Args() {
		folder, err := filepath.Abs(folder)
		if err != nil {
			log.Fatal(err)
		}
		index, err := os.ReadFile(filepath.Join(folder, "INDEX.tsv"))
		if err == nil {
			singles(folder, string(index), selected, compare)
			for _, j := range list {
				looked[j.repository] = looked[j.repository] || strings.HasPrefix(j.repository, single)
			}
			continue
		}
		for _, repository := range repositories(list) {
			checkout := filepath.Join(folder, strings.ReplaceAll(repository, "/", "+"))
			if _, err := os.Stat(checkout); err != nil {
				continue
			}
			looked[repository] = true
			compare(repository, "", findings(checkout, selected))
		}
	}
	for _, repository := range repositories(list) {
		if !looked[repository] {
			log.Printf("no checkout of %s", repository)
		}
	}
	gone := 0
	for _, j := range list {
		if !j.seen && looked[j.repository] && (len(selected) == 0 || slices.Contains(selected, j.rule)) {
			gone++
			fmt.Printf("gone\t%s\t%s:%d\t%s\t%s\n", j.repository, j.path, j.line, j.rule, j.verdict)
		}
	}
	report(list)
	fmt.Printf("%d new, %d gone\n", added, gone)
}

// single stands before the repository of a file that was checked alone.
const single = "file:"

// repositories are those of the list that are checked whole.
func repositories(list []*judged) []string {
	names := map[string]bool{}
	for _, j := range list {
		if !strings.HasPrefix(j.repository, single) {
			names[j.repository] = true
		}
	}
	return sorted(names)
}

// singles compares the files of an INDEX.tsv, each checked in an empty folder under its own name.
func singles(folder, index string, selected []string, compare func(repository, path string, found []found)) {
	_, rows, _ := strings.Cut(index, "\n")
	for row := range strings.Lines(rows) {
		fields := strings.Split(strings.TrimSpace(row), "\t")
		if len(fields) < 4 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, fields[0]))
		if err != nil {
			log.Fatal(err)
		}
		alone, err := os.MkdirTemp("", "triage")
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(alone, fields[0]), text, 0o644); err != nil {
			log.Fatal(err)
		}
		compare(single+fields[2], fields[3], findings(alone, selected))
		if err := os.RemoveAll(alone); err != nil {
			log.Fatal(err)
		}
	}
}

// found is a finding with the files it was made from.
type found struct {
	check.Finding
	file *workspace.Snapshot
}

func findings(folder string, selected []string) []found {
	if err := os.Chdir(folder); err != nil {
		log.Fatal(err)
	}
	directory, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	snapshot := workspace.NewSnapshot(workspace.Disk{})
	settings := &check.Resolver{Snapshot: snapshot, Dir: filepath.ToSlash(directory), Rules: rules.All(), Flags: check.Flags{Isolated: true, Select: selected}}
	targets, _ := check.Discover([]string{"."}, settings)
	done, err := check.Run(context.Background(), snapshot, targets, check.Options{Rules: rules.All(), Settings: settings})
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range done.Faults {
		log.Printf("fault of trainvet: %s: %s: %s", fault.Path, fault.Rule, fault.Reason)
	}
	var loud []found
	for _, f := range done.Findings {
		if f.Severity >= lint.Warning {
			loud = append(loud, found{f, snapshot})
		}
	}
	return loud
}

// match finds the judged line that a finding belongs to: the nearest one of its file and rule.
func match(list []*judged, repository, path, rule string, line int) bool {
	var best *judged
	for _, j := range list {
		if j.seen || j.repository != repository || j.path != path || j.rule != rule || abs(j.line-line) > maxShift {
			continue
		}
		if best == nil || abs(j.line-line) < abs(best.line-line) {
			best = j
		}
	}
	if best != nil {
		best.seen = true
	}
	return best != nil
}

func abs(n int) int { return max(n, -n) }

func read(name string) (list []*judged) {
	file, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		if number == 1 || lines.Text() == "" { // the heading
			continue
		}
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 8 {
			log.Fatalf("%s:%d: %d fields, not 8", name, number, len(fields))
		}
		line, err := strconv.Atoi(fields[3])
		if err != nil {
			log.Fatalf("%s:%d: %v", name, number, err)
		}
		list = append(list, &judged{repository: fields[0], path: fields[2], line: line, rule: fields[4], severity: fields[5], verdict: fields[6]})
	}
	return list
}

// report counts verdicts by rule, of those findings that are still made.
func report(list []*judged) {
	counts := map[string]map[string]int{}
	for _, j := range list {
		if j.seen {
			if counts[j.rule] == nil {
				counts[j.rule] = map[string]int{}
			}
			counts[j.rule][j.verdict]++
		}
	}
	fmt.Printf("%-44s %5s %5s %6s\n", "rule", "true", "false", "unsure")
	total := map[string]int{}
	for _, rule := range sorted(counts) {
		c := counts[rule]
		fmt.Printf("%-44s %5d %5d %6d\n", rule, c["true"], c["false"], c["unsure"])
		for verdict, n := range c {
			total[verdict] += n
		}
	}
	fmt.Printf("%-44s %5d %5d %6d\n", "all", total["true"], total["false"], total["unsure"])
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
