package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/review"
)

// reviewFlags say which pull request is meant.
type reviewFlags struct {
	checkFlags
	api, repo, commit, base string
	pull                    int
	dry                     bool
}

// review posts findings on a pull request of GitHub. It is the only command that opens the network.
func (a *app) review() *cobra.Command {
	var f reviewFlags
	command := &cobra.Command{
		Use:   "review --pull N [flags] [PATH...]",
		Short: "Post the findings on changed lines as one review of a pull request on GitHub, with suggestions",
		Long: "review checks the files of the work tree, which must be those of the pull request, and posts what it finds on the lines that\n" +
			"the pull request changes as one review. A second run changes what the first one posted instead of saying it again.\n\n" +
			"The token is that of the variable GITHUB_TOKEN; repository and API default to GITHUB_REPOSITORY and GITHUB_API_URL.",
		RunE: func(_ *cobra.Command, paths []string) error { return a.runReview(&f, paths) },
	}
	flags := command.Flags()
	flags.IntVar(&f.pull, "pull", 0, "number of the pull request")
	flags.StringVar(&f.repo, "repo", "", "`OWNER/NAME` of the repository (default: $GITHUB_REPOSITORY)")
	flags.StringVar(&f.api, "api", "", "address of the API (default: $GITHUB_API_URL, else https://api.github.com)")
	flags.StringVar(&f.commit, "commit", "", "the commit that is reviewed (default: HEAD)")
	flags.StringVar(&f.base, "base", "", "also say what the change since HEAD left `REV` does to each run")
	flags.BoolVar(&f.dry, "dry-run", false, "print what would be posted, and post nothing")
	f.settingsFlags.add(flags)
	return command
}

func (a *app) runReview(f *reviewFlags, paths []string) error {
	if _, err := f.settingsFlags.finish(); err != nil {
		return err
	}
	token := a.env("GITHUB_TOKEN")
	github, err := review.NewGitHub(cmp.Or(f.api, a.env("GITHUB_API_URL"), "https://api.github.com"), cmp.Or(f.repo, a.env("GITHUB_REPOSITORY")), f.pull, token)
	if err != nil {
		return usagef("review: %v", err)
	}
	if token == "" && !f.dry {
		return usagef("review: GITHUB_TOKEN is not set")
	}
	ctx := context.Background()
	repo, err := changes.Open(ctx, a.dir)
	if err != nil {
		return fmt.Errorf("review: %w", err)
	}
	commit, err := repo.Commit(ctx, cmp.Or(f.commit, "HEAD"))
	if err != nil {
		return fmt.Errorf("review: %w", err)
	}
	in := a.inputs(&f.checkFlags, paths)
	report, err := check.Run(ctx, in.snapshot, in.targets, check.Options{Rules: a.rules, Settings: in.settings})
	if a.settingsTrouble(err) {
		return nil
	}
	if err != nil {
		return err
	}
	report.AddUnreadable(in.problems)
	for _, problem := range report.Unreadable {
		a.unreadable(problem.Path, problem.Reason)
	}
	summary, err := a.changeSummary(ctx, f, paths)
	if err != nil {
		return fmt.Errorf("review: --base: %w", err)
	}
	steps, err := github.Run(ctx, review.Request{Report: report, Commit: commit, Summary: summary, Dry: f.dry,
		Name: func(path string) (string, bool) { return repo.Name(in.settings.Absolute(path)) }})
	if err != nil {
		return fmt.Errorf("review: %w", err)
	}
	return a.tellSteps(f.dry, steps)
}

// changeSummary is what the change does to the runs, as Markdown.
func (a *app) changeSummary(ctx context.Context, f *reviewFlags, paths []string) (string, error) {
	if f.base == "" {
		return "", nil
	}
	result, err := a.compare(ctx, f.base, true, paths, f.settings)
	if err != nil {
		return "", err
	}
	result.New, result.Fixed = nil, nil // the comments say them
	var text bytes.Buffer
	err = output.CompareMarkdown(&text, result)
	return text.String(), err
}

// tellSteps says what was done; of a dry run, all that would be sent.
func (a *app) tellSteps(dry bool, steps []review.Step) error {
	if !dry {
		counts := map[string]int{}
		for _, step := range steps {
			counts[step.Method]++
		}
		fmt.Fprintf(a.stdout, "%d posted, %d changed, %d taken back\n", counts[http.MethodPost], counts[http.MethodPatch]+counts[http.MethodPut], counts[http.MethodDelete])
		return nil
	}
	for _, step := range steps {
		text, err := json.MarshalIndent(step.Body, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s %s\n", step.Method, output.Escape(step.Path))
		for line := range strings.Lines(string(text)) {
			fmt.Fprintln(a.stdout, output.Escape(strings.TrimSuffix(line, "\n")))
		}
	}
	return nil
}
