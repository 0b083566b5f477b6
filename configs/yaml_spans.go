package configs

import (
	"bytes"
	"slices"
	"sort"

	"go.yaml.in/yaml/v4"

	"github.com/trainvet/trainvet/lint/source"
)

func isBlankAt(text []byte, i int) (size int) {
	if text[i] == ' ' || text[i] == '\t' {
		return 1
	}
	return lineBreak(text, i)
}

// skipBlank passes over blanks, line breaks and comments.
func (r *yamlReader) skipBlank(i int) int {
	for i < len(r.text) {
		if size := isBlankAt(r.text, i); size > 0 {
			i += size
			continue
		}
		if r.text[i] == '#' && r.commentMayBegin(i) {
			for i < len(r.text) && lineBreak(r.text, i) == 0 {
				i++
			}
			continue
		}
		break
	}
	return i
}

// commentMayBegin reports whether a # at this offset follows a blank or a line break.
func (r *yamlReader) commentMayBegin(i int) bool {
	if i == 0 || r.text[i-1] == ' ' || r.text[i-1] == '\t' || r.text[i-1] == '\n' || r.text[i-1] == '\r' {
		return true
	}
	return i >= 2 && lineBreak(r.text, i-2) == 2 || i >= 3 && lineBreak(r.text, i-3) == 3
}

// properties passes over the anchor and the tag before the content of a node. Without content it stops behind them.
func (r *yamlReader) properties(i int, anchor string, empty bool) int {
	for i < len(r.text) && (r.text[i] == '&' || r.text[i] == '!') {
		end := i
		if bytes.HasPrefix(r.text[i:], []byte("!<")) {
			if closing := bytes.IndexByte(r.text[i:], '>'); closing > 0 {
				end = i + closing + 1
			}
		}
		if anchor != "" && bytes.HasPrefix(r.text[i:], []byte("&"+anchor)) {
			end = i + 1 + len(anchor)
		}
		for end < len(r.text) && r.text[i] == '!' && isBlankAt(r.text, end) == 0 && bytes.IndexByte([]byte(",[]{}"), r.text[end]) < 0 {
			end++
		}
		next := r.skipBlank(end)
		if next == end || next == len(r.text) || empty && r.text[next] != '&' && r.text[next] != '!' {
			return end
		}
		i = next
	}
	return i
}

// quotedEnd is the end of the quoted scalar at an offset, its quote included.
func (r *yamlReader) quotedEnd(start int) int {
	if start >= len(r.text) {
		return start
	}
	quote := r.text[start]
	for i := start + 1; i < len(r.text); i++ {
		switch {
		case r.text[i] == '\\' && quote == '"':
			i++
		case r.text[i] == quote && quote == '\'' && i+1 < len(r.text) && r.text[i+1] == quote:
			i++
		case r.text[i] == quote:
			return i + 1
		}
	}
	return len(r.text)
}

// matchEnd is the end of the text at an offset whose characters besides blanks are those of value: folding and chomping
// change blanks only.
func (r *yamlReader) matchEnd(start int, value string) int {
	rest := []byte(value)
	end, i := start, start
	for j := 0; j < len(rest); {
		if size := isBlankAt(rest, j); size > 0 {
			j += size
			continue
		}
		for i < len(r.text) {
			size := isBlankAt(r.text, i)
			if size == 0 {
				break
			}
			i += size
		}
		if i >= len(r.text) || r.text[i] != rest[j] {
			break
		}
		i++
		j++
		end = i
	}
	return end
}

// blockEnd is where the text of a | or > scalar begins, and its end: that of its last line with content, or of its
// header.
func (r *yamlReader) blockEnd(start int, value string) (body, end int) {
	header := start
	for header < len(r.text) && bytes.IndexByte([]byte("|>+-0123456789"), r.text[header]) >= 0 {
		header++
	}
	body = header
	for body < len(r.text) && lineBreak(r.text, body) == 0 {
		body++
	}
	end = r.matchEnd(body, value)
	if end == body {
		return body, header
	}
	for end < len(r.text) && lineBreak(r.text, end) == 0 {
		end++
	}
	return body, end
}

// extend sets the span of a collection whose items are made: to its closing bracket, or to the end of its last item.
func (r *yamlReader) extend(n *Node, y *yaml.Node, start int) {
	end := max(start, r.reach)
	if y.Style&yaml.FlowStyle != 0 && start < len(r.text) {
		n.Style = Flow
		open := r.text[start]
		// `[k: v]` holds a mapping without brackets of its own
		ownPair := len(y.Content) > 0 && r.offset(y.Content[0].Line, y.Content[0].Column) == start
		if (open == '{' || open == '[') && !ownPair {
			end = r.flowEnd(max(end, start+1))
		}
	} else if len(y.Content) == 0 {
		end = start
	}
	r.reach = max(r.reach, end)
	n.At = r.place(start, end)
}

// flowEnd is the end of the flow collection whose last item ends at an offset, its bracket included.
func (r *yamlReader) flowEnd(i int) int {
	for i < len(r.text) {
		if next := r.skipBlank(i); next > i {
			i = next
			continue
		}
		if r.text[i] == ']' || r.text[i] == '}' {
			return i + 1
		}
		i++
	}
	return len(r.text)
}

// comments finds every comment: a # after a blank, outside of quoted and block scalars and of what could not be read.
// It finds tabs there as well, which YAML allows and the loaders that are used do not.
func (r *yamlReader) comments() []source.Span {
	sort.Slice(r.opaque, func(i, j int) bool { return r.opaque[i].Start < r.opaque[j].Start })
	found := r.lostComments()
	next := 0
	for i := 0; i < len(r.text); i++ {
		for next < len(r.opaque) && int(r.opaque[next].End) <= i {
			next++
		}
		if next < len(r.opaque) && int(r.opaque[next].Start) <= i {
			i = int(r.opaque[next].End) - 1
			continue
		}
		if r.text[i] == '\t' {
			r.fault(r.place(i, i+1), &Fix{"Write a space", source.Span{Start: uint32(i), End: uint32(i + 1)}, " "},
				"a tab outside of quotes; Python's YAML loaders take only spaces")
		}
		if r.text[i] == '#' && r.commentMayBegin(i) {
			end := i
			for end < len(r.text) && lineBreak(r.text, end) == 0 {
				end++
			}
			found = append(found, source.Span{Start: uint32(i), End: uint32(end)})
			i = end
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Start < found[j].Start })
	// Parts that are left out one after the other may overlap
	end := uint32(0)
	return slices.DeleteFunc(found, func(span source.Span) bool {
		again := span.Start < end
		end = max(end, span.End)
		return again
	})
}

// lostComments finds comments in the parts that could not be read, where only quotes on one line are sure.
func (r *yamlReader) lostComments() []source.Span {
	var found []source.Span
	for _, span := range r.blanked {
		quote := byte(0)
		for i := int(span.Start); i < int(span.End); i++ {
			switch c := r.file.Text[i]; {
			case lineBreak(r.file.Text, i) > 0:
				quote = 0
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '#' && (i == 0 || isBlankAt(r.file.Text, i-1) > 0):
				end := i
				for end < int(span.End) && lineBreak(r.file.Text, end) == 0 {
					end++
				}
				found = append(found, source.Span{Start: uint32(i), End: uint32(end)})
				i = end - 1
			}
		}
	}
	return found
}
