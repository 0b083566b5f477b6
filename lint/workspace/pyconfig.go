package workspace

import (
	"slices"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Bounds of a tree that a Python dict becomes: the dicts inside dicts, and the values in all. A dict that stands in many others is
// repeated in each.
const (
	maxDictDepth = 16
	maxDictNodes = 1 << 14
)

// TreeOf is the settings tree of a Python dict; nil for a value that is no dict. What is not constant becomes an open
// scalar: it is set, to nobody knows what.
func (v *View) TreeOf(value pyscan.Value) *configs.Tree {
	m, ok := v.Expand(value).(*pyscan.Mapping)
	if !ok {
		return nil
	}
	return &configs.Tree{Format: configs.Python, Root: v.node(m)}
}

// node is the tree of a value; what is beyond the bounds is open.
func (v *View) node(value pyscan.Value) *configs.Node {
	left := maxDictNodes
	return v.nodes(value, 0, &left)
}

func (v *View) nodes(value pyscan.Value, depth int, left *int) *configs.Node {
	value = v.Expand(value)
	n := &configs.Node{Kind: configs.Scalar, Style: configs.Plain, At: value.Site().Place()}
	if *left--; depth > maxDictDepth {
		n.Open = true
		return n
	}
	switch value := value.(type) {
	case *pyscan.Const:
		n.Raw = value.V.String()
		if text, ok := value.V.Str(); ok {
			n.Raw, n.Style = text, configs.DoubleQuoted
		}
		return n
	case *pyscan.Mapping:
		n.Kind, n.Style, n.Open = configs.Mapping, configs.Flow, value.Open
		for i, key := range value.Keys {
			if *left <= 0 {
				n.Open = true
				break
			}
			c, ok := v.Constant(key)
			text, isText := c.Str()
			if !ok || !isText {
				n.Open = true
				continue
			}
			n.Items = append(n.Items, configs.Item{Key: text, KeyAt: key.Site().Place(), Value: v.nodes(value.Values[i], depth+1, left)})
		}
		return n
	case *pyscan.Sequence:
		n.Kind, n.Style, n.Open = configs.Sequence, configs.Flow, value.Open
		for _, element := range value.Elements {
			if *left <= 0 {
				n.Open = true
				break
			}
			n.Items = append(n.Items, configs.Item{Value: v.nodes(element, depth+1, left)})
		}
		return n
	}
	n.Open = true
	return n
}

// EngineConfig is what is known of the settings of a DeepSpeed engine.
type EngineConfig struct {
	Parts   []*Part // one for each config that it may run with; none where nothing is known
	Certain bool    // these are all, and not only the default of a flag that may be given otherwise
}

// Stage is the ZeRO stage where all configs agree on it, and the place of the key; ok is false when it is not known.
func (c EngineConfig) Stage() (stage int, part *Part, ok bool) {
	for i, one := range c.Parts {
		sharding, known := one.Plan.Sharding.Get()
		if !known {
			return 0, nil, false
		}
		this := stages[string(sharding)]
		if i > 0 && this != stage {
			return 0, nil, false
		}
		stage, part = this, one
	}
	return stage, part, part != nil
}

var stages = map[string]int{"ddp": 0, "none": 0, "zero1": 1, "zero2": 2, "zero3": 3}

// Accumulation is gradient_accumulation_steps where all configs agree on it.
func (c EngineConfig) Accumulation() (n int64, ok bool) {
	for i, one := range c.Parts {
		this, known := one.Plan.Batch.Accumulation.Get()
		if !known || i > 0 && this != n {
			return 0, false
		}
		n, ok = this, true
	}
	return n, ok
}

// On says whether a switch such as fp16.enabled is on.
func (c EngineConfig) On(path ...string) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	for _, one := range c.Parts {
		is := pyscan.No
		switch n, open := lookup(one.Tree.Root, path); {
		case open:
			is = pyscan.Maybe
		case n == nil:
		default:
			on, known := n.Bool(configs.LoaderYAML11)
			if one.Tree.Format == configs.Python {
				on, known = n.Bool(configs.LoaderPython)
			}
			is = pyscan.Maybe
			if known {
				is = pyscan.Truly(on)
			}
		}
		if first {
			answer, first = is, false
		} else if is != answer {
			return pyscan.Maybe
		}
	}
	return answer
}

// Has says whether a key is written.
func (c EngineConfig) Has(path ...string) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	for _, one := range c.Parts {
		n, open := lookup(one.Tree.Root, path)
		is := pyscan.Truly(n != nil)
		if n == nil && open {
			is = pyscan.Maybe
		}
		if first {
			answer, first = is, false
		} else if is != answer {
			return pyscan.Maybe
		}
	}
	return answer
}

// lookup finds a key; open when it is absent or unreadable where more may be set than is written.
func lookup(n *configs.Node, path []string) (found *configs.Node, open bool) {
	for _, key := range path {
		if n == nil || n.Kind != configs.Mapping {
			return nil, n != nil && n.Open
		}
		next := n.Get(key)
		if next == nil {
			return nil, n.Open
		}
		n = next
	}
	return n, n.Kind == configs.Scalar && n.Open
}

// Engine is the config of the engine that a wrapper is.
func (v *View) Engine(w Wrapper) EngineConfig {
	if w.Kind != DeepSpeedEngine || w.Call == nil || w.Scope == nil {
		return EngineConfig{}
	}
	for _, keyword := range []struct {
		name     string
		position int
	}{{"config", 10}, {"config_params", 12}} {
		if value := v.Arg(w.Scope, w.Frame, w.Call, keyword.name, keyword.position); value != nil {
			if c, ok := v.Constant(value); ok && c.Kind() == constant.None {
				continue
			}
			config := v.deepspeedConfig(value, v.starters(w.Scope.Module, w.Scope))
			if e := Argument(w.Call, keyword.name, keyword.position); e != nil && len(config.Parts) == 1 {
				config.Parts[0] = v.changed(config.Parts[0], w.Scope, e, w.Call)
			}
			return config
		}
	}
	if args := v.Arg(w.Scope, w.Frame, w.Call, "args", 0); args != nil { // the launch command says --deepspeed_config
		files := v.starters(w.Scope.Module, w.Scope)
		if parsed := v.Expand(args).Site().Module; parsed != nil && !slices.Contains(files, parsed.File.Path) {
			files = append(files, parsed.File.Path)
		}
		return v.deepspeedConfig(v.Attr(args, "deepspeed_config", pyscan.From(w.Scope.Module, w.Call)), files)
	}
	return EngineConfig{}
}

// maxChanges bounds the statements that set keys of a dict again: after more of them none of its keys is known.
const maxChanges = 256

// change sets a key of a dict, or any ("" and all).
type change struct {
	at  uint32 // byte of the file
	key string
	all bool
}

// changesIn are the changes of dicts in a function, by the name of the dict, in the order of the text.
func changesIn(scope *pyscan.Scope) map[string][]change {
	by := map[string][]change{}
	add := func(base syntax.Expr, n syntax.Node, key string, all bool) {
		if name := pyscan.Path(base); name != "" {
			by[name] = append(by[name], change{n.Span().Start, key, all})
		}
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				for _, target := range n.Targets {
					if sub, ok := target.(*syntax.Subscript); ok {
						key, base := outermostKey(sub)
						add(base, n, key, key == "")
					}
				}
			case *syntax.Call:
				if attr, ok := n.Func.(*syntax.Attribute); ok && (attr.Attr == "update" || attr.Attr == "pop") {
					if sub, ok := attr.Value.(*syntax.Subscript); ok {
						key, base := outermostKey(sub)
						add(base, n, key, false)
					} else {
						add(attr.Value, n, "", true)
					}
				}
			}
			return true
		})
	}
	return by
}

// changed is a part of which keys are set again between where its dict is written and where it is used: these are open.
func (v *View) changed(part *Part, scope *pyscan.Scope, e syntax.Expr, use *syntax.Call) *Part {
	name, ok := e.(*syntax.Name)
	if !ok {
		return part
	}
	var keys []string
	all := false
	for _, one := range answered(&v.eval.changes, scope, func() map[string][]change { return changesIn(scope) })[name.ID] {
		if one.at > use.Span().Start {
			continue
		}
		all = all || one.all || len(keys) == maxChanges
		if all {
			break // whatever keys there are, none is known
		}
		keys = append(keys, one.key)
	}
	if len(keys) == 0 && !all {
		return part
	}
	root := *part.Tree.Root
	root.Items = append([]configs.Item(nil), root.Items...)
	root.Open = root.Open || all
	for _, key := range keys {
		open := &configs.Node{Kind: configs.Scalar, Open: true, At: root.At}
		found := false
		for i := range root.Items {
			if root.Items[i].Key == key {
				root.Items[i].Value, found = open, true
			}
		}
		if !found {
			root.Items = append(root.Items, configs.Item{Key: key, KeyAt: root.At, Value: open})
		}
	}
	if all {
		for i := range root.Items {
			root.Items[i].Value = &configs.Node{Kind: configs.Scalar, Open: true, At: root.At}
		}
	}
	tree := *part.Tree
	tree.Root = &root
	return newPart(part.Path, part.Section, &tree, part.Dialect)
}

// outermostKey takes a[k1][k2] apart: the constant text k1 ("" where it is none) and a.
func outermostKey(sub *syntax.Subscript) (string, syntax.Expr) {
	for {
		inner, ok := sub.Value.(*syntax.Subscript)
		if !ok {
			break
		}
		sub = inner
	}
	if c, ok := sub.Slice.(*syntax.Constant); ok && c.Kind == syntax.StrConstant {
		return c.Text, sub.Value
	}
	return "", sub.Value
}

// DeepSpeedConfig reads what is handed to DeepSpeed as its config: a dict, the path of a file, or the loaded content of one.
// from is the file that names it.
func (v *View) DeepSpeedConfig(value pyscan.Value, from string) EngineConfig {
	return v.deepspeedConfig(value, []string{from})
}

// deepspeedConfig reads a config of which several files of the program may name the file, the first of them first.
func (v *View) deepspeedConfig(value pyscan.Value, from []string) EngineConfig {
	config := EngineConfig{Certain: true}
	alternatives := Alternatives(v.Expand(value))
	for _, one := range alternatives {
		parts, certain := v.deepspeedParts(one, from, 4)
		config.Certain = config.Certain && certain && len(parts) > 0
		config.Parts = append(config.Parts, parts...)
	}
	if len(config.Parts) == 0 {
		config.Certain = false
	}
	return config
}

func (v *View) deepspeedParts(value pyscan.Value, from []string, depth int) (parts []*Part, certain bool) {
	if depth <= 0 {
		return nil, false
	}
	switch value := v.Expand(value).(type) {
	case *pyscan.Mapping:
		return []*Part{newPart(from[0], "", v.TreeOf(value), dialect.DeepSpeed)}, !value.Open
	case *pyscan.Const:
		if text, ok := value.V.Str(); ok {
			return v.deepspeedFile(from, text), true
		}
	case *pyscan.Result:
		if path := v.loaded(value, 3); path != nil {
			return v.deepspeedParts(path, from, depth-1)
		}
	case *pyscan.Setting:
		if text, given := v.flag(from, value.Name); given {
			for _, one := range text {
				parts = append(parts, v.deepspeedFile(from, one)...)
			}
			return parts, len(parts) == len(text)
		}
		if value.Default != nil {
			parts, _ = v.deepspeedParts(value.Default, from, depth-1)
		}
	case *pyscan.Member: // args.deepspeed_config of a namespace of unknown making
		if value.Name == "deepspeed_config" {
			text, _ := v.flag(from, value.Name)
			for _, one := range text {
				parts = append(parts, v.deepspeedFile(from, one)...)
			}
			return parts, len(parts) > 0 && len(parts) == len(text)
		}
	case *pyscan.ParamValue:
		if settled := v.Settled(value); settled != pyscan.Value(value) {
			parts, _ = v.deepspeedParts(settled, from, depth-1)
		}
	}
	return parts, false
}

// loaded is the path whose content a call loads: json.load(open(path)), json.load(f) under `with open(path) as f`,
// yaml.safe_load of either. Nil when it is no such call.
func (v *View) loaded(result *pyscan.Result, depth int) pyscan.Value {
	if result.Call == nil || len(result.Call.Args) == 0 || depth <= 0 {
		return nil
	}
	first := v.Settled(v.Eval(v.scopeOfCall(result), result.Frame, result.Call.Args[0]))
	switch v.ExternalName(result.Of) {
	case "builtins.open", "io.open", "codecs.open":
		return first
	case "json.load", "json.loads", "yaml.safe_load", "yaml.load", "yaml.full_load", "hjson.load", "hjson.loads", "commentjson.load", "json5.load":
		if inner, ok := first.(*pyscan.Result); ok {
			if member, ok := inner.Of.(*pyscan.Member); ok && member.Name == "read" { // json.loads(open(path).read())
				if inner, ok = v.Expand(member.Base).(*pyscan.Result); !ok {
					return nil
				}
			}
			return v.loaded(inner, depth-1)
		}
	}
	return nil
}

// deepspeedFile is the DeepSpeed part of a file of the project, by the way another file names it.
func (v *View) deepspeedFile(from []string, name string) []*Part {
	for _, one := range from {
		file := v.resolve(one, name)
		if file == "" {
			continue
		}
		for _, part := range v.Parts(file) {
			if part.Dialect == dialect.DeepSpeed {
				return []*Part{part}
			}
		}
	}
	return nil
}
