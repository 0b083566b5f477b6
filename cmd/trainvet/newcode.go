package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

// newFromFlags say which findings are of new code.
type newFromFlags struct {
	rev, mergeBase, patch string
	wholeFiles            bool
	flags                 *pflag.FlagSet
}

func (f *newFromFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.rev, "new-from-rev", "", "only findings on lines that changed since the revision `REV`; untracked files whole")
	flags.StringVar(&f.mergeBase, "new-from-merge-base", "", "only findings on lines that changed since HEAD left `REV`")
	flags.StringVar(&f.patch, "new-from-patch", "", "only findings on lines that the unified diff `FILE` adds; - reads stdin")
	flags.BoolVar(&f.wholeFiles, "whole-files", false, "with --new-from-...: all findings of files in which something changed")
}

// newCode works out what is new; nil where everything is asked for.
func (a *app) newCode(ctx context.Context, f *newFromFlags, stdinTaken bool) (*check.NewCode, error) {
	var given []string
	for _, name := range []string{"new-from-rev", "new-from-merge-base", "new-from-patch"} {
		if f.flags.Changed(name) {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0 && f.wholeFiles:
		return nil, usagef("--whole-files does nothing without --new-from-rev, --new-from-merge-base or --new-from-patch")
	case len(given) == 0:
		return nil, nil
	case len(given) > 1:
		return nil, usagef("--%s and --%s exclude each other", given[0], given[1])
	}
	set, err := a.changed(ctx, given[0], f, stdinTaken)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", given[0], err)
	}
	return &check.NewCode{Set: set, WholeFiles: f.wholeFiles}, nil
}

func (a *app) changed(ctx context.Context, flag string, f *newFromFlags, stdinTaken bool) (*changes.Set, error) {
	repo, noRepo := changes.Open(ctx, a.dir)
	if flag == "new-from-patch" {
		text, err := a.readPatch(f.patch, stdinTaken)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.patch, err)
		}
		set, err := changes.FromPatch(text, repo, a.dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.patch, err)
		}
		return set, nil
	}
	if noRepo != nil {
		return nil, noRepo
	}
	commit, err := "", error(nil)
	if flag == "new-from-rev" {
		commit, err = repo.Commit(ctx, f.rev)
	} else {
		commit, err = repo.MergeBase(ctx, f.mergeBase)
	}
	if err != nil {
		return nil, err
	}
	return repo.Since(ctx, commit)
}

// readPatch reads a patch of at most source.MaxSize bytes, a FIFO included: `--new-from-patch <(git diff)`. What is cut off would make
// new lines look old, so a longer one is an error.
func (a *app) readPatch(name string, stdinTaken bool) ([]byte, error) {
	in := a.stdin
	switch {
	case name != "-":
		file, err := os.Open(name)
		if err != nil {
			return nil, errors.New(osReason(err))
		}
		defer file.Close()
		in = file
	case stdinTaken:
		return nil, errors.New("stdin is read for the path - already")
	}
	text, err := io.ReadAll(io.LimitReader(in, source.MaxSize+1))
	switch {
	case err != nil:
		return nil, errors.New(osReason(err))
	case len(text) > source.MaxSize:
		return nil, fmt.Errorf("larger than %d MB, not read", source.MaxSize>>20)
	}
	return text, nil
}
