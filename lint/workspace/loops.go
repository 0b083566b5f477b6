package workspace

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// Loops gives the training loops of a file, in order.
func (v *View) Loops(m *pyscan.Module) []*loop.Loop {
	list, known := v.eval.loops[m]
	if !known {
		list = loop.Find(m, v)
		v.eval.loops[m] = list
	}
	return list
}
