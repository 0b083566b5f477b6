package pyscan

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

func parse(t testing.TB, text string) *Module {
	t.Helper()
	file, err := source.Decode("m.py", source.Python, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return New(syntax.Parse(file))
}

// reaching tells for each load of a name which definitions reach it, as "name@line <- kind@line kind@line".
func reaching(m *Module) string {
	var out []string
	m.Scopes(func(s *Scope) {
		if s.Kind == ClassScope {
			return
		}
		for _, stmt := range s.Body() {
			syntax.Inspect(stmt, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
					return false
				case *syntax.Name:
					if n.Ctx == syntax.Load {
						out = append(out, fmt.Sprintf("%s@%d <- %s", n.ID, m.File.Line(n.At.Start)+1, describe(m, s.Def(n))))
					}
				case *syntax.Attribute:
					if def := s.AttrDef(n); def != nil && n.Ctx == syntax.Load {
						out = append(out, fmt.Sprintf("%s@%d <- %s", Path(n), m.File.Line(n.At.Start)+1, describe(m, def)))
					}
				}
				return true
			})
		}
	})
	return strings.Join(out, "\n")
}

func describe(m *Module, def *Def) string {
	if def == nil {
		return "outside"
	}
	seen := map[*Def]bool{}
	found := map[string]bool{}
	var visit func(*Def)
	visit = func(d *Def) {
		if seen[d] {
			return
		}
		seen[d] = true
		if d.Kind == PhiDef {
			for _, a := range d.Alternatives() {
				visit(a)
			}
			return
		}
		kind := map[DefKind]string{ParamDef: "param", AssignDef: "assign", AugDef: "aug", UnpackDef: "unpack", IterDef: "iter", WithDef: "with", ExceptDef: "except", ImportDef: "import",
			ScopeDef: "def", MatchDef: "match", AnnDef: "ann", DelDef: "del"}[d.Kind]
		found[fmt.Sprintf("%s@%d", kind, m.File.Line(d.Node.Span().Start)+1)] = true
	}
	visit(def)
	list := make([]string, 0, len(found))
	for d := range found {
		list = append(list, d)
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}

func TestReachingDefinitions(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"straight", "x = 1\nx = 2\ny = x\n", "x@3 <- assign@2"},
		{"branches", "x = 1\nif c:\n    x = 2\ny = x\n", "c@2 <- outside\nx@4 <- assign@1 assign@3"},
		{"both branches", "if c:\n    x = 1\nelse:\n    x = 2\ny = x\n", "c@1 <- outside\nx@5 <- assign@2 assign@4"},
		{"branch that returns", "def f(c):\n    x = 1\n    if c:\n        x = 2\n        return x\n    return x\n", "c@3 <- param@1\nx@5 <- assign@4\nx@6 <- assign@2"},
		{"loop carries", "x = 0\nfor i in r:\n    y = x\n    x = i\nz = x\n", "r@2 <- outside\nx@3 <- assign@1 assign@4\ni@4 <- iter@2\nx@5 <- assign@1 assign@4"},
		{"continue", "x = 0\nfor i in r:\n    if i:\n        x = 1\n        continue\n    x = 2\ny = x\n", "r@2 <- outside\ni@3 <- iter@2\nx@7 <- assign@1 assign@4 assign@6"},
		{"break", "x = 0\nwhile c:\n    x = 1\n    break\ny = x\n", "c@2 <- outside\nx@5 <- assign@1 assign@3"},
		{"augmented", "loss = f()\nloss /= n\nloss.backward()\n", "f@1 <- outside\nn@2 <- outside\nloss@3 <- aug@2"},
		{"unpack", "a, (b, c) = f()\nuse(b)\n", "f@1 <- outside\nuse@2 <- outside\nb@2 <- unpack@1"},
		{"pairwise", "a, b = 1, 2\nuse(b)\n", "use@2 <- outside\nb@2 <- assign@1"},
		{"try", "x = 1\ntry:\n    x = 2\n    x = 3\nexcept E as e:\n    use(x, e)\nuse(x)\n",
			"E@5 <- outside\nuse@6 <- outside\nx@6 <- assign@1 assign@3 assign@4\ne@6 <- except@5\nuse@7 <- outside\nx@7 <- assign@1 assign@3 assign@4"},
		{"with", "with open(p) as f:\n    use(f)\n", "open@1 <- outside\np@1 <- outside\nuse@2 <- outside\nf@2 <- with@1"},
		{"comprehension", "x = 1\ny = [x for x in r]\nz = x\n", "x@2 <- iter@2\nr@2 <- outside\nx@3 <- assign@1"},
		{"walrus", "if (n := f()) > 1:\n    use(n)\n", "f@1 <- outside\nuse@2 <- outside\nn@2 <- assign@1"},
		{"import", "import a.b as c\nfrom d import e\nc.x(e)\n", "c@3 <- import@1\ne@3 <- import@2"},
		{"attribute path", "def f(self):\n    self.x = g()\n    self.x = self.x / 2\n    use(self.x)\n",
			"g@2 <- outside\nself@3 <- param@1\nself.x@3 <- assign@2\nself@2 <- param@1"},
		{"base rebound", "def f(m, o):\n    m.x = 1\n    m = o\n    return m.x\n", "m@2 <- param@1\no@3 <- param@1\nm@4 <- assign@3"},
		{"match", "match f():\n    case [a, *b]:\n        use(a, b)\n", "f@1 <- outside\nuse@3 <- outside\na@3 <- match@2\nb@3 <- match@2"},
		{"nested function", "def f():\n    x = 1\n    def g():\n        return x\n    return g\n", "g@5 <- def@3\nx@4 <- outside"},
		{"raise ends a branch", "if c:\n    x = 1\nelse:\n    raise E\nuse(x)\n", "c@1 <- outside\nE@4 <- outside\nuse@5 <- outside\nx@5 <- assign@2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := reaching(parse(t, test.text))
			if test.name == "attribute path" { // the order of base and path is of no interest
				for _, want := range []string{"self.x@3 <- assign@2", "self.x@4 <- assign@3"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s is missing in\n%s", want, got)
					}
				}
				return
			}
			if sortLines(got) != sortLines(test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func sortLines(text string) string {
	lines := strings.Split(text, "\n")
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// Binding must stay about linear: many names and many branches at one level.
func BenchmarkBindWide(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "v%d = 1\nif v%d:\n    v%d = 2\n", i, i, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		parse(b, text.String()).Root.Exit("v0")
	}
}

// What a scope may define is asked before it is bound: no way to define a name may be left out there.
func TestMayDefine(t *testing.T) {
	m := parse(t, `import a.b, c.d as e
from f import g, h as i
from j import *
type k = int
l: int
m: int = 1
n = o, (p, *q) = r.s, t.u[v] = w
del x, y.z
aa += 1
bb.cc -= 1
for dd, ee.ff in gg:
    while hh:
        ii = lambda jj, *kk, ll=1, **mm: (nn := jj)
else:
    oo = 1
with pp as qq, rr as (ss, tt.uu):
    pass
try:
    vv = 1
except ww as xx:
    yy = 1
finally:
    zz = [ab for ac in ad for ab in ac if (ae := ab)]
match af:
    case [ag, *ah] | {"x": ai, **aj} | ak.al(am=an) | (1 as ao):
        ap = 1
@aq
def ar(as_, /, at: int, *au, av=1, **aw):
    global ax
    ax, ay.az = 1
    nonlocal ba
    ba = 1
async def bb():
    async for bc in bd: pass
    async with be as bf: pass
class bg(bh, bi=bj):
    bk = 1
    def bl(self):
        self.bm, self.bn.bo = 1
        for self.bp in 1: self.bq[1] = 1
x y = 1 :
    br = 2
`)
	count := 0
	m.Scopes(func(s *Scope) {
		for _, name := range s.bind().names {
			if count++; !s.mayDefine(name) {
				t.Errorf("%s defines %s", s.Qualified(), name)
			}
		}
	})
	if count < 60 {
		t.Errorf("%d names are few", count)
	}
}
