package workspace

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// EveryLoop gives the loops of a file in which something happens that a rule may ask for, those of an evaluation too, in order.
func (v *View) EveryLoop(m *pyscan.Module) []*loop.Loop { return loop.FindAll(m, v) }

// LoopsIn gives the loops of one function, whether they train or not.
func (v *View) LoopsIn(scope *pyscan.Scope) []*loop.Loop { return loop.In(scope, v) }

// Loops gives the training loops of a file, in order, as many as a file of its size can have looked at.
func (v *View) Loops(m *pyscan.Module) []*loop.Loop {
	list, known := v.eval.loops[m]
	if !known {
		list = loop.Find(m, v)
		list = list[:min(len(list), m.File.Affordable())]
		v.eval.loops[m] = list
	}
	return list
}

// Known implements loop.Linker. A view that records its reads remembers for itself: what another found out is none of them.
func (v *View) Known() *loop.Known {
	if v.reads != nil {
		if v.eval.functions == nil {
			v.eval.functions = loop.NewKnown()
		}
		return v.eval.functions
	}
	v.Snapshot.mu.Lock()
	defer v.Snapshot.mu.Unlock()
	if v.Snapshot.functions == nil {
		v.Snapshot.functions = loop.NewKnown()
	}
	return v.Snapshot.functions
}
