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
	in.targets, in.problems = in.walk.Targets, in.walk.Problems
	if stdin {
		in.stdin = stdinName(f.stdinFilename)
		if file, err := a.readStdin(in.stdin); err != nil {
			in.problems = append(in.problems, check.Problem{Path: in.stdin, Reason: reason(err)})
		} else if !in.settings.Excludes(in.stdin) {
			in.add(file)
		}
	}
	if len(f.command) > 0 {
		in.add(commandFile(f.command))
		more, problems := check.Discover(words, in.settings)
		in.targets, in.problems = append(in.targets, more...), append(in.problems, problems...)
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
