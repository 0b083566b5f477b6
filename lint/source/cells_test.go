package source

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestEscapes: what becomes of a cell, and which commands it gives a shell. What IPython takes for Python stays.
func TestEscapes(t *testing.T) {
	for _, c := range []struct{ cell, text, commands string }{
		{"out = !ls -l\nprint(out)", "out = _#s -l\nprint(out)", "ls -l"},
		{"a, b = !echo x", "a, b = _#cho x", "echo x"},
		{"x: list = !!ls", "x: list = _#ls", "ls"},
		{"d['k'] = %timeit -o f()", "d['k'] = _#imeit -o f()", ""},
		{"if x: y = !ls", "if x: y = _#s", "ls"},
		{"for i in r:\n    !run {i}\n    z = !ls\n", "for i in r:\n    0#un {i}\n    z = _#s\n", "run {i}|ls"},
		{"try:\n  !a b\nexcept E:\n  %cd x\n", "try:\n  0# b\nexcept E:\n  0#d x\n", "a b"},
		{"if x:\n  # why\n\n  !ls\n", "if x:\n  # why\n\n  0#s\n", "ls"},
		{"x = (1\n  % 3)\nif (x\n  != 3):\n  !ls", "x = (1\n  % 3)\nif (x\n  != 3):\n  0#s", "ls"},
		{"s = '''\n!no\n%no\n'''\n!yes", "s = '''\n!no\n%no\n'''\n#yes", "yes"},
		{"x = 1 \\\n  % 2\n!ls", "x = 1 \\\n  % 2\n#ls", "ls"},
		{"x = !run \\\n   --a \\\n\ny = 1", "x = _#un \\\n   #-a \\\n\ny = 1", "run \\|   --a \\"},
		{"%pip install a\n%conda install b\n%cd c\n%sx d", "#pip install a\n#conda install b\n#cd c\n#sx d", "pip install a|conda install b|d"},
		{",f a\n;f b\n/f c", "#f a\n#f b\n#f c", ""},
		{"x == y\nf(a=1)\nx += 1\nx %= 2\nx != 2", "x == y\nf(a=1)\nx += 1\nx %= 2\nx != 2", ""},
		{"x = y?\na.b??\nz = 'why?'", "# = y?\n#.b??\nz = 'why?'", ""},
		{"f(\n!ls\n'''\n%cd x", "f(\n#ls\n'''\n#cd x", "ls"}, // nothing ends: line by line
		{"größe = !ls\nößx?", "größe = _#s\n##ßx?", "ls"},
		{"!{sys.executable} -m pip install a", "#{sys.executable} -m pip install a", "python           -m pip install a"},
	} {
		text := []byte(c.cell)
		commands := blank(text)
		escapes(text, commands)
		file := File{}
		file.settleCommands(commands)
		if string(text) != c.text {
			t.Errorf("%q became\n%q, want\n%q", c.cell, text, c.text)
		}
		if got := lines(file.Commands); got != c.commands {
			t.Errorf("%q has the commands %q, want %q", c.cell, got, c.commands)
		}
	}
}

// lines are those of a text of commands, without what is blank.
func lines(commands []byte) string {
	var all []string
	for line := range strings.Lines(string(commands)) {
		line = strings.TrimRight(line, " \r\n")
		if trimmed := strings.TrimLeft(line, " "); trimmed != "" {
			if len(all) == 0 || !strings.HasSuffix(all[len(all)-1], `\`) {
				line = trimmed
			}
			all = append(all, line)
		}
	}
	return strings.Join(all, "|")
}

const databricksSample = `# Databricks notebook source
# MAGIC %pip install a==1 \
# MAGIC   b==2

# COMMAND ----------

# MAGIC %md
# MAGIC Use !pip install c

# COMMAND ----------

# MAGIC %sh
# MAGIC pip install d

# COMMAND ----------

%sql
SELECT "x" FROM y

# COMMAND ----------

n = 8
!deepspeed --num_gpus={n} \
    run.py
`

func TestDatabricks(t *testing.T) {
	for _, text := range []string{databricksSample, "\ufeff" + databricksSample, strings.ReplaceAll(databricksSample, "\n", "\r\n")} {
		file, err := New("a.py", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := len(strings.TrimPrefix(text, "\ufeff")); len(file.Text) != want || len(file.Commands) != want || !file.HasCells() {
			t.Errorf("%d bytes of text and %d of commands, want %d", len(file.Text), len(file.Commands), want)
		}
		if want := `pip install a==1 \|                  b==2|pip install d|deepspeed --num_gpus={n} \|    run.py`; strings.Join(strings.Fields(lines(file.Commands)), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("commands %q", lines(file.Commands))
		}
		for _, want := range []string{"\n#sql", "\n#ELECT", "\nn = 8", "\n#deepspeed", "\n    #un.py"} {
			if !bytes.Contains(bytes.ReplaceAll(file.Text, []byte("\r"), nil), []byte(want)) {
				t.Errorf("no %q in\n%s", want, file.Text)
			}
		}
		at := uint32(bytes.Index(file.Text, []byte("n = 8")))
		if got := fmt.Sprint(text[file.RawOffset(at):][:5]); got != "n = 8" {
			t.Errorf("n = 8 comes from %q", got)
		}
	}
	if file, err := New("a.py", []byte("x = 1\n!ls\n")); err != nil || string(file.Text) != "x = 1\n!ls\n" || file.HasCells() {
		t.Errorf("%v, %v: a script is no notebook", file, err)
	}
}

// FuzzEscapes: the text keeps its length and its lines, whatever it is.
func FuzzEscapes(f *testing.F) {
	f.Add(databricksSample)
	f.Add("x = (!ls\n'''\n%cd\\\n?")
	f.Fuzz(func(t *testing.T, cell string) {
		for _, head := range []string{"", "%%bash\n", "# MAGIC %sh "} {
			text := []byte(head + cell)
			before := bytes.Count(text, []byte("\n"))
			commands := blank(text)
			magicLines(text, commands)
			isolate(text, commands, languageOf(text, true))
			if len(text) != len(head)+len(cell) || len(commands) != len(text) || bytes.Count(text, []byte("\n")) != before || bytes.Count(commands, []byte("\n")) != before {
				t.Fatalf("%q became %q with %q", cell, text, commands)
			}
		}
	})
}
