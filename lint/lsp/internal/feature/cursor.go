package feature

import (
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// cursor is where somebody types in a config. It is found by the text before it alone, since what is being typed does not parse.
type cursor struct {
	section []string // keys of the mappings around it
	key     string   // whose value is typed; "" where a key is
	value   bool
	start   int  // of the word that is typed
	end     int  // of the word, behind the cursor
	quoted  bool // the word stands in quotes
	list    bool // an element of a list
}

// cursorIn finds where an offset stands; false where nothing is typed, as in a comment.
func cursorIn(file *source.File, offset int) (cursor, bool) {
	text := string(file.Text)
	offset = min(offset, len(text))
	switch file.Kind {
	case source.JSON:
		return jsonCursor(text, offset)
	case source.YAML:
		return yamlCursor(text, offset)
	case source.TOML:
		return tomlCursor(text, offset)
	}
	return cursor{}, false
}

// wordEnd is the end of the word that goes on at an offset.
func wordEnd(text string, at int) int {
	for at < len(text) && isWord(text[at]) {
		at++
	}
	return at
}

func wordStart(text string, at int) int {
	for at > 0 && isWord(text[at-1]) {
		at--
	}
	return at
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// jsonCursor reads the brackets, strings, colons and commas before the cursor.
func jsonCursor(text string, offset int) (cursor, bool) {
	type level struct {
		array bool
		key   string
		value bool // behind a colon
	}
	var stack []level
	top := func() *level {
		if len(stack) == 0 {
			stack = append(stack, level{})
		}
		return &stack[len(stack)-1]
	}
	at := func(start, end int, quoted bool) (cursor, bool) {
		c := cursor{start: start, end: end, quoted: quoted}
		for _, l := range stack[:max(len(stack)-1, 0)] {
			if !l.array {
				c.section = append(c.section, l.key)
			}
		}
		switch t := top(); {
		case t.array:
			c.list, c.value = true, true
			if len(stack) > 1 {
				c.key, c.section = stack[len(stack)-2].key, c.section[:max(len(c.section)-1, 0)]
			}
		case t.value:
			c.key, c.value = t.key, true
		}
		return c, len(stack) > 0
	}
	for i := 0; i < offset; {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			end := i + 1
			for end < len(text) && text[end] != c && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			if offset <= end {
				return at(i+1, end, true)
			}
			if t := top(); !t.array && !t.value {
				t.key = text[i+1 : end]
			}
			i = end + 1
		case strings.HasPrefix(text[i:], "//") || c == '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 || i+end >= offset {
				return cursor{}, false
			}
			i += end
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i:], "*/")
			if end < 0 || i+end >= offset {
				return cursor{}, false
			}
			i += end + 2
		case c == '{' || c == '[':
			stack = append(stack, level{array: c == '['})
			i++
		case c == '}' || c == ']':
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
			i++
		case c == ':':
			top().value = true
			i++
		case c == ',':
			if t := top(); !t.array {
				*t = level{}
			}
			i++
		default:
			i++
		}
	}
	return at(wordStart(text, offset), wordEnd(text, offset), false)
}

// yamlCursor reads the indents of the lines above. Flow collections are not completed.
func yamlCursor(text string, offset int) (cursor, bool) {
	from := strings.LastIndexByte(text[:offset], '\n') + 1
	before := text[from:offset]
	indent, body := yamlIndent(before)
	if strings.HasPrefix(body, "#") || strings.Contains(body, " #") || strings.ContainsAny(body, "{[") {
		return cursor{}, false
	}
	c := cursor{start: wordStart(text, offset), end: wordEnd(text, offset)}
	if key, rest, found := strings.Cut(body, ":"); found && (rest == "" || rest[0] == ' ') {
		c.key, c.value = strings.Trim(key, `"' `), true
		if rest == "" { // the blank behind the colon is not typed yet
			return cursor{}, false
		}
		rest = strings.TrimLeft(rest, " ")
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			c.quoted, c.start = true, offset-len(rest)+1
		}
	} else if strings.HasPrefix(strings.TrimLeft(before, " "), "- ") && !strings.Contains(body, ":") {
		c.list = true
	}
	lines := strings.Split(text[:from], "\n")
	for i := len(lines) - 2; i >= 0 && indent > 0; i-- {
		line := strings.TrimRight(lines[i], "\r")
		own, body := yamlIndent(line)
		if body == "" || body[0] == '#' || own >= indent {
			continue
		}
		key, rest, found := strings.Cut(body, ":")
		if !found {
			continue
		}
		if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' && rest[0] != '&' && rest[0] != '!' {
			continue
		}
		c.section = append([]string{strings.Trim(key, `"' `)}, c.section...)
		indent = own
	}
	return c, true
}

// yamlIndent is the column where the content of a line begins, behind the marks of lists.
func yamlIndent(line string) (indent int, body string) {
	body = line
	for {
		trimmed := strings.TrimLeft(body, " ")
		indent += len(body) - len(trimmed)
		body = trimmed
		if !strings.HasPrefix(body, "- ") {
			return indent, body
		}
		indent += 2
		body = body[2:]
	}
}

// tomlCursor reads the table that the line stands in.
func tomlCursor(text string, offset int) (cursor, bool) {
	from := strings.LastIndexByte(text[:offset], '\n') + 1
	before := text[from:offset]
	if strings.Contains(before, "#") || strings.HasPrefix(strings.TrimSpace(before), "[") {
		return cursor{}, false
	}
	c := cursor{start: wordStart(text, offset), end: wordEnd(text, offset)}
	for _, line := range strings.Split(text[:from], "\n") {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "["); ok && strings.HasSuffix(name, "]") && !strings.Contains(name, "=") {
			c.section = nil
			for part := range strings.SplitSeq(strings.Trim(name, "[]"), ".") {
				c.section = append(c.section, strings.Trim(strings.TrimSpace(part), `"'`))
			}
		}
	}
	if key, rest, found := strings.Cut(before, "="); found {
		c.key, c.value = strings.Trim(strings.TrimSpace(key), `"'`), true
		rest = strings.TrimLeft(rest, " ")
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			c.quoted, c.start = true, offset-len(rest)+1
		}
	}
	return c, true
}
