package workspace

import (
	"bytes"
	"strings"
)

// imported is what an import statement names.
type imported struct {
	module, member string
	level          int
}

// of reports whether one of some modules is imported, by their dotted names, or something in one.
func (i imported) of(modules []string) bool {
	if i.level > 0 {
		return false
	}
	for _, module := range modules {
		if isOrIn(i.module, module) {
			return true
		}
		if rest, inside := strings.CutPrefix(module, i.module); inside && rest != "" && rest[0] == '.' && isOrIn(i.member, rest[1:]) {
			return true
		}
	}
	return false
}

// isOrIn reports whether a dotted name is another one, or of something in it.
func isOrIn(name, of string) bool {
	rest, is := strings.CutPrefix(name, of)
	return is && (rest == "" || rest[0] == '.')
}

// importsIn lists what the import statements of a Python text name, in their order. It reads no more of the language than strings and
// comments, up to the last place where the word stands: who asks what files import asks it of many that are not looked at otherwise, and a
// tree costs ten times as much and more. In code, `import` is a word of these statements alone, so that nothing else need be understood.
func importsIn(text []byte) []imported {
	r := importReader{text: text, end: lastImport(text)}
	for r.at <= r.end {
		switch c := text[r.at]; {
		case c == '#':
			r.comment()
		case c == '"' || c == '\'':
			r.at, _ = quoted(text, r.at)
		case !inIdentifier(c):
			r.at++
		default:
			switch r.identifier() {
			case "import":
				r.modules()
			case "from":
				r.members()
			}
		}
	}
	return r.found
}

// lastImport is where the word import stands last, -1 where it does not. It seldom stands far down, and a search onwards
// takes many bytes at a time where one backwards takes each.
func lastImport(text []byte) int {
	last, at := -1, 0
	for {
		next := bytes.Index(text[at:], []byte("import"))
		if next < 0 {
			return last
		}
		last = at + next
		at = last + len("import")
	}
}

// importReader is at a place of a text.
type importReader struct {
	text  []byte
	at    int
	end   int // where the word import stands last
	found []imported
}

// comment goes to the end of the line.
func (r *importReader) comment() {
	if length := bytes.IndexAny(r.text[r.at:], "\r\n"); length >= 0 {
		r.at += length
	} else {
		r.at = len(r.text)
	}
}

func inIdentifier(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// identifier takes the one that stands here; it is empty where none does.
func (r *importReader) identifier() string {
	start := r.at
	for r.at < len(r.text) && inIdentifier(r.text[r.at]) {
		r.at++
	}
	return string(r.text[start:r.at])
}

// space goes to the next thing of the statement: past lines that are continued, and in parentheses past line ends and comments.
func (r *importReader) space(bracketed bool) {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == ' ' || c == '\t' || c == '\f':
		case c == '\\' && (bytes.HasPrefix(r.text[r.at:], []byte("\\\n")) || bytes.HasPrefix(r.text[r.at:], []byte("\\\r\n"))):
			r.at += bytes.IndexByte(r.text[r.at:], '\n')
		case bracketed && (c == '\n' || c == '\r'):
		case bracketed && c == '#':
			r.comment()
			r.at--
		default:
			return
		}
	}
}

// take takes a byte, if it stands here.
func (r *importReader) take(c byte, bracketed bool) bool {
	if r.at >= len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	r.space(bracketed)
	return true
}

// name takes a name, dotted or not, and a new one after `as`; it is empty where none stands here.
func (r *importReader) name(dotted, bracketed bool) string {
	name := r.identifier()
	r.space(bracketed)
	for dotted && name != "" && r.take('.', bracketed) {
		name += "." + r.identifier()
		r.space(bracketed)
	}
	if back := r.at; r.identifier() == "as" {
		r.space(bracketed)
		r.identifier()
		r.space(bracketed)
	} else {
		r.at = back
	}
	return name
}

// modules reads what stands behind `import`.
func (r *importReader) modules() {
	r.space(false)
	for {
		name := r.name(true, false)
		if name == "" {
			return
		}
		r.found = append(r.found, imported{module: name})
		if !r.take(',', false) {
			return
		}
	}
}

// members reads what stands behind `from`, which is also a word of `yield from` and `raise ... from`.
func (r *importReader) members() {
	r.space(false)
	of := imported{}
	for r.take('.', false) {
		of.level++
	}
	back := r.at
	if of.module = r.name(true, false); of.module == "import" && of.level > 0 {
		of.module = ""
		r.at = back
	}
	if back = r.at; r.identifier() != "import" {
		r.at = back
		return
	}
	r.space(false)
	bracketed := r.take('(', true)
	for {
		of.member = "*"
		if !r.take('*', bracketed) {
			of.member = r.name(false, bracketed)
		}
		if of.member == "" {
			return
		}
		r.found = append(r.found, of)
		if !r.take(',', bracketed) {
			return
		}
	}
}
