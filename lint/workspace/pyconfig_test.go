package workspace

import (
	"fmt"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestEngines runs testdata/engines/*.txtar: `show(ENGINE)  # WANT` says what is known of the settings of an engine, and of
// the machines that its file runs on.
func TestEngines(t *testing.T) { showCases(t, "testdata/engines", describeEngine) }

func describeEngine(v *View, m *pyscan.Module, call *syntax.Call) string {
	scope := pyscan.ScopeAt(m, call)
	wrappers, _, _ := v.Wrappers(v.Eval(scope, nil, call.Args[0]))
	if len(wrappers) == 0 {
		return "no engine"
	}
	config := v.Engine(wrappers[0])
	text := "unknown"
	if stage, _, ok := config.Stage(); ok {
		text = fmt.Sprint("stage ", stage)
	}
	if n, ok := config.Accumulation(); ok {
		text += fmt.Sprint(", accumulation ", n)
	}
	text += ", fp16 " + config.On("fp16", "enabled").String() + ", clip " + config.Has("gradient_clipping").String()
	if !config.Certain {
		text += ", perhaps"
	}
	if _, several := v.SeveralNodes(m, scope); several {
		text += ", several nodes"
	}
	return text
}
