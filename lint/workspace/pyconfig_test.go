package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestEngines runs testdata/engines/*.txtar: `show(ENGINE)  # WANT` says what is known of the settings of an engine, and of
// the machines that its file runs on.
func TestEngines(t *testing.T) {
	archives, _ := filepath.Glob("testdata/engines/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no cases")
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			v, files := open(t, string(text))
			checked := 0
			for _, file := range sortedNames(files) {
				m := v.Module(file)
				if m == nil {
					continue
				}
				syntaxCalls(m, func(call *syntax.Call) {
					if pyscan.Path(call.Func) != "show" {
						return
					}
					line := m.File.Line(call.Span().Start)
					_, want, _ := strings.Cut(m.File.Slice(m.File.LineSpan(line)), "# ")
					checked++
					if got := describeEngine(v, m, call); got != want {
						t.Errorf("%s:%d: got  %s\nwant %s", file, line+1, got, want)
					}
				})
			}
			if checked == 0 {
				t.Error("the case shows nothing")
			}
		})
	}
}

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
