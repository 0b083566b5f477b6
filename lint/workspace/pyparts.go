package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// argumentClasses are the library classes whose keyword arguments are settings, by the last part of their names: the dialect
// of the keywords, and what the first positional argument is called.
var argumentClasses = map[string]struct {
	library string // the first part of the dotted name; several have spaces between them
	dialect *dialect.Dialect
	first   string
}{
	"TrainingArguments":              {"transformers", dialect.HFTrainingArguments, "output_dir"},
	"Seq2SeqTrainingArguments":       {"transformers", dialect.HFTrainingArguments, "output_dir"},
	"SFTConfig":                      {"trl", dialect.HFTrainingArguments, "output_dir"},
	"DPOConfig":                      {"trl", dialect.HFTrainingArguments, "output_dir"},
	"KTOConfig":                      {"trl", dialect.HFTrainingArguments, "output_dir"},
	"ORPOConfig":                     {"trl", dialect.HFTrainingArguments, "output_dir"},
	"CPOConfig":                      {"trl", dialect.HFTrainingArguments, "output_dir"},
	"GRPOConfig":                     {"trl", dialect.HFTrainingArguments, "output_dir"},
	"RLOOConfig":                     {"trl", dialect.HFTrainingArguments, "output_dir"},
	"RewardConfig":                   {"trl", dialect.HFTrainingArguments, "output_dir"},
	"Accelerator":                    {"accelerate", dialect.Accelerator, ""},
	"DeepSpeedPlugin":                {"accelerate", dialect.DeepSpeedPlugin, "hf_ds_config"},
	"FullyShardedDataParallelPlugin": {"accelerate", dialect.FSDPPlugin, ""},
	"DeepSpeedStrategy":              {"lightning pytorch_lightning lightning_fabric", dialect.DeepSpeedStrategy, ""},
}

// argumentWords are the names of argumentClasses.
var argumentWords = func() *pyscan.Words {
	words := &pyscan.Words{Alias: true, Names: map[string]bool{}}
	for name := range argumentClasses {
		words.Names[name] = true
	}
	return words
}()

// maxPythonParts bounds the calls of one Python file that are read as settings.
const maxPythonParts = 32

// pythonParts are pythonDocuments, worked out once.
func (v *View) pythonParts(name string) [][]*Part {
	documents, known := v.settings.python[name]
	if !known {
		documents = v.pythonDocuments(name)
		if v.settings.python == nil {
			v.settings.python = map[string][][]*Part{}
		}
		v.settings.python[name] = documents
	}
	return documents
}

// pythonDocuments are the settings that a Python file states: the keyword arguments of TrainingArguments and its kind, and the
// assignments of a file that is nothing but a config.
func (v *View) pythonDocuments(name string) [][]*Part {
	v.record(ReadFacts, name)
	if file, err := v.Snapshot.File(name); err != nil || !MayState(file) {
		return nil
	}
	m := v.Module(name)
	if m == nil {
		return nil
	}
	if part := v.assignments(m); part != nil {
		return [][]*Part{{part}}
	}
	if !slices.ContainsFunc(argumentNames, m.File.Has) {
		return nil
	}
	var documents [][]*Part
	for _, site := range m.Calls {
		call := site.Call
		if len(documents) >= maxPythonParts || len(call.Keywords) == 0 {
			continue
		}
		if part := v.engineDict(m, site.Scope, call); part != nil {
			documents = append(documents, []*Part{part})
		} else if part := v.argumentsOf(m, site.Scope, call); part != nil {
			parts := []*Part{part}
			for _, section := range part.Dialect.Sections(part.Tree) {
				parts = append(parts, newPart(name, section.Path, section.Tree, section.Dialect))
			}
			documents = append(documents, parts)
		}
	}
	return documents
}

// assignmentNames are the words without which a file is no config of nanoGPT or XTuner.
var assignmentNames = []string{"block_size", "n_layer", "accumulative_counts"}

// argumentNames are the words without which a file makes none of these classes.
var argumentNames = []string{"TrainingArguments", "Config(", "Accelerator(", "DeepSpeedPlugin(", "DataParallelPlugin(", "DeepSpeedStrategy(", "deepspeed"}

// MayState reports whether a Python file may state settings, by its words. One that does not has no Parts.
func MayState(file *source.File) bool {
	return slices.ContainsFunc(argumentNames, file.Has) || slices.ContainsFunc(assignmentNames, file.Has)
}

// engineDict is the config that a call of deepspeed.initialize is given as a dict of its own file; nil for any other call, and for
// a dict of which only the callers know what it holds.
func (v *View) engineDict(m *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) *Part {
	if pyscan.PathEnd(call.Func) != "initialize" {
		return nil
	}
	if v.Library(scope, nil, call.Func) != "deepspeed.initialize" {
		return nil
	}
	for _, keyword := range []string{"config", "config_params"} {
		argument := Argument(call, keyword, -1)
		if argument == nil {
			continue
		}
		dict, ok := v.Eval(scope, nil, argument).(*pyscan.Mapping)
		if !ok || dict.Site().Module != m {
			continue
		}
		return v.changed(newPart(m.File.Path, "", v.TreeOf(dict), dialect.DeepSpeed), scope, argument, call)
	}
	return nil
}

// argumentsOf is the part that a call states; nil for a call of anything else. A class of the project that derives from one of
// the library may have defaults of its own, so that what is absent is unknown.
func (v *View) argumentsOf(m *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) *Part {
	last := pyscan.PathEnd(call.Func)
	if !v.Near(m, argumentWords, call.Func) && !(isClassName(last) && v.HasName(m, last)) {
		return nil // of a library, and none of these; or a function
	}
	callee := v.Eval(scope, nil, call.Func)
	name, derived := v.ExternalName(callee), false
	if name == "" {
		name, derived = v.ExternalBase(callee), true
	}
	class, ok := argumentClasses[name[strings.LastIndexByte(name, '.')+1:]]
	if library, _, _ := strings.Cut(name, "."); !ok || !slices.Contains(strings.Fields(class.library), library) {
		return nil
	}
	root := v.keywordNode(scope, m, call)
	root.Open = root.Open || derived
	if len(call.Args) > 0 && class.first != "" && !derived {
		at := m.File.At(call.Args[0].Span())
		root.Items = append([]configs.Item{{Key: class.first, KeyAt: at, Value: v.argumentNode(scope, m, call.Args[0])}}, root.Items...)
	}
	if len(call.Args) > 1 {
		root.Open = true
	}
	part := newPart(m.File.Path, "", &configs.Tree{Format: configs.Python, Root: root, Class: name}, class.dialect)
	if class.dialect == dialect.HFTrainingArguments {
		part = v.readWith(part, v.modelOf(m, call, nil))
	}
	return part
}

// keywordNode is the mapping that the keyword arguments of a call are. `**more` counts where it is a dict that is known.
func (v *View) keywordNode(scope *pyscan.Scope, m *pyscan.Module, call *syntax.Call) *configs.Node {
	root := &configs.Node{Kind: configs.Mapping, Style: configs.Flow, At: m.File.At(call.Span())}
	for _, keyword := range call.Keywords {
		if keyword.Arg == "" {
			more := v.node(v.Eval(scope, nil, keyword.Value))
			root.Open = root.Open || more.Kind != configs.Mapping || more.Open
			root.Items = append(root.Items, more.Items...)
			continue
		}
		start := keyword.Span().Start
		at := m.File.At(source.Span{Start: start, End: start + uint32(len(keyword.Arg))})
		value := v.argumentNode(scope, m, keyword.Value)
		if keyword.Arg == "gradient_accumulation_plugin" {
			if made, ok := v.Expand(v.Eval(scope, nil, keyword.Value)).(*pyscan.Instance); ok && made.Call != nil && made.At.Module == m {
				value = v.keywordNode(v.scopeOfCall(made), m, made.Call)
				if len(made.Call.Args) > 0 {
					steps := v.argumentNode(v.scopeOfCall(made), m, made.Call.Args[0])
					value.Items = append(value.Items, configs.Item{Key: "num_steps", KeyAt: steps.At, Value: steps})
				}
			}
		}
		root.Items = append(root.Items, configs.Item{Key: keyword.Arg, KeyAt: at, Value: value})
	}
	return root
}

// argumentNode is the value of an argument. One that stands elsewhere, behind a name, is seen through the argument.
func (v *View) argumentNode(scope *pyscan.Scope, m *pyscan.Module, e syntax.Expr) *configs.Node {
	n := v.node(v.Eval(scope, nil, e))
	if at := m.File.At(e.Span()); n.At != at {
		n.Via = at
		if n.At.IsZero() {
			n.At = at
		}
	}
	return n
}

// assignments are the names that a config file in Python sets (nanoGPT, XTuner): a file of assignments and imports only, which
// its program executes. What it takes over from another file (`with read_base(): from .base import *`) is open.
func (v *View) assignments(m *pyscan.Module) *Part {
	text := m.File.Text
	if !slices.ContainsFunc(assignmentNames, m.File.Has) {
		return nil
	}
	for _, stmt := range m.Tree.Body {
		switch stmt.(type) {
		case *syntax.Assign, *syntax.With, *syntax.Import, *syntax.ImportFrom, *syntax.ExprStmt, *syntax.AnnAssign, *syntax.Delete:
		default:
			return nil // a program, which has settings of its own
		}
	}
	root := &configs.Node{Kind: configs.Mapping, At: m.File.At(source.Span{End: uint32(len(text))})}
	for _, stmt := range m.Tree.Body {
		switch stmt := stmt.(type) {
		case *syntax.Assign:
			name, ok := stmt.Targets[0].(*syntax.Name)
			if len(stmt.Targets) != 1 || !ok {
				root.Open = true
				continue
			}
			root.Items = append(root.Items, configs.Item{Key: name.ID, KeyAt: m.File.At(name.Span()), Value: v.argumentNode(m.Root, m, stmt.Value)})
		case *syntax.With:
			root.Open = true
		case *syntax.ExprStmt:
			if _, isText := stmt.Value.(*syntax.Constant); !isText {
				root.Open = true
			}
		}
	}
	tree := &configs.Tree{Format: configs.Python, Root: root}
	if d := dialect.Of(tree); d == dialect.NanoGPT || d == dialect.XTuner {
		return newPart(m.File.Path, "", tree, d)
	}
	return nil
}
