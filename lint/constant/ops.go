package constant

import (
	"math"
	"math/big"
	"strings"

	"github.com/go-python/gpython/py"
)

// Bounds of what is computed; beyond them a result is unknown.
const (
	MaxBits   = 4096    // of an integer
	MaxString = 1 << 16 // bytes of a text
)

// Binary computes `a op b` for the arithmetic, bit and boolean operators of Python, and whether there is a value: not
// for a type error, a division by zero, an overflow or a result beyond the bounds.
func Binary(op string, a, b Value) (Value, bool) {
	switch op {
	case "and", "or":
		if a.Truth() == (op == "or") {
			return a, true
		}
		return b, true
	}
	if a.kind == Bool && b.kind == Bool {
		switch op {
		case "&":
			return MakeBool(a.b && b.b), true
		case "|":
			return MakeBool(a.b || b.b), true
		case "^":
			return MakeBool(a.b != b.b), true
		}
	}
	a, b = a.number(), b.number()
	switch {
	case a.kind == Int && b.kind == Int:
		return intOp(op, a, b)
	case a.isNumber() && b.isNumber():
		x, ok := a.finite()
		y, both := b.finite()
		if !ok || !both {
			return Value{}, false
		}
		return floatOp(op, x, y)
	case op == "+" && a.kind == b.kind && (a.kind == String || a.kind == Bytes):
		if len(a.s)+len(b.s) > MaxString {
			return Value{}, false
		}
		return Value{kind: a.kind, s: a.s + b.s}, true
	case op == "*" && a.kind == String && b.kind == Int:
		return repeat(a.s, b)
	case op == "*" && a.kind == Int && b.kind == String:
		return repeat(b.s, a)
	}
	return Value{}, false
}

// number is a Bool as the Int it is in arithmetic.
func (v Value) number() Value {
	if v.kind == Bool {
		i, _ := v.Int()
		return MakeInt(i)
	}
	return v
}

func (v Value) isNumber() bool { return v.kind == Int || v.kind == Float }

// finite is the value of a number as a float; an integer beyond the range of floats has none.
func (v Value) finite() (float64, bool) {
	f, ok := v.Number()
	return f, ok && (v.kind == Float || !math.IsInf(f, 0))
}

func repeat(s string, n Value) (Value, bool) {
	times, ok := n.Int()
	switch {
	case n.i.Sign() <= 0 || s == "":
		return MakeString(""), true
	case !ok || times > MaxString/int64(len(s)):
		return Value{}, false
	}
	return MakeString(strings.Repeat(s, int(times))), true
}

func (v Value) object() py.Object {
	// gpython negates the least 64-bit integer wrongly
	if v.i.IsInt64() && v.i.Int64() != math.MinInt64 {
		return py.Int(v.i.Int64())
	}
	return (*py.BigInt)(v.i)
}

func fromObject(o py.Object, err error) (Value, bool) {
	if err != nil {
		return Value{}, false
	}
	switch o := o.(type) {
	case py.Int:
		return MakeInt(int64(o)), true
	case *py.BigInt:
		return MakeBig((*big.Int)(o)), (*big.Int)(o).BitLen() <= MaxBits
	}
	return Value{}, false
}

// intOp computes with integers. Sizes are checked before: 10**10**10 would not return.
func intOp(op string, a, b Value) (Value, bool) {
	switch op {
	case "+":
		return fromObject(py.Add(a.object(), b.object()))
	case "-":
		return fromObject(py.Sub(a.object(), b.object()))
	case "*":
		if a.i.BitLen()+b.i.BitLen() > MaxBits {
			return Value{}, false
		}
		return fromObject(py.Mul(a.object(), b.object()))
	case "/":
		if b.i.Sign() == 0 {
			return Value{}, false
		}
		// Python rounds the exact quotient once
		f, _ := new(big.Rat).SetFrac(a.i, b.i).Float64()
		if f == 0 && a.i.Sign()*b.i.Sign() < 0 {
			f = math.Copysign(0, -1)
		}
		return MakeFloat(f), !math.IsInf(f, 0)
	case "//", "%":
		if b.i.Sign() == 0 {
			return Value{}, false
		}
		if op == "%" {
			return fromObject(py.Mod(a.object(), b.object()))
		}
		return fromObject(py.FloorDiv(a.object(), b.object()))
	case "**":
		return intPower(a, b)
	case "<<", ">>":
		n, ok := b.Int()
		if b.i.Sign() < 0 {
			return Value{}, false
		}
		if op == ">>" {
			if most := int64(a.i.BitLen()) + 1; !ok || n > most {
				n = most
			}
			return fromObject(py.Rshift(a.object(), py.Int(n)))
		}
		if a.i.Sign() == 0 {
			return a, true
		}
		if !ok {
			return Value{}, false
		}
		if n > int64(MaxBits-a.i.BitLen()) {
			return Value{}, false
		}
		return fromObject(py.Lshift(a.object(), py.Int(n)))
	case "&":
		return fromObject(py.And(a.object(), b.object()))
	case "|":
		return fromObject(py.Or(a.object(), b.object()))
	case "^":
		return fromObject(py.Xor(a.object(), b.object()))
	}
	return Value{}, false
}

func intPower(a, b Value) (Value, bool) {
	if b.i.Sign() < 0 {
		if a.i.Sign() == 0 {
			return Value{}, false
		}
		x, ok := a.finite()
		y, both := b.finite()
		if !ok || !both {
			return Value{}, false
		}
		return floatOp("**", x, y)
	}
	n, ok := b.Int()
	if !ok && a.i.BitLen() > 1 || ok && a.i.BitLen() > 1 && n > MaxBits/int64(a.i.BitLen()-1) {
		return Value{}, false
	}
	if a.i.BitLen() <= 1 {
		// 0, 1 and -1 to any power
		odd := b.i.Bit(0) == 1
		switch {
		case b.i.Sign() == 0, a.i.Sign() < 0 && !odd:
			return MakeInt(1), true
		}
		return a, true
	}
	return fromObject(py.Pow(a.object(), py.Int(n), py.None))
}

func floatOp(op string, x, y float64) (Value, bool) {
	switch op {
	case "+", "-", "*":
		var o py.Object
		var err error
		switch op {
		case "+":
			o, err = py.Add(py.Float(x), py.Float(y))
		case "-":
			o, err = py.Sub(py.Float(x), py.Float(y))
		case "*":
			o, err = py.Mul(py.Float(x), py.Float(y))
		}
		f, ok := o.(py.Float)
		return MakeFloat(float64(f)), ok && err == nil
	case "/":
		return MakeFloat(x / y), y != 0
	case "//", "%":
		if y == 0 {
			return Value{}, false
		}
		quotient, rest := floorDivide(x, y)
		if op == "%" {
			return MakeFloat(rest), true
		}
		return MakeFloat(quotient), true
	case "**":
		return floatPower(x, y)
	}
	return Value{}, false
}

// floorDivide is Python's divmod of floats: the rest is exact and has the sign of y. gpython computes it from the
// rounded quotient, which is wrong.
func floorDivide(x, y float64) (quotient, rest float64) {
	rest = math.Mod(x, y)
	quotient = (x - rest) / y
	if rest != 0 {
		if (y < 0) != (rest < 0) {
			rest += y
			quotient--
		}
	} else {
		rest = math.Copysign(0, y)
	}
	if quotient == 0 {
		return math.Copysign(0, x/y), rest
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, rest
}

// floatPower computes the power of the whole part of the exponent exactly, up to 1024: math.Pow alone loses digits.
func floatPower(x, y float64) (Value, bool) {
	const exactExponent, precision = 1024, 2200
	if x == 0 && y < 0 || x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return Value{}, false // an error, a complex number
	}
	whole, rest := math.Modf(y)
	if math.Abs(whole) > exactExponent || x == 0 || math.IsInf(x, 0) || math.IsNaN(x) || math.IsNaN(y) {
		f := math.Pow(x, y)
		return MakeFloat(f), !math.IsInf(f, 0) || math.IsInf(x, 0) || math.IsInf(y, 0)
	}
	result := new(big.Float).SetPrec(precision).SetInt64(1)
	base := new(big.Float).SetPrec(precision).SetFloat64(x)
	for n := int(math.Abs(whole)); n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, base)
		}
		base.Mul(base, base)
	}
	if whole < 0 {
		result.Quo(big.NewFloat(1).SetPrec(precision), result)
	}
	if rest != 0 {
		result.Mul(result, big.NewFloat(math.Pow(x, rest)))
	}
	f, _ := result.Float64()
	return MakeFloat(f), !math.IsInf(f, 0)
}

// Unary computes `op a` for -, +, ~ and not.
func Unary(op string, a Value) (Value, bool) {
	if op == "not" {
		return MakeBool(!a.Truth()), true
	}
	a = a.number()
	switch {
	case a.kind == Float && op == "-":
		return MakeFloat(-a.f), true
	case a.kind == Float && op == "+":
		return a, true
	case a.kind != Int:
		return Value{}, false
	}
	switch op {
	case "+":
		return a, true
	case "-":
		return fromObject(py.Neg(a.object()))
	case "~":
		return fromObject(py.Invert(a.object()))
	}
	return Value{}, false
}

// Compare decides `a op b` for ==, !=, <, <=, >, >=, `is`, `is not` (of None only), `in` and `not in` (of texts), and
// whether it can be decided.
func Compare(op string, a, b Value) (truth, ok bool) {
	switch op {
	case "is", "is not":
		if a.kind != None && b.kind != None {
			return false, false
		}
		return (a.kind == b.kind) == (op == "is"), true
	case "in", "not in":
		if a.kind != String || b.kind != String {
			return false, false
		}
		return strings.Contains(b.s, a.s) == (op == "in"), true
	}
	switch op {
	case "==":
		return a.Equal(b), true
	case "!=":
		return !a.Equal(b), true
	}
	order, comparable := compare(a, b)
	if a.isNaN() || b.isNaN() {
		return false, a.number().isNumber() && b.number().isNumber()
	}
	if !comparable {
		return false, false
	}
	switch op {
	case "<":
		return order < 0, true
	case "<=":
		return order <= 0, true
	case ">":
		return order > 0, true
	case ">=":
		return order >= 0, true
	}
	return false, false
}

func (v Value) isNaN() bool { return v.kind == Float && math.IsNaN(v.f) }

// compare orders two values of comparable types. An integer and a float are compared exactly.
func compare(a, b Value) (int, bool) {
	a, b = a.number(), b.number()
	switch {
	case a.kind == b.kind && (a.kind == String || a.kind == Bytes):
		return strings.Compare(a.s, b.s), true
	case !a.isNumber() || !b.isNumber() || a.isNaN() || b.isNaN():
		return 0, false
	case a.kind == Int && b.kind == Int:
		return a.i.Cmp(b.i), true
	}
	return a.exact().Cmp(b.exact()), true
}

func (v Value) exact() *big.Float {
	if v.kind == Float {
		return big.NewFloat(v.f)
	}
	return new(big.Float).SetPrec(uint(max(64, v.i.BitLen()))).SetInt(v.i)
}
