package workspace

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
)

// faulty is a disk on which one file makes the reader fail, as a fault of a decoder would.
type faulty struct{ listed }

func (f *faulty) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "bad.py") {
		panic("bad.py")
	}
	return f.listed.ReadFile(name)
}

// TestCrew holds that a panic in a goroutine which reads files comes out where the question was asked, and that the file counts as one that
// cannot be read from then on.
func TestCrew(t *testing.T) {
	caught := func(ask func()) (reason any) {
		defer func() { reason = recover() }()
		ask()
		return nil
	}
	for _, ask := range []func(v *View){
		func(v *View) { v.NamedIn("ds.json") },
		func(v *View) { v.Mentioning("a.py", "f") },
	} {
		s := NewSnapshot(&faulty{listed{MapFS: fstest.MapFS{"setup.py": {}, "a.py": {}, "bad.py": {}, "ds.json": {}}}})
		for range 2 { // half of an answer is none
			if reason := caught(func() { ask(s.View(context.Background())) }); reason != "bad.py" {
				t.Errorf("it failed with %v", reason)
			}
		}
		if reason := caught(func() {
			if file, err := s.File("bad.py"); file != nil || err == nil {
				t.Errorf("bad.py is %v, %v", file, err)
			}
		}); reason != nil {
			t.Errorf("it failed again with %v", reason)
		}
	}
}
