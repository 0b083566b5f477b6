package configs

import (
	"strings"

	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint/source"
)

// Requirement says which releases of a package a project asks for.
type Requirement struct {
	Name  string       // as packages are compared: lower case, with - for _ and .
	At    source.Place // of the requirement, from its name to the end of its versions
	Range pep440.Range
	Known bool   // the releases are known; false for a URL, a path, or a part that is filled in
	Spec  string // of the versions as written; "" for none

	When       When // whether it holds where training runs, by its marker
	Optional   bool // of an extra or a group that only some install
	Constraint bool // it holds for whoever installs the package, and does not ask for it
	Locked     bool // written by a tool, for the package and its own requirements alike
	Preset     bool // the image of a container holds it; an installation may replace it
}

// Direct reports whether it names one archive, folder or revision of the source in place of a release: `torch @ https://host/torch-2.1.whl`,
// `peft @ git+https://host/peft@0.6`. A repository without a revision is the newest.
func (r *Requirement) Direct() bool {
	where, ok := strings.CutPrefix(r.Spec, "@")
	if !ok {
		return false
	}
	scheme, behind, _ := strings.Cut(where, "://")
	if !strings.Contains(scheme, "+") {
		return true // no repository
	}
	_, inside, _ := strings.Cut(behind, "/") // a name may stand before the host
	return strings.Contains(inside, "@")
}

// When says whether the marker of a requirement holds on a machine that trains: Linux, with CPython.
type When uint8

// What a marker comes to.
const (
	Always When = iota
	Sometimes
	Never
)

// Include is another file that a requirements file reads.
type Include struct {
	Path       string // as written
	At         source.Place
	Constraint bool
}

// Requirements is what a file of requirements says.
type Requirements struct {
	List     []Requirement
	Includes []Include
	comments []source.Span
	extents  []source.Span
}

// Comments are the spans of all comments, marker included, in file order.
func (r *Requirements) Comments() []source.Span { return r.comments }

// Extent is the span of the next requirement at or after offset. After the last it is empty, at offset.
func (r *Requirements) Extent(offset uint32) source.Span {
	for _, span := range r.extents {
		if span.Start >= offset {
			return span
		}
	}
	return source.Span{Start: offset, End: offset}
}

// maxRequirements bounds the requirements that are kept of one file.
const maxRequirements = 4096

// ParseRequirements reads a file in pip's form: one requirement a line, options, and comments.
func ParseRequirements(f *source.File) *Requirements {
	r := &Requirements{}
	text := f.Text
	for start := 0; start < len(text); {
		end, line := logicalLine(text, start)
		span := source.Span{Start: uint32(start), End: uint32(start)}
		if hash := commentStart(line); hash >= 0 {
			stop := start + hash
			for stop < end && text[stop] != '\n' && text[stop] != '\r' {
				stop++
			}
			r.comments = append(r.comments, source.Span{Start: uint32(start + hash), End: uint32(stop)})
			line = line[:hash]
		}
		trimmed := strings.TrimLeft(line, " \t\n")
		span.Start += uint32(len(line) - len(trimmed))
		if trimmed = strings.TrimRight(trimmed, " \t\n"); trimmed != "" && len(r.List) < maxRequirements {
			span.End = span.Start + uint32(len(trimmed))
			r.extents = append(r.extents, span)
			r.line(f, trimmed, span.Start)
		}
		start = end
	}
	return r
}

// logicalLine is the line at an offset together with those that a backslash joins to it, each joint as blanks, and where the next one
// begins. Text and source have the same length.
func logicalLine(text []byte, start int) (end int, line string) {
	var b []byte
	for i := start; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '\n' || text[i+1] == '\r'):
			b = append(b, ' ')
			if text[i+1] == '\r' && i+2 < len(text) && text[i+2] == '\n' {
				b, i = append(b, ' '), i+1
			}
			b, i = append(b, ' '), i+1
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			return i + 2, string(b)
		case c == '\n' || c == '\r':
			return i + 1, string(b)
		default:
			b = append(b, c)
		}
	}
	return len(text), string(b)
}

// commentStart is where a comment begins: at a # at the start of a line or behind a blank. -1: nowhere.
func commentStart(line string) int {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return i
		}
	}
	return -1
}

func (r *Requirements) line(f *source.File, text string, start uint32) {
	if text[0] != '-' {
		if one, ok := ParseRequirement(f, text, start); ok {
			r.List = append(r.List, one)
		}
		return
	}
	for _, option := range [...]string{"--requirement", "--constraint", "-r", "-c"} {
		rest, ok := strings.CutPrefix(text, option)
		if !ok || strings.HasPrefix(option, "--") && rest != "" && rest[0] != ' ' && rest[0] != '=' && rest[0] != '\t' {
			continue
		}
		name := strings.TrimLeft(rest, " \t=")
		at := start + uint32(len(text)-len(name))
		name = strings.Trim(name, `"'`)
		if name != "" && !strings.Contains(name, "://") && !strings.Contains(name, "$") {
			r.Includes = append(r.Includes, Include{Path: name, At: f.At(source.Span{Start: at, End: start + uint32(len(text))}), Constraint: strings.Contains(option, "c")})
		}
		return
	}
}

var (
	packageName = source.Pattern(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	nameRuns    = source.Pattern(`[-_.]+`)
)

// PackageName is a name as packages are compared: flash_attn and Flash-Attn are one.
func PackageName(name string) string { return nameRuns().ReplaceAllString(strings.ToLower(name), "-") }

// ParseRequirement reads one requirement (PEP 508), such as `torch[opt]>=2.1,<2.5; sys_platform == "linux"`, which stands at an offset
// of a file. False for what names no package.
func ParseRequirement(f *source.File, text string, start uint32) (Requirement, bool) {
	name := packageName().FindString(text)
	if name == "" {
		return Requirement{}, false
	}
	rest := text[len(name):]
	if blanks := strings.TrimLeft(rest, " \t"); blanks != "" && strings.IndexByte("[<>=!~@;(", blanks[0]) < 0 && !strings.HasPrefix(blanks, "--") {
		return Requirement{}, false // a path, a URL, or prose
	}
	one := Requirement{Name: PackageName(name), Known: true}
	end := len(name)
	skip := func() { rest = strings.TrimLeft(rest, " \t") }
	skip()
	if strings.HasPrefix(rest, "[") { // extras
		close := strings.IndexByte(rest, ']')
		if close < 0 {
			return Requirement{}, false
		}
		rest = rest[close+1:]
		end = len(text) - len(rest)
		skip()
	}
	if marker := strings.IndexByte(rest, ';'); marker >= 0 && !strings.HasPrefix(rest, "@") {
		one.When = evaluateMarker(rest[marker+1:], &one.Optional)
		rest = rest[:marker]
	} else if at := strings.Index(rest, " ;"); at >= 0 {
		one.When = evaluateMarker(rest[at+2:], &one.Optional)
		rest = rest[:at]
	}
	if options := strings.Index(rest, "--"); options >= 0 { // hashes
		rest = rest[:options]
	}
	spec := strings.TrimSpace(rest)
	if i := strings.Index(text[end:], spec); spec != "" && i >= 0 {
		end += i + len(spec)
	}
	one.At = f.At(source.Span{Start: start, End: start + uint32(end)})
	one.Spec = spec
	switch {
	case strings.HasPrefix(spec, "@"):
		one.Known = false
	case spec != "":
		inner := strings.TrimSuffix(strings.TrimPrefix(spec, "("), ")")
		one.Range, one.Known = pep440.ParseRange(inner)
	}
	return one, true
}

var markerAtom = source.Pattern(`^\s*(?:'([^']*)'|"([^"]*)"|([a-z_.]+))\s*(===?|!=|<=|>=|~=|<|>|not\s+in|in)\s*(?:'([^']*)'|"([^"]*)"|([a-z_.]+))`)

// evaluateMarker says whether a marker holds on Linux; what depends on the release of Python, on the processor or on an extra is
// Sometimes. Parentheses are read as Sometimes, unless the whole stands in them.
func evaluateMarker(text string, optional *bool) When {
	if hash := strings.Index(text, "--"); hash >= 0 {
		text = text[:hash]
	}
	text = strings.TrimSpace(text)
	if strings.Contains(text, "extra") {
		*optional = true
	}
	for strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") && strings.Count(text, "(") == 1 {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	if strings.ContainsAny(text, "()") {
		return Sometimes
	}
	any := Never
	for _, either := range orWord().Split(text, -1) {
		all := Always
		for _, atom := range andWord().Split(either, -1) {
			all = max(all, evaluateAtom(atom))
		}
		any = min(any, all)
	}
	return any
}

var (
	orWord  = source.Pattern(`\s+or\s+`)
	andWord = source.Pattern(`\s+and\s+`)
)

// linux is what markers see there.
var linux = map[string]string{"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_python_implementation": "CPython", "implementation_name": "cpython"}

func evaluateAtom(text string) When {
	m := markerAtom().FindStringSubmatch(text)
	if m == nil {
		return Sometimes
	}
	left, right := m[3], m[5]+m[6]
	if left == "" {
		left, right = m[7], m[1]+m[2]
	}
	have, known := linux[left]
	if !known || right == "" {
		return Sometimes
	}
	switch m[4] {
	case "==", "===":
		return when(have == right)
	case "!=":
		return when(have != right)
	}
	return Sometimes
}

func when(holds bool) When {
	if holds {
		return Always
	}
	return Never
}
