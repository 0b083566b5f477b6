package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/review"
)

// reviewFlags say which pull request is meant, and what is posted on it.
type reviewFlags struct {
	checkFlags
	api, repo, commit, base string
	fallback                string
	pull                    int
	findings                bool
	dry                     bool
}

// review posts findings on a pull request of GitHub, and what it does to the runs. It is the only command that opens the network.
func (a *app) review() *cobra.Command {
	var f reviewFlags
	command := &cobra.Command{
		Use:   "review --pull N [flags] [PATH...]",
		Short: "Post the findings on changed lines as one review of a pull request on GitHub, with suggestions",
		Long: "review checks the files of the work tree, which must be those of the pull request, and posts what it finds on the lines that\n" +
			"the pull request changes as one review. With --base one comment says what the change does to each run, and none is posted where\n" +
			"nothing moves. A second run changes what the first one posted instead of saying it again.\n\n" +
			"The token is that of the variable GITHUB_TOKEN; repository and API default to GITHUB_REPOSITORY and GITHUB_API_URL.",
		RunE: func(_ *cobra.Command, paths []string) error { return a.runReview(&f, paths) },
	}
	flags := command.Flags()
	flags.IntVar(&f.pull, "pull", 0, "number of the pull request")
	flags.StringVar(&f.repo, "repo", "", "`OWNER/NAME` of the repository (default: $GITHUB_REPOSITORY)")
	flags.StringVar(&f.api, "api", "", "address of the API (default: $GITHUB_API_URL, else https://api.github.com)")
	flags.StringVar(&f.commit, "commit", "", "the commit that is reviewed (default: HEAD)")
	flags.StringVar(&f.base, "base", "", "keep a comment up to date that says what the change since HEAD left `REV` does to each run")
	flags.BoolVar(&f.findings, "findings", true, "post the findings; --findings=false leaves the comment of --base")
	flags.StringVar(&f.fallback, "fallback", "", "append to `FILE`, as Markdown, what the token may not post, instead of failing")
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
	if !f.findings && f.base == "" {
		return usagef("review: --findings=false without --base leaves nothing to post")
	}
	ctx := context.Background()
	var posts []func() ([]review.Step, error)
	if f.findings {
		request, err := a.reviewRequest(ctx, f, paths)
		if a.settingsTrouble(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("review: %w", err)
		}
		posts = append(posts, func() ([]review.Step, error) { return github.Run(ctx, request) })
	}
	if f.base != "" {
		text, err := a.changeText(ctx, f, paths)
		if a.settingsTrouble(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("review: --base: %w", err)
		}
		posts = append(posts, func() ([]review.Step, error) { return github.Change(ctx, text, f.dry) })
	}
	var steps []review.Step
	refused := ""
	for _, post := range posts {
		done, err := post()
		switch {
		case err == nil:
			steps = append(steps, done...)
		case !review.Refused(err):
			return fmt.Errorf("review: %w", err)
		case f.fallback == "":
			return fmt.Errorf("review: %w; the token may not write here: it needs pull-requests: write, and that of a pull request from a fork only reads", err)
		default:
			a.complain("review: %s; what was not posted is in %s", output.Escape(err.Error()), output.Escape(f.fallback))
			refused += review.Markdown(done)
		}
	}
	if refused != "" {
		if err := appendTo(f.fallback, refused); err != nil {
			return fmt.Errorf("review: %w", err)
		}
	}
	return a.tellSteps(f.dry, steps)
}

// reviewRequest checks the files and says what is found in them.
func (a *app) reviewRequest(ctx context.Context, f *reviewFlags, paths []string) (r review.Request, err error) {
	repo, err := changes.Open(ctx, a.dir)
	if err != nil {
		return r, err
	}
	commit, err := repo.Commit(ctx, cmp.Or(f.commit, "HEAD"))
	if err != nil {
		return r, err
	}
	in := a.inputs(&f.checkFlags, paths)
	report, err := check.Run(ctx, in.snapshot, in.targets, check.Options{Rules: a.rules, Settings: in.settings})
	if err != nil {
		return r, err
	}
	report.AddUnreadable(in.problems)
	report.AddSkipped(in.walk.Skipped)
	a.tellInputs(report)
	return review.Request{Report: report, Commit: commit, Dry: f.dry,
		Name: func(path string) (string, bool) { return repo.Name(in.settings.Absolute(path)) }}, nil
}

// changeText is what the change does to the runs, as Markdown; "" where nothing moves.
func (a *app) changeText(ctx context.Context, f *reviewFlags, paths []string) (string, error) {
	result, err := a.compare(ctx, f.base, true, paths, f.settings)
	if err != nil {
		return "", err
	}
	if !f.findings { // else they were told before
		for _, problem := range result.Problems {
			a.unreadable(problem.Path, problem.Reason)
		}
	}
	var text bytes.Buffer
	err = output.CompareMarkdown(&text, result)
	return text.String(), err
}

// appendTo adds a text at the end of a file, which is made where it is not there.
func appendTo(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if _, err := file.WriteString("\n" + text); err != nil {
		file.Close()
		return err
	}
	return file.Close()
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
