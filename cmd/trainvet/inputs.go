package main

import (
	"errors"
	"io"
	"path"
	"path/filepath"
	"slices"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules/custom"
)

// inputs are what one invocation checks.
type inputs struct {
	snapshot *workspace.Snapshot
	settings *check.Resolver
	walk     *check.Walk
	targets  []check.Target
	problems []check.Problem // what was named and cannot be read
	named    int             // paths on the command line
	stdin    string          // what the text on stdin is called; "" where it is not asked for
}

// inputs collects the files of the paths, the text on stdin for a path `-`, and the launch command with the files it names.
func (a *app) inputs(f *checkFlags, paths []string) *inputs {
	if len(paths) == 0 && len(f.command) == 0 {
		paths = []string{"."}
	}
	named, stdin := withoutStdin(paths)
	words := filesIn(f.command)
	in := &inputs{snapshot: workspace.NewSnapshot(workspace.NewConfined(a.dir, slices.Concat(named, words)...))}
	in.settings = &check.Resolver{Snapshot: in.snapshot, Dir: a.dir, Rules: a.rules, Declare: custom.Rule, Release: release, Flags: f.settings}
	in.walk = check.WalkAll(named, in.settings)
	in.targets, in.problems, in.named = in.walk.Targets, in.walk.Problems, len(named)
	if stdin {
		in.stdin = stdinName(f.stdinFilename)
		if file, err := a.readStdin(in.stdin); err != nil {
			in.problems = append(in.problems, check.Problem{Path: in.stdin, Reason: reason(err)})
		} else if !in.settings.Excludes(in.stdin) {
			in.add(file)
		}
	}
	if len(f.command) > 0 {
		command := check.Target{Path: commandName, Named: true}
		in.snapshot = in.snapshot.With(commandFile(f.command))
		started, problems := check.Discover(words, in.settings)
		started = append([]check.Target{command}, started...)
		for _, target := range append(started, check.Loaded(in.snapshot, started, in.settings)...) {
			if !slices.ContainsFunc(in.targets, func(have check.Target) bool { return have.Path == target.Path }) {
				in.targets = append(in.targets, target)
			}
		}
		in.problems = append(in.problems, problems...)
	}
	in.snapshot = check.GuessKinds(in.snapshot, in.targets)
	room(len(in.targets))
	return in
}

// add takes in a text that is no file on disk, or not what is there.
func (in *inputs) add(file *source.File) {
	in.snapshot = in.snapshot.With(file)
	in.targets = append(in.targets, check.Target{Path: file.Path, Named: true})
}

// withoutStdin takes `-` out of the paths.
func withoutStdin(paths []string) (named []string, stdin bool) {
	for _, path := range paths {
		if path == "-" {
			stdin = true
		} else {
			named = append(named, path)
		}
	}
	return named, stdin
}

// stdinName is what the text on stdin is called.
func stdinName(given string) string {
	if given == "" {
		return "-"
	}
	return clean(given)
}

// readStdin takes the text of one file from stdin.
func (a *app) readStdin(name string) (*source.File, error) {
	raw, err := io.ReadAll(io.LimitReader(a.stdin, source.MaxSize+1))
	if err != nil {
		return nil, err
	}
	return source.New(name, raw)
}

// clean is a path as findings show it.
func clean(name string) string { return path.Clean(filepath.ToSlash(name)) }

// reason is what an error of package source says beside the path.
func reason(err error) string {
	var inner *source.Error
	if errors.As(err, &inner) {
		return inner.Reason
	}
	return err.Error()
}

// tellInputs says on stderr which inputs were not read.
func (a *app) tellInputs(report *check.Report) {
	for _, problem := range report.Unreadable {
		a.unreadable(problem.Path, problem.Reason)
	}
	if text := report.SkippedText(); text != "" {
		a.complain("%s; --format json lists them", text)
	}
}

// concludeInputs is tellInputs for a command that fails where it had nothing to check: a path in a job that has moved must not pass for a
// clean one. A text on stdin that the settings exclude is an editor's question, and where new code is asked for there may be none.
func (a *app) concludeInputs(f *checkFlags, in *inputs, report *check.Report) {
	a.tellInputs(report)
	newCode := f.newFrom.rev != "" || f.newFrom.mergeBase != "" || f.newFrom.patch != ""
	if report.Summary.Files > 0 || len(report.Unreadable) > 0 || f.allowEmpty || in.stdin != "" || newCode {
		return
	}
	why := "the folders hold no Python, notebook, JSON, YAML, TOML, shell script or Dockerfile that the settings or a .gitignore do not exclude"
	switch {
	case len(report.Skipped) > 0:
		why = "all that is there was skipped"
	case in.walk.Excluded > 0 && in.walk.Excluded == in.named:
		why = "the settings exclude every file named"
	}
	a.trouble("no file was checked: %s; --allow-empty makes this exit code 0", why)
}
