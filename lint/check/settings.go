package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Settings are what one settings file says, or the defaults.
type Settings struct {
	Path    string   // of the file, for messages; "" where there is none
	Extends []string // the files that it extends, nearest first
	Folder  string   // absolute; patterns are relative to it

	Select, ExtendSelect, Ignore []string // names of rules, families and groups
	Exclude                      patterns
	FailOn                       Threshold
	Baseline                     string // absolute name of the file, or ""
	baselineAt                   string // where it is named, as FILE:LINE:COLUMN; "" for the flag
	RequireReason                bool
	Tests                        bool // check what lies among tests as well
	PerFile                      []PerFileIgnore
	Severity                     map[string]lint.Severity
	Run                          plan.Plan         // facts that no file holds, of every run
	Runs                         []RunFacts        // those of some runs
	Known                        map[string]string // what in-house names mean
	RulesVersion                 string
	Options                      map[string]map[string]any // of rules, by rule and option
	Custom                       []CustomRule              // rules of its own

	flags    plan.Plan           // facts given by flags
	origins  map[string]string   // of keys and of the entries of tables ("severity.NAME"), where they are written
	selected map[*lint.Rule]bool // filled in by the resolver
}

// CustomRule is a rule that the settings declare.
type CustomRule struct {
	Rule  *lint.Rule
	files patterns
	all   bool   // it names no files
	from  string // where it is declared
}

// customRules are the rules of its own.
func (s *Settings) customRules() []*lint.Rule {
	rules := make([]*lint.Rule, len(s.Custom))
	for i := range s.Custom {
		rules[i] = s.Custom[i].Rule
	}
	return rules
}

// RunFacts are what one table [[run]] says of the runs that start from its files.
type RunFacts struct {
	Name  string
	files patterns
	all   bool // it names no files
	plan  plan.Plan
}

// facts are what is known of a run that starts from a file: what the flags say, then the tables [[run]] that cover it in their
// order, then [run].
func (s *Settings) facts(absolute string) *plan.Plan {
	if len(s.Runs) == 0 {
		return &s.Run
	}
	var parts []*plan.Plan
	for i := range s.Runs {
		if s.Runs[i].all || s.Runs[i].files.covers(absolute) {
			parts = append(parts, &s.Runs[i].plan)
		}
	}
	merged, _ := plan.Merge(append(append([]*plan.Plan{&s.flags}, parts...), &s.Run)...)
	return &merged
}

// PerFileIgnore hides rules in the files of a pattern, or at one key (and what lies below it) of these files.
type PerFileIgnore struct {
	files patterns
	key   string
	names []string
}

// Threshold is the mildest severity that fails a run.
type Threshold uint8

// The thresholds; FailOnDefault stands for FailOnWarning.
const (
	FailOnDefault Threshold = iota
	FailOnInfo
	FailOnWarning
	FailOnError
	FailNever
)

// ParseThreshold reads info, warning, error or never.
func ParseThreshold(name string) (Threshold, bool) {
	switch name {
	case "info":
		return FailOnInfo, true
	case "warning":
		return FailOnWarning, true
	case "error":
		return FailOnError, true
	case "never":
		return FailNever, true
	}
	return FailOnDefault, false
}

// Fails reports whether a finding of this severity fails the run.
func (t Threshold) Fails(severity lint.Severity) bool {
	switch t {
	case FailOnInfo:
		return severity >= lint.Info
	case FailOnError:
		return severity >= lint.Error
	case FailNever:
		return false
	}
	return severity >= lint.Warning
}

// SettingsError lists what is wrong with the settings; nothing is checked then.
type SettingsError []string

func (e SettingsError) Error() string { return strings.Join(e, "\n") }

// settingsFiles are the names of settings files; the first one in a folder holds.
var settingsFiles = [...]string{"trainvet.toml", ".trainvet.toml", "pyproject.toml"}

// IsSettingsFile reports whether files of this name hold settings of trainvet.
func IsSettingsFile(name string) bool {
	for _, known := range settingsFiles {
		if path.Base(name) == known {
			return true
		}
	}
	return false
}

// Resolver finds the settings that hold for a file: the nearest ones above it, changed by the flags.
type Resolver struct {
	Snapshot *workspace.Snapshot
	Dir      string       // current folder, absolute, with forward slashes
	Rules    []*lint.Rule // all there are
	Flags    Flags
	Declare  func(lint.Declared) (*lint.Rule, error) // makes the rules of [[custom]]; nil: there are none
	Release  string                                  // of trainvet, which rules-version may not be beyond; "": any will do

	// Elsewhere says that Dir is not the current folder of the process: what is walked is looked up from Dir.
	Elsewhere bool
	// Lenient goes on with settings that have faults: in place of a file with one hold the settings that it had in Last, or
	// else the defaults. Err is nil then, and Faults tells.
	Lenient bool
	Last    *Resolver

	lastMu  sync.Mutex // of Last, once the resolver is in use
	mu      sync.Mutex
	folders map[string]*Settings
	files   map[string]*Settings
	faults  SettingsError
	unknown map[string]string // names in flags that no rule has, unless a settings file declares it, and the message about each
	places  []SettingsFault
}

// SettingsFault is something that is wrong with a settings file.
type SettingsFault struct {
	Path    string      // absolute
	At      source.Span // in the text of the file; empty and at its start where no place is to blame
	Message string
}

// Faults are what is wrong with the settings files met so far.
func (r *Resolver) Faults() []SettingsFault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.places)
}

// Uses reports whether a file of that absolute name was read for the settings, or would be if it were there.
func (r *Resolver) Uses(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, read := r.files[name]
	return read || IsSettingsFile(name)
}

// Detach lets go of Last: one is enough, and what was taken over from it is held.
func (r *Resolver) Detach() {
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	r.Last = nil
}

// instead is what holds in place of a settings file with faults, where that is asked for.
func (r *Resolver) instead(name string, faulty *Settings) *Settings {
	if !r.Lenient {
		return faulty
	}
	r.lastMu.Lock()
	before := r.Last
	r.lastMu.Unlock()
	if before != nil {
		before.mu.Lock()
		last := before.files[name]
		before.mu.Unlock()
		if last != nil {
			return last
		}
	}
	return &Settings{Path: faulty.Path, Folder: faulty.Folder}
}

// Flags are the settings given on the command line; they win over the files.
type Flags struct {
	Config                                string // the one settings file that holds everywhere
	Isolated                              bool   // no settings file holds
	Tests                                 bool   // check what lies among tests as well
	Select, ExtendSelect, Ignore, Exclude []string
	FailOn                                Threshold
	Baseline                              string // file
	Run                                   plan.Plan
}

// Absolute is a name as seen from the current folder.
func (r *Resolver) Absolute(name string) string {
	if source.IsAbsolute(name) {
		return source.Clean(name)
	}
	return source.Join(r.Dir, name)
}

// shown is a name as people at the current folder would write it.
func (r *Resolver) shown(name string) string {
	if relative, inside := below(r.Dir, name); inside {
		return relative
	}
	return name
}

// Err tells what is wrong with the settings met so far, and with the flags; nil when nothing is.
func (r *Resolver) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Lenient {
		return nil
	}
	faults := slices.Clone(r.faults)
	for _, name := range sortedKeys(r.unknown) {
		faults = append(faults, r.unknown[name])
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// For gives the settings that hold for the files in a folder. It never gives nil; see Err.
func (r *Resolver) For(folder string) *Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(folder)
}

// Facts are what the user said about a run that starts from the named file.
func (r *Resolver) Facts(file string) *plan.Plan { return r.of(file).facts(r.Absolute(file)) }

// Known tells what in-house names mean in a file.
func (r *Resolver) Known(file string) map[string]string { return r.of(file).Known }

func (r *Resolver) find(folder string) *Settings {
	if r.folders == nil {
		r.folders, r.files, r.unknown = map[string]*Settings{}, map[string]*Settings{}, map[string]string{}
		r.checkNames(r.Flags.Select, "--select", true)
		r.checkNames(r.Flags.ExtendSelect, "--extend-select", true)
		r.checkNames(r.Flags.Ignore, "--ignore", false)
		if bad := malformed(r.Flags.Exclude); bad != "" {
			r.faults = append(r.faults, fmt.Sprintf("--exclude: %q is no pattern", bad))
		}
	}
	asked := folder
	if found := r.folders[asked]; found != nil { // most ask by the name that the check has for it
		return found
	}
	folder = r.Absolute(folder)
	if r.Flags.Isolated || r.Flags.Config != "" {
		folder = "" // one for all
	}
	if found := r.folders[folder]; found != nil {
		r.folders[asked] = found
		return found
	}
	var found *Settings
	switch {
	case r.Flags.Isolated:
		found = r.finish(&Settings{Folder: r.Dir})
	case r.Flags.Config != "":
		if found = r.load(r.Absolute(r.Flags.Config), nil); found == nil {
			r.faults = append(r.faults, r.Flags.Config+": holds no [tool.trainvet]")
			found = &Settings{}
		}
		found = r.finish(found)
	default:
		if found = r.own(folder); found == nil {
			if above := source.Dir(folder); above != folder {
				found = r.find(above)
			} else {
				found = r.finish(&Settings{Folder: r.Dir})
			}
		} else {
			found = r.finish(found)
		}
	}
	r.folders[asked], r.folders[folder] = found, found
	return found
}

// own reads the settings file of a folder itself; nil where it has none.
func (r *Resolver) own(folder string) *Settings {
	for _, name := range settingsFiles {
		name = source.Join(folder, name)
		if kind := r.Snapshot.Kind(name); kind == workspace.Absent || kind == workspace.Folder {
			continue
		}
		if found := r.load(name, nil); found != nil {
			return found
		}
	}
	return nil
}

// Bounds of settings.
const (
	maxSettings = 1 << 20 // bytes of a file
	maxExtends  = 16      // files that extend each other
	maxPatterns = 1000    // of one list
	maxRegexp   = 4 << 10 // bytes of a regular expression
)

// load reads a settings file and those that it extends; nil for a pyproject.toml that says nothing about trainvet.
func (r *Resolver) load(name string, inside []string) *Settings {
	if found, known := r.files[name]; known {
		return found
	}
	shown := r.shown(name)
	fail := func(reason string) *Settings {
		r.faults = append(r.faults, shown+": "+reason)
		r.places = append(r.places, SettingsFault{Path: name, Message: reason})
		return r.instead(name, &Settings{Path: shown, Folder: source.Dir(name)})
	}
	file, err := r.Snapshot.File(name)
	if err != nil {
		return fail(err.Error())
	}
	if len(file.Text) > maxSettings {
		return fail(fmt.Sprintf("larger than %d MB, not read", maxSettings>>20))
	}
	if file.Kind != source.TOML {
		file = &source.File{Path: file.Path, Kind: source.TOML, Text: file.Text, Segments: file.Segments, Raw: file.Raw}
	}
	tree := configs.ParseTOML(file)
	read := settingsReader{resolver: r, file: file, shown: shown, name: name}
	sound := len(r.faults)
	if path.Base(name) == "pyproject.toml" {
		if tree.Root.Get("tool", "trainvet") == nil {
			r.files[name] = nil // whatever is wrong with the rest is for others to say
			return nil
		}
	}
	for _, fault := range tree.Errors {
		read.fail(fault.At, "%s", fault.Message)
	}
	root := tree.Root
	if path.Base(name) == "pyproject.toml" {
		root = root.Get("tool", "trainvet")
	}
	settings := &Settings{Path: shown, Folder: source.Dir(name)}
	if base := root.Get("extend"); base != nil {
		if extended, ok := read.text(base); ok {
			var from *Settings
			target := source.Join(settings.Folder, extended)
			inside = append(inside, name)
			switch {
			case slices.Contains(inside, target):
				read.fail(base.At, "%s extends itself", r.shown(target))
			case len(inside) > maxExtends:
				read.fail(base.At, "%s: extends more than %d files, one after another", r.shown(target), maxExtends)
			case !r.reaches(name, target):
				read.fail(base.At, "%s lies outside of the project, not read", r.shown(target))
			case r.Snapshot.Kind(target) == workspace.Absent:
				read.fail(base.At, "%s: no such file", r.shown(target))
			default:
				if from = r.load(target, inside); from == nil {
					read.fail(base.At, "%s holds no [tool.trainvet]", extended)
				}
			}
			if from != nil {
				inherited := *from
				inherited.Path, inherited.Folder = settings.Path, settings.Folder
				inherited.Extends = append([]string{from.Path}, from.Extends...)
				inherited.origins = maps.Clone(from.origins)
				inherited.Custom = slices.Clone(from.Custom)
				settings = &inherited
			}
		}
	}
	read.settings = settings
	if len(tree.Errors) == 0 {
		read.root(root)
	}
	if len(r.faults) > sound {
		settings = r.instead(name, settings)
	}
	r.files[name] = settings
	return settings
}

// reaches reports whether a settings file may name another file: one in the same checkout or, without one, below
// the current folder or the folder above its own. Settings that the user names may name any.
func (r *Resolver) reaches(name, target string) bool {
	if r.Flags.Config != "" {
		return true
	}
	folder := source.Dir(name)
	for at := folder; ; at = source.Dir(at) {
		if r.Snapshot.Kind(source.Join(at, ".git")) != workspace.Absent {
			_, in := below(at, target)
			return in
		}
		if source.Dir(at) == at {
			break
		}
	}
	_, from := below(r.Dir, name)
	_, to := below(r.Dir, target)
	above := source.Dir(folder)
	_, near := below(above, target)
	return from && to || near && above != "/" || source.Dir(target) == folder
}

// finish applies the flags and works out which rules are on.
func (r *Resolver) finish(s *Settings) *Settings {
	done := *s
	done.Tests = done.Tests || r.Flags.Tests
	if r.Flags.FailOn != FailOnDefault {
		done.FailOn = r.Flags.FailOn
	}
	if r.Flags.Baseline != "" {
		done.Baseline, done.baselineAt = r.Absolute(r.Flags.Baseline), ""
	}
	done.flags = r.Flags.Run
	done.Run, _ = plan.Merge(&r.Flags.Run, &s.Run)
	done.selected = r.choose(&done)
	return &done
}

// names of groups of rules.
const (
	groupRecommended = "recommended"
	groupStrict      = "strict"
	groupAll         = "all"
)

// choose gives the rules that are on. `--select` on the command line takes the place of the file's whole choice; without
// it the flags add to and take from what the file chose.
func (r *Resolver) choose(s *Settings) map[*lint.Rule]bool {
	on := map[*lint.Rule]bool{}
	all := append(slices.Clip(r.Rules), s.customRules()...)
	set := func(names []string, value bool) {
		for _, rule := range all {
			for _, name := range names {
				if belongs(rule, name) {
					on[rule] = value
				}
			}
		}
	}
	if len(r.Flags.Select) > 0 {
		set(r.Flags.Select, true)
	} else {
		chosen := s.Select
		if chosen == nil {
			chosen = []string{groupRecommended}
		}
		set(chosen, true)
		set(s.ExtendSelect, true)
		for _, rule := range s.customRules() {
			on[rule] = true // whoever declares a rule wants it
		}
		for _, rule := range r.Rules {
			if s.RulesVersion != "" && newer(rule.Since, s.RulesVersion) && !slices.Contains(chosen, rule.Name) && !slices.Contains(s.ExtendSelect, rule.Name) {
				on[rule] = false
			}
		}
		set(s.Ignore, false)
	}
	if rule := lint.Find(r.Rules, syntaxError); rule != nil && !named(rule, s.Ignore) {
		on[rule] = true // whatever is selected: a file that was not understood must not look clean
	}
	set(r.Flags.ExtendSelect, true)
	set(r.Flags.Ignore, false)
	return on
}

// belongs reports whether a name (of a rule, a family or a group) stands for this rule.
func belongs(rule *lint.Rule, name string) bool {
	switch name {
	case rule.Name, rule.Family, groupAll:
		return true
	case groupRecommended:
		return !rule.Strict
	case groupStrict:
		return rule.Strict
	}
	return false
}

func named(rule *lint.Rule, names []string) bool {
	for _, name := range names {
		if name == rule.Name || name == rule.Family {
			return true
		}
	}
	return false
}

// newer reports whether release a came after release b ("0.10" after "0.9").
func newer(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			fmt.Sscan(x[i], &m)
		}
		if i < len(y) {
			fmt.Sscan(y[i], &n)
		}
		if m != n {
			return m > n
		}
	}
	return false
}
