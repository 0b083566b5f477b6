package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Target is one file to check. Path is what findings call it: relative to the current folder where it was named so.
type Target struct {
	Path  string
	Named bool // on the command line itself, not met on a walk
	Test  bool // met on a walk, among tests: mistakes there are made on purpose, or train nothing
}

// ErrEmptyName is the reason of a Problem with a name of no letters.
var ErrEmptyName = errors.New("an empty name")

// Problem is an input that could not be read.
type Problem struct{ Path, Reason string }

// Discover lists the files to check: those named, and those of a kind that trainvet reads in the folders named. Folders are
// walked without hidden folders, without what a .gitignore leaves out and without following links to folders; `exclude` of
// the settings holds for named files as well. The order is that of the names, and within a folder alphabetical; a file that
// is met twice is listed once.
func Discover(names []string, settings *Resolver) ([]Target, []Problem) {
	walk := WalkAll(names, settings)
	return walk.Targets, walk.Problems
}

// WalkAll is Discover, with what it saw besides.
func WalkAll(names []string, settings *Resolver) *Walk {
	walk := walker{settings: settings}
	for _, name := range names {
		if name == "" { // an unset variable, not the current folder
			walk.problem(`""`, ErrEmptyName)
			continue
		}
		name = path.Clean(filepath.ToSlash(name))
		absolute := settings.Absolute(name)
		info, err := os.Stat(filepath.FromSlash(settings.onDisk(name)))
		switch {
		case err != nil:
			walk.problem(name, err)
		case settings.outside(absolute) != nil:
			walk.problem(name, settings.outside(absolute))
		case info.IsDir():
			walk.root = name
			walk.roots = append(walk.roots, name)
			above := ignoredAbove(absolute, settings.Dir)
			for _, file := range above {
				walk.tell(file)
			}
			walk.both(name, absolute, above)
		case !info.Mode().IsRegular():
			walk.problem(name, errors.New("is a FIFO, device or socket, not a file"))
		case settings.Excludes(absolute):
			walk.excluded++
		default:
			walk.add(Target{Path: name, Named: true}, absolute)
		}
	}
	return &Walk{Targets: withoutIdle(walk.withoutLinks()), Problems: walk.problems, Skipped: walk.skipped, Excluded: walk.excluded, roots: walk.roots, left: walk.left}
}

// withoutIdle are the targets without the lists of packages that a walk met, where nothing else could train. An image stays: it
// sets variables and starts programs itself.
func withoutIdle(targets []Target) []Target {
	idle := func(t Target) bool {
		return !t.Named && source.KindOf(t.Path, nil) == source.Requirements
	}
	trains := func(t Target) bool {
		kind := source.KindOf(t.Path, nil)
		return t.Named || kind.IsPython() || kind == source.Dockerfile
	}
	if !slices.ContainsFunc(targets, idle) || slices.ContainsFunc(targets, trains) {
		return targets
	}
	return slices.DeleteFunc(targets, idle)
}

// Opened is a file that an editor shows: it is looked at like one that is named, but what lies among tests is left as a walk leaves
// it. The name is relative to the current folder. False: the settings leave it out.
func Opened(name string, settings *Resolver) (Target, bool) {
	return Target{Path: name, Named: true, Test: IsTest(name)}, !settings.Excludes(name)
}

// Loaded are the files that are loaded when some targets are run, besides those: what a launch command starts imports
// modules, and settings name others. Left out is what a walk of the current folder would leave out.
func Loaded(snapshot *workspace.Snapshot, run []Target, settings *Resolver) (more []Target) {
	names := make([]string, len(run))
	for i, target := range run {
		names[i] = target.Path
	}
	for _, name := range snapshot.View(context.Background()).Forgetful().Loaded(names)[len(names):] {
		if !settings.Excludes(name) && !settings.ignored(name) {
			more = append(more, Target{Path: name, Test: IsTest(name)})
		}
	}
	return more
}

// ignored reports whether a .gitignore leaves a file out, or a folder that it lies in.
func (r *Resolver) ignored(name string) bool {
	absolute := r.Absolute(name)
	for at, folder := absolute, false; at != r.Dir && source.Dir(at) != at; at, folder = source.Dir(at), true {
		around := ignoredAbove(at, r.Dir)
		if isIgnored(around, at, folder) {
			return true
		}
	}
	return false
}

// outside is what keeps a name from being followed that leads out of the project.
func (r *Resolver) outside(absolute string) error {
	if r == nil || r.Snapshot == nil {
		return nil
	}
	return r.Snapshot.Outside(absolute)
}

// onDisk is the name under which the process finds a file.
func (r *Resolver) onDisk(name string) string {
	if r != nil && r.Elsewhere {
		return r.Absolute(name)
	}
	return name
}

// Excludes reports whether the settings leave out a file.
func (r *Resolver) Excludes(name string) bool {
	absolute := r.Absolute(name)
	return r.For(source.Dir(absolute)).Exclude.covers(absolute) || newPatterns(r.Dir, r.Flags.Exclude).covers(absolute)
}

type walker struct {
	settings *Resolver
	excluded int  // files that are named, and that the settings leave out
	every    bool // files of any kind, for tests
	root     string
	targets  []Target
	problems []Problem
	skipped  []Skipped // folders
	seen     map[string]int
	links    []string        // of the targets, those met as links: their names in seen
	inner    map[string]bool // folders that were met, which are no links
	roots    []string
	left     []string
	seeker   scout
}

func (w *walker) add(target Target, absolute string) {
	if w.seen == nil {
		w.seen = map[string]int{}
	}
	if at, twice := w.seen[absolute]; twice {
		w.targets[at].Named = w.targets[at].Named || target.Named
		return
	}
	w.seen[absolute] = len(w.targets)
	w.targets = append(w.targets, target)
}

func (w *walker) problem(name string, err error) {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	w.problems = append(w.problems, Problem{name, err.Error()})
}

// tell says of an ignore file that it was not read to its end.
func (w *walker) tell(file patterns) {
	if file.cut == "" || slices.ContainsFunc(w.problems, func(p Problem) bool { return p.Path == file.cut }) {
		return
	}
	w.problem(file.cut, fmt.Errorf("larger than %d KB; the rest is not read", maxIgnore>>10))
}

// folder walks one folder. Above are the ignore files of the folders that it lies in, outermost first.
func (w *walker) folder(shown, absolute string, above []patterns) {
	on := w.settings.onDisk
	look := w.look(shown, absolute)
	defer look.walked.Store(true)
	if errors.Is(look.err, fs.ErrPermission) && shown != w.root {
		w.skipped = append(w.skipped, Skipped{Path: shown, Reason: fs.ErrPermission.Error(), Why: notReadable, Folder: true})
		return
	}
	if look.err != nil {
		w.problem(shown, look.err)
		return
	}
	if look.ignores {
		w.tell(look.own)
	}
	entries, ignored := look.entries, look.ignored(above)
	for _, entry := range entries {
		name, full := inFolder(shown, entry.Name), inFolder(absolute, entry.Name)
		folder, regular, link := entry.Kind == workspace.Folder, entry.Kind == workspace.RegularFile, entry.Kind == workspace.Link
		if link {
			info, err := os.Stat(filepath.FromSlash(on(name)))
			regular = err == nil && info.Mode().IsRegular() && w.settings.outside(full) == nil
		}
		switch {
		case !folder && !regular:
			w.leave(name, entry) // perhaps a link to a folder
		case folder && strings.HasPrefix(entry.Name, "."):
		case isIgnored(ignored, full, folder), folder && !w.every && w.settings.Excludes(full):
			w.leave(name, entry)
		case folder:
			if w.inner == nil {
				w.inner = map[string]bool{}
			}
			w.inner[full] = true
			w.folder(name, full, ignored)
		case w.every || isWalked(kindOnDisk(on(name))) && !w.settings.Excludes(full):
			if link {
				w.links = append(w.links, full)
			}
			w.add(Target{Path: name, Test: IsTest(strings.TrimPrefix(name, w.root+"/"))}, full)
		default:
			w.leave(name, entry)
		}
	}
}

// inFolder is path.Join for a folder whose name is clean, and an entry of it.
func inFolder(folder, entry string) string {
	if folder == "." {
		return entry
	}
	return strings.TrimSuffix(folder, "/") + "/" + entry
}

// leave notes what is no target, and may be or hold a Python file that others import.
func (w *walker) leave(name string, entry workspace.Entry) {
	if entry.Kind == workspace.Folder || entry.Kind == workspace.Link || mayBePython(name) {
		w.left = append(w.left, name)
	}
}

// withoutLinks are the targets without the links met on a walk to a file that is a target itself, by its own name or by an
// earlier link: it would be reported twice, and fixed twice.
func (w *walker) withoutLinks() []Target {
	drop := map[int]bool{}
	if len(w.links) == 0 {
		return w.targets
	}
	real := func(name string) string {
		if found, err := filepath.EvalSymlinks(filepath.FromSlash(name)); err == nil {
			return filepath.ToSlash(found)
		}
		return name
	}
	folders := map[string]string{}
	var realFolder func(folder string) string
	realFolder = func(folder string) string {
		found := folders[folder]
		if found == "" {
			if w.inner[folder] {
				found = inFolder(realFolder(source.Dir(folder)), path.Base(folder))
			} else {
				found = real(folder)
			}
			folders[folder] = found
		}
		return found
	}
	leads, bases := map[string]string{}, map[string]bool{}
	for _, link := range w.links {
		if at := w.seen[link]; !w.targets[at].Named {
			drop[at] = true
		}
		leads[link] = real(link)
		bases[path.Base(leads[link])] = true
	}
	held := map[string]bool{}
	for absolute, at := range w.seen {
		switch {
		case drop[at]:
		case w.targets[at].Named: // perhaps a link
			held[real(absolute)] = true
		case bases[path.Base(absolute)]: // a file, whose folder may be behind a link
			held[inFolder(realFolder(source.Dir(absolute)), path.Base(absolute))] = true
		}
	}
	for _, link := range w.links {
		if at := w.seen[link]; drop[at] && !held[leads[link]] {
			held[leads[link]] = true
			delete(drop, at)
		}
	}
	var kept []Target
	for at, target := range w.targets {
		if !drop[at] {
			kept = append(kept, target)
		}
	}
	return kept
}

// IsTest goes by the names that pytest, unittest and people give: a folder tests, test or fixtures, test_x.py, x_test.py and
// conftest.py. The name is relative to the folder that was to be checked, so that tests can be checked by naming theirs.
func IsTest(name string) bool {
	folder, base := path.Split(name)
	for part := range strings.SplitSeq(folder, "/") {
		switch strings.ToLower(part) {
		case "tests", "test", "unit_tests", "unittests", "fixtures", "test_fixtures":
			return true
		}
	}
	return strings.HasSuffix(base, ".py") && (strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "conftest.py")
}

// isWalked holds for the kinds of files that are looked for.
func isWalked(kind source.Kind) bool { return kind != source.Other }

// isIgnored asks the ignore files from the innermost outwards; the first one that has a word decides.
func isIgnored(ignored []patterns, name string, folder bool) bool {
	for i := len(ignored) - 1; i >= 0; i-- {
		if word := ignored[i].of(name, folder); word != silent {
			return word == leftOut
		}
	}
	return false
}

// ignoredAbove reads the ignore files between the root of the repository that holds a folder and that folder, outermost
// first. Outside of a repository those from the current folder on hold.
func ignoredAbove(folder, current string) []patterns {
	var above, fromCurrent []patterns
	for at := folder; ; at = source.Dir(at) {
		if at != folder {
			if own, ok := readIgnore(at, source.Join(at, ".gitignore")); ok {
				above = append([]patterns{own}, above...)
			}
		}
		if at == current {
			fromCurrent = above
		}
		if _, err := os.Stat(filepath.FromSlash(source.Join(at, ".git"))); err == nil {
			if own, ok := readIgnore(at, source.Join(at, ".git/info/exclude")); ok {
				above = append([]patterns{own}, above...)
			}
			return above
		}
		if source.Dir(at) == at {
			return fromCurrent
		}
	}
}

// maxIgnore bounds the bytes of an ignore file that are read: each of its lines is held against each name.
const maxIgnore = 256 << 10

func readIgnore(base, file string) (patterns, bool) {
	info, err := os.Lstat(filepath.FromSlash(file)) // git follows no link here either
	if err != nil || !info.Mode().IsRegular() {
		return patterns{}, false
	}
	text, err := readHead(file, maxIgnore+1)
	if err != nil {
		return patterns{}, false
	}
	if len(text) <= maxIgnore {
		return parseIgnore(base, string(text)), true
	}
	whole := text[:bytes.LastIndexByte(text[:maxIgnore], '\n')+1] // a part of a pattern means other files
	own := parseIgnore(base, string(whole))
	own.cut = file
	return own, true
}

func readHead(name string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(filepath.FromSlash(name), os.O_RDONLY|workspace.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // it may have become a FIFO since its folder was listed
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// kindOnDisk guesses the kind of a file; one without an extension is opened to read its first line.
func kindOnDisk(name string) source.Kind {
	if path.Ext(name) != "" {
		return source.KindOf(name, nil)
	}
	head, _ := readHead(name, source.KindWindow)
	return source.KindOf(name, head)
}
