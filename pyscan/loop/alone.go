package loop

import (
	"cmp"
	"slices"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// The length of a window for which it is tried what its steps see, and how many windows.
const (
	triedWindow = 3
	triedRounds = 3
)

// Alone runs through some windows with the clearings given, and says which of them leaves a single micro-batch of
// several to the steps, and by which boundary the windows are counted. Nil when the steps see more under some
// setting under which gradients add up, or none.
func (w *Window) Alone(link Linker, clearings []*Event) (guilty *Event, boundary *Cond) {
	if len(clearings) == 0 || len(w.Steps) == 0 {
		return nil, nil
	}
	a := &logic{link: link, loop: w.Micro, period: triedWindow}
	boundary, known := w.count(a)
	if !known {
		return nil, nil
	}
	run := w.run(a, clearings)
	other := false
	known = a.points(func(tests uint32) bool {
		if !a.common(tests) {
			return true
		}
		switch by, result := run.try(tests); result {
		case alone:
			guilty = by
			other = other || run.apart(tests, by)
		case another:
			other = true
		}
		return !other
	})
	if !known || other || guilty == nil {
		return nil, nil
	}
	return guilty, boundary
}

// count finds the boundary that the windows are counted by, and lets conditions on it be read as phases of a window.
func (w *Window) count(a *logic) (base *Cond, known bool) {
	var look func(Guard)
	look = func(g Guard) {
		for i := range g {
			c := &g[i]
			for _, side := range c.Any {
				look(side)
			}
			counted := len(c.Any) == 0 && (c.Kind == Modulo || c.Kind == SyncFlag || c.Kind == LastOf)
			if counted && (base == nil || c.Kind == Modulo && base.Kind == LastOf) {
				base = c
			}
		}
	}
	if w.Outer == nil {
		for step, in := range w.Micro.All {
			if step.Kind == Step {
				look(w.Micro.GuardOf(step, in))
			}
		}
		if base == nil {
			return nil, false
		}
		if n, ok := constantOf(a.link, base.Scope, base.Frame, base.N); ok && n <= 1 && base.Kind == Modulo {
			return nil, false
		}
	}
	length := ""
	if base != nil && base.N != nil {
		length = a.spell(base.N, base.Scope, base.Frame, 8)
	}
	a.phase = func(c Cond) (int, bool) {
		switch {
		case base == nil: // a loop of its own: its last iteration, and its first
			return map[CondKind]int{LastOf: 1}[c.Kind], c.Kind == LastOf || c.Kind == First
		case c.Kind != base.Kind:
			return 0, false
		case c.Kind != Modulo:
			return 1, true
		}
		if c.N == nil || base.N == nil || c.counter == nil || base.counter == nil ||
			a.spell(c.N, c.Scope, c.Frame, 8) != length {
			return 0, false
		}
		if c.Counter == base.Counter && c.Scope == base.Scope && c.Frame == base.Frame { // counted up between, perhaps
			return c.Offset, true
		}
		return c.Offset, a.spell(c.counter, c.Scope, c.Frame, 8) == a.spell(base.counter, base.Scope, base.Frame, 8)
	}
	return base, true
}

// moment is an event of a window with when it happens.
type moment struct {
	event *Event
	kind  Kind
	runs  formula
	micro bool // in each micro-batch; else behind the loop of micro-batches
}

type run struct{ moments []moment }

func (w *Window) run(a *logic, clearings []*Event) *run {
	r := &run{}
	for _, b := range w.Backward {
		r.moments = append(r.moments, moment{b, Backward, a.guard(b.Guard), true})
	}
	for _, zero := range clearings {
		r.moments = append(r.moments, moment{zero, ZeroGrad, a.guard(zero.Guard), true})
	}
	if w.Outer == nil {
		for step, in := range w.Micro.All {
			if step.Kind == Step {
				r.moments = append(r.moments, moment{step, Step, a.guard(w.Micro.GuardOf(step, in)), true})
			}
		}
	} else {
		r.moments = append(r.moments, moment{w.Steps[0], Step, always(), false})
	}
	slices.SortStableFunc(r.moments, func(x, y moment) int {
		if x.micro != y.micro {
			return map[bool]int{true: -1, false: 1}[x.micro]
		}
		return cmp.Compare(x.event.Order, y.event.Order)
	})
	return r
}

type result uint8

const (
	nothing result = iota // no gradients add up
	alone                 // each step sees the last micro-batch only
	another               // a step sees another number of them
)

// apart reports whether a clearing, a backward and a step behind it happen in the same micro-batches, and the backwards of others are of
// another loss: turns of one optimizer, as of a GAN, beside which the others may be of another model. Those under no_sync wait for a step.
func (r *run) apart(tests uint32, zero *Event) bool {
	at := slices.IndexFunc(r.moments, func(m moment) bool { return m.event == zero })
	ran := func(m moment) (list [triedWindow * triedRounds]bool) {
		for micro := range list {
			list[micro] = m.micro && m.runs(point{tests, micro})
		}
		return list
	}
	turns := ran(r.moments[at])
	var own *Event
	for _, m := range r.moments[at+1:] {
		if m.kind == Backward && own == nil {
			own = m.event
		}
		if (m.kind == Backward || m.kind == Step) && ran(m) == turns {
			if m.kind == Step && own != nil {
				return !slices.ContainsFunc(r.moments, func(m moment) bool {
					return m.kind == Backward && m.event != own && (m.event.In(NoSyncContext) || sameLoss(m.event, own))
				})
			}
			continue
		}
		return false
	}
	return false
}

// sameLoss reports whether two backwards differentiate the same variable with the same value.
func sameLoss(a, b *Event) bool {
	x, isName := a.Loss.(*syntax.Name)
	y, both := b.Loss.(*syntax.Name)
	return isName && both && a.Scope == b.Scope && a.Scope.Def(x) == b.Scope.Def(y)
}

// try runs through the windows with one outcome of the tests.
func (r *run) try(tests uint32) (guilty *Event, seen result) {
	var last *Event
	kept, since := 0, 0 // micro-batches in the gradients, and since the step
	steps := 0
	for micro := range triedWindow * triedRounds {
		first := true
		for _, m := range r.moments {
			if !m.micro && micro%triedWindow != triedWindow-1 || !m.runs(point{tests, micro}) {
				continue
			}
			switch m.kind {
			case ZeroGrad:
				last, kept = m.event, 0
			case Backward:
				if kept == 0 || first {
					kept++
				}
				if first {
					since, first = since+1, false
				}
			case Step:
				if since == 0 && kept == 0 {
					continue // a second optimizer
				}
				if steps++; steps > 1 && since > 1 {
					if kept != 1 || last == nil {
						return nil, another
					}
					guilty, seen = last, alone
				}
				since = 0
			}
		}
	}
	return guilty, seen
}
