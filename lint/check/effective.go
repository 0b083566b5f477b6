package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
)

// Effective is what holds for one file or folder, and why.
type Effective struct {
	Files    []string // the settings file, then those that it extends; none where the defaults hold
	Settings []EffectiveSetting
	Rules    []EffectiveRule
	Excluded bool // a file that the settings leave out
}

// EffectiveSetting is one key. From is the line of a file, a flag, or "default".
type EffectiveSetting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// EffectiveRule is a rule, and whether it is on.
type EffectiveRule struct {
	Name     string `json:"rule"`
	On       bool   `json:"on"`
	Severity string `json:"severity"`
}

const fromDefault = "default"

// Effective tells what holds for a file or the files of a folder; see Err for what is wrong with the settings.
func (r *Resolver) Effective(name string, folder bool) Effective {
	absolute := r.Absolute(name)
	of := absolute
	if !folder {
		of = path.Dir(absolute)
	}
	s := r.For(of)
	e := Effective{Excluded: r.Excludes(absolute)}
	if s.Path != "" {
		e.Files = append([]string{s.Path}, s.Extends...)
	}
	add := func(key string, value any, flag string, given bool) {
		from := cmp.Or(s.origins[key], fromDefault)
		if given {
			from = flag
		}
		e.Settings = append(e.Settings, EffectiveSetting{key, value, from})
	}
	flags := &r.Flags
	selected := s.Select
	if selected == nil {
		selected = []string{groupRecommended}
	}
	if len(flags.Select) > 0 {
		add("select", flags.Select, "--select", true)
	} else {
		add("select", selected, "", false)
		add("extend-select", texts(s.ExtendSelect), "", false)
		add("ignore", texts(s.Ignore), "", false)
	}
	for flag, names := range map[string][]string{"extend-select": flags.ExtendSelect, "ignore": flags.Ignore} {
		if len(names) > 0 {
			add(flag, names, "--"+flag, true)
		}
	}
	add("exclude", texts(s.Exclude.lines), "", false)
	if len(flags.Exclude) > 0 {
		add("exclude", flags.Exclude, "--exclude", true)
	}
	add("fail-on", s.FailOn.String(), "--fail-on", flags.FailOn != FailOnDefault)
	if s.Baseline != "" {
		add("baseline", r.shown(s.Baseline), "--baseline", flags.Baseline != "")
	}
	add("require-reason", s.RequireReason, "", false)
	add("tests", s.Tests, "--tests", flags.Tests)
	if s.RulesVersion != "" {
		add("rules-version", s.RulesVersion, "", false)
	}
	r.effectiveTables(&e, s, absolute, folder)
	slices.SortStableFunc(e.Settings, func(a, b EffectiveSetting) int { return cmp.Compare(settingRank(a.Key), settingRank(b.Key)) })
	for _, rule := range append(slices.Clip(r.Rules), s.customRules()...) {
		severity := rule.Severity
		if changed, is := s.Severity[rule.Name]; is {
			severity = changed
		}
		e.Rules = append(e.Rules, EffectiveRule{rule.Name, s.selected[rule], severity.String()})
	}
	slices.SortFunc(e.Rules, func(a, b EffectiveRule) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

// settingRank is the place of a key in the list: as the reader of settings has them, tables last.
func settingRank(key string) int {
	table, _, _ := strings.Cut(key, ".")
	return slices.Index([]string{"select", "extend-select", "ignore", "exclude", "fail-on", "baseline", "require-reason", "tests", "rules-version",
		"per-file-ignores", "severity", "run", "known", "rules", "custom"}, table)
}

// effectiveTables adds the entries of tables. The facts are those of the file in question, whichever table they come from.
func (r *Resolver) effectiveTables(e *Effective, s *Settings, absolute string, folder bool) {
	add := func(table, key string, value any) {
		e.Settings = append(e.Settings, EffectiveSetting{table + "." + key, value, cmp.Or(s.origins[table+"."+key], s.origins[table])})
	}
	for _, entry := range s.PerFile {
		pattern := strings.Join(entry.files.lines, "")
		if entry.key != "" {
			pattern += ":" + entry.key
		}
		if folder || entry.files.covers(absolute) {
			add("per-file-ignores", pattern, entry.names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Severity)) {
		add("severity", name, s.Severity[name].String())
	}
	given := s.facts(absolute)
	for _, fact := range facts {
		value, _ := plan.Lookup(given, fact.value)
		known, ok := value.Any()
		if !ok {
			continue
		}
		from := "--" + fact.name
		for _, at := range value.From() {
			if file, err := r.Snapshot.File(at.Path); err == nil {
				from = fmt.Sprintf("%s:%d", at.Path, file.Position(at.Span.Start).Line)
			}
		}
		e.Settings = append(e.Settings, EffectiveSetting{"run." + fact.name, known, from})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Known)) {
		add("known", name, s.Known[name])
	}
	for _, rule := range slices.Sorted(maps.Keys(s.Options)) {
		for _, option := range slices.Sorted(maps.Keys(s.Options[rule])) {
			e.Settings = append(e.Settings, EffectiveSetting{"rules." + rule + "." + option, s.Options[rule][option], s.origins["rules."+rule]})
		}
	}
	for i := range s.Custom {
		if own := &s.Custom[i]; folder || own.all || own.files.covers(absolute) {
			e.Settings = append(e.Settings, EffectiveSetting{"custom." + own.Rule.Name, own.Rule.Summary(), own.from})
		}
	}
}

func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// TOML writes a value as it stands in a settings file. JSON's texts, numbers, truth values and lists are TOML's as well.
func (e EffectiveSetting) TOML() string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e.Value); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(e.Value))
	}
	return strings.ReplaceAll(strings.TrimSpace(text.String()), `","`, `", "`)
}

// TOMLKey is the key with its last part in quotes where that is needed.
func (e EffectiveSetting) TOMLKey() string {
	table, rest, found := strings.Cut(e.Key, ".")
	if !found || table == "rules" || strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" {
		return e.Key
	}
	return table + "." + EffectiveSetting{Value: rest}.TOML()
}

func (t Threshold) String() string {
	switch t {
	case FailOnInfo:
		return "info"
	case FailOnError:
		return "error"
	case FailNever:
		return "never"
	}
	return "warning"
}
