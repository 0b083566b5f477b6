package check

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
)

// Skipped is a data file that a walk met and that was not read. A folder of a project holds such files as a matter
// of course, so they fail nothing.
type Skipped struct {
	Path, Reason string
	Why          string // in two words, for a count of many
	Folder       bool
}

// skipped is why a file that cannot be read counts as data; "" where it may be code that trains, or was asked for by
// name. Code beyond the bound of its size is a table written as code.
func (c *checker) skipped(target Target, err error) string {
	if target.Named {
		return ""
	}
	var unread *source.Error
	if errors.As(err, &unread) && unread.Cause == source.TooLarge {
		return tooLarge
	}
	kind := source.KindOf(target.Path, nil)
	if kind == source.Other { // a script without an extension
		kind = kindOnDisk(c.options.Settings.onDisk(target.Path))
	}
	switch {
	case kind.IsPython():
		return ""
	case unread != nil:
		return "not text"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return notReadable
	}
	return ""
}

const (
	tooLarge    = "too large"
	notReadable = "not readable"
)

// skippedBound is the same for a file that is read up to a bound of its values: a launch script, or a config of a
// framework, is not data.
func (s *subject) skippedBound(target Target) string {
	if target.Named || s.script != nil {
		return ""
	}
	for _, tree := range s.trees {
		if tree.Root != nil && dialect.Of(tree) != nil {
			return ""
		}
	}
	return tooLarge
}

// SkippedText says how many data files were skipped, and why; "" where none was.
func (r *Report) SkippedText() string {
	if len(r.Skipped) == 0 {
		return ""
	}
	var reasons []string
	folders := 0
	for _, one := range r.Skipped {
		if one.Folder {
			folders++
		}
		if !slices.Contains(reasons, one.Why) {
			reasons = append(reasons, one.Why)
		}
	}
	slices.SortFunc(reasons, func(a, b string) int { return strings.Compare(b, a) })
	what := several(len(r.Skipped)-folders, "data file")
	switch {
	case folders == len(r.Skipped):
		what = several(folders, "folder")
	case folders > 0:
		what += " and " + several(folders, "folder")
	}
	return what + " skipped (" + strings.Join(reasons, " or ") + ")"
}

func several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// AddSkipped takes folders into the report that the walk could not look into.
func (r *Report) AddSkipped(folders []Skipped) {
	r.Skipped = append(slices.Clip(folders), r.Skipped...)
	r.Summary.Skipped = len(r.Skipped)
}
