package workspace

import "testing"

// TestReadsAttribute: a dot, getattr and hasattr read an attribute, in any file of the project; what sets it does not.
func TestReadsAttribute(t *testing.T) {
	v, _ := open(t, `-- pyproject.toml --
[project]
name = "x"
-- a.py --
p._one = 1
setattr(p, "_two", 2)
p._three = p._four = p._five = 0
-- b.py --
print(q._three)
getattr(q, "_four")
q._five += 1
`)
	for name, want := range map[string]bool{"_one": false, "_two": false, "_three": true, "_four": true, "_five": true} {
		if got := v.ReadsAttribute("a.py", name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
