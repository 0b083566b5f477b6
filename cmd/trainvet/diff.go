package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/compare"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/rules/custom"
)

// diff prints what the changes since a revision do to each run, and nothing where nothing moved. The exit code speaks of new findings.
func (a *app) diff() *cobra.Command {
	var format string
	var mergeBase bool
	var flags settingsFlags
	command := &cobra.Command{
		Use:   "diff [flags] REV [PATH...]",
		Short: "What the changes since a revision do to each run: batch, learning rate, warmup, precision, memory, findings",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("diff wants a revision to compare with, such as HEAD or main")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch format {
			case "text", "json", "markdown":
			default:
				return usagef("--format must be text, json or markdown, not %q", format)
			}
			given, err := flags.finish()
			if err != nil {
				return err
			}
			result, err := a.compare(context.Background(), args[0], mergeBase, args[1:], given)
			if a.settingsTrouble(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("diff: %w", err)
			}
			for _, problem := range result.Problems {
				a.unreadable(problem.Path, problem.Reason)
			}
			if result.Failed() {
				a.raise(exitFindings)
			}
			switch format {
			case "json":
				return output.CompareJSON(a.stdout, args[0], result)
			case "markdown":
				return output.CompareMarkdown(a.stdout, result)
			}
			return output.Compare(a.stdout, result, a.paint(a.stdout))
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text, json or markdown (for a comment on the change)")
	command.Flags().BoolVar(&mergeBase, "merge-base", false, "compare with the commit at which HEAD left REV")
	flags.add(command.Flags())
	flags.addFailOn(command.Flags())
	return command
}

// compare holds the work tree against a revision.
func (a *app) compare(ctx context.Context, rev string, mergeBase bool, paths []string, flags check.Flags) (*compare.Result, error) {
	repo, err := changes.Open(ctx, a.dir)
	if err != nil {
		return nil, err
	}
	find := repo.Commit
	if mergeBase {
		find = repo.MergeBase
	}
	commit, err := find(ctx, rev)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	return compare.Revision(ctx, compare.Options{Repo: repo, Commit: commit, Dir: a.dir, Paths: paths, Rules: a.rules, Release: release, Flags: flags, Declare: custom.Rule})
}
