package constant

import (
	"math/big"
	"strconv"
	"strings"
)

// maxExpression bounds the bytes of an expression, and so its nesting.
const maxExpression = 4096

// Eval computes an arithmetic expression in Python's notation, such as `5 * 8`, `2**16` or `(1 + 2) / 4.`. A name is
// looked up, unless lookup is nil. It reports whether the text is an expression that has a value.
func Eval(text string, lookup func(name string) (Value, bool)) (Value, bool) {
	if len(text) > maxExpression {
		return Value{}, false
	}
	e := &evaluator{text: text, lookup: lookup}
	v, ok := e.binary(0)
	e.space()
	return v, ok && e.pos == len(text)
}

type evaluator struct {
	text   string
	pos    int
	depth  int
	lookup func(string) (Value, bool)
}

const maxEvalDepth = 100

func (e *evaluator) space() {
	for e.pos < len(e.text) && strings.IndexByte(" \t\r\n", e.text[e.pos]) >= 0 {
		e.pos++
	}
}

// levels are the binary operators by rising precedence. ** is read in power, as it binds to the right.
var levels = [...][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"//", "*", "/", "%"}}

func (e *evaluator) operator(level int) string {
	e.space()
	rest := e.text[e.pos:]
	if strings.HasPrefix(rest, "**") {
		return ""
	}
	for _, op := range levels[level] {
		if strings.HasPrefix(rest, op) {
			return op
		}
	}
	return ""
}

func (e *evaluator) binary(level int) (Value, bool) {
	if level == len(levels) {
		return e.unary()
	}
	left, ok := e.binary(level + 1)
	for ok {
		op := e.operator(level)
		if op == "" {
			break
		}
		e.pos += len(op)
		var right Value
		if right, ok = e.binary(level + 1); ok {
			left, ok = Binary(op, left, right)
		}
	}
	return left, ok
}

func (e *evaluator) unary() (Value, bool) {
	if e.depth++; e.depth > maxEvalDepth {
		return Value{}, false
	}
	defer func() { e.depth-- }()
	e.space()
	if e.pos < len(e.text) && strings.IndexByte("+-~", e.text[e.pos]) >= 0 {
		op := e.text[e.pos : e.pos+1]
		e.pos++
		v, ok := e.unary()
		if !ok {
			return v, false
		}
		return Unary(op, v)
	}
	base, ok := e.atom()
	e.space()
	if ok && strings.HasPrefix(e.text[e.pos:], "**") {
		e.pos += 2
		exponent, has := e.unary()
		if !has {
			return Value{}, false
		}
		return Binary("**", base, exponent)
	}
	return base, ok
}

func (e *evaluator) atom() (Value, bool) {
	if e.pos >= len(e.text) {
		return Value{}, false
	}
	if e.text[e.pos] == '(' {
		e.pos++
		v, ok := e.binary(0)
		e.space()
		if !ok || e.pos >= len(e.text) || e.text[e.pos] != ')' {
			return Value{}, false
		}
		e.pos++
		return v, true
	}
	start := e.pos
	for e.pos < len(e.text) && (isWordByte(e.text[e.pos]) || e.text[e.pos] == '.' || e.exponentSign(start)) {
		e.pos++
	}
	word := e.text[start:e.pos]
	if v, ok := ParseNumber(word); ok {
		return v, true
	}
	switch word {
	case "True", "False":
		return MakeBool(word == "True"), true
	case "None":
		return Value{}, true
	}
	if word == "" || e.lookup == nil {
		return Value{}, false
	}
	return e.lookup(word)
}

// exponentSign reports whether the sign at the position belongs to the exponent of the number that started before.
func (e *evaluator) exponentSign(start int) bool {
	c := e.text[e.pos]
	if c != '+' && c != '-' || e.pos == start {
		return false
	}
	before := e.text[e.pos-1]
	first := e.text[start]
	return (before == 'e' || before == 'E') && (first >= '0' && first <= '9' || first == '.') && !strings.HasPrefix(e.text[start:], "0x")
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// ParseNumber reads a number literal of Python without a sign: 10, 1_000, 0x1F, 0b1, 0o17, 1e-5, .5, 1. but not 017.
func ParseNumber(s string) (Value, bool) {
	if s == "" || len(s) > maxExpression || !(s[0] >= '0' && s[0] <= '9' || s[0] == '.') {
		return Value{}, false
	}
	if !underscoresFit(s) {
		return Value{}, false
	}
	digits := strings.ReplaceAll(s, "_", "")
	if len(digits) > 2 && digits[0] == '0' {
		base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'O': 8, 'b': 2, 'B': 2}[digits[1]]
		if base > 0 {
			n, ok := new(big.Int).SetString(digits[2:], base)
			if !ok || digits[2] == '+' || digits[2] == '-' || n.BitLen() > MaxBits {
				return Value{}, false
			}
			return MakeBig(n), true
		}
	}
	if strings.Trim(digits, "0123456789") == "" {
		if digits[0] == '0' && strings.Trim(digits, "0") != "" {
			return Value{}, false
		}
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok || n.BitLen() > MaxBits {
			return Value{}, false
		}
		return MakeBig(n), true
	}
	if strings.Trim(digits, "0123456789.eE+-") != "" {
		return Value{}, false
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil && !strings.Contains(err.Error(), "out of range") {
		return Value{}, false
	}
	return MakeFloat(f), true
}

// underscoresFit reports whether each _ stands between two digits, or after the prefix of a base.
func underscoresFit(s string) bool {
	hex := len(s) > 1 && (s[1] == 'x' || s[1] == 'X')
	for i := range len(s) {
		if s[i] != '_' {
			continue
		}
		based := i == 2 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0
		if i == 0 || i+1 == len(s) || !isDigit(s[i+1], hex) || !based && !isDigit(s[i-1], hex) {
			return false
		}
	}
	return true
}

func isDigit(c byte, hex bool) bool {
	return c >= '0' && c <= '9' || hex && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
}
