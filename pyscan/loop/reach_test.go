package loop

import "testing"

// TestActingAreVoices holds that the distances of the voices may stand for those of the acting names: none of these is farther away.
func TestActingAreVoices(t *testing.T) {
	for name := range acting.Names {
		if !voices.has(name) {
			t.Errorf("%s is no voice", name)
		}
	}
}

func TestNameSet(t *testing.T) {
	for _, set := range []*nameSet{&acting.nameSet, &voices.nameSet, &plainMethods, &plainFunctions, &methodEvents, &collectives, &inPlace} {
		for name := range set.names {
			if !set.has(name) {
				t.Errorf("%s is not found", name)
			}
		}
		for _, name := range []string{"", "x", "no_such_name_of_a_method_of_anything", "Backward", "bßckward"} {
			if set.has(name) {
				t.Errorf("%q is found", name)
			}
		}
	}
}
