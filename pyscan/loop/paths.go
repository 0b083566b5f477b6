package loop

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Passage is an event on a way through an iteration: when it happens, and when inside a context that somebody asks
// for.
type Passage struct {
	Guard  Guard
	Inside []Guard // of contexts, each with its own; one that holds is enough
}

// PassageOf reads an event of a loop or of one inside it, with the contexts of a kind around it.
func (l *Loop) PassageOf(event *Event, in *Loop, kind ContextKind) Passage {
	p := Passage{Guard: l.GuardOf(event, in)}
	for _, c := range event.Contexts {
		if c.Kind == kind {
			p.Inside = append(p.Inside, c.Guard)
		}
	}
	return p
}

// LastBefore follows each way through an iteration on which a later event happens, under the guard given, and says
// where the last of the earlier events on it was: inside a context on some way, outside on some. Tests that are the
// same in both come out the same. Where they are too many both are true.
func LastBefore(link Linker, earlier []Passage, later Guard) (inside, outside bool) {
	a := &logic{link: link}
	happens := a.guard(later)
	type way struct{ runs, inside formula }
	ways := make([]way, len(earlier))
	for i, p := range earlier {
		parts := make([]formula, len(p.Inside))
		for j, g := range p.Inside {
			parts[j] = a.guard(g)
		}
		ways[i] = way{a.guard(p.Guard), some(parts)}
	}
	known := a.points(func(tests uint32) bool {
		at := point{tests: tests}
		if !happens(at) {
			return true
		}
		for i := len(ways) - 1; i >= 0; i-- {
			if ways[i].runs(at) {
				if ways[i].inside(at) {
					inside = true
				} else {
					outside = true
				}
				break
			}
		}
		return true
	})
	return inside || !known, outside || !known
}

// settings are the tests that come out the same in every iteration of the loop: a run never changes them.
func (a *logic) settings() uint32 {
	var mask uint32
	for i, one := range a.atoms {
		if !one.varies {
			mask |= 1 << i
		}
	}
	return mask
}

// stepsAlways reports whether under each setting with which the loop steps at all, every way through a backward
// steps too: the branch of a setting without a step is another's business, when it has a backward of its own.
func (w *Window) stepsAlways(link Linker) bool {
	a := &logic{link: link, loop: w.Micro}
	backward := make([]formula, len(w.Backward))
	for i, b := range w.Backward {
		backward[i] = a.guard(b.Guard)
	}
	var steps []formula
	for step, in := range w.Micro.All {
		if step.Kind == Step {
			steps = append(steps, a.guard(w.Micro.GuardOf(step, in)))
		}
	}
	settings, any := a.settings(), some(steps)
	type seen struct {
		steps, missing bool
		backward       uint64
	}
	under := map[uint32]*seen{}
	known := a.points(func(tests uint32) bool {
		s := under[tests&settings]
		if s == nil {
			s = &seen{}
			under[tests&settings] = s
		}
		at := point{tests: tests}
		stepped := any(at)
		s.steps = s.steps || stepped
		for i, runs := range backward {
			if runs(at) {
				s.backward |= 1 << (i % 64)
				s.missing = s.missing || !stepped
			}
		}
		return true
	})
	var stepping, others uint64
	for _, s := range under {
		switch {
		case s.steps && s.missing:
			return false
		case s.steps:
			stepping |= s.backward
		default:
			others |= s.backward
		}
	}
	return known && stepping != 0 && stepping&others == 0
}

// aside reports whether a loop inside another one runs in some iterations only, in which the steps of the other do
// not ask for it, and these have a backward of their own: the loop is a validation, a warm-up or an attack, and no
// part of what is stepped with.
func aside(link Linker, outer, l *Loop, steps []*Event) bool {
	var guard Guard
	for in := l; in != nil && in != outer; in = in.Outer {
		guard = in.Guard.With(guard...)
	}
	own := false
	for event, in := range outer.All {
		for ; in != nil && in != l && in != outer; in = in.Outer {
		}
		own = own || event.Kind == Backward && in == outer
	}
	if len(guard) == 0 || !own {
		return false
	}
	a := &logic{link: link, loop: outer}
	runs := a.guard(guard)
	settings := a.settings()
	stepping := make([]formula, len(steps))
	for i, step := range steps {
		stepping[i] = a.guard(step.Guard)
	}
	without := false // a step whose iteration did not run the loop, for another reason than a setting
	entered := map[uint32]bool{}
	known := a.points(func(tests uint32) bool {
		if runs(point{tests: tests}) {
			entered[tests&settings] = true
		}
		return true
	})
	a.points(func(tests uint32) bool {
		at := point{tests: tests}
		without = without || entered[tests&settings] && !runs(at) && some(stepping)(at)
		return !without
	})
	return known && without
}

// Implies reports whether what is under one guard runs only where another one holds too, but for moments: an
// exception, a loss that is not finite.
func Implies(link Linker, guard, other Guard) bool {
	a := &logic{link: link}
	given, wanted := a.guard(guard), a.guard(other)
	implied := true
	known := a.points(func(tests uint32) bool {
		at := point{tests: tests}
		implied = !given(at) || wanted(at) || !a.common(tests)
		return implied
	})
	return known && implied
}

// Counts reports whether a boundary's counter goes up by one in every iteration of the loop: its target, or a name
// that is counted up in it under no condition.
func (l *Loop) Counts(c *Cond) bool {
	node, ok := l.Node.(*syntax.For)
	if c.Scope != l.Scope || l.Node == nil {
		return false
	}
	body := bodyOf(l.Node)
	for _, def := range l.Scope.Defs(c.Counter) {
		switch def.Kind {
		case pyscan.IterDef:
			if ok && node.Target.Span().Contains(def.Node.Span()) {
				return true
			}
		case pyscan.AugDef:
			if def.Op == syntax.Add && slices.Contains(body, def.Stmt) {
				return true
			}
		case pyscan.AssignDef:
			plus, ok := def.Value.(*syntax.BinOp)
			if ok && plus.Op == syntax.Add && pyscan.Path(plus.Left) == c.Counter && slices.Contains(body, def.Stmt) {
				return true
			}
		}
	}
	return false
}

func bodyOf(stmt syntax.Stmt) []syntax.Stmt {
	switch stmt := stmt.(type) {
	case *syntax.For:
		return stmt.Body
	case *syntax.While:
		return stmt.Body
	}
	return nil
}
