package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// applyFixes writes the fixed files, or with --diff prints what would change. The text of stdin goes to stdout, fixed or not. Done
// says that there is nothing more to print. A file that cannot be written is told on stderr, and its findings come back.
func (a *app) applyFixes(f *checkFlags, in *inputs, fixed *check.Fixed, options check.Options) (done bool, err error) {
	for _, fault := range fixed.Refused {
		a.trouble("%s: rule %s: %s; this is a fault of trainvet, please report it", output.Escape(fault.Path), fault.Rule, output.Escape(fault.Reason))
	}
	if f.diff {
		return true, a.printDiff(f, in, fixed)
	}
	text, _ := in.snapshot.File(in.stdin)
	var written []*source.File
	for _, file := range fixed.Files {
		if in.stdin != "" && file.Path == in.stdin {
			text = file
		} else if err := a.overwrite(in.snapshot, file); err != nil {
			a.unreadable(file.Path, "not fixed: "+osReason(err))
			continue
		}
		written = append(written, file)
	}
	if len(written) < len(fixed.Files) { // what is left is not what Fix saw
		fixed.Report, err = check.Run(context.Background(), in.snapshot.With(written...), in.targets, options)
		if err != nil {
			return true, err
		}
		fixed.Report.AddUnreadable(in.problems)
		fixed.Report.AddSkipped(in.walk.Skipped)
	}
	if in.stdin == "" || text == nil {
		return false, nil
	}
	if _, err := a.stdout.Write(text.Raw); err != nil {
		return true, err
	}
	a.conclude(f, in, fixed.Report)
	return true, nil
}

// osReason is what went wrong with a file, without the operation and the name.
func osReason(err error) string {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		return inner.Err.Error()
	}
	var link *os.LinkError // of a rename
	if errors.As(err, &link) {
		return link.Err.Error()
	}
	return err.Error()
}

// overwrite gives a fixed file its new content on disk, where it still holds what was read.
func (a *app) overwrite(before *workspace.Snapshot, file *source.File) error {
	old, err := before.File(file.Path)
	if err != nil {
		return err
	}
	return a.replace(file.Path, old.Raw, file.Raw)
}

// printDiff prints one unified diff of all files, and says on stderr how much it is. Its lines are those of the files and cannot be
// escaped; in a log of GitHub Actions they stand where no commands are obeyed, ended by a word that they cannot hold: their own
// checksum.
func (a *app) printDiff(f *checkFlags, in *inputs, fixed *check.Fixed) error {
	before := in.snapshot
	stdout := a.stdout
	if a.env("GITHUB_ACTIONS") == "true" && len(fixed.Files) > 0 {
		var text bytes.Buffer
		a.stdout = &text
		defer func() {
			word := fmt.Sprintf("%x", sha256.Sum256(text.Bytes()))
			fmt.Fprintf(stdout, "::stop-commands::%s\n%s::%s::\n", word, text.Bytes(), word)
			a.stdout = stdout
		}()
	}
	paint := a.paint(stdout)
	for _, file := range fixed.Files {
		old, err := before.File(file.Path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(unified(file.Path, string(old.Raw), string(file.Raw))) {
			body, end := strings.TrimRight(line, "\r\n"), ""
			end = line[len(body):]
			switch {
			case strings.HasPrefix(body, "+") && !strings.HasPrefix(body, "+++ "):
				body = paint.Added(body)
			case strings.HasPrefix(body, "-") && !strings.HasPrefix(body, "--- "):
				body = paint.Removed(body)
			}
			fmt.Fprint(a.stdout, body, end)
		}
	}
	a.concludeInputs(f, in, fixed.Report)
	fixes, files := "fixes", "files"
	if fixed.Applied == 1 {
		fixes = "fix"
	}
	if len(fixed.Files) == 1 {
		files = "file"
	}
	a.complain("%d %s would change %d %s", fixed.Applied, fixes, len(fixed.Files), files)
	if len(fixed.Files) > 0 {
		a.raise(exitFindings)
	}
	return nil
}

// unified is the difference between two texts in a form that `git apply` takes.
func unified(name, old, new string) string {
	return udiff.Unified(quoteName("a/"+name), quoteName("b/"+name), old, new)
}

// quoteName writes a name as git does in a diff: in quotes where it holds what would end a line or a string.
func quoteName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) {
		return name
	}
	var quoted strings.Builder
	quoted.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			quoted.WriteString(`\` + string(rune(c)))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&quoted, `\%03o`, c)
		default:
			quoted.WriteByte(c)
		}
	}
	return quoted.String() + `"`
}
