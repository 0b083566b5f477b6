package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/output"
)

// changeMark is in the one comment that says what the change does to the runs.
const changeMark = markStart + "change" + markEnd

const nothingMoves = "This change no longer moves anything in the training runs."

// Change keeps one comment on the pull request up to date that says what the change does to the runs, as Markdown. Where the text is
// empty and no such comment is there, nothing is said; where one is there, it says that nothing moves any more. It gives back what was
// done, or would be; with an error, what was to be done.
func (g *GitHub) Change(ctx context.Context, text string, dry bool) ([]Step, error) {
	comments, err := list[oldComment](ctx, g, fmt.Sprintf("/repos/%s/issues/%d/comments", g.Repo, g.Pull))
	if err != nil {
		return g.changeSteps(text, nil), err
	}
	comments = slices.DeleteFunc(comments, func(c oldComment) bool { return !strings.Contains(c.Body, changeMark) })
	if len(comments) > 0 {
		own := g.isOwn(ctx)
		comments = slices.DeleteFunc(comments, func(c oldComment) bool { return !own(c.User) })
	}
	return g.run(ctx, g.changeSteps(text, comments), dry)
}

// changeSteps are what is to be done about the comments that are there already. Of several, as two jobs that ran at a time leave, the first stays.
func (g *GitHub) changeSteps(text string, comments []oldComment) (steps []Step) {
	body := changeText(text)
	if len(comments) == 0 {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return []Step{{http.MethodPost, fmt.Sprintf("/repos/%s/issues/%d/comments", g.Repo, g.Pull), newBody{body}}}
	}
	for i, old := range comments {
		path := fmt.Sprintf("/repos/%s/issues/comments/%d", g.Repo, old.ID)
		switch {
		case i > 0:
			steps = append(steps, Step{http.MethodDelete, path, nil})
		case !sameText(old.Body, body):
			steps = append(steps, Step{http.MethodPatch, path, newBody{body}})
		}
	}
	return steps
}

func changeText(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		text = nothingMoves
	}
	return shortened(text, maxBody-len(changeMark)-2) + "\n\n" + changeMark
}

// maxBody is how long GitHub lets the text of a comment or review be, in bytes at worst.
const maxBody = 65536

// shortened is the first lines of a Markdown text, of at most limit bytes, and a line that says that more was left out.
func shortened(text string, limit int) string {
	const more = "\n\n… the rest is too long for a comment."
	if len(text) <= limit {
		return text
	}
	text = text[:limit-len(more)]
	text = text[:max(strings.LastIndexByte(text, '\n'), 0)]
	return strings.TrimRight(text, "\n") + more
}

// sameText compares what was posted with what would be: forges write line ends of their own, and drop blanks at the end.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(strings.ReplaceAll(b, "\r\n", "\n"))
}

// Refused reports whether an error says that the token may not do this: that of a pull request from a fork may only read.
func Refused(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusForbidden && !status.Limited
}

// Markdown is what steps say, for a page where they could not be posted. It is empty where they only take things back.
func Markdown(steps []Step) string {
	var text strings.Builder
	for _, step := range steps {
		switch body := step.Body.(type) {
		case newReview:
			text.WriteString("\n" + unmarked(withComments(body)) + "\n")
		case newBody:
			if said := unmarked(body.Body); !strings.HasPrefix(said, goneText) && said != nothingMoves {
				text.WriteString("\n" + said + "\n")
			}
		}
	}
	return strings.TrimLeft(text.String(), "\n")
}

// unmarked is a text without the marks by which it would be known again.
func unmarked(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, markStart) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// withComments is the text of a review with its comments as a list.
func withComments(review newReview) string {
	for _, c := range review.Comments {
		text, _, _ := strings.Cut(c.Body, "\n")
		review.Body += fmt.Sprintf("\n- %s %s", output.MarkdownCode(fmt.Sprintf("%s:%d", c.Path, c.Line)), text)
	}
	return review.Body
}
