// Package review posts findings on the lines that a pull request changes as one review, with suggestions, and keeps what it posted
// before up to date instead of saying it again. It is the only part of trainvet that opens the network.
package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
)

// maxComments bounds the comments of one review; the rest is counted in its text.
const maxComments = 50

// Step is a request that changes something.
type Step struct {
	Method string
	Path   string
	Body   any
}

// Request is what is to be reviewed.
type Request struct {
	Report *check.Report
	Name   func(path string) (string, bool) // a file's name in the repository; false for what lies outside
	Commit string                           // that the comments are about
	Dry    bool                             // work out the steps, and take none
}

// Run brings the review of the pull request up to date, and gives back what was done, or would be; with an error, what was to be done.
func (g *GitHub) Run(ctx context.Context, r Request) ([]Step, error) {
	files, err := list[changedFile](ctx, g, g.pull("/files"))
	if err != nil {
		return nil, err
	}
	wanted, err := g.wanted(r, files)
	if err != nil {
		return nil, err
	}
	comments, err := list[oldComment](ctx, g, g.pull("/comments"))
	if err != nil {
		return g.steps(wanted, r.Commit, nil, nil), err
	}
	reviews, err := list[oldReview](ctx, g, g.pull("/reviews"))
	if err != nil {
		return g.steps(wanted, r.Commit, nil, nil), err
	}
	own := g.isOwn(ctx)
	steps := g.steps(wanted, r.Commit, slices.DeleteFunc(comments, func(c oldComment) bool { return !own(c.User) || printOf(c.Body) == "" }),
		slices.DeleteFunc(reviews, func(o oldReview) bool { return !own(o.User) || !strings.Contains(o.Body, summaryMark) }))
	return g.run(ctx, steps, r.Dry)
}

// run takes the steps one after the other, unless they are only asked for.
func (g *GitHub) run(ctx context.Context, steps []Step, dry bool) ([]Step, error) {
	for _, step := range steps {
		if dry {
			break
		}
		if err := g.take(ctx, step); err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// take makes one step. A review of which GitHub finds a comment not to lie on the change is posted without comments.
func (g *GitHub) take(ctx context.Context, step Step) error {
	_, err := g.do(ctx, step.Method, step.Path, step.Body, nil)
	var status *StatusError
	review, is := step.Body.(newReview)
	if !is || !errors.As(err, &status) || status.Status != http.StatusUnprocessableEntity || len(review.Comments) == 0 {
		return err
	}
	review.Body, review.Comments = shortened(withComments(review), maxBody), []newComment{}
	_, err = g.do(ctx, step.Method, step.Path, review, nil)
	return err
}

// isOwn tells our comments from those of people who copied a mark: they are of the user that the token is of or, where it is of no user,
// of a bot.
func (g *GitHub) isOwn(ctx context.Context) func(user) bool {
	var me user
	if _, err := g.do(ctx, http.MethodGet, "/user", nil, &me); err == nil && me.Login != "" {
		return func(u user) bool { return u.Login == me.Login }
	}
	return func(u user) bool { return u.Type == "Bot" }
}

// wanted are the comments that should be there, the worst first.
func (g *GitHub) wanted(r Request, files []changedFile) (all []newComment, err error) {
	lines := map[string]changes.Lines{}
	for _, file := range files {
		patch, err := changes.ParsePatch([]byte("--- a/x\n+++ b/x\n" + file.Patch + "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		lines[file.Name] = patch["x"]
	}
	prints := output.Fingerprints(r.Report)
	order := make([]int, len(r.Report.Findings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(r.Report.Findings[b].Severity) - int(r.Report.Findings[a].Severity) })
	for _, i := range order {
		finding := r.Report.Findings[i]
		name, inside := r.Name(finding.At.Path)
		file := r.Report.File(finding.At.Path)
		if !inside || file == nil {
			continue
		}
		start, _ := file.OnDisk(finding.At.Span)
		if on := lines[name]; on.Overlaps(start.Line, start.Line) {
			all = append(all, comment(r.Report, finding, prints[i], name, on))
		}
	}
	return all, nil
}

// steps are what is to be done about what is there already.
func (g *GitHub) steps(wanted []newComment, commit string, comments []oldComment, reviews []oldReview) (steps []Step) {
	there := map[string]bool{}
	for _, old := range comments {
		print := printOf(old.Body)
		at := slices.IndexFunc(wanted, func(c newComment) bool { return c.print == print })
		path := fmt.Sprintf("/repos/%s/pulls/comments/%d", g.Repo, old.ID)
		switch {
		case at < 0 && !sameText(old.Body, gone(print)):
			steps = append(steps, Step{http.MethodPatch, path, newBody{gone(print)}})
		case at < 0:
		case there[print], old.Line == nil: // twice, or on a line that is not shown any more
			steps = append(steps, Step{http.MethodDelete, path, nil})
		default:
			there[print] = true
			if !sameText(old.Body, wanted[at].Body) {
				steps = append(steps, Step{http.MethodPatch, path, newBody{wanted[at].Body}})
			}
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(wanted), func(c newComment) bool { return there[c.print] })
	rest := max(0, len(fresh)-maxComments)
	fresh = fresh[:len(fresh)-rest]
	switch text := reviewText(len(wanted), rest); {
	case len(reviews) > 0:
		first := reviews[0]
		if !sameText(text, first.Body) {
			steps = append(steps, Step{http.MethodPut, g.pull(fmt.Sprintf("/reviews/%d", first.ID)), newBody{text}})
		}
		if len(fresh) > 0 {
			steps = append(steps, Step{http.MethodPost, g.pull("/reviews"), newReview{commit, "COMMENT", fmt.Sprintf("%d new findings.\n\n%s", len(fresh), moreMark), fresh}})
		}
	case len(fresh) > 0:
		steps = append(steps, Step{http.MethodPost, g.pull("/reviews"), newReview{commit, "COMMENT", text, fresh}})
	}
	return steps
}

// reviewText is the text of the review as a whole; rest of the things found are not in its comments.
func reviewText(found, rest int) string {
	text := "trainvet finds nothing on the lines that this change touches."
	switch {
	case found == 1:
		text = "trainvet finds something on the lines that this change touches."
	case found > 1:
		text = fmt.Sprintf("trainvet finds %d things on the lines that this change touches.", found)
	}
	if rest > 0 {
		text += fmt.Sprintf("\n\n%d more findings on changed lines are not shown here.", rest)
	}
	return text + "\n\n" + summaryMark
}
