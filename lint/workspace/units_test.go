package workspace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestSteps runs testdata/units/counts.txtar: `show(EXPR)  # UNIT`.
func TestSteps(t *testing.T) {
	showCases(t, "testdata/units", func(v *View, m *pyscan.Module, call *syntax.Call) string {
		return v.Steps(v.Eval(pyscan.ScopeAt(m, call), nil, call.Args[0]), nil).Unit.String()
	})
}

// TestAccumulation runs testdata/accumulation/frameworks.txtar: behind each backward, what Accumulation says of it.
func TestAccumulation(t *testing.T) {
	text, err := os.ReadFile("testdata/accumulation/frameworks.txtar")
	if err != nil {
		t.Fatal(err)
	}
	v, _ := open(t, string(text))
	m := v.Module("train.py")
	checked := 0
	for _, l := range v.Loops(m) {
		for _, backward := range l.Deep(loop.Backward) {
			checked++
			line := m.File.Line(backward.At.Span.Start)
			_, want, _ := strings.Cut(m.File.Slice(m.File.LineSpan(line)), "# ")
			a := v.Accumulation(backward)
			if got := fmt.Sprintf("%s %s %d", a.By, a.More, a.Count); got != want {
				t.Errorf("line %d: got %s, want %s", line+1, got, want)
			}
		}
	}
	if checked != 11 {
		t.Errorf("%d backwards were looked at", checked)
	}
}
