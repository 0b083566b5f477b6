package check

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// patterns are the lines of one .gitignore file, or the patterns of one settings file, which are read the same way. Base is
// the folder that they are relative to; it and all names asked about are absolute, with forward slashes.
type patterns struct {
	base  string
	cut   string   // the name of a file that is too large to be read to its end
	lines []string // as written
	list  []pattern
}

type pattern struct {
	glob       string // for doublestar, relative to base
	negate     bool
	folderOnly bool
	last       string // what the last name must match, where the pattern speaks of no folder
	literal    bool   // nothing in last stands for anything else
}

// matches reports whether a name, relative to the base of the pattern, is one that it means.
func (p *pattern) matches(relative string) bool {
	if p.last == "" {
		match, err := doublestar.Match(p.glob, relative)
		return err == nil && match
	}
	base := relative[strings.LastIndexByte(relative, '/')+1:]
	if p.literal {
		return base == p.last
	}
	match, err := doublestar.Match(p.last, base)
	return err == nil && match
}

// parseIgnore reads the text of a .gitignore file.
func parseIgnore(base, text string) patterns {
	return newPatterns(base, strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n"))
}

// malformed is the first pattern that matches nothing because it is written wrongly, or "".
func malformed(lines []string) string {
	for _, line := range lines {
		for _, p := range newPatterns("/", []string{line}).list {
			if !doublestar.ValidatePattern(p.glob) {
				return line
			}
		}
	}
	return ""
}

func newPatterns(base string, lines []string) patterns {
	p := patterns{base: base, lines: lines}
	for _, line := range lines {
		line = trimIgnored(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		var next pattern
		line, next.negate = strings.CutPrefix(line, "!")
		line, next.folderOnly = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
		if inside, ok := strings.CutSuffix(line, "/**"); ok {
			line = inside + "/**/*" // all that is inside, but not the folder itself
		}
		if !anchored {
			next.last, next.literal = line, !strings.ContainsAny(line, `*?[\`)
			line = "**/" + line
		}
		next.glob = line
		p.list = append(p.list, next)
	}
	return p
}

// trimIgnored drops blanks at the end that no backslash protects.
func trimIgnored(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// verdict is what patterns say about a name.
type verdict uint8

const (
	silent verdict = iota
	leftOut
	keptIn
)

// of gives the word of the last pattern that matches name itself; what holds for the folders above it is the caller's.
func (p patterns) of(name string, folder bool) verdict {
	relative, inside := below(p.base, name)
	if !inside {
		return silent
	}
	for i := len(p.list) - 1; i >= 0; i-- {
		next := p.list[i]
		if next.folderOnly && !folder {
			continue
		}
		if next.matches(relative) {
			if next.negate {
				return keptIn
			}
			return leftOut
		}
	}
	return silent
}

// covers reports whether the patterns leave out the file or a folder above it.
func (p patterns) covers(file string) bool {
	relative, inside := below(p.base, file)
	if !inside || len(p.list) == 0 {
		return false
	}
	for i := range len(relative) {
		if relative[i] == '/' && p.of(path.Join(p.base, relative[:i]), true) == leftOut {
			return true
		}
	}
	return p.of(file, false) == leftOut
}

// below is name relative to folder, and whether it lies below it. Both are clean absolute names.
func below(folder, name string) (string, bool) {
	if folder != "/" {
		folder += "/"
	}
	relative, inside := strings.CutPrefix(name, folder)
	return relative, inside && relative != ""
}
