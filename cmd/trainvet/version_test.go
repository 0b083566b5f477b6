package main

import "testing"

// TestVersionOf holds that a build from a clone without tags does not pass for release 0.0, of which no rule would be on.
func TestVersionOf(t *testing.T) {
	for stamped, want := range map[string]string{
		"":                                   release,
		"(devel)":                            release,
		"v1.2.3":                             "1.2.3",
		"v0.0.0-20261129235427-be2faf16e5a8": release + "+be2faf16e5a8",
		"v0.0.0-20261129235427-be2faf16e5a8+dirty":        release + "+be2faf16e5a8.dirty",
		"v1.2.4-0.20261129235427-be2faf16e5a8":            "1.2.4-0.20261129235427-be2faf16e5a8",
		"v1.2.4-rc.1":                                     "1.2.4-rc.1",
		"v1.2.4-rc.1.0.20261129235427-be2faf16e5a8+dirty": "1.2.4-rc.1.0.20261129235427-be2faf16e5a8+dirty",
	} {
		if got := versionOf(stamped); got != want {
			t.Errorf("%q: %q, want %q", stamped, got, want)
		}
	}
}
