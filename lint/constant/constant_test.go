package constant

import (
	"bufio"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
)

// decode reads a value of testdata, which CPython wrote.
func decode(t *testing.T, s string) (v Value, ok bool) {
	t.Helper()
	if s == "ERR" || s == "" {
		return Value{}, false
	}
	switch text := s[1:]; s[0] {
	case 'n':
		return Value{}, true
	case 'b':
		return MakeBool(text == "True"), true
	case 'i':
		i, ok := new(big.Int).SetString(text, 10)
		return MakeBig(i), ok
	case 'f':
		f, err := strconv.ParseFloat(text, 64)
		return MakeFloat(f), err == nil
	case 's':
		return MakeString(text), true
	}
	t.Fatalf("bad value %q", s)
	return Value{}, false
}

func identical(a, b Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	if a.kind == Float {
		return math.Float64bits(a.f) == math.Float64bits(b.f) || math.IsNaN(a.f) && math.IsNaN(b.f)
	}
	return a.Equal(b)
}

func rows(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all [][]string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			all = append(all, strings.Split(lines.Text(), "\t"))
		}
	}
	return all
}

// TestPython holds every operator against what CPython computed. Powers of floats with a broken exponent may differ in
// the last digit, as math.Pow does.
func TestPython(t *testing.T) {
	counts := map[string]int{}
	for _, row := range rows(t, "python.tsv") {
		op, left, right, result := row[0], row[1], row[2], row[3]
		counts[op]++
		a, _ := decode(t, left)
		b, binary := decode(t, right)
		want, wantOK := decode(t, result)
		var got Value
		var ok bool
		switch {
		case op == "int", op == "float":
			got, ok = Convert(op, a)
		case !binary:
			got, ok = Unary(op, a)
		case strings.Contains("== != < <= > >= in not in", op):
			var truth bool
			truth, ok = Compare(op, a, b)
			got = MakeBool(truth)
		default:
			got, ok = Binary(op, a, b)
		}
		if op == "%" && a.kind == String {
			continue // formatting, which is not computed
		}
		if ok != wantOK || ok && !identical(got, want) {
			if x, y := got.f, want.f; ok && op == "**" && got.kind == Float && math.Abs(x-y) <= 2e-15*math.Abs(y) {
				continue
			}
			t.Errorf("%s %s %s = %v, %v; CPython: %s", left, op, right, got, ok, result)
		}
	}
	if len(counts) < 24 {
		t.Errorf("only %d operators tested: %v", len(counts), counts)
	}
}

func TestEval(t *testing.T) {
	for _, row := range rows(t, "expressions.tsv") {
		want, wantOK := decode(t, row[1])
		got, ok := Eval(row[0], nil)
		if ok != wantOK || ok && !identical(got, want) {
			t.Errorf("%s = %v, %v; CPython: %s", row[0], got, ok, row[1])
		}
	}
	names := func(name string) (Value, bool) { return MakeInt(8), name == "GPUS" }
	if v, ok := Eval("GPUS*4", names); !ok || v.String() != "32" {
		t.Errorf("GPUS*4 = %v, %v", v, ok)
	}
	if v, ok := Eval("OTHER*4", names); ok {
		t.Errorf("OTHER*4 = %v", v)
	}
}

// TestBounds computes what would not end, or fill the memory, without the bounds.
func TestBounds(t *testing.T) {
	for _, text := range []string{
		"10**10**10", "1<<10**9", "9**9**9**9", "2**4096*2**4096", "1<<(1<<62)", "(10**1000)**1000",
		strings.Repeat("(", 5000) + "1", strings.Repeat("-", 4000) + "1", strings.Repeat("9", 5000), "0x" + strings.Repeat("f", 4000),
		strings.Repeat("~", 200) + "1", strings.Repeat("2**", 200) + "2",
	} {
		if v, ok := Eval(text, nil); ok {
			t.Errorf("%.40s = %.40s", text, v)
		}
	}
	if v, ok := Binary("*", MakeString("abc"), MakeInt(1<<40)); ok {
		t.Errorf("long text of %d bytes", len(v.s))
	}
	huge := MakeBig(new(big.Int).Lsh(big.NewInt(1), 4000))
	if v, ok := Binary("+", huge, MakeFloat(1)); ok {
		t.Errorf("2**4000 + 1.0 = %v", v)
	}
	for text, want := range map[string]string{"1**10**30": "1", "(-1)**(10**30+1)": "-1", "0**10**30": "0", "2**4000 >> 10**30": "0", "1 >> 4000": "0"} {
		if v, ok := Eval(text, nil); ok != (want != "") || ok && v.String() != want {
			t.Errorf("%s = %v, %v; want %s", text, v, ok, want)
		}
	}
}

func TestString(t *testing.T) {
	for want, v := range map[string]Value{
		"1e-05": MakeFloat(1e-5), "0.0001": MakeFloat(1e-4), "1e+16": MakeFloat(1e16), "123456789.123": MakeFloat(123456789.123), "1.0": MakeFloat(1),
		"-0.0": MakeFloat(math.Copysign(0, -1)), "inf": MakeFloat(math.Inf(1)), "-inf": MakeFloat(math.Inf(-1)), "nan": MakeFloat(math.NaN()),
		"True": MakeBool(true), "None": {}, `"a"`: MakeString("a"), "...": MakeEllipsis(), `b"x"`: MakeBytes("x"),
	} {
		if got := v.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestShortCircuit(t *testing.T) {
	zero, one, text := MakeInt(0), MakeInt(1), MakeString("x")
	for _, c := range []struct {
		op         string
		a, b, want Value
	}{{"and", zero, text, zero}, {"and", one, text, text}, {"or", zero, text, text}, {"or", one, text, one}} {
		if got, ok := Binary(c.op, c.a, c.b); !ok || !identical(got, c.want) {
			t.Errorf("%v %s %v = %v", c.a, c.op, c.b, got)
		}
	}
}

func FuzzEval(f *testing.F) {
	for _, text := range []string{"5 * 8", "2**16", "-(1+2)//3.5", "0x1F&~3", "1e5%7", "10**10**10"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := Eval(text, nil)
		if i := v.Big(); ok && i != nil && i.BitLen() > MaxBits {
			t.Errorf("%d bits", i.BitLen())
		}
	})
}
