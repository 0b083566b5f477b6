package session

import (
	"context"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Project is a folder whose files are checked together, as `trainvet check` does it when it is started there: a folder of the
// workspace, or the one around a document that lies in none. It is immutable; every change makes the next one.
type Project struct {
	Root     string // absolute, with forward slashes
	Loose    bool   // made for documents outside of all folders of the workspace
	rules    ruleSet
	snapshot *workspace.Snapshot
	settings *check.Resolver
	cache    *check.Cache
	overlay  map[string]*source.File // the text of editors, by absolute name; only the settings files among them
	open     map[string]bool         // names of documents that are open, and can be read
	closed   map[string]bool         // names of files whose text was read anew from the disk
	walk     *walk
}

// walk lists the files of a project once.
type walk struct {
	once    sync.Once
	targets []check.Target
}

func newProject(root string, rules ruleSet) *Project {
	p := &Project{Root: root, rules: rules, snapshot: workspace.NewSnapshot(newRooted(root)), cache: check.NewCache(), walk: &walk{}}
	p.settings = p.resolver(nil)
	return p
}

// resolver reads the settings of the project anew. The last ones hold in place of what is faulty.
func (p *Project) resolver(last *check.Resolver) *check.Resolver {
	files := workspace.NewSnapshot(workspace.NewConfined(p.Root)).With(slices.Collect(maps.Values(p.overlay))...)
	r := &check.Resolver{Snapshot: files, Dir: p.Root, Rules: p.rules.all, Declare: p.rules.declare, Release: p.rules.release, Elsewhere: true, Lenient: true, Last: last}
	r.For(p.Root)
	if last != nil {
		last.Detach()
	}
	return r
}

func (p *Project) next() *Project {
	next := *p
	return &next
}

// read gives what is on disk now, as a check that is started now would read it: what links lead to outside of the project is not.
func (p *Project) read(absolute string) ([]byte, error) { return newRooted(p.Root).ReadFile(absolute) }

// Name is what the project calls an absolute path; false where it does not hold it.
func (p *Project) Name(absolute string) (string, bool) { return below(p.Root, absolute) }

// Absolute is the path of a name of the project.
func (p *Project) Absolute(name string) string {
	if isAbsolute(name) {
		return path.Clean(name)
	}
	return path.Join(p.Root, name)
}

// maxClosed bounds the files whose new text lies over the snapshot before the snapshot itself is made anew.
const maxClosed = 64

// withText is the project in which a file has this text. Open tells whether an editor shows it.
func (p *Project) withText(absolute string, kind source.Kind, text string, open bool) *Project {
	name, inside := p.Name(absolute)
	if !inside {
		return p
	}
	file := fileOf(name, kind, text)
	if file == nil { // what cannot be read is no neighbour either
		file = &source.File{Path: name, Kind: source.Other}
	}
	return p.with(absolute, file, open)
}

// withFile is the project in which a file that no editor shows is this.
func (p *Project) withFile(absolute string, file *source.File) *Project {
	return p.with(absolute, file, false)
}

func (p *Project) with(absolute string, file *source.File, open bool) *Project {
	name := file.Path
	if old, err := p.snapshot.File(name); err == nil && old.Kind == file.Kind && old.Latin1 == file.Latin1 && string(old.Raw) == string(file.Raw) {
		file = old // parsed already
	}
	next := p.next()
	next.snapshot = p.snapshot.With(file)
	next.open, next.closed = withKey(p.open, name, open), withKey(p.closed, name, !open)
	if len(next.closed) > maxClosed {
		next = next.forget(slices.Collect(maps.Keys(next.closed)))
	}
	return next.settled(absolute, file)
}

// withoutText is the project in which a file is gone.
func (p *Project) withoutText(absolute string) *Project {
	name, inside := p.Name(absolute)
	if !inside {
		return p
	}
	return p.forget([]string{name}).settled(absolute, nil)
}

// forget reads the named files anew when they are asked for, and all folders.
func (p *Project) forget(names []string) *Project {
	next := p.next()
	next.snapshot = p.snapshot.Forget(names...)
	next.open, next.closed = maps.Clone(p.open), maps.Clone(p.closed)
	for _, name := range names {
		delete(next.open, name)
		delete(next.closed, name)
	}
	next.walk = &walk{}
	return next
}

// settled reads the settings anew where a file belongs to them.
func (p *Project) settled(absolute string, file *source.File) *Project {
	if !p.settings.Uses(absolute) {
		return p
	}
	p.overlay = maps.Clone(p.overlay)
	delete(p.overlay, absolute)
	if file != nil {
		if p.overlay == nil {
			p.overlay = map[string]*source.File{}
		}
		p.overlay[absolute] = &source.File{Path: absolute, Kind: file.Kind, Text: file.Text, Segments: file.Segments, Commands: file.Commands, Raw: file.Raw}
	}
	p.settings = p.resolver(p.settings)
	p.walk = &walk{}
	return p
}

func withKey(set map[string]bool, key string, in bool) map[string]bool {
	if set[key] == in {
		return set
	}
	next := maps.Clone(set)
	if next == nil {
		next = map[string]bool{}
	}
	if in {
		next[key] = true
	} else {
		delete(next, key)
	}
	return next
}

// Target is how a file of the project is checked; false where the settings leave it out.
func (p *Project) Target(name string) (check.Target, bool) {
	target, in := check.Opened(name, p.settings)
	target.Named = p.open[name]
	return target, in
}

// Targets are all files of the project that are checked: what a walk finds, and what editors have open besides. Of a project that is no
// folder of the workspace it is these alone: nobody asked about the others.
func (p *Project) Targets() []check.Target {
	p.walk.once.Do(func() {
		if !p.Loose {
			p.walk.targets, _ = check.Discover([]string{"."}, p.settings)
		}
	})
	targets := make([]check.Target, 0, len(p.walk.targets)+len(p.open))
	listed := map[string]bool{}
	for _, target := range p.walk.targets {
		target.Named = p.open[target.Path]
		targets = append(targets, target)
		listed[target.Path] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		if target, in := p.Target(name); in && !listed[name] {
			targets = append(targets, target)
		}
	}
	return targets
}

// Options are those of a check of this project.
func (p *Project) Options() check.Options {
	return check.Options{Rules: p.rules.all, Settings: p.settings, Cache: p.cache, Jobs: 1}
}

// Check gives the findings in one file; the error is that of the context, or of a baseline.
func (p *Project) Check(ctx context.Context, name string) (*check.Report, error) {
	target, in := p.Target(name)
	if !in {
		return check.NewReport(func(string) *source.File { return nil }), nil
	}
	return p.CheckTarget(ctx, target)
}

// CheckTarget is Check for a target of Targets.
func (p *Project) CheckTarget(ctx context.Context, target check.Target) (*check.Report, error) {
	targets := []check.Target{target}
	options := p.Options()
	report, err := check.Run(ctx, check.GuessKinds(p.snapshot, targets), targets, options)
	if err != nil && ctx.Err() == nil { // a baseline that cannot be read
		options.NoBaseline = true
		report, err = check.Run(ctx, check.GuessKinds(p.snapshot, targets), targets, options)
	}
	return report, err
}

// keptTrees is of how many bytes of text the trees are kept after a check of all files: enough for those around what is edited.
const keptTrees = 1 << 20

// CheckAll gives the findings in all files that are checked, by name. Step is called when one is done.
func (p *Project) CheckAll(ctx context.Context, targets []check.Target, step func()) (map[string][]check.Finding, error) {
	options := p.Options()
	options.Jobs, options.Step = 0, step
	report, err := check.Run(ctx, check.GuessKinds(p.snapshot, targets), targets, options)
	if err != nil && ctx.Err() == nil { // a baseline that cannot be read
		options.NoBaseline = true
		report, err = check.Run(ctx, check.GuessKinds(p.snapshot, targets), targets, options)
	}
	if p.snapshot.Trim(keptTrees) > keptTrees { // else the next keystrokes pay for collecting that
		go debug.FreeOSMemory()
	}
	if err != nil {
		return nil, err
	}
	found := map[string][]check.Finding{}
	for _, finding := range report.Findings {
		found[finding.At.Path] = append(found[finding.At.Path], finding)
	}
	return found, nil
}

// Fixed is the text of a file after all its safe fixes.
func (p *Project) Fixed(ctx context.Context, name string) (*source.File, error) {
	target, in := p.Target(name)
	if !in {
		return nil, nil
	}
	fixed, err := check.Fix(ctx, p.snapshot, []check.Target{target}, p.Options(), false)
	if err != nil {
		return nil, err
	}
	for _, file := range fixed.Files {
		if file.Path == name {
			return file, nil
		}
	}
	return nil, nil
}

// Settings are those of the project.
func (p *Project) Settings() *check.Resolver { return p.settings }

// View opens a reader with the facts that the settings hold.
func (p *Project) View(ctx context.Context) *workspace.View {
	return p.snapshot.WithFacts(p.settings.Facts).WithKnown(p.settings.Known).View(ctx)
}

// File is a file of the project; nil where it cannot be read.
func (p *Project) File(name string) *source.File {
	file, err := p.snapshot.File(name)
	if err != nil {
		return nil
	}
	return file
}
