package loop

import "testing"

// TestConsistent holds which tests cannot both come out true.
func TestConsistent(t *testing.T) {
	value := func(key string) atom { return atom{key: key, left: key} }
	equal := func(x, y string) atom { return atom{key: x + " == " + y, left: x, right: y, equality: true} }
	less := func(x, y string) atom { return atom{key: x + " < " + y, left: x, right: y} }
	for _, c := range []struct {
		a, b atom
		both bool
	}{
		{value("x"), value("y"), true},
		{value("x"), equal("x", "= None"), false},
		{value("x"), equal("x", "= 3"), true},
		{value("x"), equal("x", "y"), true},
		{equal("x", "= 1"), equal("x", "= 2"), false},
		{equal("x", "= 1"), equal("y", "= 2"), true},
		{equal("x", "y"), equal("x", "= 2"), true},
		{equal("x", "y"), less("x", "y"), false},
		{equal("x", "y"), less("y", "x"), false},
		{less("x", "y"), less("y", "z"), true},
	} {
		a := &logic{atoms: []atom{c.a, c.b}}
		if got := a.consistent(3); got != c.both {
			t.Errorf("%s and %s: %v", c.a.key, c.b.key, got)
		}
		if !a.consistent(1) || !a.consistent(2) || !a.consistent(0) {
			t.Errorf("%s and %s: one alone", c.a.key, c.b.key)
		}
	}
}

// TestManyTests holds that too many tests are no answer.
func TestManyTests(t *testing.T) {
	a := &logic{atoms: make([]atom, maxAtoms+1)}
	if a.points(func(uint32) bool { t.Error("a choice was tried"); return false }) {
		t.Error("known")
	}
}
