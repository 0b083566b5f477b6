package configs

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

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
	r.redirected(stmt)
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

// changes are what a part of the script makes of variables; nil for one that it unsets.
type changes map[string]*variable

// set gives a variable a value; nil unsets it.
func (r *shellReader) set(name string, v *variable) {
	if r.before != nil {
		if _, noted := r.before[name]; !noted {
			r.before[name] = r.vars[name]
		}
	}
	r.write(name, v)
}

func (r *shellReader) write(name string, v *variable) {
	if v == nil {
		delete(r.vars, name)
	} else {
		r.vars[name] = v
	}
}

// apart follows what cannot change the variables of the script, and gives what it would change. It takes these back one by one: scripts of
// hundreds of variables have hundreds of branches.
func (r *shellReader) apart(follow func()) changes {
	outer := r.before
	r.before = changes{}
	follow()
	made := r.before
	r.before = outer
	for name, old := range made {
		made[name] = r.vars[name]
		r.write(name, old)
	}
	return made
}

func (r *shellReader) guard(follow func()) {
	r.guarded++
	follow()
	r.guarded--
}

// maybe follows what may run or not: afterwards only what both ways agree on is known. What was not set before has the
// value it may get, as that is how defaults are written.
func (r *shellReader) maybe(follow func()) {
	for name, v := range r.apart(func() { r.guard(follow) }) {
		r.set(name, r.vars[name].or(v))
	}
}

// or is what a variable holds that has one value on one way through the script and another one on another; nil: it is not set there.
func (v *variable) or(w *variable) *variable {
	switch {
	case w == nil:
		return v
	case v == nil || v == w:
		return w
	case v.same(w):
		return v
	}
	either := append(v.choices(), w.choices()...)
	if len(either) > maxChoices {
		either = nil
	}
	return &variable{unknown: true, at: w.at, exported: w.exported || v.exported, either: either}
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
			r.set(a.Name.Value, &variable{unknown: true, at: r.span(a)})
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
	then := r.apart(func() { r.guard(func() { r.statements(cmd.Then) }) })
	var other changes
	if cmd.Else != nil {
		other = r.apart(func() { r.guard(func() { r.branch(cmd.Else) }) })
	}
	for name, v := range other {
		if _, changed := then[name]; !changed {
			then[name] = r.vars[name]
		}
		r.set(name, v)
	}
	for name, v := range then {
		r.set(name, r.vars[name].or(v))
	}
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
	joined := changes{}
	for _, item := range cmd.Items {
		made := r.apart(func() { r.guard(func() { r.statements(item.Stmts) }) })
		for name := range made {
			if _, changed := joined[name]; !changed {
				joined[name] = r.vars[name]
			}
		}
		for name, v := range joined {
			w, changed := made[name]
			if !changed {
				w = r.vars[name]
			}
			joined[name] = v.or(w)
		}
	}
	for name, v := range joined {
		r.set(name, v)
	}
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
		r.set(iter.Name.Value, &variable{unknown: true, at: r.span(iter.Name)})
		r.maybe(func() { r.statements(cmd.Do) })
		return
	}
	rounds := r.rounds
	r.rounds = max(rounds, 1) * len(items)
	defer func() { r.rounds = rounds }()
	for _, item := range items {
		at, _ := r.place(item, false)
		r.set(iter.Name.Value, &variable{fields: []field{item}, at: at.Span})
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
			r.set(name, &v)
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
	r.set(name, v)
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
		r.set(name, one)
		follow()
	}
	r.set(name, v)
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
	var env *Tree
	for _, a := range call.Assigns {
		if a.Name != nil && !a.Naked {
			env = r.environment(env)
			_, node := r.assigned(a)
			r.record(env, Item{Key: a.Name.Value, KeyAt: r.file.At(r.span(a.Name)), Value: node})
		}
	}
	words := r.expandAll(call.Args)
	// A command line that is put together in branches is followed for each
	if len(words) > 0 && (words[0].open() || words[0].text() == "eval") && r.depth < maxShellDepth {
		if name := r.chosen(call); name != "" {
			r.depth++
			r.guard(func() { r.each(name, func() { r.call(call, stmt) }) })
			r.depth--
			return
		}
	}
	r.command(words, env, r.span(call))
}

// environment is the tree of what is set for one command. It is made when it is asked for: most commands start nothing.
func (r *shellReader) environment(env *Tree) *Tree {
	if env == nil {
		return emptyTree(r.file, Env)
	}
	return env
}

// command follows a command of known words: a builtin, a function, or a program to record. Env may be nil.
func (r *shellReader) command(words []field, env *Tree, at source.Span) {
	if len(words) == 0 {
		return
	}
	name := words[0].text()
	switch name {
	case "unset":
		for _, f := range words[1:] {
			r.set(f.text(), nil)
		}
	case "read", "mapfile", "readarray", "getopts":
		for _, f := range words[1:] {
			r.set(f.text(), &variable{unknown: true, at: f.word})
		}
	case "eval":
		if len(words) == 2 {
			r.inner(words[1], env, at)
		} else {
			r.nested(words[1:], env, at)
		}
	default:
		if goesAway(words) {
			r.away++
			defer func() { r.away-- }()
		}
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
		r.install(words)
		c := r.launch(words, env)
		if c == nil {
			r.touched(words)
		}
		if c == nil || len(r.script.Commands) >= maxShellCommands {
			return
		}
		c.At = r.file.At(at)
		c.Guarded, c.Away = r.guarded > 0, r.away > 0
		for _, item := range r.env {
			r.record(c.Env, item)
		}
		r.script.Commands = append(r.script.Commands, c)
	}
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
