package source

import (
	"path"
	"testing"
)

// TestJoin holds that names are joined and cut as package path does it.
func TestJoin(t *testing.T) {
	parts := []string{"", ".", "..", "...", ".git", "a", "a.b", "..b", "/", "//", "c/", "/d", "./e", "f//g", "h/../i", "j/./k", "l/.", "m/..", "C:/n"}
	var names []string
	for _, x := range parts {
		for _, y := range parts {
			names = append(names, x, x+y, x+"/"+y)
		}
	}
	for _, name := range names {
		if got, want := Clean(name), path.Clean(name); got != want {
			t.Errorf("Clean(%q) = %q, not %q", name, got, want)
		}
		if got, want := Dir(name), path.Dir(name); got != want {
			t.Errorf("Dir(%q) = %q, not %q", name, got, want)
		}
		for _, inner := range parts {
			if got, want := Join(name, inner), path.Join(name, inner); got != want {
				t.Errorf("Join(%q, %q) = %q, not %q", name, inner, got, want)
			}
		}
	}
}
