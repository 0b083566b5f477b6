package configs

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/source"
)

// startsLauncher reports whether a word is a whole command line that starts a launcher: of ssh, docker and the like.
func startsLauncher(f field) bool {
	text := f.text()
	if f.style == Plain || strings.IndexAny(text, " \n") < 0 {
		return false
	}
	for _, word := range f.split() {
		if name := programName(word); launchers[name] != nil && name != "bash" && name != "sh" || tools[name] != "" || name == "accelerate" {
			return true
		}
	}
	return false
}

// shellString is the text that `bash -c "..."` runs, behind whatever wrapper.
func shellString(words []field) (field, bool) {
	for i, f := range words {
		name := f.text()
		name = name[strings.LastIndexByte(name, '/')+1:]
		if name != "bash" && name != "sh" && name != "zsh" {
			continue
		}
		for j := i + 1; j+1 < len(words); j++ {
			flag := words[j].text()
			if !strings.HasPrefix(flag, "-") {
				break
			}
			if strings.HasSuffix(flag, "c") && !strings.HasPrefix(flag, "--") {
				return words[j+1], true
			}
		}
		break
	}
	return field{}, false
}

// inner follows a word that is run as a script. One in quotes of its own is parsed where it stands, another is split
// into words.
func (r *shellReader) inner(f field, env *Tree, at source.Span) {
	span := f.word
	span.Start++
	span.End--
	if f.style == Plain || span.Len() <= 0 || f.style == DoubleQuoted && strings.Contains(r.source(span), "\\\"") || len(f.runs) > 0 && f.runs[0].via != nil && f.runs[0].via.use.Len()+2 >= f.word.Len() {
		r.nested([]field{f}, env, at)
		return
	}
	r.subscript(span, r.environment(env).Root.Items)
}

// subscript follows a part of the script as a script of its own. Each is parsed in a copy of the whole text, so a long script has fewer.
func (r *shellReader) subscript(span source.Span, env []Item) {
	if r.inners++; r.depth >= maxShellDepth || r.inners > r.file.Affordable() {
		return
	}
	kept, keptEnv := r.text, r.env
	r.text = bytes.Clone(r.text)
	fill(r.text, source.Span{Start: 0, End: span.Start}, ' ')
	fill(r.text, source.Span{Start: span.End, End: uint32(len(r.text))}, ' ')
	// A dollar that the script around this keeps is one for the script itself
	for i := span.Start; i+1 < span.End; i++ {
		if r.text[i] == '\\' && r.text[i+1] == '$' {
			r.text[i] = ' '
		}
	}
	r.env = append(append([]Item{}, r.env...), env...)
	r.depth++
	if parsed, err := r.syntax(maxShellErrors); err == nil {
		var comments []source.Span
		syntax.Walk(parsed, func(node syntax.Node) bool {
			if c, ok := node.(*syntax.Comment); ok {
				comments = append(comments, r.span(c))
			}
			return true
		})
		r.directives(comments)
		r.apart(func() { r.statements(parsed.Stmts) })
	}
	r.depth--
	r.text, r.env = kept, keptEnv
}

var redirectWord = source.Pattern(`^(?:&|[0-9])?(?:>>?|<)(?:&[0-9])?`)

// nested follows text that is run as a script of its own: split at blanks, and into commands at ; & and |. Quotes
// inside are dropped.
func (r *shellReader) nested(texts []field, env *Tree, at source.Span) {
	if r.depth >= maxShellDepth {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	env = r.environment(env)
	var words []field
	flush := func() {
		for len(words) > 0 {
			name, _, ok := strings.Cut(words[0].text(), "=")
			if !ok || !isName(name) {
				break
			}
			item := Item{Key: name, KeyAt: r.file.At(words[0].head(len(name)).span()), Value: r.value(words[0].cut(len(name)+1), true)}
			r.record(env, item)
			words = words[1:]
		}
		if len(words) > 0 {
			r.command(words, env, at)
		}
		words = nil
	}
	skip := false
	for _, text := range texts {
		for _, f := range text.split() {
			word := f.text()
			f.style = Plain
			if skip {
				skip = false
				continue
			}
			if at := redirectWord().FindStringIndex(word); at != nil {
				skip = at[1] == len(word)
				continue
			}
			switch {
			case word == "&&" || word == "||" || word == "|" || word == ";" || word == "&" || word == "\\":
				if word != "\\" {
					flush()
				}
			case len(word) > 1 && strings.HasSuffix(word, ";"):
				f = f.head(len(word) - 1)
				f.word = f.site()
				words = append(words, f)
				flush()
			default:
				if n := len(word); n >= 2 && (word[0] == '"' || word[0] == '\'') && word[n-1] == word[0] {
					f = f.cut(1).head(n - 2)
				}
				words = append(words, f)
			}
		}
	}
	flush()
}

// span is where the text of a field is written: in the command, or in the value of the variable that all of it comes from.
func (f field) span() source.Span {
	if len(f.runs) == 0 {
		return f.word
	}
	first := f.runs[0]
	if f.has(func(part run) bool { return part.via.variable() != first.via.variable() }) { // both: there is no one place, and what lies between is something else
		return f.site()
	}
	return first.at.Cover(f.runs[len(f.runs)-1].at)
}

// site is where a field stands in the command, whatever variables its text comes from.
func (f field) site() source.Span {
	span := f.word
	for i, part := range f.runs {
		at := part.at
		if part.via != nil {
			at = part.via.use
		}
		if i == 0 {
			span = at
		}
		span = span.Cover(at)
	}
	return span
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// documents records the files that a statement writes from text in the script.
func (r *shellReader) documents(stmt *syntax.Stmt) {
	call, _ := stmt.Cmd.(*syntax.CallExpr)
	if call == nil || len(call.Args) == 0 {
		return
	}
	var body source.Span
	name, fixed := "", true
	for _, redirect := range stmt.Redirs {
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redirect.Hdoc != nil {
				body = r.hereDocument(redirect)
				fixed = strings.ContainsAny(r.source(r.span(redirect.Word)), `'"\`)
			}
		case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
			name = r.expandOne(redirect.Word).text()
		}
	}
	program := call.Args[0].Lit()
	if body.Len() > 0 && name == "" && (program == "bash" || program == "sh" || program == "ssh" || program == "sbatch" || clusters[program]) {
		r.subscript(body, nil)
		return
	}
	switch {
	case body.Len() > 0 && program == "tee" && len(call.Args) > 1:
		name = r.expandOne(call.Args[len(call.Args)-1]).text()
	case body.Len() > 0 && strings.HasPrefix(program, "python"):
		name = ""
	case body.Len() > 0 && name == "":
		return
	case body.Len() == 0 && name != "" && (program == "echo" || program == "printf") && len(call.Args) == 2 && len(call.Args[1].Parts) == 1:
		quoted, ok := call.Args[1].Parts[0].(*syntax.SglQuoted)
		if !ok || quoted.Dollar {
			return
		}
		body = r.span(quoted)
		body.Start++
		body.End--
	}
	if body.Len() <= 0 || name == "/dev/null" {
		return
	}
	kind := source.KindOf(name, nil)
	if name == "" {
		kind = source.Python
	}
	if kind == source.Other {
		return
	}
	text := bytes.Clone(r.file.Text)
	fill(text, source.Span{Start: 0, End: body.Start}, ' ')
	fill(text, source.Span{Start: body.End, End: uint32(len(text))}, ' ')
	file := &source.File{Path: r.file.Path, Kind: kind, Text: text, Segments: r.file.Segments, Latin1: r.file.Latin1, Raw: r.file.Raw}
	doc := &Document{Name: name, At: r.file.At(body), File: file}
	switch kind {
	case source.JSON:
		doc.Trees = []*Tree{ParseJSON(file)}
	case source.YAML:
		doc.Trees = ParseYAML(file)
	case source.TOML:
		doc.Trees = []*Tree{ParseTOML(file)}
	}
	if !fixed {
		for _, tree := range doc.Trees {
			r.fillIn(tree)
		}
	}
	r.script.Documents = append(r.script.Documents, doc)
}

// embedded is a variable in the text of a here-document.
var embedded = source.Pattern(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})`)

// fillIn puts the values of variables into a document. One that is a whole value keeps both places, as elsewhere.
func (r *shellReader) fillIn(tree *Tree) {
	left := false
	var visit func(*Node)
	visit = func(n *Node) {
		for i := range n.Items {
			visit(n.Items[i].Value)
		}
		if n.Kind != Scalar || !n.Open {
			left = left || n.Open
			return
		}
		known := true
		var only *variable
		text := embedded().ReplaceAllStringFunc(n.Raw, func(use string) string {
			v := r.vars[strings.Trim(use, "${}")]
			if v == nil || v.unknown || v.array || v.fields[0].open() {
				known = false
				return use
			}
			if use == n.Raw {
				only = v
			}
			return v.whole()
		})
		if !known || text == n.Raw {
			left = true
			return
		}
		if only != nil {
			n.Via, n.At = n.At, r.file.At(only.at)
		}
		n.Raw, n.Open = text, false
		if n.Style == Unquoted && isLiteral(text) {
			n.Style = Plain
		}
	}
	if tree.Root != nil {
		visit(tree.Root)
	}
	tree.Template = tree.Template && left
}

// hereDocument is the span of the lines of a here-document, without its last delimiter.
func (r *shellReader) hereDocument(redirect *syntax.Redirect) source.Span {
	delimiter := r.expandOne(redirect.Word).text()
	start := r.span(redirect.Hdoc).Start
	for at := start; at < uint32(len(r.text)); {
		end := at
		for end < uint32(len(r.text)) && r.text[end] != '\n' {
			end++
		}
		line := strings.TrimRight(string(r.text[at:end]), " ")
		if line == delimiter || redirect.Op == syntax.DashHdoc && strings.TrimLeft(line, "\t") == delimiter {
			return source.Span{Start: start, End: at}
		}
		at = end + 1
	}
	return source.Span{Start: start, End: uint32(len(r.text))}
}
