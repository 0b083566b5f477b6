package check

import (
	"bytes"
	"context"
	"path"
	"slices"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// result is what the check of one file gave.
type result struct {
	findings   []Finding
	suppressed int
	unverified []Unverified
	unreadable string // why it could not be read
	faults     []Fault
}

// memoryRule is the rule that compares a run with its device. Who has switched it off is not told what it could not check.
const memoryRule = "hbm-overflow"

func folderOf(name string) string { return path.Dir(name) }

// subject checks one file.
func (c *checker) subject(ctx context.Context, view *workspace.View, target Target, settings *Settings) (r *result) {
	if r := c.options.Cache.get(c.snapshot, target, settings); r != nil {
		return r
	}
	r = &result{}
	if fault := guard(target.Path, "", func() {
		file, err := c.snapshot.File(target.Path)
		if err != nil {
			r.unreadable = err.Error()
			return
		}
		if c.options.Cache != nil {
			view = c.snapshot.View(ctx)
			view.Placed(file.Path) // also where nothing is looked for: the text decides that
		}
		c.look(view, file, target, settings, r)
	}); fault != nil {
		r.faults = append(r.faults, *fault)
	}
	if c.options.Cache != nil && view != nil && len(r.faults) == 0 && ctx.Err() == nil {
		c.options.Cache.put(target, settings, view.Reads(), r)
	}
	return r
}

// look runs the rules that have something to look for in the file, and passes the findings down the line.
func (c *checker) look(view *workspace.View, file *source.File, target Target, settings *Settings, r *result) {
	named := target.Named
	if !named && isData(file) {
		return
	}
	run, relevant := c.chosen(file, target, settings)
	if len(run) == 0 && !file.Has(Word) {
		return
	}
	c.lookAhead(view.Context(), file.Path)
	subject := subject{view: view, file: file, names: slices.ContainsFunc(run, func(rule *lint.Rule) bool { return !ofEngine(rule) })}
	subject.parse()
	if r.unreadable = subject.bound(); r.unreadable != "" {
		return
	}
	var findings []Finding
	for _, rule := range run {
		pass := lint.NewPass(view, rule, settings.Options[rule.Name])
		if fault := guard(file.Path, rule.Name, func() { subject.run(pass, relevant.has(rule) || named) }); fault != nil {
			r.faults = append(r.faults, *fault)
			continue
		}
		for _, d := range pass.Findings() {
			if d.At.Path == file.Path {
				findings = append(findings, Finding{Rule: rule, Diagnostic: d})
			}
		}
	}
	if ctx := view.Context(); ctx != nil && ctx.Err() != nil {
		return
	}
	findings = cascade(findings)
	if doc := subject.doc(); doc != nil && len(r.faults) == 0 {
		all := append(slices.Clip(c.options.Rules), settings.customRules()...)
		findings, r.suppressed = suppress(file, doc, findings, all, relevant.on, settings.RequireReason)
	}
	findings, ignored := c.perFile(file, findings, settings)
	r.suppressed += ignored
	for i := range findings {
		if severity, changed := settings.Severity[findings[i].Rule.Name]; changed {
			findings[i].Severity = severity
		}
	}
	r.findings = sortFindings(findings)
	c.keep(r.findings)
	rule := lint.Find(c.options.Rules, memoryRule)
	if rule == nil || relevant.on(rule) {
		if fault := guard(file.Path, "", func() { r.unverified = subject.unverified() }); fault != nil {
			r.faults = append(r.faults, *fault)
		}
	}
}

// isData reports whether a file is of a kind of settings and too large to hold any.
func isData(file *source.File) bool {
	return (file.Kind == source.JSON || file.Kind == source.YAML || file.Kind == source.TOML) && len(file.Text) > workspace.MaxSettings
}

// lookAhead begins, beside the check of the first file, with what nearly every check of a file asks for in the end: which files name it.
// One file alone is checked by one goroutine, and would wait for that.
func (c *checker) lookAhead(ctx context.Context, name string) {
	if c.options.Cache != nil {
		return
	}
	c.prepare.Do(func() {
		work := func() {}
		guard(name, "", func() { work = c.snapshot.Survey(ctx, name) }) // a fault shows again where it is asked for
		c.ahead.Go(func() { guard(name, "", work) })
	})
}

// keep holds on to the files that findings point into.
func (c *checker) keep(findings []Finding) {
	for _, f := range findings {
		c.snapshot.Keep(f.At.Path)
		for _, related := range f.Related {
			c.snapshot.Keep(related.At.Path)
		}
		for _, fix := range f.Fixes {
			for _, edit := range fix.Edits {
				c.snapshot.Keep(edit.At.Path)
			}
		}
	}
}

// chosen gives the rules that are on and have one of their words in the file. Relevant says of every rule that is on whether it
// has a word, also where the prefilter is off.
func (c *checker) chosen(file *source.File, target Target, settings *Settings) (run []*lint.Rule, relevant relevance) {
	found := c.words.find.in(file.Text)
	file.Know(c.words.number, found)
	relevant = relevance{index: c.words.index, flags: make([]uint8, len(c.options.Rules))}
	states := c.options.NoPrefilter || !file.Kind.IsPython() || workspace.MayState(file)
	for i, rule := range c.options.Rules {
		if !settings.selected[rule] || target.Test && !settings.Tests && !ofEngine(rule) {
			continue
		}
		has := c.words.needs[i] == nil
		for _, word := range c.words.needs[i] {
			has = has || found[word]
		}
		has = has || file.Fault != "" && rule.Name == syntaxError // its words were not read
		relevant.flags[i] = isOn
		if has {
			relevant.flags[i] |= hasWord
		}
		if !looksAt(rule, file, states) {
			continue
		}
		if has || c.options.NoPrefilter || target.Named && rule.Name == syntaxError {
			run = append(run, rule)
		}
	}
	absolute := ""
	if len(settings.Custom) > 0 {
		absolute = c.options.Settings.Absolute(file.Path)
	}
	for i := range settings.Custom {
		own := &settings.Custom[i]
		rule := own.Rule
		if !settings.selected[rule] || target.Test && !settings.Tests || !own.all && !own.files.covers(absolute) {
			continue
		}
		has := len(rule.Mentions) == 0 || slices.ContainsFunc(rule.Mentions, func(word string) bool { return bytes.Contains(file.Text, []byte(word)) })
		if relevant.custom == nil {
			relevant.custom = map[*lint.Rule]bool{}
		}
		relevant.custom[rule] = has
		if has || c.options.NoPrefilter {
			run = append(run, rule)
		}
	}
	return run, relevant
}

// relevance says of the rules which are on for a file, and which of those have a word in it.
type relevance struct {
	index  map[*lint.Rule]int
	flags  []uint8
	custom map[*lint.Rule]bool // those of the settings that are on
}

const (
	isOn uint8 = 1 << iota
	hasWord
)

func (r relevance) on(rule *lint.Rule) bool {
	if i, known := r.index[rule]; known {
		return r.flags[i] != 0
	}
	_, on := r.custom[rule]
	return on
}

func (r relevance) has(rule *lint.Rule) bool {
	if i, known := r.index[rule]; known {
		return r.flags[i]&hasWord != 0
	}
	return r.custom[rule]
}

// looksAt is false for a rule that looks at Python alone, where the file is none, and for one that looks at settings, where a Python file states none.
func looksAt(rule *lint.Rule, file *source.File, states bool) bool {
	if rule.Packages != nil || rule.Variables != nil || ofEngine(rule) {
		return true
	}
	settings := rule.Tree != nil || rule.Part != nil || rule.Run != nil
	return settings && states || file.Kind.IsPython() && (rule.Module != nil || rule.Loop != nil)
}

// ofEngine holds for the rules that the engine itself reports: they are about the text, not about training.
func ofEngine(rule *lint.Rule) bool {
	return rule.Module == nil && rule.Loop == nil && rule.Tree == nil && rule.Part == nil && rule.Run == nil
}

// perFile takes out the findings that [per-file-ignores] names.
func (c *checker) perFile(file *source.File, findings []Finding, settings *Settings) (kept []Finding, hidden int) {
	if len(settings.PerFile) == 0 {
		return findings, 0
	}
	absolute := c.options.Settings.Absolute(file.Path)
	for _, finding := range findings {
		ignored := false
		for _, entry := range settings.PerFile {
			ignored = ignored || entry.hides(finding, absolute)
		}
		if ignored {
			hidden++
		} else {
			kept = append(kept, finding)
		}
	}
	return kept, hidden
}

func (p *PerFileIgnore) hides(finding Finding, absolute string) bool {
	if p.key != "" && finding.Key != p.key && !isBelow(finding.Key, p.key) || !p.files.covers(absolute) {
		return false
	}
	for _, name := range p.names {
		if belongs(finding.Rule, name) {
			return true
		}
	}
	return false
}

func isBelow(key, above string) bool {
	return len(key) > len(above) && key[:len(above)] == above && key[len(above)] == '.'
}

// subject is one parsed file.
type subject struct {
	view   *workspace.View
	file   *source.File
	names  bool           // somebody asks what names of a Python file mean
	tree   *syntax.File   // of a Python file
	module *pyscan.Module // of one whose names are asked for
	trees  []*configs.Tree
	script *configs.Script
}
