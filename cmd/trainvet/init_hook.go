package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
)

// initHook adds the hook to the settings of pre-commit.
func (a *app) initHook() error {
	old, err := os.ReadFile(initPreCommit)
	if errors.Is(err, fs.ErrNotExist) {
		if !inRepository(a.dir) {
			return nil
		}
		if err := createFile(initPreCommit, []byte("repos:\n"+hookEntry(""))); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "wrote %s; `pre-commit install` switches it on\n", initPreCommit)
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Contains(old, []byte(hookRepo)) {
		fmt.Fprintf(a.stdout, "%s names trainvet already\n", initPreCommit)
		return nil
	}
	next, ok := withHook(old)
	if !ok {
		fmt.Fprintf(a.stdout, "%s has no list of repos that could be added to; the entry is:\n%s", initPreCommit, hookEntry(""))
		return nil
	}
	if err := a.replace(initPreCommit, old, next); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "added trainvet to %s\n", initPreCommit)
	return nil
}

func inRepository(dir string) bool {
	for ; ; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, ".git")); err == nil {
			return true
		}
		if path.Dir(dir) == dir {
			return false
		}
	}
}

// hookRev is the release that the entry for pre-commit names.
func hookRev() string {
	rev := "v" + versionNumber()
	if strings.ContainsAny(rev, "-+") { // of no release
		rev = "v" + release
	}
	return rev
}

// hookEntry is the entry of the list of repos, set in by indent.
func hookEntry(indent string) string {
	return indent + "- repo: " + hookRepo + "\n" + indent + "  rev: " + hookRev() + "\n" + indent + "  hooks:\n" + indent + "    - id: trainvet\n"
}

// hookInline is the entry as an element of a list in brackets.
func hookInline() string {
	return "{repo: " + hookRepo + ", rev: " + hookRev() + ", hooks: [{id: trainvet}]}"
}

// withHook puts the entry behind the last one of `repos`, in the form that the list is written in. Everything else stays. False where the
// file is not understood well enough for that.
func withHook(old []byte) ([]byte, bool) {
	file, err := source.Decode(initPreCommit, source.YAML, old)
	if err != nil {
		return nil, false
	}
	edit, ok := hookEdit(file)
	if !ok {
		return nil, false
	}
	if bytes.Contains(old, []byte("\r\n")) {
		edit.text = strings.ReplaceAll(edit.text, "\n", "\r\n")
	}
	raw := file.RawSpan(edit.at)
	next := slices.Concat(old[:raw.Start], []byte(edit.text), old[raw.End:])
	before, _ := hookRepos(file)
	again, err := source.Decode(initPreCommit, source.YAML, next)
	if err != nil {
		return nil, false
	}
	after, ok := hookRepos(again)
	if !ok || len(after) != len(before)+1 || after[len(after)-1] != hookRepo || !slices.Equal(after[:len(before)], before) {
		return nil, false
	}
	return next, true
}

// textEdit puts a text in the place of another.
type textEdit struct {
	at   source.Span
	text string
}

// hookRepos are the addresses in the list `repos` of a file that parses; false for one that does not.
func hookRepos(file *source.File) (repos []string, ok bool) {
	trees := configs.ParseYAML(file)
	if len(trees) > 1 || len(trees) == 1 && len(trees[0].Errors) > 0 {
		return nil, false
	}
	if len(trees) == 0 || trees[0].Root == nil {
		return nil, true
	}
	if list := trees[0].Root.Get("repos"); list != nil {
		for _, item := range list.Items {
			name := ""
			if of := item.Value.Get("repo"); of != nil {
				name = of.Raw
			}
			repos = append(repos, name)
		}
	}
	return repos, true
}

// hookEdit is the change that adds the entry.
func hookEdit(file *source.File) (edit textEdit, ok bool) {
	if _, sound := hookRepos(file); !sound {
		return edit, false
	}
	var root *configs.Node
	if trees := configs.ParseYAML(file); len(trees) == 1 {
		root = trees[0].Root
	}
	end := uint32(len(file.Text))
	if root == nil || root.Kind == configs.Scalar && root.Raw == "" { // nothing, or comments alone
		return textEdit{source.Span{Start: end, End: end}, lineBreak(file) + "repos:\n" + hookEntry("")}, true
	}
	if root.Kind != configs.Mapping || root.Style == configs.Flow {
		return edit, false
	}
	at := slices.IndexFunc(root.Items, func(item configs.Item) bool { return item.Key == "repos" })
	if at < 0 {
		return afterLine(file, root.At.Span.End, "repos:\n"+hookEntry("")), true
	}
	repos := root.Items[at].Value
	switch {
	case repos.Kind == configs.Sequence && repos.Style != configs.Flow && len(repos.Items) > 0:
		line := file.Slice(file.LineSpan(file.Line(repos.Items[0].Value.At.Span.Start)))
		indent, _, found := strings.Cut(line, "- ")
		if !found || strings.TrimSpace(indent) != "" {
			return edit, false
		}
		return afterLine(file, repos.Items[len(repos.Items)-1].Value.At.Span.End, hookEntry(indent)), true
	case repos.Kind == configs.Scalar && repos.Style == configs.Plain && repos.Raw == "":
		return afterLine(file, root.Items[at].KeyAt.Span.End, hookEntry("")), true
	case repos.Kind == configs.Scalar && repos.Style == configs.Plain && slices.Contains([]string{"~", "null", "Null", "NULL"}, repos.Raw):
		return insteadOf(file, root.Items[at]), true
	case repos.Kind != configs.Sequence || repos.Style != configs.Flow:
		return edit, false
	case len(repos.Items) > 0:
		last := repos.Items[len(repos.Items)-1].Value.At.Span
		separator := ", "
		if line := file.LineSpan(file.Line(last.Start)); line.Start > repos.At.Span.Start { // an entry a line
			text := file.Slice(line)
			separator = ",\n" + text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		}
		return textEdit{source.Span{Start: last.End, End: last.End}, separator + hookInline()}, true
	case file.Line(repos.At.Span.Start) != file.Line(repos.At.Span.End-1): // brackets with comments between them
		return textEdit{source.Span{Start: repos.At.Span.End - 1, End: repos.At.Span.End - 1}, hookInline() + "\n"}, true
	}
	return insteadOf(file, root.Items[at]), true
}

// insteadOf puts a list in blocks in the place of a value that holds nothing. What follows on its line stays there.
func insteadOf(file *source.File, item configs.Item) textEdit {
	line := file.LineSpan(file.Line(item.Value.At.Span.Start))
	rest := strings.TrimRight(file.Slice(source.Span{Start: item.Value.At.Span.End, End: line.End}), " \t\r")
	colon := file.Slice(source.Span{Start: item.KeyAt.Span.End, End: item.Value.At.Span.Start})
	return textEdit{source.Span{Start: item.KeyAt.Span.End, End: line.End}, strings.TrimRight(colon, " \t") + rest + "\n" + strings.TrimSuffix(hookEntry(""), "\n")}
}

// lineBreak is what must stand before a text at the end of a file.
func lineBreak(file *source.File) string {
	if len(file.Text) == 0 || file.Text[len(file.Text)-1] == '\n' {
		return ""
	}
	return "\n"
}

// afterLine puts whole lines behind the line on which what ends at offset stands.
func afterLine(file *source.File, offset uint32, lines string) textEdit {
	span := file.LineSpan(file.Line(max(offset, 1) - 1))
	at := source.Span{Start: span.End, End: span.End}
	text := "\n" + strings.TrimSuffix(lines, "\n")
	if int(span.End) == len(file.Text) {
		text += "\n"
	}
	return textEdit{at, text}
}
