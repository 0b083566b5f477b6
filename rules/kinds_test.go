package rules

import (
	"testing"

	"github.com/trainvet/trainvet/lint/linttest"
)

// TestOtherKinds takes every case that is one Python file also as a notebook of one cell, as .pyw and as a script
// without an extension.
func TestOtherKinds(t *testing.T) {
	if cases := linttest.RunAsOtherKinds(t, All(), "."); cases < 400 {
		t.Errorf("only %d cases are one Python file", cases)
	}
}

// TestOwnNames takes every case that is one Python file also with names of one's own for what it imports, which the
// settings explain.
func TestOwnNames(t *testing.T) {
	if cases := linttest.RunUnderOwnNames(t, All(), "."); cases < 200 {
		t.Errorf("only %d cases import something by name", cases)
	}
}
