package configs

import (
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// CommandPath is the path of the places in a command that ParseCommand reads. They are places in its words joined by
// single spaces.
const CommandPath = "<command>"

// ParseCommand reads the words of one launch command, as a shell would hand them to the program. It is nil without words
// and for a program that starts no training, as far as is known.
func ParseCommand(words []string) *Command {
	text := strings.Join(words, " ")
	f := &source.File{Path: CommandPath, Kind: source.Shell, Text: []byte(text)}
	r := newShellReader(f)
	var fields []field
	at := uint32(0)
	for _, word := range words {
		span := source.Span{Start: at, End: at + uint32(len(word))}
		one := field{word: span}
		if word != "" {
			one.runs = []run{{text: word, at: span, exact: true}}
		}
		fields = append(fields, one)
		at = span.End + 1
	}
	env := emptyTree(f, Env)
	for len(fields) > 0 {
		name, _, ok := strings.Cut(fields[0].text(), "=")
		if !ok || !isName(name) {
			break
		}
		r.record(env, r.pair(fields[0], len(name)))
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return nil
	}
	if text, ok := shellString(fields); ok && !clusters[programName(fields[0])] {
		r.subscript(text.word, env.Root.Items)
		if len(r.script.Commands) == 0 {
			return nil
		}
		return r.script.Commands[0]
	}
	c := r.launch(fields, env)
	if c != nil {
		c.At = f.At(source.Span{Start: 0, End: uint32(len(text))})
	}
	return c
}

// pair is the entry that a word `key=value` makes, with the key of n bytes.
func (r *shellReader) pair(f field, n int) Item {
	return Item{Key: f.head(n).text(), KeyAt: r.file.At(f.head(n).span()), Value: r.value(f.cut(n+1), true)}
}

var (
	pythonName   = source.Pattern(`^python[0-9.]*(?:\.exe)?$`)
	overrideWord = source.Pattern(`^[+~]{0,2}([A-Za-z_][A-Za-z0-9_./@-]*)=`)
)

// overrides is where an override such as `trainer.devices=8` has its key, by the second pair of offsets; nil for another word.
func overrides(text string) []int {
	if strings.IndexByte(text, '=') < 0 { // most words
		return nil
	}
	return overrideWord().FindStringSubmatchIndex(text)
}

// programName is what a word starts: its last path element, python for any Python. A variable that holds the path of a
// program is taken for what its name says.
func programName(f field) string {
	name := path.Base(f.text())
	switch name {
	case "mpiexec", "mpiexec.hydra", "orterun", "mpirun.openmpi", "prterun":
		return "mpirun"
	}
	if f.open() {
		upper := strings.ToUpper(f.name())
		for _, known := range []string{"PYTHON", "TORCHRUN", "DEEPSPEED", "ACCELERATE"} {
			if strings.Contains(upper, known) && f.text() == "$"+f.name() || strings.Contains(upper, known) && f.text() == "${"+f.name()+"}" {
				return strings.ToLower(known)
			}
		}
	}
	if strings.HasPrefix(name, "python") && pythonName().MatchString(name) {
		return "python"
	}
	return name
}

// isProgram reports whether a word begins a command that can start training.
func isProgram(f field) bool { return starts(programName(f)) }

func starts(name string) bool {
	return launchers[name] != nil || tools[name] != "" || name == "accelerate" || strings.HasSuffix(name, ".py")
}

// launch reads the words of a command that starts training, or gives nil. Env may be nil.
func (r *shellReader) launch(words []field, env *Tree) *Command {
	for len(words) > 1 && words[0].open() && !isProgram(words[0]) && (isProgram(words[1]) || wrappers[programName(words[1])]) {
		words = words[1:] // $PROFILER python train.py
	}
	for len(words) > 0 && wrappers[programName(words[0])] {
		wrapper := programName(words[0])
		words = words[1:]
		for len(words) > 0 && !isProgram(words[0]) {
			if name, _, ok := strings.Cut(words[0].text(), "="); ok && wrapper == "env" && isName(name) {
				env = r.environment(env)
				r.record(env, r.pair(words[0], len(name)))
			}
			words = words[1:]
			if len(words) > 0 && wrappers[programName(words[0])] {
				break
			}
		}
	}
	if len(words) == 0 {
		return nil
	}
	name := programName(words[0])
	if !starts(name) && name != "accelerate-launch" && !clusters[name] {
		return nil
	}
	c := &Command{Launcher: name, LauncherAt: r.file.At(words[0].word), Env: r.environment(env)}
	c.LauncherFlags, c.Flags = emptyTree(r.file, Flags), emptyTree(r.file, Flags)
	c.LauncherFlags.Root.At, c.Flags.Root.At = c.LauncherAt, c.LauncherAt
	rest := words[1:]
	switch {
	case name == "accelerate-launch":
		c.Launcher = "accelerate"
		return r.launched(c, rest, launchers["accelerate"])
	case name == "accelerate":
		if len(rest) == 0 || rest[0].text() != "launch" {
			return nil
		}
		c.LauncherAt.Span = c.LauncherAt.Span.Cover(rest[0].word)
		return r.launched(c, rest[1:], launchers[name])
	case name == "python":
		return r.python(c, rest)
	case clusters[name]:
		return r.cluster(c, rest, launchers[name])
	case tools[name] != "":
		return r.tool(c, rest, tools[name])
	case launchers[name] != nil:
		return r.launched(c, rest, launchers[name])
	case strings.HasSuffix(name, ".py"):
		c.Launcher, c.LauncherAt = "python", source.Place{}
		return r.program(c, words)
	}
	return nil
}

// launched reads the flags of a launcher and the program after them.
func (r *shellReader) launched(c *Command, words []field, table *flagTable) *Command {
	rest := r.launcherFlags(c.LauncherFlags, words, table)
	for _, item := range c.LauncherFlags.Root.Items {
		if item.Key == "-m" || item.Key == "--module" {
			c.Module = true
		}
	}
	return r.program(c, rest)
}

// program reads a program and its arguments.
func (r *shellReader) program(c *Command, words []field) *Command {
	if len(words) == 0 {
		if c.LauncherFlags.Root.Open {
			return c
		}
		return nil
	}
	c.ProgramAt, c.ProgramVia = r.place(words[0], false)
	c.Program, c.ProgramOpen = words[0].text(), words[0].open()
	r.programFlags(c, words[0].word, words[1:])
	return c
}

// python reads the words after `python`.
func (r *shellReader) python(c *Command, words []field) *Command {
	rest := r.launcherFlags(c.LauncherFlags, words, launchers["python"])
	for i := range c.LauncherFlags.Root.Items {
		switch item := &c.LauncherFlags.Root.Items[i]; item.Key {
		case "-c":
			return nil
		case "-m":
			module := item.Value.Raw
			if launcher := launcherModules[module]; launcher != "" {
				c.Launcher, c.LauncherAt = launcher, item.Value.At
				c.LauncherFlags = emptyTree(r.file, Flags)
				c.LauncherFlags.Root.At = c.LauncherAt
				if launcher == "accelerate" && len(rest) > 0 && rest[0].text() == "launch" {
					rest = rest[1:]
				}
				table := launchers[launcher]
				if table == nil {
					table = launchers["torchrun"]
				}
				return r.launched(c, rest, table)
			}
			c.Module = true
			c.Program, c.ProgramOpen = module, item.Value.Open
			c.ProgramAt, c.ProgramVia = item.Value.At, item.Value.Via
			r.programFlags(c, item.Value.At.Span, rest)
			return c
		}
	}
	if len(rest) > 0 && rest[0].text() == "-" {
		return nil
	}
	return r.program(c, rest)
}

// cluster reads the words after srun and mpirun: flags, and a command of its own. A Python program is theirs; a
// launcher is started by them on each node.
func (r *shellReader) cluster(c *Command, words []field, table *flagTable) *Command {
	rest := r.launcherFlags(c.LauncherFlags, words, table)
	for _, item := range c.LauncherFlags.Root.Items {
		if item.Key == "-x" || item.Key == "-genv" {
			r.forwarded(c.Env, item.Value)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if text, ok := shellString(rest); ok {
		before := len(r.script.Commands)
		r.inner(text, c.Env, rest[0].word)
		for _, inner := range r.script.Commands[before:] {
			adopt(inner, c)
		}
		return nil
	}
	inner := r.launch(rest, c.Env)
	if inner == nil {
		return nil
	}
	return adopt(inner, c)
}

func adopt(inner, outer *Command) *Command {
	if inner.Launcher == "python" {
		inner.Launcher, inner.LauncherAt, inner.LauncherFlags = outer.Launcher, outer.LauncherAt, outer.LauncherFlags
		return inner
	}
	for inner.Outer != nil {
		inner = inner.Outer
	}
	inner.Outer = outer
	return inner
}

// forwarded records the variable that `mpirun -x NAME=value` sets.
func (r *shellReader) forwarded(env *Tree, n *Node) {
	name, value, ok := strings.Cut(n.Raw, "=")
	if n.Kind != Scalar || !ok || !isName(name) || n.At.Span.Len() != len(n.Raw) {
		return
	}
	at := n.At.Span
	middle := at.Start + uint32(len(name))
	r.record(env, Item{Key: name, KeyAt: r.file.At(source.Span{Start: at.Start, End: middle}),
		Value: &Node{Kind: Scalar, Raw: value, Open: n.Open, At: r.file.At(source.Span{Start: middle + 1, End: at.End}), Via: n.Via}})
}

// tool reads a training tool with a command of its own, such as `tune run` and `llamafactory-cli train`. Its flags are
// those of torchrun before the program when it runs programs, else all belong to the tool's command.
func (r *shellReader) tool(c *Command, words []field, kind string) *Command {
	if kind != "train" {
		if len(words) == 0 || words[0].text() != "run" {
			return nil
		}
		return r.launched(c, words[1:], launchers["torchrun"])
	}
	if len(words) == 0 || strings.HasPrefix(words[0].text(), "-") {
		return nil
	}
	c.Flags.Class = c.Launcher + "." + words[0].text()
	return r.program(c, words)
}

// key is the place of the text of a flag.
func (r *shellReader) key(f field) source.Place { return r.file.At(f.span()) }

// insert adds the entry of a flag with its values.
func (r *shellReader) insert(tree *Tree, flag field, values []field) {
	item := Item{Key: flag.text(), KeyAt: r.key(flag)}
	switch len(values) {
	case 0:
		item.Value = &Node{Kind: Scalar, Bare: true, At: item.KeyAt}
	case 1:
		item.Value = r.value(values[0], false)
	default:
		item.Value = &Node{Kind: Sequence}
		for i, f := range values {
			v := r.value(f, false)
			item.Value.Items = append(item.Value.Items, Item{Value: v})
			if i == 0 {
				item.Value.At = v.At
			}
			item.Value.At.Span = item.Value.At.Span.Cover(v.At.Span)
		}
	}
	r.put(tree, item, flag, values...)
}

// put adds an entry that is written in a word, and those that follow it.
func (r *shellReader) put(tree *Tree, item Item, first field, others ...field) {
	tree.Root.Items = append(tree.Root.Items, item)
	if len(tree.Root.Items) == 1 {
		tree.Root.At = r.file.At(first.word)
	}
	tree.Root.At.Span = tree.Root.At.Span.Cover(first.word)
	for _, f := range others {
		tree.Root.At.Span = tree.Root.At.Span.Cover(f.word)
	}
}

// isFlag reports whether a word is a flag and not a value: a negative number is none.
func isFlag(f field) bool {
	text := f.text()
	if len(text) < 2 || text[0] != '-' || text == "--" {
		return false
	}
	number := strings.TrimPrefix(text[1:], ".")
	return number == "" || number[0] < '0' || number[0] > '9'
}

// launcherFlags reads flags up to the program, and gives the words from the program on.
func (r *shellReader) launcherFlags(tree *Tree, words []field, table *flagTable) []field {
	for len(words) > 0 {
		f := words[0]
		text := f.text()
		switch {
		case f.open() && !strings.HasPrefix(text, "-"):
			if !f.many() {
				return words
			}
			tree.Root.Open = true
			words = words[1:]
			continue
		case text == "--":
			return words[1:]
		case !isFlag(f):
			return words
		}
		words = words[1:]
		if equals := strings.IndexByte(text, '='); equals > 0 {
			item := r.pair(f, equals)
			r.put(tree, item, f)
			continue
		}
		arity, known := table.arity(text)
		if !known && table.attached && text[1] != '-' && len(text) > 2 {
			if n, short := table.arity(text[:2]); short && n == 1 {
				item := Item{Key: text[:2], KeyAt: r.key(f.head(2)), Value: r.value(f.cut(2), true)}
				r.put(tree, item, f)
				continue
			}
		}
		if !known && len(words) > 0 && !isFlag(words[0]) && !isProgram(words[0]) && !words[0].many() {
			arity = 1
		}
		n := 0
		for n < arity && n < len(words) && (!isFlag(words[n]) || known && words[n].open()) {
			n++
		}
		r.insert(tree, f, words[:n])
		words = words[n:]
		if text == "-m" && arity == 1 || text == "-c" && table == launchers["python"] {
			return words
		}
	}
	return nil
}

// flags reads words that are all flags of a table.
func (r *shellReader) flags(words []field, table *flagTable) *Tree {
	tree := emptyTree(r.file, Env)
	for len(words) > 0 {
		rest := r.launcherFlags(tree, words, table)
		if len(rest) == len(words) {
			rest = rest[1:]
		}
		words = rest
	}
	return tree
}

// programFlags reads the arguments of a program of which nothing is known: what follows a flag and is no flag are its
// values.
func (r *shellReader) programFlags(c *Command, program source.Span, words []field) {
	tree := c.Flags
	tree.Root.At = r.file.At(program)
	entries := 0
	for _, f := range words {
		if text := f.text(); strings.HasPrefix(text, "-") || strings.IndexByte(text, '=') > 0 {
			entries++
		}
	}
	tree.Root.Items = slices.Grow(tree.Root.Items, entries)
	for len(words) > 0 {
		f := words[0]
		text := f.text()
		words = words[1:]
		override := overrides(text)
		switch {
		case f.many() && !isFlag(f):
			tree.Root.Open = true
		case text == "--":
			for _, rest := range words {
				c.Args = append(c.Args, r.value(rest, false))
			}
			return
		case isFlag(f) && strings.IndexByte(text, '=') > 0:
			r.put(tree, r.pair(f, strings.IndexByte(text, '=')), f)
		case isFlag(f):
			n := 0
			for n < len(words) && !isFlag(words[n]) && words[n].text() != "--" && !words[n].many() && (n == 0 || !r.ends(words[0], words[n])) {
				n++
			}
			r.insert(tree, f, words[:n])
			words = words[n:]
		case override != nil:
			rest := f.cut(override[2])
			r.put(tree, r.pair(rest, override[3]-override[2]), f)
		default:
			// What is not known and not quoted may be flags as well
			tree.Root.Open = tree.Root.Open || f.open() && f.bare
			c.Args = append(c.Args, r.value(f, false))
		}
	}
}

// ends reports whether a word no longer belongs to the values of a flag that began with first: an override such as
// `trainer.devices=8`, or a variable that may be any flags.
func (r *shellReader) ends(first, word field) bool {
	if word.open() && word.bare {
		return true
	}
	return overrides(word.text()) != nil && overrides(first.text()) == nil
}
