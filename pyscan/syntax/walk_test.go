package syntax

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// TestChildren compares what Children visits with what reflection finds in the fields of each node of the test data: nothing is
// left out, and, as positions show, the order is that of the text.
func TestChildren(t *testing.T) {
	paths, _ := filepath.Glob("testdata/valid/*.py")
	for _, path := range paths {
		file := parseFile(t, path)
		for n := range file.All() {
			var got []Node
			Children(n, func(child Node) { got = append(got, child) })
			want := map[Node]bool{}
			fields(reflect.ValueOf(n).Elem(), want)
			for _, child := range got {
				if !want[child] {
					t.Errorf("%s: %T visits a %T twice, or one that is not its own", path, n, child)
				}
				delete(want, child)
			}
			for child := range want {
				t.Errorf("%s: %T does not visit its %T", path, n, child)
			}
			switch n.(type) {
			case *JoinedStr, *TemplateStr:
				continue // the text that an `=` makes of a field lies inside the field, which comes after it
			}
			last := uint32(0)
			for _, child := range got {
				if start := child.Span().Start; start < last {
					t.Errorf("%s: %T at %v visits %T out of order", path, n, n.Span(), child)
				} else {
					last = start
				}
			}
		}
	}
}

// fields collects the nodes in the exported fields of a struct.
func fields(v reflect.Value, found map[Node]bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Base" {
			collect(v.Field(i), found)
		}
	}
}

func collect(v reflect.Value, found map[Node]bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), found)
		}
	case reflect.Interface, reflect.Pointer:
		if n, ok := v.Interface().(Node); ok && !v.IsNil() {
			if v.Kind() == reflect.Interface && v.Elem().IsNil() {
				return
			}
			found[n] = true
		}
	}
}

func TestPreorder(t *testing.T) {
	file := parseText("def f(a=1, *b: int, c=x if y else z, **d):\n    return g(a, k=2, *b)\n")
	var got []string
	for n := range Preorder(file.Body[0]) {
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."))
	}
	want := "FunctionDef Arguments Arg Constant Arg Name Arg IfExp Name Name Name Arg Return Call Name Name Keyword Constant Starred Name"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	count := 0
	for range Preorder(file.Body[0]) {
		if count++; count == 3 {
			break
		}
	}
	if count != 3 {
		t.Errorf("a walk that was broken off after 3 nodes saw %d", count)
	}
	count = 0
	Inspect(file.Body[0], func(n Node) bool {
		count++
		_, args := n.(*Arguments)
		return !args
	})
	if count != len(strings.Fields(want))-10 {
		t.Errorf("without the parameters %d nodes are seen", count)
	}
}

func TestComments(t *testing.T) {
	const text = "# one\nx = 1 # two\n\"# no\"\ny = f( # three\n    # four\n  1)\n'''\n# no\n'''\nf'{x # five\n}'\n    # six\nif x: # seven\n    # eight\n    pass\n#"
	want := []string{"# one", "# two", "# three", "# four", "# five", "# six", "# seven", "# eight", "#"}
	file := parseText(text)
	if len(file.Errors) > 0 {
		t.Fatal(file.Errors)
	}
	var got []string
	for _, at := range file.Comments() {
		got = append(got, file.Source.Slice(at))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExtent(t *testing.T) {
	const text = `# comment
x = 1
@deco  # line
@(other)
def f(a):
    # inside
    if a:
        return 1
    # between
    elif b:
        return 2
    else:
        # deep
        y = 2; z = 3
    # before nothing in the block

# before the class
@dataclass
class A:
    # field
    b: int = 1
try:
    pass
except E:
    # handler
    g()
finally:
    # last
    h()
match x:
    case 1:
        # case
        i()
# end
`
	file := parseText(text)
	if len(file.Errors) > 0 {
		t.Fatal(file.Errors)
	}
	for marker, want := range map[string]string{
		"# comment":        "x = 1",
		"x = 1":            "x = 1",
		"# line":           "if a:\n        return 1\n    # between\n    elif b:\n        return 2\n    else:\n        # deep\n        y = 2; z = 3",
		"@deco":            "@deco  # line\n@(other)\ndef f(a):",
		"# inside":         "if a:\n        return 1",
		"return 1":         "return 1",
		"# between":        "elif b:\n        return 2\n    else:",
		"# deep":           "y = 2",
		"z = 3":            "z = 3",
		"# before nothing": "@dataclass\nclass A:",
		"# before the":     "@dataclass\nclass A:\n    # field\n    b: int = 1",
		"# field":          "b: int = 1",
		"# handler":        "g()",
		"# last":           "h()",
		"match":            "match x:\n    case 1:\n        # case\n        i()",
		"# case":           "i()",
		"# end":            "",
	} {
		at := file.Extent(uint32(strings.Index(text, marker)))
		got := file.Source.Slice(at)
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("Extent(%q) is %q, want %q", marker, got, want)
		}
	}
	var _ source.Doc = file
}

// TestNamesOfCharacters looks each name of the table up again.
func TestNamesOfCharacters(t *testing.T) {
	names := runeNames()
	if len(names.lines) < 34_000 {
		t.Fatalf("%d names", len(names.lines))
	}
	for _, at := range names.lines {
		line, _, _ := strings.Cut(names.text[at:], "\n")
		name, code, _ := strings.Cut(line, ";")
		if r, ok := runeNamed(strings.ToLower(name)); !ok || fmt.Sprintf("%X", r) != code {
			t.Fatalf("%s is %X %v, want %s", name, r, ok, code)
		}
	}
	for name, want := range map[string]rune{
		"HANGUL SYLLABLE GAG":          '각',
		"HANGUL SYLLABLE HIH":          '힣',
		"HANGUL SYLLABLE A":            '아',
		"CJK UNIFIED IDEOGRAPH-9FFF":   0x9FFF,
		"nushu character-1b170":        0x1B170,
		"LF":                           '\n',
		"BYTE ORDER MARK":              0xFEFF,
		"LATIN CAPITAL LETTER GHA":     0x1A2,
		"CJK UNIFIED IDEOGRAPH-A000":   -1,
		"HANGUL SYLLABLE XYZ":          -1,
		"":                             -1,
		"BULLET ":                      -1,
		"KEYCAP DIGIT ONE":             -1,
		strings.Repeat("A", 1_000_000): -1,
	} {
		if r, ok := runeNamed(name); ok != (want >= 0) || ok && r != want {
			t.Errorf("%.40q is %X %v", name, r, ok)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Del.String(), "Del"}, {FloorDiv.String(), "FloorDiv"}, {USub.String(), "USub"}, {Or.String(), "Or"},
		{NotIn.String(), "NotIn"}, {TypeVarTuple.String(), "TypeVarTuple"}, {GeneratorExp.String(), "GeneratorExp"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

// TestKeywords finds every keyword, and no word beside them.
func TestKeywords(t *testing.T) {
	count := 0
	for _, entry := range keywords {
		if entry.word == "" {
			continue
		}
		count++
		if wordKind(entry.word) != entry.kind || wordKind(entry.word+"_") != kName || wordKind(strings.ToUpper(entry.word)) != kName {
			t.Errorf("%s is %d", entry.word, wordKind(entry.word))
		}
	}
	if count != int(kYield-kFalse)+1 {
		t.Errorf("%d keywords: two have one hash", count)
	}
}
