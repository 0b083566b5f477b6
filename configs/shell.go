package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/source"
)

// Bounds of the reading of one script.
const (
	maxShellRounds   = 8       // times that a damaged script is read
	maxShellErrors   = 8       // missing tokens that the parser may add
	maxShellSteps    = 20000   // statements followed, those of functions and loops each time
	maxShellDepth    = 16      // calls of functions inside of each other
	maxShellCommands = 512     // launch commands kept
	maxShellText     = 1 << 16 // bytes of a variable
	maxShellFields   = 4096    // words of a command or an array
	maxShellNest     = 1000    // brackets and compound commands inside of each other
	maxShellPrefix   = 10000   // operators and prefixes such as ! and time in one statement
	maxLoopItems     = 8       // rounds up to which a loop is followed for each item, those of loops around it included
	maxChoices       = 4       // values that branches may give a variable before it counts as unknown
)

// Script is what a launch script says: the programs it starts with their flags, and the variables it sets.
//
// The script is followed, not run: variables, arrays, functions and arithmetic are resolved where the script itself
// says what they hold, and #SBATCH lines give SLURM_NNODES and the like. A value that came through a variable has as At
// where it is written and as Via where it is used. What is not known stays an open scalar with its text.
type Script struct {
	Commands   []*Command  // in the order in which they run; those of a loop over few words once for each
	Env        *Tree       // every assignment in order, Format Env; Tag "export" on the values of exported ones
	Directives *Tree       // #SBATCH lines, Format Env, keys as written: --nodes, -N
	Documents  []*Document // files that the script itself writes
	Touched    []Touch     // files that its other commands may make: targets of redirects, arguments
	Installs   Installs    // packages that it installs
	Job        bool        // of a container platform, which tells processes itself where to meet
	Errors     []Error
	Template   bool // it has placeholders such as <path to the data>, which stand for unknown values
	TemplateAt source.Place
	comments   []source.Span
	extents    []source.Span
}

// Touch is a file that a command which starts no training may make. Where a part of the name is not known, Tail is
// what is known to stand at its end.
type Touch struct {
	Name string
	Open bool
	Tail string
	Read bool // it is a script that this one reads (source); another that it starts is Open
}

// Command is one program that a script starts.
//
// The keys of LauncherFlags and Flags are as written, with their dashes; a flag without a value is a Bare scalar, one
// with several a sequence. Words like `trainer.devices=8` are entries of Flags too.
type Command struct {
	At            source.Place // of the command, from its first word to its last
	Launcher      string       // torchrun, deepspeed, accelerate, python, srun, mpirun, or the name of a training tool
	LauncherAt    source.Place
	LauncherFlags *Tree
	Outer         *Command // srun or mpirun that starts the launcher, with its flags
	Program       string   // script or module; "" when not known at all
	ProgramOpen   bool     // a part of Program is not known: $DIR/train.py
	ProgramAt     source.Place
	ProgramVia    source.Place // where a variable stands for the program
	Module        bool         // Program is a module (-m)
	Flags         *Tree
	Args          []*Node // words that are no flags
	Env           *Tree   // assignments before the command
	Away          bool    // it runs in a container or on another machine, with files of its own
	Guarded       bool    // it cannot be told whether this runs: a branch, a loop, || or a test before it
}

// Document is a file that a script writes from text in itself, such as `cat > ds.json <<EOF`. File holds the script
// with everything but that text blanked, so that places in it are places in the script.
type Document struct {
	Name  string // "" for text that goes to a program; what is not known in it stands as written
	At    source.Place
	File  *source.File
	Trees []*Tree // of a config, with the values of the script's variables put in; nil for Python
}

// Comments are the spans of all comments, marker included, in file order.
func (s *Script) Comments() []source.Span { return s.comments }

// Extent is the span of the next statement at or after offset. After the last it is empty, at offset.
func (s *Script) Extent(offset uint32) source.Span {
	i := sort.Search(len(s.extents), func(i int) bool { return s.extents[i].Start >= offset })
	if i == len(s.extents) {
		return source.Span{Start: offset, End: offset}
	}
	return s.extents[i]
}

// ParseShell reads a launch script.
func ParseShell(f *source.File) *Script {
	r := newShellReader(f)
	if at := tooNested(r.text); at >= 0 {
		span := source.Span{Start: uint32(at), End: uint32(at + 1)}
		r.script.Errors = []Error{{At: f.At(span), Message: fmt.Sprintf("nested deeper than %d levels; not read", maxShellNest), Bound: true}}
		return r.script
	}
	parsed := r.parse()
	if parsed == nil {
		return r.script
	}
	r.index(parsed)
	r.directives(r.script.comments)
	r.statements(parsed.Stmts)
	r.uncalled()
	return r.script
}

func newShellReader(f *source.File) *shellReader {
	text := shellText(f.Text)
	return &shellReader{
		file: f, whole: text, text: text, vars: map[string]*variable{}, funcs: map[string]*syntax.FuncDecl{}, called: map[string]bool{},
		script: &Script{Env: emptyTree(f, Env), Directives: emptyTree(f, Env)},
	}
}

func emptyTree(f *source.File, format Format) *Tree {
	return &Tree{Format: format, Root: &Node{Kind: Mapping, At: f.At(source.Span{})}}
}

type shellReader struct {
	file    *source.File
	whole   []byte // the script
	copied  string // the same, once it is asked for
	text    []byte // what the parser reads: the script with what it cannot read blanked
	script  *Script
	vars    map[string]*variable
	before  changes // what was in variables before the part that is followed apart; nil: none is
	funcs   map[string]*syntax.FuncDecl
	called  map[string]bool
	params  []field // of the function that is followed; nil: not known
	steps   int
	inners  int // parts that were read as scripts of their own
	depth   int
	guarded int
	away    int
	rounds  int    // of the loops that are followed for each item
	env     []Item // set for every command of the text that is followed: A=1 bash -c "..."
}

// shellText is the script with \r\n line ends as the parser takes them; places stay.
func shellText(text []byte) []byte {
	if !bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\\\r\n"), []byte(" \\\n"))
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte(" \n"))
}

// parse reads the whole script. What is missing in it is added, as far as the parser can; a line that cannot be read is
// blanked and the rest read again.
func (r *shellReader) parse() *syntax.File {
	parsed, err := r.syntax(0)
	for round := 0; err != nil; round++ {
		at, message := len(r.text), err.Error()
		var fault syntax.ParseError
		var lang syntax.LangError
		switch {
		case errors.As(err, &fault):
			at, message = int(fault.Pos.Offset()), fault.Text
		case errors.As(err, &lang):
			at, message = int(lang.Pos.Offset()), lang.Feature+" is not known to this shell"
		}
		at = min(at, len(r.text))
		line := r.file.LineSpan(r.file.Line(uint32(at)))
		if strings.Contains(message, "must be followed by `=`") && at < len(r.text) && r.text[at] == '[' {
			// `--layers [0]*3` in an array, which bash takes
			r.text = bytes.Clone(r.text)
			r.text[at] = '_'
			round--
			parsed, err = r.syntax(0)
			continue
		}
		if r.fillPlaceholders(line) || r.fillRemark(line) {
			round--
			parsed, err = r.syntax(0)
			continue
		}
		r.script.Errors = append(r.script.Errors, Error{At: r.file.At(source.Span{Start: uint32(at), End: max(uint32(at), line.End)}), Message: message})
		if recovered, err := r.syntax(maxShellErrors); err == nil {
			return recovered
		}
		if round == maxShellRounds || len(bytes.TrimSpace(r.text[line.Start:line.End])) == 0 {
			break
		}
		r.text = blank(r.text, line)
		parsed, err = r.syntax(0)
	}
	return parsed
}

// placeholder is a remark in angle brackets where a value is to be put in.
var placeholder = source.Pattern(`(?:^|[= \t"'/])(<[A-Za-z][^<>|&;$\n]{1,80}>(?:[ \t]*(?:\\\n)?[ \t]*\(e\.g\.?[^()\n]*\))?)`)

// fillPlaceholders puts an unknown variable for each `<value>` on a line, and reports whether there was one.
func (r *shellReader) fillPlaceholders(line source.Span) bool {
	found := placeholder().FindAllSubmatchIndex(r.text[line.Start:line.End], -1)
	if len(found) == 0 {
		return false
	}
	r.text = bytes.Clone(r.text)
	for _, at := range found {
		span := source.Span{Start: line.Start + uint32(at[2]), End: line.Start + uint32(at[3])}
		fill(r.text, span, '_')
		r.text[span.Start] = '$'
		if !r.script.Template {
			r.script.Template, r.script.TemplateAt = true, r.file.At(span)
		}
	}
	return true
}

// remark is what some write behind such a placeholder.
var remark = source.Pattern(`^[ \t]*(\(e\.g\.?[^()\n]*\))`)

// fillRemark blanks a remark in parentheses at the start of a line, and reports whether there was one.
func (r *shellReader) fillRemark(line source.Span) bool {
	at := remark().FindSubmatchIndex(r.text[line.Start:line.End])
	if at == nil || !r.script.Template {
		return false
	}
	r.text = bytes.Clone(r.text)
	fill(r.text, source.Span{Start: line.Start + uint32(at[2]), End: line.Start + uint32(at[3])}, ' ')
	return true
}

// syntax runs the parser once. While it makes up for errors it can panic on damaged text; that counts as an error.
func (r *shellReader) syntax(mend int) (parsed *syntax.File, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			parsed, err = nil, fmt.Errorf("the script cannot be read: %v", fault)
		}
	}()
	variant := syntax.LangBash
	if strings.HasSuffix(r.file.Path, ".zsh") {
		variant = syntax.LangZsh
	}
	parser := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(variant), syntax.RecoverErrors(mend))
	return parser.Parse(bytes.NewReader(r.text), r.file.Path)
}

// index collects comments, statements and functions.
func (r *shellReader) index(parsed *syntax.File) {
	syntax.Walk(parsed, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Comment:
			span := r.span(node)
			for span.End > span.Start && (r.text[span.End-1] == ' ' || r.text[span.End-1] == '\r') {
				span.End--
			}
			r.script.comments = append(r.script.comments, span)
		case *syntax.Stmt:
			if span := r.span(node); span.Len() > 0 {
				r.script.extents = append(r.script.extents, span)
			}
		case *syntax.FuncDecl:
			if node.Name != nil {
				r.funcs[node.Name.Value] = node
			}
		}
		return true
	})
	byStart := func(a, b source.Span) int { return cmp.Compare(a.Start, b.Start) }
	slices.SortFunc(r.script.comments, byStart)
	slices.SortStableFunc(r.script.extents, byStart)
}

// span is the place of a node; of one that the parser made up it is empty.
func (r *shellReader) span(node syntax.Node) source.Span {
	start, end := node.Pos(), node.End()
	if !start.IsValid() {
		return source.Span{}
	}
	first := min(uint32(start.Offset()), uint32(len(r.text)))
	if !end.IsValid() {
		// Its end is missing in the script
		return source.Span{Start: first, End: max(first, r.file.LineSpan(r.file.Line(first)).End)}
	}
	return source.Span{Start: first, End: min(max(uint32(end.Offset()), first), uint32(len(r.text)))}
}

// source is what is written at a span: a piece of one copy of the script, which all words share.
func (r *shellReader) source(span source.Span) string {
	if r.copied == "" {
		r.copied = string(r.whole)
	}
	return r.copied[span.Start:span.End]
}

// directives reads the #SBATCH lines, which stand before the first command, and the variables that SLURM makes of them.
func (r *shellReader) directives(comments []source.Span) {
	root := r.script.Directives.Root
	for _, comment := range comments {
		text := r.source(comment)
		rest, ok := strings.CutPrefix(text, "#SBATCH")
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		if end := strings.Index(rest, " #"); end >= 0 {
			rest = rest[:end]
		}
		words := r.words(int(comment.Start)+len("#SBATCH"), rest)
		tree := r.flags(words, slurmFlags)
		root.Items = append(root.Items, tree.Root.Items...)
		if len(root.Items) == len(tree.Root.Items) {
			root.At.Span = comment
		}
		root.At.Span = root.At.Span.Cover(comment)
	}
	for key, names := range slurmVariables {
		for i := range root.Items {
			if item := &root.Items[i]; item.Key == key && item.Value.Kind == Scalar && !item.Value.Bare {
				for _, name := range names {
					r.set(name, r.slurmVariable(item.Value))
				}
			}
		}
	}
}

func (r *shellReader) slurmVariable(n *Node) *variable {
	span := n.At.Span
	return &variable{at: span, fields: []field{{word: span, runs: []run{{text: n.Raw, at: span, exact: int(span.End-span.Start) == len(n.Raw)}}}}}
}

// words splits text at an offset at its blanks.
func (r *shellReader) words(offset int, text string) []field {
	whole := field{runs: []run{{text: text, at: source.Span{Start: uint32(offset), End: uint32(offset + len(text))}, exact: true}}}
	return whole.split()
}
