package pyscan

import (
	"testing"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestPlain holds that what plain statements tell of a scope is what binding it tells.
func TestPlain(t *testing.T) {
	const text = `
def everything(a, b=None, *c, **d):
    global gone
    gone = 1
    a = make()
    x, (y, *z) = make()
    self.one = self.two.three = make()
    for i in a:
        j = i()
        with make() as k, make() as (l, m):
            n = make()
        while n:
            o: int = make()
            n += 1
        else:
            p = make()
    else:
        q = make()
    try:
        r = make()
    except Error as s:
        u = make()
    else:
        v = make()
    finally:
        w = make()
    match a:
        case [first, *rest]:
            inner = make()
        case {"k": value, **more}:
            pass
    aa = [bb for bb in a if (cc := bb)]
    dd = a
    ee = a if b else x
    ff, gg = a, b
    hh = lambda ii: ii
    self.nine: int = 3
    self.ten.eleven += 1
    del jj, self.kk
    import ll.mm, nn as oo
    from pp import qq
    def nested():
        hidden = 1
    class Nested:
        hidden2 = 1
    nested = make()
    rr[a], ss.tt = make()
    if a:
        uu = make()
    elif b:
        vv = make()
`
	m := parse(t, text)
	names := map[string]bool{"self.none": true, "none": true, "self.two.four": true, "two.three": true}
	for n := range syntax.Preorder(m.Tree.Body[0]) {
		switch n := n.(type) {
		case *syntax.Name:
			names[n.ID] = true
		case *syntax.Attribute:
			names[Path(n)] = true
		case *syntax.FunctionDef:
			names[n.Name] = true
		}
	}
	names["first"], names["rest"], names["value"], names["more"], names["s"], names["oo"], names["qq"], names["ll"] = true, true, true, true, true, true, true, true
	plain := 0
	m.Scopes(func(s *Scope) {
		for name := range names {
			no, well := s.definesNo(name), s.Plain(name)
			b := s.bind()
			defined := b.find(name) >= 0 && len(b.of(b.find(name))) > 0
			if no && defined {
				t.Errorf("%s: %q is defined", s.Name, name)
			}
			if !well {
				continue
			}
			plain++
			if !defined {
				t.Errorf("%s: %q is not defined", s.Name, name)
				continue
			}
			for _, def := range b.of(b.find(name)) {
				if def.Kind == ScopeDef || def.Kind == ImportDef || def.Kind == AssignDef && mayName(def.Value) {
					t.Errorf("%s: %q may stand for a function", s.Name, name)
				}
			}
		}
	})
	if plain < 5 {
		t.Errorf("only %d names are plain", plain)
	}
}
