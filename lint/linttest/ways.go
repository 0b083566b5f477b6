package linttest

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// runner checks one project with the rules that are under test there.
type runner struct {
	rules   []*lint.Rule
	names   []string // under test
	strict  bool
	project project
}

func newRunner(rule *lint.Rule, rules []*lint.Rule, files project, wanted []want) *runner {
	r := &runner{rules: rules, names: []string{rule.Name}, strict: rule.Strict, project: files}
	for _, w := range wanted {
		if !slices.Contains(r.names, w.rule) {
			r.names = append(r.names, w.rule)
		}
	}
	return r
}

// way says how to check.
type way struct {
	targets     []check.Target
	jobs        int
	noPrefilter bool
	cache       *check.Cache
}

func (r *runner) resolver(snapshot *workspace.Snapshot) *check.Resolver {
	resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: r.rules}
	switch {
	case r.project.settings() && r.strict:
		resolver.Flags.ExtendSelect = r.names[:1]
	case !r.project.settings():
		resolver.Flags.Select = r.names
	}
	return resolver
}

// check runs the line on a snapshot and fails the test for what must never happen.
func (r *runner) check(t testing.TB, snapshot *workspace.Snapshot, resolver *check.Resolver, w way) *check.Report {
	t.Helper()
	report, err := check.Run(context.Background(), snapshot, w.targets, check.Options{Rules: r.rules, Settings: resolver, Jobs: w.jobs, NoPrefilter: w.noPrefilter, Cache: w.cache})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range report.Faults {
		t.Fatalf("%s: rule %s: %s\n%s", fault.Path, fault.Rule, fault.Reason, fault.Stack)
	}
	for _, problem := range report.Unreadable {
		t.Fatalf("%s: %s", problem.Path, problem.Reason)
	}
	return report
}

// fresh checks with a snapshot of its own.
func (r *runner) fresh(t testing.TB, w way) *check.Report {
	t.Helper()
	snapshot := workspace.NewSnapshot(r.project.fs())
	return r.check(t, snapshot, r.resolver(snapshot), w)
}

// sixWays checks the project in every way, demands equal findings, and gives back the plain result.
func (r *runner) sixWays(t testing.TB) *check.Report {
	t.Helper()
	targets := r.project.targets()
	if len(targets) == 0 {
		t.Error("no file of the case is of a kind that is read")
		return nil
	}
	plain := r.fresh(t, way{targets: targets})
	wanted := r.golden(plain)
	same := func(how string, got []string) {
		t.Helper()
		if !slices.Equal(got, wanted) {
			t.Errorf("%s finds:\n%s\n\nthe plain check:\n%s", how, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
		}
	}
	var single []string
	for _, target := range targets {
		single = append(single, r.golden(r.fresh(t, way{targets: []check.Target{target}}))...)
	}
	same("one file at a time", single)
	same("without the prefilter", r.golden(r.fresh(t, way{targets: targets, noPrefilter: true})))
	same("one thread", r.golden(r.fresh(t, way{targets: targets, jobs: 1})))
	same("eight threads", r.golden(r.fresh(t, way{targets: targets, jobs: 8})))
	same("in the opposite order", r.golden(r.fresh(t, way{targets: reversed(targets), jobs: 1})))
	r.afterEdits(t, targets, same)
	return plain
}

func reversed(targets []check.Target) []check.Target {
	turned := slices.Clone(targets)
	slices.Reverse(turned)
	return turned
}

// rounds is the number of random edits a case goes through.
const rounds = 4

// afterEdits plays an editor session: the cache lives on while files change and change back.
func (r *runner) afterEdits(t testing.TB, targets []check.Target, same func(string, []string)) {
	t.Helper()
	hash := fnv.New64a()
	for _, f := range r.project {
		hash.Write([]byte(f.text))
	}
	random := rand.New(rand.NewPCG(hash.Sum64(), 1))
	cache := check.NewCache()
	snapshot := workspace.NewSnapshot(r.project.fs())
	resolver := r.resolver(snapshot)
	session := func(s *workspace.Snapshot) []string {
		return r.golden(r.check(t, s, resolver, way{targets: targets, cache: cache}))
	}
	same("an empty cache", session(snapshot))
	same("a full cache", session(snapshot))
	for range rounds {
		edited := r.project[random.IntN(len(r.project))]
		kind := source.KindOf(edited.name, []byte(edited.text))
		if kind == source.Other || check.IsSettingsFile(edited.name) {
			continue
		}
		text := scramble(random, edited.text)
		changed, err := source.Decode(edited.name, kind, []byte(text))
		if err != nil {
			continue
		}
		now := snapshot.With(changed)
		cached := session(now)
		again := workspace.NewSnapshot(r.project.fs()).With(changed)
		if fresh := r.golden(r.check(t, again, resolver, way{targets: targets})); !slices.Equal(cached, fresh) {
			t.Errorf("%s edited to:\n%s\nwith the cache:\n%s\n\nfresh:\n%s", edited.name, text, strings.Join(cached, "\n"), strings.Join(fresh, "\n"))
		}
		original, _ := source.Decode(edited.name, kind, []byte(edited.text))
		same("after an edit that was undone", session(now.With(original)))
		same("after the edited file was closed", session(now.Forget(edited.name)))
	}
}

// scramble makes one random edit: a line goes, comes twice, moves, or is added; or a few characters go.
func scramble(random *rand.Rand, text string) string {
	all := strings.SplitAfter(text, "\n")
	at := random.IntN(len(all))
	switch random.IntN(6) {
	case 0:
		all = slices.Delete(all, at, at+1)
	case 1:
		all = slices.Insert(all, at, all[at])
	case 2:
		other := random.IntN(len(all))
		all[at], all[other] = all[other], all[at]
	case 3:
		all = slices.Insert(all, at, "\n")
	case 4:
		all = slices.Insert(all, 0, "# moved down\n")
	default:
		if len(text) > 0 {
			from := random.IntN(len(text))
			return strings.ToValidUTF8(text[:from]+text[min(len(text), from+1+random.IntN(8)):], "")
		}
	}
	return strings.Join(all, "")
}

// safeFixes applies the safe fixes, and demands that files parse with them, that each finding with one is gone, and
// that no comment is lost.
func (r *runner) safeFixes(t testing.TB, before *check.Report) {
	t.Helper()
	offered := func(report *check.Report) (count int) {
		for _, finding := range report.Findings {
			if slices.ContainsFunc(finding.Fixes, func(fix lint.Fix) bool { return fix.Safety == lint.Safe && len(fix.Edits) > 0 }) {
				count++
			}
		}
		return count
	}
	want := offered(before)
	if want == 0 {
		return
	}
	snapshot := workspace.NewSnapshot(r.project.fs())
	done, err := check.Fix(context.Background(), snapshot, r.project.targets(), check.Options{Rules: r.rules, Settings: r.resolver(snapshot)}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range done.Refused {
		t.Errorf("%s: %s: %s", fault.Path, fault.Rule, fault.Reason)
	}
	if left := offered(done.Report); left > 0 || done.Applied < want {
		t.Errorf("%d of %d safe fixes were applied; left:\n%s", done.Applied, want, strings.Join(r.golden(done.Report), "\n"))
	}
	if after, most := len(done.Report.Findings), len(before.Findings)-want; after > most {
		t.Errorf("%d findings are left after %d fixes of %d findings:\n%s", after, want, len(before.Findings), strings.Join(r.golden(done.Report), "\n"))
	}
	for _, file := range done.Files {
		if file.Kind.IsPython() && strings.Count(r.project.get(file.Path), "# want") > strings.Count(string(file.Raw), "# want") {
			t.Errorf("%s: a comment is lost:\n%s", file.Path, file.Text)
		}
	}
}

// tested are the findings of the rules under test, as wants.
func (r *runner) tested(report *check.Report) (all []want) {
	for _, finding := range report.Findings {
		if !r.under(finding) {
			continue
		}
		line := 0
		if in := report.File(finding.At.Path); in != nil {
			line = in.Line(finding.At.Span.Start) + 1
		}
		all = append(all, want{finding.At.Path, line, finding.Rule.Name, finding.Severity})
	}
	return all
}

func (r *runner) under(finding check.Finding) bool {
	return slices.Contains(r.names, finding.Rule.Name)
}

// golden renders the findings of the rules under test.
func (r *runner) golden(report *check.Report) []string {
	all := []string{}
	for _, finding := range report.Findings {
		if r.under(finding) {
			all = append(all, render(report, finding)...)
		}
	}
	return all
}
