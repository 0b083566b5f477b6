package loop

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// voices are the names by which an event may happen, calls of a model aside: those that recognise, method and store know.
var voices = newWords(voiceNames())

func voiceNames() map[string]bool {
	names := map[string]bool{"grad": true, "require_forward_param_sync": true, "enter_context": true}
	for _, known := range []map[string]bool{interestingNames, methodEvents.names, collectives.names} {
		for name := range known {
			names[name] = true
		}
	}
	delete(names, "update") // of a scaler alone
	for name := range inPlace.names {
		delete(names, name) // of a gradient alone
	}
	return names
}

// loud are the voices that tell by themselves, wherever they stand. Of a collective the call tells whose it is (functools.reduce is none),
// and a gradient that is read is no event.
var loud = setOf(loudNames())

func loudNames() map[string]bool {
	names := voiceNames()
	delete(names, "grad")
	for name := range collectives.names {
		delete(names, name)
	}
	return names
}

// isLoud reports whether by a node something may happen in the function it stands in, calls aside.
func isLoud(n syntax.Node) bool {
	if attr, ok := n.(*syntax.Attribute); ok && attr.Attr == "grad" {
		return attr.Ctx == syntax.Store
	}
	return isOne(n, &loud)
}

// isEvent reports whether calling a thing of a library may be an event.
func isEvent(name string) bool {
	last := pyscan.LastPart(name)
	return loud.has(last) || collectives.has(last) && strings.HasPrefix(name, "torch.distributed.")
}

// silence answers, before a called function is spliced in, whether surely no event happens in it, whoever calls it and whatever it is
// handed. Most functions that a training loop calls are such, and many loops call the same ones.
type silence struct {
	link  Linker
	known *Known
}

// maxSilent bounds the functions that are looked into for one answer.
const maxSilent = 400

// of reports whether the function is silent, and all that it calls. What is not known to be is not.
func (s *silence) of(scope *pyscan.Scope) bool {
	if silent, known := s.known.silent(scope); known {
		return silent
	}
	seen := map[*pyscan.Scope]bool{scope: true}
	for queue := []*pyscan.Scope{scope}; len(queue) > 0; {
		one := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		silent, known := s.known.silent(one)
		if known && silent {
			continue
		}
		add := func(callee *pyscan.Scope) {
			if !seen[callee] {
				seen[callee] = true
				queue = append(queue, callee)
			}
		}
		if known || len(seen) > maxSilent || !s.alone(one, add) {
			s.known.sound(one, scope)
			return false
		}
	}
	s.known.hush(seen)
	return true
}

// alone reports whether nothing happens in a function itself; it calls add for those that it calls.
func (s *silence) alone(scope *pyscan.Scope, add func(*pyscan.Scope)) bool {
	if says(scope, isLoud) {
		return false
	}
	for _, call := range scope.Calls {
		if !s.call(scope, call.Func, add) {
			return false
		}
	}
	return true
}

// in gives where the statements of a function begin in which surely nothing happens, in order, those inside of others of them left out. Few
// statements of a function that is not silent are more than that, and where many loops call it, it is walked for each.
func (s *silence) in(scope *pyscan.Scope) []uint32 {
	if starts, known := s.known.quietIn(scope); known {
		return starts
	}
	var starts []uint32
	for _, stmt := range scope.Body() {
		starts, _ = s.statement(scope, stmt, starts)
	}
	starts = slices.Clip(starts)
	s.known.setQuietIn(scope, starts)
	return starts
}

// statement adds where a statement begins, if it is quiet, or else those in it that are.
func (s *silence) statement(scope *pyscan.Scope, stmt syntax.Stmt, starts []uint32) (all []uint32, quiet bool) {
	before := len(starts)
	quiet = true
	syntax.Inspect(stmt, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Call:
			quiet = quiet && s.silentCall(scope, n)
			return quiet
		case *syntax.Name, *syntax.Attribute, *syntax.Constant:
			quiet = quiet && !isLoud(n)
			return quiet
		case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
			return false
		case syntax.Stmt:
			if n == stmt {
				return true
			}
			var still bool
			starts, still = s.statement(scope, n, starts)
			quiet = quiet && still
			return false
		}
		_, expr := n.(syntax.Expr)
		return quiet || !expr // a handler holds statements
	})
	if quiet {
		starts = append(starts[:before], stmt.Span().Start)
	}
	return starts, quiet
}

// silentCall reports whether a call and all that it calls are silent.
func (s *silence) silentCall(scope *pyscan.Scope, call *syntax.Call) bool {
	var callees []*pyscan.Scope
	if !s.call(scope, call.Func, func(callee *pyscan.Scope) { callees = append(callees, callee) }) {
		return false
	}
	for _, callee := range callees {
		if !s.of(callee) {
			return false
		}
	}
	return true
}

// call reports whether a call says nothing by itself, whatever the function it stands in is handed.
func (s *silence) call(scope *pyscan.Scope, callee syntax.Expr, add func(*pyscan.Scope)) bool {
	if plain, ok := callee.(*syntax.Name); ok && plain.ID == "super" || library(s.link, scope, callee) {
		return true
	}
	name := pyscan.LastName(callee)
	attr, method := callee.(*syntax.Attribute)
	model := ModelName(name)
	if method && (inPlace.has(attr.Attr) || attr.Attr == "update" && strings.Contains(strings.ToLower(pyscan.LastName(attr.Value)), "scaler")) {
		return false
	}
	given := s.given(scope, callee, maxGiven)
	far := name != "" && s.link.Distance(scope.Module, &voices.Words, name) > maxReach
	for _, one := range alternatives(s.link.Expand(s.link.Eval(scope, nil, callee))) {
		if isModule(s.link, one) {
			return false
		}
		switch value := one.(type) {
		case *pyscan.External:
			if isEvent(value.Name) {
				return false
			}
			continue
		case *pyscan.Func, *pyscan.Class, *pyscan.Partial:
		default:
			if model {
				return false
			}
			if _, is := value.(*pyscan.Instance); is {
				break
			}
			if member, ok := value.(*pyscan.Member); ok && voices.has(member.Name) {
				return false
			}
			if given && !(far && method && s.link.Defined(scope.Module, name)) { // who hands something over may know it
				return false
			}
			continue
		}
		f := s.link.Called(one)
		if f == nil {
			continue
		}
		if given && (!far || model) && s.overridden(one) {
			return false
		}
		add(f.Scope)
	}
	return true
}

// overridden reports whether a subclass may have another method of the name.
func (s *silence) overridden(value pyscan.Value) bool {
	f, ok := value.(*pyscan.Func)
	if !ok {
		return false
	}
	class := f.Scope.EnclosingClass()
	if self, ok := f.Self.(*pyscan.Instance); ok {
		if of, ok := self.Of.(*pyscan.Class); ok {
			class = of.Scope
		}
	}
	return class != nil && s.link.Extended(class.Module, class.Name)
}

// maxGiven bounds how many assignments are gone through for one name.
const maxGiven = 6

// given reports whether what an expression means may depend on what the function it stands in is handed, its object included.
func (s *silence) given(scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	if depth <= 0 {
		return true
	}
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Name:
			found = found || s.handed(scope, n, depth)
		case *syntax.Call:
			if !found && !s.given(scope, n.Func, depth-1) && s.link.ExternalName(s.link.Eval(scope, nil, n.Func)) != "" {
				return false // what a library makes is the library's, whatever it is made of
			}
		case *syntax.Lambda:
			found = true
		}
		return !found
	})
	return found
}

func (s *silence) handed(scope *pyscan.Scope, name *syntax.Name, depth int) bool {
	def := scope.Def(name)
	if def == nil { // of a scope around this one
		return scope.Enclosed(name.ID)
	}
	return s.depends(scope, def, depth)
}

func (s *silence) depends(scope *pyscan.Scope, def *pyscan.Def, depth int) bool {
	switch def.Kind {
	case pyscan.ParamDef:
		return true
	case pyscan.PhiDef:
		if depth <= 0 {
			return true
		}
		for _, one := range def.Alternatives() {
			if s.depends(scope, one, depth-1) {
				return true
			}
		}
		return false
	case pyscan.AugDef:
		return true
	}
	return def.Value != nil && s.given(scope, def.Value, depth-1)
}
