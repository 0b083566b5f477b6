package loop

import (
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

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

// TestManyContexts holds that contexts in each other have a bound, and that a longer list changes no shorter one.
func TestManyContexts(t *testing.T) {
	var one, early []Context
	var list []Context
	for i := range 5000 {
		c := Context{Kind: OtherContext, At: source.Place{Span: source.Span{Start: uint32(i)}}}
		list = append(list, c)
		if one = around(one, c); i == 10 {
			early = around(one[:5], c)
		}
	}
	for name, contexts := range map[string][]Context{"one by one": one, "at once": around(nil, list...)} {
		if len(contexts) != maxContexts || contexts[5].At.Span.Start != 5 {
			t.Errorf("%s: %d contexts, %v", name, len(contexts), contexts[5].At)
		}
	}
	if len(early) != 6 || early[5].At.Span.Start != 10 {
		t.Errorf("%d contexts: %v", len(early), early)
	}
}
