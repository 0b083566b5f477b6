// Package check is the straight line from files to findings:
//
//	discover -> parse -> rules -> select, cascade -> suppress -> per-file ignores -> severity -> sort -> baseline -> new code
//
// Each arrow is a function in a file of its own. Select comes first because only selected rules run at all; the cascade comes
// before the comments, so that a suppressed finding does not bring up the weaker one that it hid.
package check

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Options say how to check.
type Options struct {
	Rules    []*lint.Rule
	Settings *Resolver
	Jobs     int    // files at a time; 0: as many as there are processors
	Cache    *Cache // results of an earlier check, or nil

	// Step, where it is set, is called when a target is done, by several goroutines at a time.
	Step func()

	// Walk, where it is set, is where the targets come from.
	Walk *Walk

	// NoPrefilter runs every rule on every file, whatever the file mentions, and puts off no question by the index of names. The findings are the same; tests hold that.
	NoPrefilter bool
	// NoBaseline shows the findings that a baseline records.
	NoBaseline bool
	// Shelf, where it is set, has what earlier checks of few files found out about all files of a project. Who made it saves it.
	Shelf *workspace.Shelf
	// New, where it is set, keeps the findings of new code only.
	New *NewCode
}

// So many targets in a row share one view, where no result is kept for later: neighbours ask much the same. Towards the end they are fewer, so that
// no worker waits long for another.
const (
	mostTogether  = 32
	leastTogether = 8
)

// batches are where each row of targets begins that one worker takes, and their end.
func batches(targets, workers int) []int {
	starts := []int{0}
	for at := 0; at < targets; {
		at = min(targets, at+min(max((targets-at)/(4*workers), leastTogether), mostTogether))
		starts = append(starts, at)
	}
	return starts
}

// fewTargets is how many files of a project are few, as those of a commit are.
const fewTargets = 16

// Run checks the targets. Findings come from the targets alone; other files are read where a rule asks about them. The error is
// a *SettingsError, and then nothing was checked, or that of the context.
func Run(ctx context.Context, snapshot *workspace.Snapshot, targets []Target, options Options) (*Report, error) {
	settings := make([]*Settings, len(targets))
	byFolder := map[string]*Settings{}
	for i, target := range targets {
		folder := folderOf(target.Path)
		if byFolder[folder] == nil {
			byFolder[folder] = options.Settings.of(target.Path)
		}
		settings[i] = byFolder[folder]
	}
	if len(targets) == 0 {
		options.Settings.For(options.Settings.Dir) // the flags are looked at even where there is nothing to check
	}
	if err := options.Settings.Err(); err != nil {
		return nil, err
	}
	if options.NoPrefilter {
		snapshot = snapshot.Thorough()
	}
	if options.Cache == nil {
		snapshot = snapshot.Frugal()
		if len(targets) > 0 && len(targets) <= fewTargets {
			snapshot = snapshot.Few().Known(options.Shelf, targets[0].Path)
		}
	}
	c := newChecker(snapshot.WithFacts(options.Settings.Facts).WithKnown(options.Settings.Known), options)
	baselines, err := c.loadBaselines(settings)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		c.selects(s)
	}
	results := make([]*result, len(targets))
	idle := c.idle(ctx, targets, settings)
	done := countProjects(c.snapshot, targets)
	var workers sync.WaitGroup
	var next atomic.Int64
	count := max(1, min(len(targets), options.jobs()))
	starts := batches(len(targets), count)
	for range count {
		workers.Go(func() {
			var view *workspace.View
			if c.options.Cache == nil {
				view = c.snapshot.View(ctx).Forgetful()
			}
			for {
				batch := int(next.Add(1))
				if batch >= len(starts) {
					return
				}
				if view != nil {
					view.Reset()
				}
				for i := starts[batch-1]; i < starts[batch]; i++ {
					if idle != nil && idle[i] {
						results[i] = &result{}
					} else {
						results[i] = c.subject(ctx, view, targets[i], settings[i])
					}
					done(i)
					if options.Step != nil {
						options.Step()
					}
				}
			}
		})
	}
	workers.Wait()
	c.ahead.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := options.Settings.Err(); err != nil { // of a file that only a run reaches
		return nil, err
	}
	return c.collect(targets, settings, results, baselines), nil
}

// countProjects gives what is called when a target is done: after the last one of a project, what is held for that is let go.
func countProjects(snapshot *workspace.Snapshot, targets []Target) (done func(i int)) {
	type project struct {
		root string
		left atomic.Int64
	}
	projects := make([]*project, len(targets))
	byRoot, byFolder := map[string]*project{}, map[string]*project{}
	rootOf := snapshot.ProjectRoots()
	for i, target := range targets {
		folder := folderOf(target.Path)
		if byFolder[folder] == nil {
			root := rootOf(target.Path)
			if byRoot[root] == nil {
				byRoot[root] = &project{root: root}
			}
			byFolder[folder] = byRoot[root]
		}
		projects[i] = byFolder[folder]
		projects[i].left.Add(1)
	}
	return func(i int) {
		if projects[i].left.Add(-1) == 0 && len(byRoot) > 1 {
			snapshot.Release(projects[i].root)
		}
	}
}

func (o *Options) jobs() int {
	if o.Jobs > 0 {
		return o.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// of gives the settings that hold for a file.
func (r *Resolver) of(file string) *Settings {
	return r.For(folderOf(file))
}

// checker holds what all subjects of one check share.
type checker struct {
	snapshot *workspace.Snapshot
	options  Options
	words    ruleWords
	selected map[*Settings][]bool // whether rules are, by their number

	prepare sync.Once
	ahead   sync.WaitGroup // what is worked out before it is asked for
}

func newChecker(snapshot *workspace.Snapshot, options Options) *checker {
	return &checker{snapshot: snapshot, options: options, words: options.Cache.wordsOf(options.Rules), selected: map[*Settings][]bool{}}
}

// selects notes which rules settings select.
func (c *checker) selects(settings *Settings) {
	if c.selected[settings] != nil {
		return
	}
	selected := make([]bool, len(c.options.Rules))
	for i, rule := range c.options.Rules {
		selected[i] = settings.selected[rule]
	}
	c.selected[settings] = selected
}

// ruleWords are the words that rules look for.
type ruleWords struct {
	rules []*lint.Rule
	find  *mentions
	wants []wanted // by the number of a rule

	number map[string]int // of each word
	index  map[*lint.Rule]int
}

// wanted is what a file must be for a rule to look at it.
type wanted struct {
	words  source.Numbers // of which one must be there
	always bool           // none must
	kinds  [kinds]bool
	engine bool // it is a rule of the engine
	syntax bool // it is syntaxError
}

func newRuleWords(rules []*lint.Rule) ruleWords {
	made := ruleWords{rules: rules, wants: make([]wanted, len(rules)), index: make(map[*lint.Rule]int, len(rules))}
	var words []string
	number := map[string]int{}
	add := func(word string) {
		if _, known := number[word]; !known {
			number[word] = len(words)
			words = append(words, word)
		}
	}
	for _, rule := range rules {
		for _, word := range slices.Concat(rule.Mentions, rule.Looks) {
			add(word)
		}
	}
	for _, word := range workspace.Looks {
		add(word)
	}
	for i, rule := range rules {
		made.index[rule] = i
		want := wanted{words: source.NewNumbers(len(words)), always: len(rule.Mentions) == 0, engine: ofEngine(rule), syntax: rule.Name == syntaxError}
		for _, word := range rule.Mentions {
			want.words.Add(number[word])
		}
		for kind := range want.kinds {
			want.kinds[kind] = looksAt(rule, kind)
		}
		made.wants[i] = want
	}
	made.find, made.number = newMentions(words), number
	return made
}

// wordsOf makes them once for the checks of a server, of which there is one a keystroke.
func (c *Cache) wordsOf(rules []*lint.Rule) ruleWords {
	if c == nil {
		return newRuleWords(rules)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.words.rules, rules) {
		c.words = newRuleWords(rules)
	}
	return c.words
}

// collect puts the results of all subjects together.
func (c *checker) collect(targets []Target, settings []*Settings, results []*result, baselines map[string]Baseline) *Report {
	report := NewReport(func(name string) *source.File {
		file, err := c.snapshot.File(name)
		if err != nil {
			return nil
		}
		return file
	})
	report.relative = c.options.Settings.relativeTo(c.options.Settings.Dir)
	unverified := map[string]bool{}
	bySubject := map[string]*Settings{}
	for i, r := range results {
		if r.skipped != "" {
			report.Skipped = append(report.Skipped, Skipped{Path: targets[i].Path, Reason: r.unreadable, Why: r.skipped})
			continue
		}
		if r.unreadable != "" {
			report.Unreadable = append(report.Unreadable, Problem{targets[i].Path, r.unreadable})
			continue
		}
		bySubject[targets[i].Path] = settings[i]
		report.Summary.Files++
		report.Summary.Suppressed += r.suppressed
		report.Faults = append(report.Faults, r.faults...)
		for _, finding := range r.findings {
			finding.Fails = settings[i].FailOn.Fails(finding.Severity)
			report.Findings = append(report.Findings, finding)
		}
		for _, run := range r.unverified {
			if !unverified[run.Run] {
				unverified[run.Run] = true
				report.Unverified = append(report.Unverified, run)
			}
		}
	}
	report.Findings = sortFindings(report.Findings)
	if !c.options.NoBaseline {
		c.hideKnown(report, bySubject, baselines)
	}
	c.keepNew(report)
	report.Summary.count(report.Findings)
	report.Summary.Unreadable = len(report.Unreadable)
	report.Summary.Skipped = len(report.Skipped)
	report.Summary.Unverified = len(report.Unverified)
	return report
}

// AddUnreadable takes inputs into the report that were not even listed.
func (r *Report) AddUnreadable(problems []Problem) {
	r.Unreadable = append(slices.Clip(problems), r.Unreadable...)
	r.Summary.Unreadable = len(r.Unreadable)
}

// guard runs a piece of work and turns a panic in it into a fault of ours, so that other rules and files go on.
func guard(path, rule string, work func()) (fault *Fault) {
	defer func() {
		if reason := recover(); reason != nil {
			fault = &Fault{Path: path, Rule: rule, Reason: fmt.Sprint(reason), Stack: string(debug.Stack())}
		}
	}()
	work()
	return nil
}
