package configs

import (
	"bytes"
	"github.com/trainvet/trainvet/lint/source"
	"strings"
)

// templateEnd is the end of the {{ }}, {% %} or {# #} that starts at an offset; of an unclosed one the end of its line.
func templateEnd(text []byte, start int) int {
	if start+2 > len(text) {
		return len(text)
	}
	closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[text[start+1]]
	if end := bytes.Index(text[start+2:], []byte(closer)); closer != "" && end >= 0 {
		return start + 2 + end + 2
	}
	if end := bytes.IndexByte(text[start:], '\n'); end >= 0 {
		return start + end
	}
	return len(text)
}

var (
	// A word that a sed or envsubst call replaces before the file is loaded
	placeholderWord = source.Pattern(`^(?:\$[A-Za-z_][A-Za-z0-9_]*|@[A-Za-z_][A-Za-z0-9_]*@|%\([A-Za-z_]+\)[sdf]|<[^<>\n]+>|_*[A-Z][A-Z0-9_]{2,})`)
	// Capitals that are a value whose quotes are missing rather than a placeholder
	knownWord = source.Pattern(`^(?:TRUE|FALSE|NULL|NONE|NAN|INF|INFINITY|YES|OFF|AUTO|ADAMW?|SGD|LAMB|LION|MUON|CPU|GPU|NPU|NVME|BF16|FP16|FP32|FP8|NCCL|HCCL|GLOO)$`)
	// A string that an interpolation fills in as a whole or in part
	interpolated = source.Pattern(`\$\{[^}]*\}|^\s*\{\{[^{}]*\}\}\s*$|^\$[A-Za-z_][A-Za-z0-9_]*$`)
)

func isInterpolated(s string) bool {
	return strings.ContainsAny(s, "${") && interpolated().MatchString(s)
}

// placeholderAhead reports whether the unquoted value at the position is filled in before the file is loaded.
func (r *jsonReader) placeholderAhead() bool {
	if r.at("{{") || r.at("{%") || r.at("${") {
		return true
	}
	match := placeholderWord().Find(r.text[r.pos:])
	if match == nil || knownWord().Match(match) {
		return false
	}
	end := r.pos + len(match)
	for end < len(r.text) && (r.text[end] == ' ' || r.text[end] == '\t') {
		end++
	}
	return r.isDelimiter(end)
}

// placeholder reads a value that is filled in before the file is loaded, up to the next delimiter.
func (r *jsonReader) placeholder() *Node {
	start := r.pos
scan:
	for r.pos < len(r.text) {
		switch {
		case r.at("{{"), r.at("{%"):
			r.pos = templateEnd(r.text, r.pos)
		case r.at("${"):
			end := bytes.IndexAny(r.text[r.pos:], "}\n")
			if end < 0 {
				end = len(r.text) - r.pos - 1
			}
			r.pos += end + 1
		case r.isDelimiter(r.pos), r.peek() == ':', r.peek() == '"' && r.pos > start:
			break scan
		default:
			r.pos++
		}
	}
	end := start + len(bytes.TrimRight(r.text[start:r.pos], " \t\r\n"))
	end = max(end, min(start+1, len(r.text)))
	r.pos = end
	r.template(start, end)
	node := r.node(Scalar, Unquoted, start, end, string(r.text[start:end]))
	node.Open = true
	return node
}

// looseWord is a placeholder in a file that is a template anyway.
var looseWord = source.Pattern(`^[A-Za-z_][A-Za-z0-9_]*[A-Z_][A-Za-z0-9_]*$`)

// forgiveTemplate drops the errors that the template syntax causes: all where blocks choose between parts of the text,
// else those at a placeholder, whose value is not known.
func (r *jsonReader) forgiveTemplate() {
	if r.blocks {
		r.tree.Errors, r.tree.StrictErrors, r.faults = nil, nil, 0
		return
	}
	isPlaceholder := func(text []byte) bool {
		return len(text) > 0 && (len(placeholderWord().Find(text)) == len(text) || looseWord().Match(text) && !wrongWord().Match(text))
	}
	keep := func(errors []Error) []Error {
		var kept []Error
		for _, e := range errors {
			if !isPlaceholder(r.text[e.At.Span.Start:e.At.Span.End]) {
				kept = append(kept, e)
			}
		}
		return kept
	}
	r.tree.Errors, r.tree.StrictErrors = keep(r.tree.Errors), keep(r.tree.StrictErrors)
	r.faults = len(r.tree.Errors)
	var visit func(*Node)
	visit = func(n *Node) {
		n.Open = n.Open || n.Kind == Scalar && n.Style == Unquoted && isPlaceholder([]byte(n.Raw))
		for i := range n.Items {
			visit(n.Items[i].Value)
		}
	}
	if r.tree.Root != nil {
		visit(r.tree.Root)
	}
}
