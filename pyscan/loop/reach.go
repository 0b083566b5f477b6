package loop

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// words are names that are looked for in functions, and in what those call.
type words struct {
	pyscan.Words
	nameSet
}

func newWords(names map[string]bool) *words {
	return &words{pyscan.Words{Names: names, Far: maxReach}, setOf(names)}
}

// nameSet is a set of names of which most names are told by their length and first letter not to be one: that takes far less than to look
// each up, and each name of a function is asked about.
type nameSet struct {
	names  map[string]bool
	firsts [32]uint32 // by length: the last bits of the first letters
}

func setOf(names map[string]bool) nameSet {
	set := nameSet{names: names}
	for name := range names {
		if len(name) < len(set.firsts) {
			set.firsts[len(name)] |= 1 << (name[0] & 31)
		}
	}
	return set
}

func (s *nameSet) has(name string) bool {
	if len(name) < len(s.firsts) && (name == "" || s.firsts[len(name)]>>(name[0]&31)&1 == 0) {
		return false
	}
	return s.names[name]
}

// differentiating are the names by which gradients are computed: a loop in which nothing of the kind runs trains nothing.
var differentiating = newWords(map[string]bool{"backward": true, "manual_backward": true})

// acting are the names of any event that a rule asks for. All of them are voices.
var acting = newWords(interestingNames)

// maxReach is how many calls lie at most between a loop and the backward in it.
const maxReach = maxSplice

// reacher answers, before a function is modelled, whether anything it runs may have one of the words. It reads each function
// once, as anyone may call it, while the model reads it once for each call; and it goes only where the names in between can lead.
type reacher struct {
	link  Linker
	words *words
	by    *words // by whose distances it goes: the words, or more than those, where the distances of these are measured anyway
	known map[*pyscan.Scope]reached
}

// reached is an answer, and how many calls deep it was looked for.
type reached struct {
	yes   bool
	depth int
}

// in reports whether the function or a function that it calls, at most so many calls away, names one of the words. What is
// handed to a call counts as called: `fit(loader, train_step)`.
func (r *reacher) in(scope *pyscan.Scope, depth int) bool {
	if known, ok := r.known[scope]; ok && (known.yes || known.depth >= depth) {
		return known.yes
	}
	r.known[scope] = reached{false, depth} // a function that comes back to itself adds nothing
	yes := r.names(scope) || depth > 0 && r.calls(scope, depth)
	r.known[scope] = reached{yes, depth}
	return yes
}

// body calls visit for the nodes that run when the function does: nested functions and classes run when they are called.
func body(scope *pyscan.Scope, visit func(syntax.Node) bool) {
	inner := func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
			return false
		}
		return visit(n)
	}
	if lambda, ok := scope.Node.(*syntax.Lambda); ok {
		syntax.Inspect(lambda.Body, inner)
		return
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, inner)
	}
}

func (r *reacher) names(scope *pyscan.Scope) bool {
	if r.words == differentiating && !scope.Module.File.Has("backward") { // a part of both words
		return false
	}
	return says(scope, func(n syntax.Node) bool { return isOne(n, &r.words.nameSet) })
}

// says reports whether a node of a kind stands in what runs when the function does.
func says(scope *pyscan.Scope, is func(syntax.Node) bool) bool {
	found := false
	body(scope, func(n syntax.Node) bool {
		found = found || is(n)
		return !found
	})
	return found
}

// isOne reports whether a node is one of the words: a name, an attribute, or a text as in getattr(loss, "backward").
func isOne(n syntax.Node, words *nameSet) bool {
	if c, ok := n.(*syntax.Constant); ok {
		return c.Kind == syntax.StrConstant && words.has(c.Text)
	}
	return words.has(pyscan.LastName(n))
}

func (r *reacher) calls(scope *pyscan.Scope, depth int) bool {
	for _, call := range scope.Calls {
		if r.near(scope, call.Func, depth) && r.runs(scope, call.Func, depth) {
			return true
		}
		for _, arg := range call.Args {
			if r.handed(scope, arg, depth) {
				return true
			}
		}
		for _, k := range call.Keywords {
			if r.handed(scope, k.Value, depth) {
				return true
			}
		}
	}
	return false
}

// near reports whether what an expression names can lead to a word with so many calls.
func (r *reacher) near(scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	far := r.far(scope, e)
	return far <= depth && (far <= 1 || !r.link.Foreign(scope, e)) // a word of a library may have another name here
}

// far is how many calls away a word may be, by the name of an expression alone.
func (r *reacher) far(scope *pyscan.Scope, e syntax.Expr) int {
	if attr, ok := e.(*syntax.Attribute); ok && plainMethod(attr) {
		return maxReach + 1
	}
	name := pyscan.LastName(e)
	if name == "" {
		return 0
	}
	return r.link.Distance(scope.Module, &r.by.Words, name)
}

// runs reports whether calling what an expression stands for runs one of the words.
func (r *reacher) runs(scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	words := r.words.Names
	for _, one := range alternatives(r.link.Expand(r.link.Eval(scope, nil, e))) {
		if words[pyscan.LastPart(r.link.ExternalName(one))] { // imported under another name
			return true
		}
		if member, ok := one.(*pyscan.Member); ok && words[member.Name] {
			return true
		}
		if f := r.link.Called(unwrapped(r.link, one)); f != nil && r.in(f.Scope, depth-1) {
			return true
		}
	}
	return false
}

// handed reports whether an argument is a function that runs one of the words.
func (r *reacher) handed(scope *pyscan.Scope, arg syntax.Expr, depth int) bool {
	switch arg := arg.(type) {
	case *syntax.Lambda:
		return r.runs(scope, arg, depth)
	case *syntax.Name:
		if r.far(scope, arg) > depth { // of most names that is so
			return false
		}
		if scope.Plain(arg.ID) {
			return false
		}
		if def := scope.Def(arg); def != nil && def.Kind != pyscan.ScopeDef && def.Kind != pyscan.ImportDef && !r.aliases(scope, def) {
			return false
		}
	case *syntax.Attribute:
		if r.far(scope, arg) > depth || !r.link.Defined(scope.Module, arg.Attr) {
			return false
		}
	default:
		return false
	}
	if !r.near(scope, arg, depth) {
		return false
	}
	_, isFunc := r.link.Eval(scope, nil, arg).(*pyscan.Func)
	return isFunc && r.runs(scope, arg, depth)
}

// aliases reports whether a definition may give another name to a function.
func (r *reacher) aliases(scope *pyscan.Scope, def *pyscan.Def) bool {
	if def.Kind == pyscan.PhiDef {
		for _, one := range def.Alternatives() {
			if one.Kind == pyscan.AssignDef && r.aliases(scope, one) || one.Kind == pyscan.ScopeDef {
				return true
			}
		}
		return false
	}
	if def.Kind != pyscan.AssignDef {
		return false
	}
	return r.aliased(scope, def.Value)
}

func (r *reacher) aliased(scope *pyscan.Scope, value syntax.Expr) bool {
	switch value := value.(type) {
	case *syntax.Name, *syntax.Attribute:
		return r.link.Defined(scope.Module, pyscan.LastName(value))
	case *syntax.IfExp:
		return r.aliased(scope, value.Body) || r.aliased(scope, value.OrElse)
	case *syntax.Lambda:
		return true
	}
	return false
}
