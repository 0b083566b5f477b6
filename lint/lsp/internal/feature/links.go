package feature

import (
	"path"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Link is a place that names a file of the project, or a page.
type Link struct {
	At   source.Span
	File string // name in the project; "" for a page
	URL  string
}

var (
	fileName  = source.Pattern(`[\w.@+-]*(?:/[\w.@+-]+)*\.(?:jsonc?|ya?ml|toml|py|sh)\b`)
	ruleNames = source.Pattern(`trainvet[ \t]*:[ \t]*(?:file-)?ignore[ \t]*\[([^\]\n]*)\]`)
	ruleName  = source.Pattern(`[a-z0-9-]+`)
)

// maxLinks bounds the names that are looked up in one file.
const maxLinks = 500

// Links are the names of files of the project that stand in a config or script, and the rules that suppressions name.
func Links(view *workspace.View, file *source.File, rules []*lint.Rule) []Link {
	var links []Link
	for i, at := range fileName().FindAllIndex(file.Text, maxLinks) {
		if i == maxLinks {
			break
		}
		if target := inProject(view, file.Path, string(file.Text[at[0]:at[1]])); target != "" && target != file.Path {
			links = append(links, Link{At: source.Span{Start: uint32(at[0]), End: uint32(at[1])}, File: target})
		}
	}
	for _, list := range ruleNames().FindAllSubmatchIndex(file.Text, maxLinks) {
		for _, at := range ruleName().FindAllIndex(file.Text[list[2]:list[3]], -1) {
			from, to := list[2]+at[0], list[2]+at[1]
			if rule := lint.Find(rules, string(file.Text[from:to])); rule != nil {
				links = append(links, Link{At: source.Span{Start: uint32(from), End: uint32(to)}, URL: rule.URL()})
			}
		}
	}
	return links
}

// inProject is the file that a name means: beside the one that names it, or seen from a folder above.
func inProject(view *workspace.View, from, name string) string {
	if path.IsAbs(name) || strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		return ""
	}
	for folder := path.Dir(from); ; folder = path.Dir(folder) {
		if file := path.Join(folder, name); !strings.HasPrefix(file, "..") && view.Is(file) == workspace.RegularFile {
			return file
		}
		if folder == "." || folder == "/" {
			return ""
		}
	}
}
