package configs

import (
	"bytes"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
)

func (r *shellReader) statements(list []*syntax.Stmt) {
	for _, stmt := range list {
		r.statement(stmt)
	}
}

// statement follows one statement.
func (r *shellReader) statement(stmt *syntax.Stmt) {
	if r.steps++; stmt == nil || r.steps > maxShellSteps {
		return
	}
	r.documents(stmt)
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(cmd, stmt)
	case *syntax.DeclClause:
		exported := cmd.Variant.Value == "export"
		for _, a := range cmd.Args {
			if a.Naked && a.Value != nil {
				exported = exported || strings.HasPrefix(r.expandOne(a.Value).text(), "-x")
				continue
			}
			r.assign(a, exported)
		}
	case *syntax.Block:
		r.statements(cmd.Stmts)
	case *syntax.Subshell:
		r.apart(func() { r.statements(cmd.Stmts) })
	case *syntax.TimeClause:
		r.statement(cmd.Stmt)
	case *syntax.CoprocClause:
		r.statement(cmd.Stmt)
	case *syntax.BinaryCmd:
		r.binary(cmd)
	case *syntax.IfClause:
		r.branch(cmd)
	case *syntax.CaseClause:
		r.choose(cmd)
	case *syntax.ForClause:
		r.loop(cmd)
	case *syntax.WhileClause:
		r.forget(cmd)
		r.guard(func() {
			r.statements(cmd.Cond)
			r.maybe(func() { r.statements(cmd.Do) })
		})
	case *syntax.ArithmCmd:
		r.arithmetic(cmd.X, 0)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			r.arithmetic(x, 0)
		}
	}
}

// apart follows what cannot change the variables of the script.
func (r *shellReader) apart(follow func()) {
	kept := maps.Clone(r.vars)
	follow()
	r.vars = kept
}

func (r *shellReader) guard(follow func()) {
	r.guarded++
	follow()
	r.guarded--
}

// maybe follows what may run or not: afterwards only what both ways agree on is known. What was not set before has the
// value it may get, as that is how defaults are written.
func (r *shellReader) maybe(follow func()) {
	before := maps.Clone(r.vars)
	r.guard(follow)
	r.vars = joinVars(before, r.vars)
}

func joinVars(a, b map[string]*variable) map[string]*variable {
	joined := maps.Clone(a)
	for name, v := range b {
		old := joined[name]
		switch {
		case old == nil || old == v:
			joined[name] = v
		case !old.same(v):
			either := append(old.choices(), v.choices()...)
			if len(either) > maxChoices {
				either = nil
			}
			joined[name] = &variable{unknown: true, at: v.at, exported: v.exported || old.exported, either: either}
		}
	}
	return joined
}

// choices are the values that a variable may have, if they are known.
func (v *variable) choices() []*variable {
	switch {
	case v.either != nil:
		return v.either
	case v.unknown:
		return make([]*variable, maxChoices+1)
	}
	return []*variable{v}
}

func (v *variable) same(w *variable) bool {
	if v.unknown || w.unknown || v.array != w.array || len(v.fields) != len(w.fields) {
		return false
	}
	for i := range v.fields {
		if v.fields[i].open() || w.fields[i].open() || v.fields[i].text() != w.fields[i].text() {
			return false
		}
	}
	return true
}

// forget makes all names unknown that a loop assigns: an earlier round may have changed them.
func (r *shellReader) forget(loop syntax.Node) {
	syntax.Walk(loop, func(node syntax.Node) bool {
		if a, ok := node.(*syntax.Assign); ok && a.Name != nil {
			r.vars[a.Name.Value] = &variable{unknown: true, at: r.span(a)}
		}
		return true
	})
}

func (r *shellReader) binary(cmd *syntax.BinaryCmd) {
	switch cmd.Op {
	case syntax.Pipe, syntax.PipeAll:
		r.apart(func() { r.statement(cmd.X) })
		r.apart(func() { r.statement(cmd.Y) })
		return
	}
	truth, known := r.condition([]*syntax.Stmt{cmd.X})
	r.statement(cmd.X)
	switch {
	case known && truth == (cmd.Op == syntax.AndStmt), !known && cmd.Op == syntax.AndStmt && !isTest(cmd.X):
		r.statement(cmd.Y)
	case known:
	default:
		r.maybe(func() { r.statement(cmd.Y) })
	}
}

func (r *shellReader) branch(cmd *syntax.IfClause) {
	if len(cmd.Cond) == 0 {
		r.statements(cmd.Then)
		return
	}
	r.statements(cmd.Cond)
	truth, known := r.condition(cmd.Cond)
	if known {
		if truth {
			r.statements(cmd.Then)
		} else if cmd.Else != nil {
			r.branch(cmd.Else)
		}
		return
	}
	before := maps.Clone(r.vars)
	r.guard(func() { r.statements(cmd.Then) })
	after := r.vars
	r.vars = before
	if cmd.Else != nil {
		r.guard(func() { r.branch(cmd.Else) })
	}
	r.vars = joinVars(r.vars, after)
}

func (r *shellReader) choose(cmd *syntax.CaseClause) {
	subject := r.expandOne(cmd.Word)
	if !subject.open() && !r.hasPatterns(cmd) {
		for _, item := range cmd.Items {
			for _, pattern := range item.Patterns {
				p := r.expandOne(pattern)
				if text := p.text(); text == subject.text() || text == "*" {
					r.statements(item.Stmts)
					return
				}
			}
		}
		return
	}
	before := r.vars
	joined := maps.Clone(before)
	for _, item := range cmd.Items {
		r.vars = maps.Clone(before)
		r.guard(func() { r.statements(item.Stmts) })
		joined = joinVars(joined, r.vars)
	}
	r.vars = joined
}

// hasPatterns reports whether a case has patterns that cannot be compared as texts.
func (r *shellReader) hasPatterns(cmd *syntax.CaseClause) bool {
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			if p := r.expandOne(pattern); p.open() || p.text() != "*" && strings.ContainsAny(p.text(), "*?[") {
				return true
			}
		}
	}
	return false
}

// loop follows a loop over a few known words once for each, and any other once with an unknown name.
func (r *shellReader) loop(cmd *syntax.ForClause) {
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok || iter.Name == nil {
		if c, isC := cmd.Loop.(*syntax.CStyleLoop); isC && c.Init != nil {
			syntax.Walk(c, func(node syntax.Node) bool {
				if b, ok := node.(*syntax.BinaryArithm); ok {
					r.unknownName(b.X)
				}
				return true
			})
		}
		r.forget(cmd)
		r.maybe(func() { r.statements(cmd.Do) })
		return
	}
	var items []field
	known := iter.InPos.IsValid()
	for _, word := range iter.Items {
		items = append(items, r.expand(word)...)
	}
	for _, item := range items {
		known = known && !item.open() && !strings.ContainsAny(item.text(), "*?{")
	}
	if !known || len(items)*max(r.rounds, 1) > maxLoopItems {
		r.forget(cmd)
		r.vars[iter.Name.Value] = &variable{unknown: true, at: r.span(iter.Name)}
		r.maybe(func() { r.statements(cmd.Do) })
		return
	}
	rounds := r.rounds
	r.rounds = max(rounds, 1) * len(items)
	defer func() { r.rounds = rounds }()
	for _, item := range items {
		at, _ := r.place(item, false)
		r.vars[iter.Name.Value] = &variable{fields: []field{item}, at: at.Span}
		r.statements(cmd.Do)
	}
}

// assign follows one assignment and records it.
func (r *shellReader) assign(a *syntax.Assign, exported bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	old := r.vars[name]
	if a.Naked {
		if old != nil && exported {
			v := *old
			v.exported = true
			r.vars[name] = &v
			for i := range r.script.Env.Root.Items {
				if item := &r.script.Env.Root.Items[i]; item.Key == name {
					item.Value.Tag = "export"
				}
			}
		}
		return
	}
	v, node := r.assigned(a)
	v.exported = exported || old != nil && old.exported
	if a.Append && old != nil {
		v = old.appended(v)
	} else if a.Append {
		v.unknown = true
	}
	if a.Index != nil || v.size() > maxShellText {
		v = &variable{unknown: true, at: v.at}
	}
	r.vars[name] = v
	if v.exported {
		node.Tag = "export"
	}
	r.record(r.script.Env, Item{Key: name, KeyAt: r.file.At(r.span(a.Name)), Value: node})
}

func (r *shellReader) record(tree *Tree, item Item) {
	if len(tree.Root.Items) >= maxShellFields {
		return
	}
	tree.Root.Items = append(tree.Root.Items, item)
	span := item.KeyAt.Span
	if item.Value.Via.IsZero() {
		span = span.Cover(item.Value.At.Span)
	} else {
		span = span.Cover(item.Value.Via.Span)
	}
	if len(tree.Root.Items) == 1 {
		tree.Root.At = r.file.At(span)
	}
	tree.Root.At.Span = tree.Root.At.Span.Cover(span)
}

// assigned is the value of an assignment, as a variable and as a node.
func (r *shellReader) assigned(a *syntax.Assign) (*variable, *Node) {
	if a.Array != nil {
		span := r.span(a.Array)
		v := &variable{array: true, at: span}
		node := &Node{Kind: Sequence, Style: Flow, At: r.file.At(span)}
		for _, elem := range a.Array.Elems {
			if elem.Value == nil {
				continue
			}
			if elem.Index != nil {
				v.unknown = true
			}
			for _, f := range r.expand(elem.Value) {
				if len(v.fields) >= maxShellFields {
					v.unknown = true
					break
				}
				v.fields = append(v.fields, f)
				node.Items = append(node.Items, Item{Value: r.value(f, false)})
				node.Open = node.Open || f.many()
			}
		}
		return v, node
	}
	f := r.expandOne(a.Value)
	var either []*variable
	if name := r.chosen(a.Value); f.open() && name != "" {
		r.each(name, func() {
			f := r.expandOne(a.Value)
			at, _ := r.place(f, false)
			either = append(either, &variable{fields: []field{f}, at: at.Span})
		})
	}
	if a.Value == nil {
		end := r.span(a).End
		f.word = source.Span{Start: end, End: end}
	}
	at, _ := r.place(f, false)
	return &variable{fields: []field{f}, at: at.Span, either: either}, r.value(f, false)
}

// chosen is the first variable in a part of the script that has one of several values; or "".
func (r *shellReader) chosen(node syntax.Node) (name string) {
	if word, ok := node.(*syntax.Word); ok && word == nil {
		return ""
	}
	syntax.Walk(node, func(node syntax.Node) bool {
		if p, ok := node.(*syntax.ParamExp); ok && p.Param != nil && name == "" {
			if v := r.vars[p.Param.Value]; v != nil && v.either != nil {
				name = p.Param.Value
			}
		}
		return name == ""
	})
	return name
}

// each follows once for every value that a variable may have.
func (r *shellReader) each(name string, follow func()) {
	v := r.vars[name]
	for _, one := range v.either {
		r.vars[name] = one
		follow()
	}
	r.vars[name] = v
}

func (v *variable) size() int {
	n := 0
	for _, f := range v.fields {
		for _, part := range f.runs {
			n += len(part.text) + 1
		}
	}
	return n
}

// appended is the value of `name+=value`.
func (v *variable) appended(w *variable) *variable {
	sum := &variable{array: v.array || w.array, unknown: v.unknown || w.unknown, exported: v.exported || w.exported, at: v.at.Cover(w.at)}
	switch {
	case sum.unknown:
	case sum.array:
		sum.fields = append(append(sum.fields, v.fields...), w.fields...)
	default:
		f := v.fields[0]
		g := w.fields[0]
		f.runs = append(append([]run(nil), f.runs...), g.runs...)
		sum.fields = []field{f}
	}
	return sum
}

// call follows a simple command.
func (r *shellReader) call(call *syntax.CallExpr, stmt *syntax.Stmt) {
	if len(call.Args) == 0 {
		for _, a := range call.Assigns {
			r.assign(a, false)
		}
		return
	}
	env := emptyTree(r.file, Env)
	for _, a := range call.Assigns {
		if a.Name != nil && !a.Naked {
			_, node := r.assigned(a)
			r.record(env, Item{Key: a.Name.Value, KeyAt: r.file.At(r.span(a.Name)), Value: node})
		}
	}
	var words []field
	for _, word := range call.Args {
		words = append(words, r.expand(word)...)
		if len(words) > maxShellFields {
			words = words[:maxShellFields]
			break
		}
	}
	// A command line that is put together in branches is followed for each
	if name := r.chosen(call); name != "" && len(words) > 0 && (words[0].open() || words[0].text() == "eval") && r.depth < maxShellDepth {
		r.depth++
		r.guard(func() { r.each(name, func() { r.call(call, stmt) }) })
		r.depth--
		return
	}
	r.command(words, env, r.span(call))
}

// command follows a command of known words: a builtin, a function, or a program to record.
func (r *shellReader) command(words []field, env *Tree, at source.Span) {
	if len(words) == 0 {
		return
	}
	name := words[0].text()
	switch name {
	case "unset":
		for _, f := range words[1:] {
			delete(r.vars, f.text())
		}
	case "read", "mapfile", "readarray", "getopts":
		for _, f := range words[1:] {
			r.vars[f.text()] = &variable{unknown: true, at: f.word}
		}
	case "eval":
		if len(words) == 2 {
			r.inner(words[1], env, at)
		} else {
			r.nested(words[1:], env, at)
		}
	default:
		if function := r.funcs[name]; function != nil && !words[0].open() {
			r.function(name, function, words[1:])
			return
		}
		if text, ok := shellString(words); ok && !clusters[programName(words[0])] {
			r.inner(text, env, at)
			return
		}
		if wrappers[programName(words[0])] {
			for _, f := range words[1:] {
				if startsLauncher(f) {
					r.inner(f, env, at)
					return
				}
			}
		}
		c := r.launch(words, env)
		if c == nil || len(r.script.Commands) >= maxShellCommands {
			return
		}
		c.At = r.file.At(at)
		c.Guarded = r.guarded > 0
		for _, item := range r.env {
			r.record(c.Env, item)
		}
		r.script.Commands = append(r.script.Commands, c)
	}
}

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
	if f.style == Plain || span.Len() <= 0 || f.style == DoubleQuoted && strings.Contains(r.source(span), "\\\"") || len(f.runs) > 0 && f.runs[0].from != nil && f.runs[0].use.Len()+2 >= f.word.Len() {
		r.nested([]field{f}, env, at)
		return
	}
	r.subscript(span, env.Root.Items)
}

// subscript follows a part of the script as a script of its own.
func (r *shellReader) subscript(span source.Span, env []Item) {
	if r.depth >= maxShellDepth {
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

var redirectWord = regexp.MustCompile(`^(?:&|[0-9])?(?:>>?|<)(?:&[0-9])?`)

// nested follows text that is run as a script of its own: split at blanks, and into commands at ; & and |. Quotes
// inside are dropped.
func (r *shellReader) nested(texts []field, env *Tree, at source.Span) {
	if r.depth >= maxShellDepth {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
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
			if at := redirectWord.FindStringIndex(word); at != nil {
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
				if f.word = f.span(); f.runs[0].from != nil {
					f.word = f.runs[0].use
				}
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

func (f field) span() source.Span {
	if len(f.runs) == 0 {
		return f.word
	}
	return f.runs[0].at.Cover(f.runs[len(f.runs)-1].at)
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

func (r *shellReader) function(name string, function *syntax.FuncDecl, args []field) {
	r.called[name] = true
	if r.depth >= maxShellDepth {
		return
	}
	kept := r.params
	r.params = append([]field{}, args...)
	r.depth++
	r.statement(function.Body)
	r.depth--
	r.params = kept
}

// uncalled follows the functions that the script defines and never calls, with unknown arguments.
func (r *shellReader) uncalled() {
	for _, span := range r.script.extents {
		for name, function := range r.funcs {
			if !r.called[name] && r.span(function).Start == span.Start {
				r.called[name] = true
				r.apart(func() { r.guard(func() { r.statement(function.Body) }) })
			}
		}
	}
}

// isTest reports whether a statement is `[ ]`, `[[ ]]`, (( )) or `test`.
func isTest(stmt *syntax.Stmt) bool {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		return len(cmd.Args) > 0 && (cmd.Args[0].Lit() == "[" || cmd.Args[0].Lit() == "test")
	}
	return false
}

// condition decides a condition on known values.
func (r *shellReader) condition(stmts []*syntax.Stmt) (truth, known bool) {
	if len(stmts) != 1 {
		return false, false
	}
	switch cmd := stmts[0].Cmd.(type) {
	case *syntax.CallExpr:
		var words []field
		for _, word := range cmd.Args {
			words = append(words, r.expand(word)...)
		}
		if len(words) > 0 {
			switch words[0].text() {
			case "true", "false":
				return (words[0].text() == "true") != stmts[0].Negated, len(words) == 1
			case "[":
				if words[len(words)-1].text() != "]" {
					return false, false
				}
				words = words[1 : len(words)-1]
			case "test":
				words = words[1:]
			default:
				return false, false
			}
			truth, known = compareWords(words)
		}
	case *syntax.TestClause:
		truth, known = r.test(cmd.X)
	case *syntax.ArithmCmd:
		if v, ok := r.arithmetic(cmd.X, 0); ok {
			truth, known = v.Truth(), true
		}
	}
	return truth != stmts[0].Negated, known
}

// compareWords decides the words of `[ ]`.
func compareWords(words []field) (truth, known bool) {
	for _, f := range words {
		if f.open() {
			return false, false
		}
	}
	switch len(words) {
	case 1:
		return words[0].text() != "", true
	case 2:
		switch words[0].text() {
		case "-z":
			return words[1].text() == "", true
		case "-n":
			return words[1].text() != "", true
		}
	case 3:
		return compareTexts(words[0].text(), words[1].text(), words[2].text())
	}
	return false, false
}

func compareTexts(a, op, b string) (truth, known bool) {
	switch op {
	case "=", "==":
		return a == b, !strings.ContainsAny(b, "*?[")
	case "!=":
		return a != b, !strings.ContainsAny(b, "*?[")
	}
	x, errA := strconv.ParseInt(a, 10, 64)
	y, errB := strconv.ParseInt(b, 10, 64)
	if errA != nil || errB != nil {
		return false, false
	}
	switch op {
	case "-eq":
		return x == y, true
	case "-ne":
		return x != y, true
	case "-lt":
		return x < y, true
	case "-le":
		return x <= y, true
	case "-gt":
		return x > y, true
	case "-ge":
		return x >= y, true
	}
	return false, false
}

// test decides an expression of `[[ ]]`.
func (r *shellReader) test(x syntax.TestExpr) (truth, known bool) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return r.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			truth, known = r.test(x.X)
			return !truth, known
		}
		word, ok := x.X.(*syntax.Word)
		if !ok || x.Op != syntax.TsEmpStr && x.Op != syntax.TsNempStr {
			return false, false
		}
		f := r.expandOne(word)
		return (f.text() == "") == (x.Op == syntax.TsEmpStr), !f.open()
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest:
			a, knownA := r.test(x.X)
			b, knownB := r.test(x.Y)
			decides := x.Op == syntax.OrTest
			if knownA && a == decides || knownB && b == decides {
				return decides, true
			}
			return !decides, knownA && knownB
		}
		left, okLeft := x.X.(*syntax.Word)
		right, okRight := x.Y.(*syntax.Word)
		if !okLeft || !okRight {
			return false, false
		}
		a, b := r.expandOne(left), r.expandOne(right)
		truth, known = compareTexts(a.text(), x.Op.String(), b.text())
		return truth, known && !a.open() && !b.open()
	case *syntax.Word:
		f := r.expandOne(x)
		return f.text() != "", !f.open()
	}
	return false, false
}

// arithmetic computes an expression of $(( )). Names that the script does not set are not known.
func (r *shellReader) arithmetic(x syntax.ArithmExpr, depth int) (constant.Value, bool) {
	if depth > maxShellDepth*4 {
		return constant.Value{}, false
	}
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return r.arithmetic(x.X, depth+1)
	case *syntax.Word:
		f := r.expandOne(x)
		if f.open() {
			return constant.Value{}, false
		}
		return r.shellNumber(f.text(), depth)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			r.unknownName(x.X)
			return constant.Value{}, false
		}
		v, ok := r.arithmetic(x.X, depth+1)
		if !ok {
			return v, false
		}
		if x.Op == syntax.Not {
			return boolean(!v.Truth()), true
		}
		return constant.Unary(x.Op.String(), v)
	case *syntax.BinaryArithm:
		return r.binaryArithmetic(x, depth)
	}
	return constant.Value{}, false
}

func boolean(b bool) constant.Value {
	if b {
		return constant.MakeInt(1)
	}
	return constant.MakeInt(0)
}

func (r *shellReader) unknownName(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && isName(word.Lit()) {
		r.vars[word.Lit()] = &variable{unknown: true, at: r.span(word)}
	}
}

func (r *shellReader) binaryArithmetic(x *syntax.BinaryArithm, depth int) (constant.Value, bool) {
	switch x.Op {
	case syntax.Assgn:
		v, ok := r.arithmetic(x.Y, depth+1)
		if word, isWord := x.X.(*syntax.Word); isWord && ok && isName(word.Lit()) {
			at := r.span(x.Y)
			r.vars[word.Lit()] = &variable{at: at, fields: []field{{word: at, runs: []run{{text: v.String(), at: at}}}}}
		} else {
			r.unknownName(x.X)
		}
		return v, ok
	case syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn,
		syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		r.unknownName(x.X)
		return constant.Value{}, false
	case syntax.TernQuest:
		condition, ok := r.arithmetic(x.X, depth+1)
		choice, isChoice := x.Y.(*syntax.BinaryArithm)
		if !ok || !isChoice || choice.Op != syntax.TernColon {
			return constant.Value{}, false
		}
		if condition.Truth() {
			return r.arithmetic(choice.X, depth+1)
		}
		return r.arithmetic(choice.Y, depth+1)
	}
	a, okA := r.arithmetic(x.X, depth+1)
	b, okB := r.arithmetic(x.Y, depth+1)
	if !okA || !okB {
		return constant.Value{}, false
	}
	switch op := x.Op.String(); op {
	case "==", "!=", "<", "<=", ">", ">=":
		truth, ok := constant.Compare(op, a, b)
		return boolean(truth), ok
	case "&&":
		return boolean(a.Truth() && b.Truth()), true
	case "||":
		return boolean(a.Truth() || b.Truth()), true
	case ",":
		return b, true
	case "/", "%":
		return truncated(op, a, b)
	default:
		return constant.Binary(op, a, b)
	}
}

// truncated divides as C does: towards zero, the rest with the sign of the dividend.
func truncated(op string, a, b constant.Value) (constant.Value, bool) {
	x, okX := a.Int()
	y, okY := b.Int()
	if !okX || !okY || y == 0 || y == -1 {
		if y == -1 && op == "/" && okX {
			return constant.Unary("-", a)
		}
		return constant.MakeInt(0), y == -1 && okX
	}
	if op == "/" {
		return constant.MakeInt(x / y), true
	}
	return constant.MakeInt(x % y), true
}

// shellNumber reads a number of shell arithmetic (017 is octal, 2#101 binary), or the value of a name.
func (r *shellReader) shellNumber(text string, depth int) (constant.Value, bool) {
	text = strings.TrimSpace(text)
	if isName(text) {
		v := r.vars[text]
		if v == nil || v.unknown || v.array || v.fields[0].open() || depth > maxShellDepth {
			return constant.Value{}, false
		}
		return r.shellNumber(v.whole(), depth+maxShellDepth/2)
	}
	base := 10
	digits := strings.TrimPrefix(text, "-")
	switch radix, rest, ok := strings.Cut(digits, "#"); {
	case ok:
		n, err := strconv.Atoi(radix)
		if err != nil || n < 2 || n > 36 {
			return constant.Value{}, false
		}
		base, digits = n, rest
	case strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X"):
		base, digits = 16, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil {
		return constant.Eval(text, nil)
	}
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	return constant.MakeInt(n), true
}

// documents records the files that a statement writes from text in the script.
func (r *shellReader) documents(stmt *syntax.Stmt) {
	call, _ := stmt.Cmd.(*syntax.CallExpr)
	if call == nil || len(call.Args) == 0 {
		return
	}
	var body source.Span
	name := ""
	for _, redirect := range stmt.Redirs {
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redirect.Hdoc != nil {
				body = r.hereDocument(redirect)
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
	r.script.Documents = append(r.script.Documents, &Document{Name: name, At: r.file.At(body),
		File: &source.File{Path: r.file.Path, Kind: kind, Text: text, Segments: r.file.Segments, Latin1: r.file.Latin1, Raw: r.file.Raw}})
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
