// Package compare says what a change does to the runs of a project: it checks the files of a commit and those of the work tree, and
// holds one against the other.
package compare

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Options say what to compare.
type Options struct {
	Repo   *changes.Repo
	Commit string
	Dir    string // current folder, absolute, with forward slashes
	Paths  []string
	Rules  []*lint.Rule
	Flags  check.Flags
	// Release is that of trainvet, which rules-version of the settings may not be beyond.
	Release string
	// Declare makes the rules of [[custom]].
	Declare func(lint.Declared) (*lint.Rule, error)
}

// Result is what a change does.
type Result struct {
	Runs          []Run
	New, Fixed    []check.Finding
	Before, After *check.Report // nil where nothing was checked
	Problems      []check.Problem
}

// Empty reports whether nothing moved.
func (r *Result) Empty() bool { return len(r.Runs)+len(r.New)+len(r.Fixed) == 0 }

// Failed reports whether a new finding is at or above the threshold.
func (r *Result) Failed() bool {
	return slices.ContainsFunc(r.New, func(f check.Finding) bool { return f.Fails })
}

// side is the project before or after the change.
type side struct {
	snapshot *workspace.Snapshot
	settings *check.Resolver
	targets  []check.Target
	report   *check.Report
}

// Revision compares the work tree with a commit. The error is a check.SettingsError, or one of git.
func Revision(ctx context.Context, o Options) (*Result, error) {
	changed, err := o.Repo.Changed(ctx, o.Commit)
	if err != nil || len(changed) == 0 {
		return &Result{}, err
	}
	disk := workspace.NewConfined(o.Dir, o.Paths...)
	files, err := newBefore(ctx, disk, o.Repo, o.Dir, o.Commit, changed)
	if err != nil {
		return nil, err
	}
	defer files.blobs.Close()
	after := o.side(disk)
	result := &Result{}
	after.targets, result.Problems = check.Discover(o.Paths, after.settings)
	old := o.side(files)
	old.targets = o.oldTargets(files, after.targets, changed)
	if err := o.check(ctx, after); err != nil {
		return nil, err
	}
	if err := o.check(ctx, old); err != nil {
		old.settings = after.settings // those of the commit are of another release, or wrong
		if err := o.check(ctx, old); err != nil {
			return nil, err
		}
	}
	renamed := map[string]string{}
	for _, change := range changed {
		if change.Old != "" && change.New != "" && change.Old != change.New {
			renamed[o.Repo.Shown(change.Old)] = o.Repo.Shown(change.New)
		}
	}
	result.Before, result.After = old.report, after.report
	result.Runs = compareRuns(ctx, old, after, renamed)
	result.New = missing(after.report, old.report, nil, renamed)
	result.Fixed = missing(old.report, after.report, renamed, nil)
	result.strikeEqual(renamed)
	return result, nil
}

// subject is what a finding says and of which text, however the rest of its line reads: a comment behind a call does not make the finding
// another one.
type subject struct{ path, rule, message, text string }

func subjectOf(report *check.Report, f check.Finding, renamed map[string]string) (s subject, ok bool) {
	file := report.File(f.At.Path)
	if file == nil {
		return s, false
	}
	s = subject{report.Relative(f.At.Path), f.Rule.Name, f.Message, file.Slice(f.At.Span)}
	if to, is := renamed[s.path]; is {
		s.path = to
	}
	return s, true
}

// strikeEqual takes out pairs of a new and a fixed finding that say the same of the same text of a file, of which only the line reads otherwise.
func (r *Result) strikeEqual(renamed map[string]string) {
	fixed := map[subject]int{}
	for _, f := range r.Fixed {
		if s, ok := subjectOf(r.Before, f, renamed); ok {
			fixed[s]++
		}
	}
	struck := map[subject]int{}
	r.New = slices.DeleteFunc(r.New, func(f check.Finding) bool {
		s, ok := subjectOf(r.After, f, nil)
		if !ok || fixed[s] == 0 {
			return false
		}
		fixed[s]--
		struck[s]++
		return true
	})
	r.Fixed = slices.DeleteFunc(r.Fixed, func(f check.Finding) bool {
		s, ok := subjectOf(r.Before, f, renamed)
		if !ok || struck[s] == 0 {
			return false
		}
		struck[s]--
		return true
	})
}

func (o *Options) side(files workspace.FS) *side {
	snapshot := workspace.NewSnapshot(files)
	return &side{snapshot: snapshot, settings: &check.Resolver{Snapshot: snapshot, Dir: o.Dir, Rules: o.Rules, Declare: o.Declare, Release: o.Release, Flags: o.Flags}}
}

// oldTargets are the files of the commit that would have been checked: those that are checked now, and those that are gone or had
// another name.
func (o *Options) oldTargets(files *before, now []check.Target, changed []changes.Change) (old []check.Target) {
	for _, target := range now {
		if files.Kind(target.Path) == workspace.RegularFile {
			old = append(old, target)
		}
	}
	for _, change := range changed {
		if change.Old == "" || change.Old == change.New {
			continue
		}
		name := o.Repo.Shown(change.Old)
		if source.KindOf(name, nil) != source.Other && o.covers(name) {
			old = append(old, check.Target{Path: name, Test: check.IsTest(name)})
		}
	}
	return old
}

// covers reports whether a file lies in one of the paths that are compared.
func (o *Options) covers(name string) bool {
	absolute := func(name string) string {
		if source.IsAbsolute(name) {
			return path.Clean(name)
		}
		return path.Join(o.Dir, name)
	}
	return slices.ContainsFunc(o.Paths, func(folder string) bool {
		folder = strings.TrimSuffix(absolute(folder), "/")
		return absolute(name) == folder || strings.HasPrefix(absolute(name), folder+"/")
	})
}

// check finds what is wrong on one side. A file that is excluded there is left out.
func (o *Options) check(ctx context.Context, s *side) (err error) {
	targets := slices.DeleteFunc(slices.Clone(s.targets), func(t check.Target) bool { return s.settings.Excludes(t.Path) })
	s.snapshot = check.GuessKinds(s.snapshot, targets).WithFacts(s.settings.Facts).WithKnown(s.settings.Known)
	s.report, err = check.Run(ctx, s.snapshot, targets, check.Options{Rules: o.Rules, Settings: s.settings, NoBaseline: true})
	return err
}

// missing are the findings of a report that another one does not have, the worst first. Names are those after the change.
func missing(of, from *check.Report, ofNames, fromNames map[string]string) (all []check.Finding) {
	name := func(names map[string]string) func(string) string {
		return func(file string) string {
			file = of.Relative(file)
			if to, is := names[file]; is {
				return to
			}
			return file
		}
	}
	has := map[check.Identity]bool{}
	for _, id := range from.Identities(name(fromNames)) {
		has[id] = true
	}
	for i, id := range of.Identities(name(ofNames)) {
		if !has[id] {
			all = append(all, of.Findings[i])
		}
	}
	slices.SortStableFunc(all, func(a, b check.Finding) int { return int(b.Severity) - int(a.Severity) })
	return all
}
