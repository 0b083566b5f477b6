// Package constant holds constants of Python source and of configs, and exact, bounded arithmetic on them.
package constant

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Kind is the type of a constant. The zero Value is None.
type Kind uint8

// The kinds.
const (
	None Kind = iota
	Bool
	Int
	Float
	String
	Bytes
	Ellipsis
)

// Value is one constant. It is comparable by Equal, not by ==.
type Value struct {
	kind Kind
	b    bool
	i    *big.Int
	f    float64
	s    string
}

// MakeBool is the constant True or False.
func MakeBool(b bool) Value { return Value{kind: Bool, b: b} }

// MakeInt is an integer constant.
func MakeInt(i int64) Value { return Value{kind: Int, i: big.NewInt(i)} }

// MakeBig is an integer constant of any size; the value is not copied and must not change.
func MakeBig(i *big.Int) Value { return Value{kind: Int, i: i} }

// MakeFloat is a floating-point constant.
func MakeFloat(f float64) Value { return Value{kind: Float, f: f} }

// MakeString is a text constant.
func MakeString(s string) Value { return Value{kind: String, s: s} }

// MakeBytes is a bytes constant.
func MakeBytes(s string) Value { return Value{kind: Bytes, s: s} }

// MakeEllipsis is `...`.
func MakeEllipsis() Value { return Value{kind: Ellipsis} }

// Kind is the type of the constant.
func (v Value) Kind() Kind { return v.kind }

// Bool is the value of a bool.
func (v Value) Bool() (value, ok bool) { return v.b, v.kind == Bool }

// Str is the text of a string.
func (v Value) Str() (string, bool) { return v.s, v.kind == String }

// Int is the value of an int that fits 64 bits; a bool counts as 0 or 1, as in Python.
func (v Value) Int() (int64, bool) {
	switch v.kind {
	case Bool:
		if v.b {
			return 1, true
		}
		return 0, true
	case Int:
		return v.i.Int64(), v.i.IsInt64()
	}
	return 0, false
}

// Big is the value of an int of any size, or nil.
func (v Value) Big() *big.Int {
	if v.kind == Int {
		return v.i
	}
	return nil
}

// Number is the value of an int, float or bool as a float.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case Bool:
		if v.b {
			return 1, true
		}
		return 0, true
	case Int:
		f, _ := new(big.Float).SetInt(v.i).Float64()
		return f, true
	case Float:
		return v.f, true
	}
	return 0, false
}

// Truth is what bool() of the constant gives.
func (v Value) Truth() bool {
	switch v.kind {
	case None:
		return false
	case Bool:
		return v.b
	case Int:
		return v.i.Sign() != 0
	case Float:
		return v.f != 0
	case String, Bytes:
		return v.s != ""
	}
	return true
}

// Equal reports whether Python's == holds between the two. An integer and a float are compared exactly.
func (v Value) Equal(w Value) bool {
	if order, ok := compare(v, w); ok {
		return order == 0
	}
	return v.kind == w.kind && v.kind != Float && v.s == w.s
}

// String is the constant as Python's repr shows it, but for quotes, which are always double.
func (v Value) String() string {
	switch v.kind {
	case Bool:
		if v.b {
			return "True"
		}
		return "False"
	case Int:
		return v.i.String()
	case Float:
		return formatFloat(v.f)
	case String:
		return strconv.Quote(v.s)
	case Bytes:
		return fmt.Sprintf("b%q", v.s)
	case Ellipsis:
		return "..."
	}
	return "None"
}

// formatFloat is Python's repr of a float: the shortest digits that read back, with an exponent below 1e-4 and from 1e16.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
