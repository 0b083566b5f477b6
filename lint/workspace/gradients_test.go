package workspace

import (
	"context"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestGradientsAndTypes reads programs in which grad(x) and dtype(x) say in a comment what is known of x.
func TestGradientsAndTypes(t *testing.T) {
	const program = `import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.block = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)

    def forward(self, ids, hidden, images, *rest):
        grad(ids)  # no
        grad(hidden)  # maybe
        grad(*rest)  # maybe
        grad(self.block(ids))  # yes
        grad(self.drop(images))  # no
        grad(self.frozen(images))  # no
        grad(self.frozen(self.block(images)))  # yes
        grad({"x": self.block(images)})  # no
        grad(self.block(images).detach())  # no
        x = self.frozen(images)
        for _ in range(3):
            x = checkpoint(self.block, x, use_reentrant=True)
            grad(x)  # no
        y = self.frozen(images)
        y.requires_grad_(True)
        grad(y)  # yes


def build(flag, other):
    dtype(Net().half())  # torch.float16
    a = Net().to("cuda", torch.bfloat16)
    dtype(a)  # torch.bfloat16
    b = nn.DataParallel(a)
    dtype(b)  # torch.bfloat16
    dtype(b.module)  # torch.bfloat16
    c = Net().half()
    c = c.float()
    dtype(c)  # -
    d = Net()
    if flag:
        d.half()
    dtype(d)  # -
    e = Net()
    e.to(dtype=torch.float16)
    dtype(e)  # torch.float16
    dtype(other)  # -
    passed(e)


def passed(model):
    dtype(model)  # torch.float16
`
	v := NewSnapshot(memory{"net.py": program}).View(context.Background())
	m := v.Module("net.py")
	lines := strings.Split(program, "\n")
	asked := 0
	for node := range m.Tree.All() {
		call, ok := node.(*syntax.Call)
		if !ok || len(call.Args) != 1 {
			continue
		}
		line := m.File.Line(call.Span().Start)
		_, want, commented := strings.Cut(lines[line], "# ")
		name, scope, got := pyscan.Path(call.Func), pyscan.ScopeAt(m, call), ""
		switch name {
		case "grad":
			got = v.RequiresGrad(scope, nil, call.Args[0]).String()
		case "dtype":
			if got, _ = v.ParameterType(scope, nil, call.Args[0]); got == "" {
				got = "-"
			}
		default:
			continue
		}
		asked++
		if !commented || got != want {
			t.Errorf("line %d: %s is %s", line+1, strings.TrimSpace(lines[line]), got)
		}
	}
	if asked < 20 {
		t.Errorf("only %d questions were asked", asked)
	}
}
