package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// TestBounds reads what would take for ever, or all of the memory, without the bounds.
func TestBounds(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	var merges strings.Builder
	merges.WriteString("m0: &m0 {k0: 1, l0: 2}\n")
	for i := range 60 {
		fmt.Fprintf(&merges, "m%d: &m%d\n  <<: [*m%d, *m%d]\n  k%d: 1\n", i+1, i+1, i, i, i+1)
	}
	doubling := "A=xxxxxxxxxxxxxxxx\n" + strings.Repeat("A=$A$A\n", 60) + "python t.py --a $A\n"
	fields := "A=(x x)\n" + strings.Repeat("A=(${A[@]} ${A[@]})\n", 40) + "python t.py ${A[@]}\n"
	recursive := "f() { f; f; }\ng() { python t.py; g; }\nf\ng\n"
	loops := strings.Repeat("for i in 1 2 3 4 5 6 7 8; do\n", 30) + "python t.py\n" + strings.Repeat("done\n", 30)
	branches := ""
	for range 200 {
		branches += "if [ \"$X\" = 1 ]; then A=\"$A --a\"; else A=\"$A --b\"; fi\neval python t.py $A\n"
	}
	nested := strings.Repeat("bash -c 'eval \"", 50) + "python t.py" + strings.Repeat("\"'", 50)
	for _, c := range []struct {
		name, text, message string
	}{
		{"deep.json", strings.Repeat("[", 100000), "nested deeper"},
		{"deep2.json", strings.Repeat(`{"a":`, 100000), "nested deeper"},
		{"wide.json", "[" + strings.Repeat("1,", MaxNodes+10) + "1]", "more than"},
		{"texts.json", "[" + strings.Repeat(`"a",`, MaxNodes+10) + "1]", "more than"},
		{"members.json", "[" + strings.Repeat(`{"a":"b","c":'d'},`, MaxNodes/3+10) + "1]", "more than"},
		{"word.json", strings.Repeat("x", 10<<20), ""},
		{"faults.json", "{" + strings.Repeat(`"a" 1, `, 10000) + "}", "colon"},
		{"open.json", strings.Repeat(`{"a`, 20000), "closed"},
		{"quotes.json", "{" + strings.Repeat(`"a": "b, `, 20000), "closed"},
		{"deep.yaml", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper"},
		{"block.yaml", deepBlock(400), "nested deeper"},
		{"bomb.yaml", bomb.String(), "repeated by aliases"},
		{"merges.yaml", merges.String(), "repeated by aliases"},
		{"large.yaml", "a: 1\n" + strings.Repeat("#", maxYAML), "larger than"},
		{"quotes.yaml", strings.Repeat(`"`, 3<<20), "more than 1048576 values; not read"},
		{"flows.yaml", strings.Repeat("[]", 2<<20), "more than 1048576 values; not read"},
		{"self.yaml", "a: &a [*a]\n", "contains itself"},
		{"faults.yaml", strings.Repeat("a: b: c\n", 300), "second colon"},
		{"long.yaml", "a: " + strings.Repeat("b: c ", 20000) + "\n", ""},
		{"deep.toml", "a = " + strings.Repeat("[", 5000), "nested deeper"},
		{"faults.toml", strings.Repeat("a b\n", 5000), "no ="},
		{"code.toml", strings.Repeat("def f():0\n", 50000), "no ="},
		{"same.toml", strings.Repeat("[a]\nb = 1\n", 300), "already been defined"},
		{"wide.toml", "a = [" + strings.Repeat("1,", 2500000) + "1]\n", "more than 1048576 values"},
		{"dotted.toml", strings.Repeat("a.", 100000) + "a = 1\n", "a key of more than 64 parts"},
		{"header.toml", "[" + strings.Repeat("a.", 100000) + "a]\n", "a key of more than 64 parts"},
		{"inline.toml", strings.Repeat("a = {", 100) + strings.Repeat("}", 100), "a key of more than 64 parts"},
		{"names.toml", "[" + strings.Repeat("n", 1<<20) + "]\n" + strings.Repeat("a = 1\n", 1000), "paths of keys of more than 256 MB"},
		{"faults2.toml", strings.Repeat("a b\n", 5000) + strings.Repeat("a.", 100) + "a = 1\n", "a key of more than 64 parts"},
		{"wide.yaml", "a: [" + strings.Repeat("1,", 2500000) + "1]\n", "more than 1048576 values; not read"},
		{"list.yaml", strings.Repeat("- 1\n", MaxNodes+1), "more than 1048576 values; not read"},
		{"keys.yaml", strings.Repeat("a: 1\n", MaxNodes/2+1), "more than 1048576 values; not read"},
		{"documents.yaml", strings.Repeat("a: 1\n---\n", 50*maxDocuments), "more than 1000 documents; what follows line 1999 is not read"},
		{"deep.sh", strings.Repeat("$(", 100000) + strings.Repeat(")", 100000), "nested deeper than 1000 levels"},
		{"quoted.sh", strings.Repeat("\"$(", 100000) + strings.Repeat(")\"", 100000), "nested deeper than 1000 levels"},
		{"braces.sh", strings.Repeat("{ ", 100000) + strings.Repeat("; }", 100000), "nested deeper than 1000 levels"},
		{"params.sh", "A=" + strings.Repeat("${A:-", 100000) + strings.Repeat("}", 100000), "nested deeper than 1000 levels"},
		{"ifs.sh", strings.Repeat("if ", 100000), "nested deeper than 1000 levels"},
		{"times.sh", strings.Repeat("time ", 100000), "nested deeper than"},
		{"nots.sh", strings.Repeat("! ", 100000), "nested deeper than"},
		{"minus.sh", "a=$((" + strings.Repeat("-", 100000) + "1))\n", "nested deeper than"},
		{"whiles.sh", strings.Repeat("while true; do\n", 100000) + strings.Repeat("done\n", 100000), "nested deeper than 1000 levels"},
		{"doubling.sh", doubling, ""},
		{"fields.sh", fields, ""},
		{"recursive.sh", recursive, ""},
		{"loops.sh", loops, ""},
		{"branches.sh", branches, ""},
		{"nested.sh", nested, ""},
		{"faults.sh", strings.Repeat("foo ) bar\n", 300), ""},
	} {
		f := &source.File{Path: c.name, Kind: source.KindOf(c.name, nil), Text: []byte(c.text)}
		var errors []Error
		if f.Kind == source.Shell {
			s := ParseShell(f)
			checkScript(t, f, s)
			errors = s.Errors
			if len(s.Commands) > maxShellCommands {
				t.Errorf("%s: %d commands", c.name, len(s.Commands))
			}
		}
		for _, tree := range parseKind(f) {
			errors = append(errors, tree.Errors...)
			checkTree(t, f, tree)
			if count(tree.Root, 0) > 2*MaxNodes {
				t.Errorf("%s: too many values", c.name)
			}
		}
		if c.message != "" && !strings.Contains(fmt.Sprint(errors), c.message) {
			t.Errorf("%s: no error says %q: %.300v", c.name, c.message, errors)
		}
		if len(errors) > 4*MaxErrors {
			t.Errorf("%s: %d errors", c.name, len(errors))
		}
	}
}

func deepBlock(depth int) string {
	var out strings.Builder
	for i := range depth {
		fmt.Fprintf(&out, "%sa:\n", strings.Repeat(" ", i))
	}
	return out.String()
}

// count is the number of values below a node, as a visitor sees them.
func count(n *Node, sum int) int {
	if n == nil || sum > 3*MaxNodes {
		return sum
	}
	sum++
	for i := range n.Items {
		sum = count(n.Items[i].Value, sum)
	}
	return sum
}

func benchmark(b *testing.B, name, unit string, times int) {
	text := []byte(strings.Repeat(unit, times))
	f := &source.File{Path: name, Kind: source.KindOf(name, nil), Text: text}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f.Kind == source.Shell {
			ParseShell(f)
		}
		parseKind(f)
	}
}

func BenchmarkJSON(b *testing.B) {
	benchmark(b, "x.json", `{"fp16": {"enabled": true, "loss_scale": 0, "betas": [0.9, 0.999]}, "type": "AdamW"}`, 1)
}

func BenchmarkYAML(b *testing.B) {
	benchmark(b, "x.yaml", "a: 1 # c\nb:\n  c: 'x'\n  d: [1, 2, {e: f}]\ng: |\n  text\n", 20)
}

func BenchmarkTOML(b *testing.B) {
	benchmark(b, "x.toml", "[[a]]\nb = 1 # c\nc = \"x\"\nd = [1, 2, {e = 3}]\n", 20)
}

func BenchmarkShell(b *testing.B) {
	benchmark(b, "x.sh", "N=8\nARGS=\"--a $N --b 2\"\ntorchrun --nproc_per_node $N train.py $ARGS --c 1\n", 20)
}
