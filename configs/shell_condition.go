package configs

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/constant"
)

// isTest reports whether a statement is `[ ]`, `[[ ]]`, (( )) or `test`.
func isTest(stmt *syntax.Stmt) bool {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		return len(cmd.Args) > 0 && (cmd.Args[0].Lit() == "[" || cmd.Args[0].Lit() == "test")
	}
	return false
}

// condition decides a condition on known values.
func (r *shellReader) condition(stmts []*syntax.Stmt) (truth, known bool) {
	if len(stmts) != 1 {
		return false, false
	}
	switch cmd := stmts[0].Cmd.(type) {
	case *syntax.CallExpr:
		if words := r.expandAll(cmd.Args[:min(1, len(cmd.Args))]); len(words) > 0 {
			if name := words[0].text(); name != "true" && name != "false" && name != "[" && name != "test" {
				return false, false
			}
		}
		if words := r.expandAll(cmd.Args); len(words) > 0 {
			switch words[0].text() {
			case "true", "false":
				return (words[0].text() == "true") != stmts[0].Negated, len(words) == 1
			case "[":
				if words[len(words)-1].text() != "]" {
					return false, false
				}
				words = words[1 : len(words)-1]
			case "test":
				words = words[1:]
			default:
				return false, false
			}
			truth, known = compareWords(words)
		}
	case *syntax.TestClause:
		truth, known = r.test(cmd.X)
	case *syntax.ArithmCmd:
		if v, ok := r.arithmetic(cmd.X, 0); ok {
			truth, known = v.Truth(), true
		}
	}
	return truth != stmts[0].Negated, known
}

// compareWords decides the words of `[ ]`.
func compareWords(words []field) (truth, known bool) {
	for _, f := range words {
		if f.open() {
			return false, false
		}
	}
	switch len(words) {
	case 1:
		return words[0].text() != "", true
	case 2:
		switch words[0].text() {
		case "-z":
			return words[1].text() == "", true
		case "-n":
			return words[1].text() != "", true
		}
	case 3:
		return compareTexts(words[0].text(), words[1].text(), words[2].text())
	}
	return false, false
}

func compareTexts(a, op, b string) (truth, known bool) {
	switch op {
	case "=", "==":
		return a == b, !strings.ContainsAny(b, "*?[")
	case "!=":
		return a != b, !strings.ContainsAny(b, "*?[")
	}
	x, errA := strconv.ParseInt(a, 10, 64)
	y, errB := strconv.ParseInt(b, 10, 64)
	if errA != nil || errB != nil {
		return false, false
	}
	switch op {
	case "-eq":
		return x == y, true
	case "-ne":
		return x != y, true
	case "-lt":
		return x < y, true
	case "-le":
		return x <= y, true
	case "-gt":
		return x > y, true
	case "-ge":
		return x >= y, true
	}
	return false, false
}

// test decides an expression of `[[ ]]`.
func (r *shellReader) test(x syntax.TestExpr) (truth, known bool) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return r.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			truth, known = r.test(x.X)
			return !truth, known
		}
		word, ok := x.X.(*syntax.Word)
		if !ok || x.Op != syntax.TsEmpStr && x.Op != syntax.TsNempStr {
			return false, false
		}
		f := r.expandOne(word)
		return (f.text() == "") == (x.Op == syntax.TsEmpStr), !f.open()
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest:
			a, knownA := r.test(x.X)
			b, knownB := r.test(x.Y)
			decides := x.Op == syntax.OrTest
			if knownA && a == decides || knownB && b == decides {
				return decides, true
			}
			return !decides, knownA && knownB
		}
		left, okLeft := x.X.(*syntax.Word)
		right, okRight := x.Y.(*syntax.Word)
		if !okLeft || !okRight {
			return false, false
		}
		a, b := r.expandOne(left), r.expandOne(right)
		truth, known = compareTexts(a.text(), x.Op.String(), b.text())
		return truth, known && !a.open() && !b.open()
	case *syntax.Word:
		f := r.expandOne(x)
		return f.text() != "", !f.open()
	}
	return false, false
}

// arithmetic computes an expression of $(( )). Names that the script does not set are not known.
func (r *shellReader) arithmetic(x syntax.ArithmExpr, depth int) (constant.Value, bool) {
	if depth > maxShellDepth*4 {
		return constant.Value{}, false
	}
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return r.arithmetic(x.X, depth+1)
	case *syntax.Word:
		f := r.expandOne(x)
		if f.open() {
			return constant.Value{}, false
		}
		return r.shellNumber(f.text(), depth)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			r.unknownName(x.X)
			return constant.Value{}, false
		}
		v, ok := r.arithmetic(x.X, depth+1)
		if !ok {
			return v, false
		}
		if x.Op == syntax.Not {
			return boolean(!v.Truth()), true
		}
		return constant.Unary(x.Op.String(), v)
	case *syntax.BinaryArithm:
		return r.binaryArithmetic(x, depth)
	}
	return constant.Value{}, false
}

func boolean(b bool) constant.Value {
	if b {
		return constant.MakeInt(1)
	}
	return constant.MakeInt(0)
}

func (r *shellReader) unknownName(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && isName(word.Lit()) {
		r.set(word.Lit(), &variable{unknown: true, at: r.span(word)})
	}
}

func (r *shellReader) binaryArithmetic(x *syntax.BinaryArithm, depth int) (constant.Value, bool) {
	switch x.Op {
	case syntax.Assgn:
		v, ok := r.arithmetic(x.Y, depth+1)
		if word, isWord := x.X.(*syntax.Word); isWord && ok && isName(word.Lit()) {
			at := r.span(x.Y)
			r.set(word.Lit(), &variable{at: at, fields: []field{{word: at, runs: []run{{text: v.String(), at: at}}}}})
		} else {
			r.unknownName(x.X)
		}
		return v, ok
	case syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn,
		syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		r.unknownName(x.X)
		return constant.Value{}, false
	case syntax.TernQuest:
		condition, ok := r.arithmetic(x.X, depth+1)
		choice, isChoice := x.Y.(*syntax.BinaryArithm)
		if !ok || !isChoice || choice.Op != syntax.TernColon {
			return constant.Value{}, false
		}
		if condition.Truth() {
			return r.arithmetic(choice.X, depth+1)
		}
		return r.arithmetic(choice.Y, depth+1)
	}
	a, okA := r.arithmetic(x.X, depth+1)
	b, okB := r.arithmetic(x.Y, depth+1)
	if !okA || !okB {
		return constant.Value{}, false
	}
	switch op := x.Op.String(); op {
	case "==", "!=", "<", "<=", ">", ">=":
		truth, ok := constant.Compare(op, a, b)
		return boolean(truth), ok
	case "&&":
		return boolean(a.Truth() && b.Truth()), true
	case "||":
		return boolean(a.Truth() || b.Truth()), true
	case ",":
		return b, true
	case "/", "%":
		return truncated(op, a, b)
	default:
		return constant.Binary(op, a, b)
	}
}

// truncated divides as C does: towards zero, the rest with the sign of the dividend.
func truncated(op string, a, b constant.Value) (constant.Value, bool) {
	x, okX := a.Int()
	y, okY := b.Int()
	if !okX || !okY || y == 0 || y == -1 {
		if y == -1 && op == "/" && okX {
			return constant.Unary("-", a)
		}
		return constant.MakeInt(0), y == -1 && okX
	}
	if op == "/" {
		return constant.MakeInt(x / y), true
	}
	return constant.MakeInt(x % y), true
}

// shellNumber reads a number of shell arithmetic (017 is octal, 2#101 binary), or the value of a name.
func (r *shellReader) shellNumber(text string, depth int) (constant.Value, bool) {
	text = strings.TrimSpace(text)
	if isName(text) {
		v := r.vars[text]
		if v == nil || v.unknown || v.array || v.fields[0].open() || depth > maxShellDepth {
			return constant.Value{}, false
		}
		return r.shellNumber(v.whole(), depth+maxShellDepth/2)
	}
	base := 10
	digits := strings.TrimPrefix(text, "-")
	switch radix, rest, ok := strings.Cut(digits, "#"); {
	case ok:
		n, err := strconv.Atoi(radix)
		if err != nil || n < 2 || n > 36 {
			return constant.Value{}, false
		}
		base, digits = n, rest
	case strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X"):
		base, digits = 16, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil {
		return constant.Eval(text, nil)
	}
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	return constant.MakeInt(n), true
}
