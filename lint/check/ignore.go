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
	literal    bool   // nothing in it stands for anything else
	head, tail string // how all that match begin and end; most names do not
}

// matches reports whether a name, relative to the base of the pattern, is one that it means.
func (p *pattern) matches(relative string) bool {
	glob := p.glob
	if p.last != "" {
		glob, relative = p.last, relative[strings.LastIndexByte(relative, '/')+1:]
	}
	if p.literal {
		return relative == glob
	}
	if !strings.HasPrefix(relative, p.head) || !strings.HasSuffix(relative, p.tail) {
		return false
	}
	match, err := doublestar.Match(glob, relative)
	return err == nil && match
}

// special are the characters of a pattern that may stand for something else.
const special = `*?[]\`

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

// literalBraces keeps braces, which mean nothing in an ignore file, from meaning alternatives.
var literalBraces = strings.NewReplacer("{", `\{`, "}", `\}`)

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
		line = literalBraces.Replace(line)
		if inside, ok := strings.CutSuffix(line, "/**"); ok {
			line = inside + "/**/*" // all that is inside, but not the folder itself
		}
		next.glob = line
		if !anchored {
			next.last, next.glob = line, "**/"+line
		}
		if first := strings.IndexAny(line, special); first < 0 {
			next.literal = true
		} else {
			next.head, next.tail = line[:first], line[strings.LastIndexAny(line, special+"/")+1:]
		}
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
		next := &p.list[i]
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
	if len(p.list) == 0 {
		return false
	}
	relative, inside := below(p.base, file)
	if !inside {
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
	relative, inside := strings.CutPrefix(name, folder)
	if folder != "/" && inside {
		relative, inside = strings.CutPrefix(relative, "/")
	}
	if !inside {
		return name, false
	}
	return relative, relative != ""
}
