package workspace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestManyMethods holds that what an attribute is does not depend on how many methods the class has besides, and that of one that more
// than maxSetters methods assign nothing is known.
func TestManyMethods(t *testing.T) {
	for _, others := range []int{0, manyMethods - 3, manyMethods, 3 * maxSetters} {
		for _, setters := range []int{1, maxSetters, maxSetters + 1} {
			var text strings.Builder
			text.WriteString("import torch\ne = torch.nn.Embedding(4, 4)\nclass T:\n    def __init__(this):\n        this.a = torch.nn.Linear(4, 4)\n        this.b = e\n")
			for i := range others {
				fmt.Fprintf(&text, "    def f%d(self):\n        self.c%d = 1\n", i, i)
			}
			for i := range setters - 1 {
				fmt.Fprintf(&text, "    def g%d(self):\n        self.b = e\n", i)
			}
			text.WriteString("t = T()\nshow(t.a, t.b)\n")
			v, _ := open(t, "-- main.py --\n"+text.String())
			m := v.Module("main.py")
			syntaxCalls(m, func(call *syntax.Call) {
				if pyscan.Path(call.Func) != "show" {
					return
				}
				a, b := v.Describe(v.Eval(m.Root, nil, call.Args[0])), v.Describe(v.Eval(m.Root, nil, call.Args[1]))
				want := "instance of torch.nn.Embedding"
				if setters > maxSetters {
					want = "unknown"
				}
				if a != "instance of torch.nn.Linear" || b != want {
					t.Errorf("%d methods, %d of which assign: %s, %s", others, setters, a, b)
				}
			})
		}
	}
}
