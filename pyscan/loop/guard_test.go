package loop

import "testing"

// TestLongGuard holds that a guard has a bound, keeps its first and its last conditions, and owns up to what is left out.
func TestLongGuard(t *testing.T) {
	var one, many Guard
	var list []Cond
	for i := range 5000 {
		c := Cond{Kind: Flag, Offset: i}
		list = append(list, c)
		one = one.With(c)
		if i == 100 {
			many = one.With()
		}
	}
	for name, guard := range map[string]Guard{"one by one": one, "at once": Guard(nil).With(list...)} {
		if len(guard) != maxGuard {
			t.Fatalf("%s: %d conditions", name, len(guard))
		}
		if guard[0].Offset != 0 || guard[maxGuard-1].Offset != 4999 || guard[maxGuard/2].Kind != UnknownCond {
			t.Errorf("%s: %v", name, guard)
		}
	}
	if last := many[len(many)-1].Offset; last != 100 {
		t.Errorf("a longer guard changed a shorter one: %d", last)
	}
	if short := Guard(nil).With(list[:maxGuard]...); short[maxGuard/2].Kind != Flag || len(short) != maxGuard {
		t.Error("a guard within the bound is changed")
	}
}
