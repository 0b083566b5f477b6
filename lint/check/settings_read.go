package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// settingsReader turns the tree of a settings file into Settings. Whatever it does not understand is a fault with its place:
// a setting that is silently not in force is worse than a run that stops.
type settingsReader struct {
	resolver *Resolver
	file     *source.File
	shown    string
	name     string // of the file, absolute
	settings *Settings
}

func (r *settingsReader) fail(at source.Place, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.resolver.faults = append(r.resolver.faults, r.at(at)+": "+message)
	r.resolver.places = append(r.resolver.places, SettingsFault{r.name, at.Span, message})
}

// at is a place as FILE:LINE:COLUMN.
func (r *settingsReader) at(at source.Place) string {
	position := r.file.Position(at.Span.Start)
	return fmt.Sprintf("%s:%d:%d", r.shown, position.Line, position.Column)
}

// keys reads a table of known keys.
func (r *settingsReader) keys(table *configs.Node, what string, known map[string]func(*configs.Node)) {
	if table == nil {
		return
	}
	if table.Kind != configs.Mapping {
		r.fail(table.At, "%s must be a table", what)
		return
	}
	for _, item := range table.Items {
		if read := known[item.Key]; read != nil {
			read(item.Value)
		} else {
			r.fail(item.KeyAt, "unknown key %q%s", item.Key, didYouMean(item.Key, sortedKeys(known)))
		}
	}
}

// didYouMean is a clause for the end of a message; empty where nothing is near.
func didYouMean(word string, words []string) string {
	if near := nearest.Of(word, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// root reads the whole file.
func (r *settingsReader) root(table *configs.Node) {
	if own := table.Get("custom"); own != nil {
		r.custom(own) // first: other keys name these rules
	}
	r.keys(table, "the settings", r.rootKeys())
	r.remember(table)
}

func (r *settingsReader) where(at source.Place) string {
	return fmt.Sprintf("%s:%d", r.shown, r.file.Position(at.Span.Start).Line)
}

// remember notes where each key is written, and the entries of tables.
func (r *settingsReader) remember(table *configs.Node) {
	if table == nil || table.Kind != configs.Mapping {
		return
	}
	if r.settings.origins == nil {
		r.settings.origins = map[string]string{}
	}
	for _, item := range table.Items {
		for key := range r.settings.origins { // of the file that this one extends
			if strings.HasPrefix(key, item.Key+".") {
				delete(r.settings.origins, key)
			}
		}
		r.settings.origins[item.Key] = r.where(item.KeyAt)
		if item.Value.Kind == configs.Mapping {
			for _, entry := range item.Value.Items {
				r.settings.origins[item.Key+"."+entry.Key] = r.where(entry.KeyAt)
			}
		}
	}
}

// rootKeys are all keys of the settings.
func (r *settingsReader) rootKeys() map[string]func(*configs.Node) {
	s := r.settings
	return map[string]func(*configs.Node){
		"extend":        func(*configs.Node) {}, // followed before
		"select":        func(n *configs.Node) { s.Select = r.rules(n, true) },
		"extend-select": func(n *configs.Node) { s.ExtendSelect = r.rules(n, true) },
		"ignore":        func(n *configs.Node) { s.Ignore = r.rules(n, false) },
		"exclude":       func(n *configs.Node) { s.Exclude = r.patterns(n.At, r.texts(n)) },
		"fail-on": func(n *configs.Node) {
			if name, ok := r.text(n); ok {
				if s.FailOn, ok = ParseThreshold(name); !ok {
					r.fail(n.At, "fail-on must be error, warning, info or never, not %q", name)
				}
			}
		},
		"baseline": func(n *configs.Node) {
			if name, ok := r.text(n); ok {
				if name == "" {
					r.fail(n.At, "baseline: an empty name")
					return
				}
				if s.Baseline, s.baselineAt = path.Join(s.Folder, name), r.at(n.At); !r.resolver.reaches(r.name, s.Baseline) {
					r.fail(n.At, "%s lies outside of the project, not read", r.resolver.shown(s.Baseline))
				}
			}
		},
		"tests":            func(n *configs.Node) { s.Tests, _ = r.truth(n) },
		"require-reason":   func(n *configs.Node) { s.RequireReason, _ = r.truth(n) },
		"rules-version":    r.rulesVersion,
		"per-file-ignores": r.perFile,
		"severity":         r.severity,
		"run":              r.run,
		"known":            r.known,
		"rules":            r.options,
		"custom":           func(*configs.Node) {}, // read before
	}
}

// releaseForm is what rules-version may look like.
const releaseForm = `^[0-9]+(\.[0-9]+){1,2}$`

var isRelease = source.Pattern(releaseForm)

// rulesVersion reads the release whose rules are on. One that this trainvet does not know of would silently be something else: the rules
// of later releases are missing here, and before the first one there were none.
func (r *settingsReader) rulesVersion(n *configs.Node) {
	version, ok := r.text(n)
	if !ok {
		return
	}
	switch oldest := r.resolver.oldest(); {
	case !isRelease().MatchString(version):
		r.fail(n.At, "rules-version must be a release such as \"1.4\", not %q", version)
	case r.resolver.Release != "" && newer(version, r.resolver.Release):
		r.fail(n.At, "rules-version is %s, and this is trainvet %s, which does not know the rules of later releases; upgrade it, or write %q", version, r.resolver.Release, Minor(r.resolver.Release))
	case oldest != "" && newer(oldest, version):
		r.fail(n.At, "rules-version is %s, and the first release with rules was %s", version, oldest)
	}
	r.settings.RulesVersion = version
}

// oldest is the release of the first rules; "" where there are none.
func (r *Resolver) oldest() (first string) {
	for _, rule := range r.Rules {
		if first == "" || newer(first, rule.Since) {
			first = rule.Since
		}
	}
	return first
}

// Minor is a release without its last number, as it stands in rules-version: 0.1.3 -> 0.1.
func Minor(release string) string {
	if parts := strings.SplitN(release, ".", 3); len(parts) == 3 {
		return parts[0] + "." + parts[1]
	}
	return release
}

// patterns reads patterns relative to the settings file.
func (r *settingsReader) patterns(at source.Place, lines []string) patterns {
	if len(lines) > maxPatterns {
		r.fail(at, "more than %d patterns", maxPatterns)
		return patterns{}
	}
	if bad := malformed(lines); bad != "" {
		r.fail(at, "%q is no pattern", bad)
	}
	return newPatterns(r.settings.Folder, lines)
}

func (r *settingsReader) perFile(table *configs.Node) {
	r.settings.PerFile = nil
	r.each(table, "per-file-ignores", func(item configs.Item) {
		glob, key, _ := strings.Cut(item.Key, ":")
		r.settings.PerFile = append(r.settings.PerFile, PerFileIgnore{r.patterns(item.KeyAt, []string{glob}), key, r.rules(item.Value, true)})
	})
}

func (r *settingsReader) severity(table *configs.Node) {
	r.settings.Severity = map[string]lint.Severity{}
	r.each(table, "severity", func(item configs.Item) {
		if all := append(slices.Clip(r.resolver.Rules), r.settings.customRules()...); lint.Find(all, item.Key) == nil {
			r.fail(item.KeyAt, "unknown rule %q%s", item.Key, didYouMean(item.Key, namesOf(all)))
			return
		}
		if name, ok := r.text(item.Value); ok {
			if r.settings.Severity[item.Key], ok = lint.ParseSeverity(name); !ok {
				r.fail(item.Value.At, "a severity must be error, warning or info, not %q", name)
			}
		}
	})
}

func (r *settingsReader) known(table *configs.Node) {
	r.settings.Known = map[string]string{}
	r.each(table, "known", func(item configs.Item) {
		meaning, ok := r.text(item.Value)
		if properties := workspace.Properties(); ok && !strings.Contains(meaning, ".") && !slices.Contains(properties, meaning) {
			r.fail(item.Value.At, "a meaning is the dotted name of a library's function or class, or %s, not %q%s", strings.Join(properties, ", "), meaning, didYouMean(meaning, properties))
		} else if ok {
			r.settings.Known[item.Key] = meaning
		}
	})
}

func (r *settingsReader) options(table *configs.Node) {
	r.settings.Options = map[string]map[string]any{}
	r.each(table, "rules", func(of configs.Item) {
		rule := lint.Find(r.resolver.Rules, of.Key)
		if rule == nil {
			r.fail(of.KeyAt, "unknown rule %q%s", of.Key, didYouMean(of.Key, namesOf(r.resolver.Rules)))
			return
		}
		given := map[string]any{}
		known := map[string]func(*configs.Node){}
		for _, option := range rule.Options {
			known[option.Name] = func(n *configs.Node) {
				if value := r.option(n, option); value != nil {
					given[option.Name] = value
				}
			}
		}
		r.keys(of.Value, "rules."+rule.Name, known)
		r.settings.Options[rule.Name] = given
	})
}

// option reads a value of the type of the option's default; nil for what is wrong, after saying so.
func (r *settingsReader) option(n *configs.Node, option lint.Option) any {
	switch option.Default.(type) {
	case string:
		text, ok := r.text(n)
		if ok && len(option.Choices) > 0 && !slices.Contains(option.Choices, text) {
			r.fail(n.At, "%s must be one of %s, not %q", option.Name, strings.Join(option.Choices, ", "), text)
			ok = false
		}
		if ok {
			return text
		}
	case bool:
		if truth, ok := r.truth(n); ok {
			return truth
		}
	case int64:
		if number, ok := r.whole(n); ok {
			return number
		}
	case float64:
		if number, ok := r.number(n); ok {
			return number
		}
	case []string:
		return r.texts(n)
	}
	return nil
}

// Facts names the settings of the table [run], which are also flags, and the values of the plan that they give.
var facts = [...]struct {
	name, value string
	most        int64 // of numbers, which start at 1
}{
	{"world-size", "parallel.world", maxRanks},
	{"device", "device", 0},
	{"model", "model.name", 0},
	{"seq-len", "batch.seq_length", maxSeqLength},
	{"warmup-unit", "schedule.warmup_unit", 0},
}

// Bounds of facts: some hundred times the largest machines, and the longest contexts, that there are.
const (
	maxRanks     = 1 << 24
	maxSeqLength = 1 << 32 // tokens
)

// SetFact puts a fact that no file of the run holds (world-size, device, model, seq-len, warmup-unit) into a plan, as given by
// the user. The error says what is wanted, or which name was perhaps meant.
func SetFact(p *plan.Plan, name string, value any, at ...source.Place) error {
	for _, fact := range facts {
		if fact.name != name {
			continue
		}
		if number, ok := value.(int64); ok && (number < 1 || number > fact.most) {
			return fmt.Errorf("wanted a whole number from 1 to %d, not %d", fact.most, number)
		}
		text, isText := value.(string)
		if !isText && (name == "device" || name == "model") {
			return fmt.Errorf("must be a text")
		}
		switch name {
		case "device":
			if _, err := catalog.Device(text); err != nil {
				return err
			}
		case "model":
			if _, err := catalog.Model(text); err != nil {
				return err
			}
		}
		return plan.Set(p, fact.value, value, plan.IsFlag, "", at...)
	}
	return fmt.Errorf("unknown fact %q", name)
}

// run reads [run], or the list of tables [[run]].
func (r *settingsReader) run(node *configs.Node) {
	s := r.settings
	s.Run, s.Runs = plan.Plan{}, nil
	if node.Kind != configs.Sequence {
		r.keys(node, "run", r.runKeys(&s.Run))
		return
	}
	for _, item := range node.Items {
		next := RunFacts{all: true}
		known := r.runKeys(&next.plan)
		known["name"] = func(n *configs.Node) { next.Name, _ = r.text(n) }
		known["files"] = func(n *configs.Node) { next.all, next.files = false, r.patterns(n.At, r.texts(n)) }
		r.keys(item.Value, "run", known)
		s.Runs = append(s.Runs, next)
	}
}

func (r *settingsReader) runKeys(into *plan.Plan) map[string]func(*configs.Node) {
	known := map[string]func(*configs.Node){}
	for _, fact := range facts {
		known[fact.name] = func(n *configs.Node) {
			var value any
			var ok bool
			if fact.name == "world-size" || fact.name == "seq-len" {
				value, ok = r.whole(n)
			} else {
				value, ok = r.text(n)
			}
			if ok {
				if err := SetFact(into, fact.name, value, source.Place{Path: r.shown, Span: n.At.Span}); err != nil {
					r.fail(n.At, "%s: %s", fact.name, err)
				}
			}
		}
	}
	return known
}

// each reads a table with keys of the user's own.
func (r *settingsReader) each(table *configs.Node, what string, read func(configs.Item)) {
	if table.Kind != configs.Mapping {
		r.fail(table.At, "%s must be a table", what)
		return
	}
	for _, item := range table.Items {
		read(item)
	}
}

// rules reads a list of names of rules and families, with groups also of groups.
func (r *settingsReader) rules(n *configs.Node, groups bool) []string {
	names := r.texts(n)
	for i, name := range names {
		if message := unknownName(append(slices.Clip(r.resolver.Rules), r.settings.customRules()...), name, groups); message != "" {
			at := n.At
			if i < len(n.Items) {
				at = n.Items[i].Value.At
			}
			r.fail(at, "%s", message)
		}
	}
	return names
}

// unknownName says what is wrong with the name of a rule or family (or group); "" when it is known.
func unknownName(rules []*lint.Rule, name string, groups bool) string {
	for _, rule := range rules {
		if rule.Name == name || rule.Family == name {
			return ""
		}
	}
	isGroup := name == groupRecommended || name == groupStrict || name == groupAll
	if isGroup && !groups {
		return fmt.Sprintf("%q is a group, and only rules and families can be named here; choose groups with select", name)
	}
	if name == lint.CustomFamily || isGroup {
		return ""
	}
	known := namesOf(rules)
	if groups {
		known = append(known, groupRecommended, groupStrict, groupAll)
	}
	return fmt.Sprintf("unknown rule %q%s", name, didYouMean(name, known))
}

// namesOf are the names of all rules, then those of their families.
func namesOf(rules []*lint.Rule) []string {
	var names, families []string
	for _, rule := range rules {
		names = append(names, rule.Name)
		if !slices.Contains(families, rule.Family) {
			families = append(families, rule.Family)
		}
	}
	return append(names, families...)
}

// checkNames notes the names in a flag that no rule has. A settings file may still declare one.
func (r *Resolver) checkNames(names []string, flag string, groups bool) {
	for _, name := range names {
		if message := unknownName(r.Rules, name, groups); message != "" {
			r.unknown[name] = flag + ": " + message
		}
	}
}

func (r *settingsReader) text(n *configs.Node) (string, bool) {
	if n.Kind != configs.Scalar || n.Style == configs.Plain {
		r.fail(n.At, "must be a text in quotes")
		return "", false
	}
	return n.Raw, true
}

func (r *settingsReader) texts(n *configs.Node) []string {
	texts := []string{}
	if n.Kind != configs.Sequence {
		r.fail(n.At, "must be a list of texts")
		return texts
	}
	for _, item := range n.Items {
		if text, ok := r.text(item.Value); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (r *settingsReader) truth(n *configs.Node) (bool, bool) {
	if n.Kind == configs.Scalar && n.Style == configs.Plain && (n.Raw == "true" || n.Raw == "false") {
		return n.Raw == "true", true
	}
	r.fail(n.At, "must be true or false")
	return false, false
}

func (r *settingsReader) whole(n *configs.Node) (int64, bool) {
	if n.Kind == configs.Scalar && n.Style == configs.Plain {
		if number, err := strconv.ParseInt(strings.ReplaceAll(n.Raw, "_", ""), 0, 64); err == nil {
			return number, true
		}
	}
	r.fail(n.At, "must be a whole number")
	return 0, false
}
