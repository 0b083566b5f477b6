package workspace

import (
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestModelParts runs testdata/modelparts/names.txtar: `show(PART, ARGUMENT)  # WHAT IT IS`.
func TestModelParts(t *testing.T) {
	showCases(t, "testdata/modelparts", func(v *View, m *pyscan.Module, call *syntax.Call) string {
		scope := pyscan.ScopeAt(m, call)
		part := v.Eval(scope, nil, call.Args[0])
		leaf := Leaf(call.Args[0])
		switch {
		case v.CalledEmbedding(part, leaf, scope, nil, call.Args[1]):
			return "embedding"
		case v.CalledHead(part, leaf):
			return "head"
		}
		if table := v.HeadOfTable(scope, v.Expand(part)); table != nil {
			return "as many as " + v.tables(scope.EnclosingClass())[tableAt(v, scope, table)].name
		}
		return "-"
	})
}

func tableAt(v *View, scope *pyscan.Scope, table *pyscan.Instance) int {
	for i, one := range v.tables(scope.EnclosingClass()) {
		if v.Same(one.Instance, table) {
			return i
		}
	}
	return -1
}
