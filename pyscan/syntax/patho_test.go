package syntax

import (
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// pathological are texts of about a megabyte that would take hours in a parser with a loop inside a loop, or overflow its stack.
func pathological(n int) map[string]string {
	nestedIfs := func() string {
		var b strings.Builder
		for i := range min(n, 1400) {
			b.WriteString(strings.Repeat(" ", i))
			b.WriteString("if x:\n")
		}
		return b.String()
	}
	return map[string]string{
		"backslash lines":            strings.Repeat("\\\n", n),
		"backslash lines after x":    "x = 1 " + strings.Repeat("\\\n", n) + "\n",
		"backslash indentation":      strings.Repeat("  \\\n", n) + "x\n",
		"open brackets":              strings.Repeat("(", n),
		"closing brackets":           strings.Repeat(")", n),
		"nested brackets":            strings.Repeat("(", n) + strings.Repeat(")", n),
		"mixed brackets":             strings.Repeat("([{", n),
		"crossed brackets":           strings.Repeat("([)]", n),
		"nested calls":               strings.Repeat("f(", n) + strings.Repeat(")", n),
		"nested subscripts":          strings.Repeat("f[", n) + strings.Repeat("]", n),
		"nested dicts":               strings.Repeat("{1:", n) + strings.Repeat("}", n),
		"nested ifs":                 nestedIfs(),
		"if x: on one line":          strings.Repeat("if x: ", n),
		"if x: on a line each":       strings.Repeat("if x:\n", n),
		"open bracket on every line": strings.Repeat("f(a\n", n),
		"statement in brackets":      strings.Repeat("f(a\nimport x\n", n),
		"one open bracket":           "(\n" + strings.Repeat("x = 1\n", n),
		"closer on every line":       strings.Repeat("a)\n", n),
		"hanging closers":            strings.Repeat("    a\n)\n", n),
		"quote on every line":        strings.Repeat("f('a)\n", n),
		"quotes on one line":         strings.Repeat("'\"", n),
		"three quotes, no end":       strings.Repeat("\"\"\"\nx\n", n) + "\"\"\"",
		"escaped three quotes":       "\"\"\"\n" + strings.Repeat("\\\"\"\"\n", n),
		"f-strings, no end":          strings.Repeat("f\"{\n", n),
		"nested f-strings":           strings.Repeat("f'{", n) + strings.Repeat("}'", n),
		"nested f-strings of triple": strings.Repeat("f'''{", n),
		"f-string fields":            "f'" + strings.Repeat("{x}", n) + "'",
		"f-string specs":             "f'" + strings.Repeat("{x:", n) + strings.Repeat("}", n) + "'",
		"f-string braces":            "f'" + strings.Repeat("{{", n) + "'",
		"operator chain":             "x" + strings.Repeat(" + x", n) + "\n",
		"power chain":                "x" + strings.Repeat(" ** x", n) + "\n",
		"comparison chain":           "x" + strings.Repeat(" < x", n) + "\n",
		"bool chain":                 "x" + strings.Repeat(" and x", n) + "\n",
		"attribute chain":            "x" + strings.Repeat(".x", n) + "\n",
		"call chain":                 "x" + strings.Repeat("()", n) + "\n",
		"unary chain":                strings.Repeat("- ", n) + "x\n",
		"not chain":                  strings.Repeat("not ", n) + "x\n",
		"await chain":                strings.Repeat("await ", n) + "x\n",
		"ternary chain":              strings.Repeat("x if x else ", n) + "x\n",
		"lambda chain":               strings.Repeat("lambda: ", n) + "x\n",
		"star chain":                 strings.Repeat("*", n) + "x\n",
		"assignment chain":           strings.Repeat("x = ", n) + "1\n",
		"elif chain":                 "if x: pass\n" + strings.Repeat("elif x: pass\n", n),
		"else chain":                 strings.Repeat("else: pass\n", n),
		"decorators":                 strings.Repeat("@x\n", n),
		"with in brackets":           strings.Repeat("with (a, b\n", n),
		"with items":                 "with (" + strings.Repeat("a, ", n) + "(yield)): pass\n",
		"match lines":                strings.Repeat("match (x\n", n),
		"match words":                strings.Repeat("match ", n),
		"print statements":           strings.Repeat("print 'a', f(x)\n", n),
		"dots":                       "from " + strings.Repeat(".", n) + " import x\n",
		"dotted module":              "import a" + strings.Repeat(".a", n) + "\n",
		"spaced module":              "import a" + strings.Repeat(" . a", n) + "\n",
		"adjacent strings":           strings.Repeat("'a' ", n) + "\n",
		"adjacent f-strings":         strings.Repeat("f'a{x}' ", n) + "\n",
		"long hexadecimal":           "0x" + strings.Repeat("f", n) + "\n",
		"long decimal":               strings.Repeat("9", n) + "\n",
		"long float":                 "1." + strings.Repeat("9", n) + "\n",
		"long name":                  strings.Repeat("a", n) + "\n",
		"combining marks":            "a" + strings.Repeat("\u0301\u0323", n) + "\n",
		"semicolons":                 strings.Repeat(";", n),
		"colons":                     strings.Repeat(":", n),
		"dedents":                    strings.Repeat("if x:\n        a\n    b\n  c\n", n),
		"mixed tabs":                 strings.Repeat("if x:\n\ta\n        b\n", n),
		"form feeds":                 strings.Repeat("\f", n),
		"carriage returns":           strings.Repeat("\r", n),
		"nul bytes":                  strings.Repeat("\x00", n),
		"comments":                   strings.Repeat("#\n", n),
		"names of characters":        strings.Repeat("'\\N{BULLET}\\N{nothing}'\n", n/10),
		"def without parenthesis":    strings.Repeat("def f\n    a,\n):\n    pass\n", n),
		"pattern nesting":            "match x:\n case " + strings.Repeat("[", n) + strings.Repeat("]", n) + ": pass\n",
		"pattern alternatives":       "match x:\n case " + strings.Repeat("a|", n) + "b: pass\n",
	}
}

// TestPathological parses each text and walks its tree; a parser that is not linear in them does not come back.
func TestPathological(t *testing.T) {
	for name, text := range pathological(50_000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := Parse(&source.File{Path: "x.py", Kind: source.Python, Text: []byte(text)})
			count := 0
			for range file.All() {
				count++
			}
			AppendDump(nil, "x.py", file)
			if len(file.Errors) > maxErrors*2 {
				t.Errorf("%d errors", len(file.Errors))
			}
			t.Logf("%d bytes, %d nodes, %d errors", len(text), count, len(file.Errors))
		})
	}
}
