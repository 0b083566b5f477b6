package lint

import "testing"

// TestOnce holds that a question is worked out once for each key and type of key, and anew for another rule or file.
func TestOnce(t *testing.T) {
	type scopes struct{ n int }
	type modules struct{ n int }
	asked := 0
	count := func() int { asked++; return asked }
	first, second := NewPass(nil, nil, nil), NewPass(nil, nil, nil)
	for i, c := range []struct{ got, want int }{
		{Once(first, scopes{1}, count), 1},
		{Once(first, scopes{1}, count), 1},
		{Once(first, scopes{2}, count), 2},
		{Once(first, modules{1}, count), 3},
		{Once(second, scopes{1}, count), 4},
		{Once(first, scopes{1}, func() int { return Once(first, scopes{2}, count) }), 1},
		{Once(first, scopes{3}, func() int { return Once(first, scopes{2}, count) }), 2}, // one question may lead to another
	} {
		if c.got != c.want {
			t.Errorf("question %d: %d, want %d", i, c.got, c.want)
		}
	}
}
