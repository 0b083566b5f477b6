// Package changes says which lines of a project are new: since a revision of git, or by a patch.
package changes

import (
	"bytes"
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Range are the lines First to Last, from 1 and both included.
type Range struct{ First, Last int }

// Lines are the new lines of one file.
type Lines struct {
	Ranges []Range // in order, apart
	Whole  bool    // every line
}

// Overlaps reports whether one of the lines first to last is new.
func (l Lines) Overlaps(first, last int) bool {
	return l.Whole || slices.ContainsFunc(l.Ranges, func(r Range) bool { return r.First <= last && first <= r.Last })
}

// add takes in one line, which follows all others.
func (l *Lines) add(line int) {
	if n := len(l.Ranges); n > 0 && l.Ranges[n-1].Last >= line-1 {
		l.Ranges[n-1].Last = max(line, l.Ranges[n-1].Last)
		return
	}
	l.Ranges = append(l.Ranges, Range{line, line})
}

var errNoPatch = errors.New("is no patch: it has no line `+++ FILE` before the lines that change")

// hunkHead is the line before the lines that change. The counts are 1 where they are left out.
var hunkHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`) })

// ParsePatch reads a unified diff, as of git diff or diff -u, and gives the new lines of each file by the name that it has after
// the change. Files that are deleted, and those of which only the name or the mode changes, have none. What stands around the patch
// is passed over.
func ParsePatch(text []byte) (map[string]Lines, error) {
	p := patch{files: map[string]Lines{}}
	for line := range bytes.Lines(text) {
		if err := p.line(string(bytes.TrimSuffix(line, []byte("\n")))); err != nil {
			return nil, err
		}
	}
	return p.files, nil
}

// patch is a reader of one diff.
type patch struct {
	files    map[string]Lines
	from, to string // as written; to is "" outside of a file
	new      int    // the number of the next line after the change
	old, add int    // lines of the hunk that are still to come, before and after the change
}

func (p *patch) line(line string) error {
	if p.old > 0 || p.add > 0 {
		p.changed(line)
		return nil
	}
	switch {
	case strings.HasPrefix(line, "--- "):
		p.from, p.to = fileName(line[4:]), ""
	case strings.HasPrefix(line, "+++ "):
		p.to = newName(p.from, fileName(line[4:]))
		if _, known := p.files[p.to]; !known && p.to != "" {
			p.files[p.to] = Lines{}
		}
	case strings.HasPrefix(line, "@@@"): // of a merge; which parent counts cannot be told
		if p.to != "" {
			p.files[p.to] = Lines{Whole: true}
		}
	case strings.HasPrefix(line, "diff "):
		p.from, p.to = "", ""
	default:
		head := hunkHead().FindStringSubmatch(line)
		if head == nil {
			return nil
		}
		if p.from == "" {
			return errNoPatch
		}
		p.old, p.add = countOf(head[1]), countOf(head[3])
		p.new, _ = strconv.Atoi(head[2])
	}
	return nil
}

func countOf(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text)
	return n
}

// changed takes a line of a hunk.
func (p *patch) changed(line string) {
	switch {
	case strings.HasPrefix(line, "+"):
		if p.to != "" {
			lines := p.files[p.to]
			lines.add(p.new)
			p.files[p.to] = lines
		}
		p.new++
		p.add--
	case strings.HasPrefix(line, "-"):
		p.old--
	case strings.HasPrefix(line, `\`): // no newline at the end of the file
	default: // context; some tools drop the blank of an empty line
		p.new++
		p.add--
		p.old--
	}
	p.old, p.add = max(p.old, 0), max(p.add, 0)
}

// fileName reads the name in a line `+++ NAME`: in quotes, or up to a tab and the time.
func fileName(text string) string {
	text = strings.TrimSuffix(text, "\r")
	if strings.HasPrefix(text, `"`) {
		if end := closingQuote(text); end > 0 {
			return unquote(text[1:end])
		}
	}
	name, _, _ := strings.Cut(text, "\t")
	return name
}

func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unquote undoes the quoting of git, which is that of C.
func unquote(text string) string {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			name.WriteByte(text[i])
			continue
		}
		i++
		if octal := text[i:min(i+3, len(text))]; len(octal) == 3 {
			if code, err := strconv.ParseUint(octal, 8, 8); err == nil {
				name.WriteByte(byte(code))
				i += 2
				continue
			}
		}
		if at := strings.IndexByte("abtnvfr", text[i]); at >= 0 {
			name.WriteByte("\a\b\t\n\v\f\r"[at])
		} else {
			name.WriteByte(text[i])
		}
	}
	return name.String()
}

// newName is the name after the change without the prefix that git sets before it (b/, or w/ and i/ with diff.mnemonicPrefix); ""
// for a file that is deleted.
func newName(from, to string) string {
	if to == "/dev/null" {
		return ""
	}
	if folder, rest, ok := strings.Cut(to, "/"); ok && len(folder) == 1 && rest != "" {
		before, _, _ := strings.Cut(from, "/")
		switch pair := before + folder; {
		case from == "/dev/null" && strings.Contains("bwi", folder), pair == "ab", pair == "iw", pair == "cw", pair == "ci", pair == "ow", pair == "ac":
			to = rest
		}
	}
	return path.Clean(to)
}
