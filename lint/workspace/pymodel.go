package workspace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// trainedModel are the settings that a script writes outside of its TrainingArguments: of the model that the
// Trainer with these arguments is handed (its type, quantization, kind), and of the adapter around it. They are
// keys as the Trainer's front ends have them, and below trained_model what those have no key for.
type trainedModel struct {
	v     *View
	m     *pyscan.Module
	items []configs.Item
	more  []configs.Item  // of trained_model
	flags *configs.Node   // of the command that starts the script; nil where it is not known
	open  []*pyscan.Union // the alternatives that are being read, outermost first: `model = model.to(device)` leads back to them
	back  bool            // this alternative is what open ones are
}

// modelSection is the key of what front ends have no key for.
const modelSection = "trained_model"

// maxAround bounds what stands around a model: adapters, casts, moves.
const maxAround = 8

// modelOf reads what the Trainer that is handed the arguments of a call trains; arguments is nil for whatever
// Trainer there is, where the arguments come from the command line, whose flags are given then. Nothing where
// several are, or none.
func (v *View) modelOf(m *pyscan.Module, arguments *syntax.Call, flags *configs.Node) []configs.Item {
	t := &trainedModel{v: v, m: m, flags: flags}
	trainer, ok, others := v.trainerOf(m, arguments)
	switch {
	case !ok && others:
		return nil
	case !ok:
		t.unconnected()
		return t.section()
	}
	scope, call := trainer.Scope, trainer.Call
	if config := v.Arg(scope, nil, call, "peft_config", -1); config != nil {
		t.adapter(config, scope, nil, Argument(call, "peft_config", -1))
	}
	if e := Argument(call, "model", 0); e != nil {
		if dtype, _ := v.ParameterType(scope, nil, e); dtype != "" {
			t.add("torch_dtype", strings.TrimPrefix(dtype, "torch."), pyscan.From(m, e))
		}
		t.model(v.Eval(scope, nil, e), pyscan.From(m, e))
	} else if e := Argument(call, "model_init", -1); e != nil {
		if f, ok := v.Expand(v.Eval(scope, nil, e)).(*pyscan.Func); ok {
			if returns := f.Scope.Returns(); len(returns) == 1 {
				t.model(v.Eval(f.Scope, nil, returns[0].Value), pyscan.From(f.Scope.Module, returns[0]))
			}
		}
	}
	if e, ok := Argument(call, "optimizers", 5).(*syntax.Tuple); ok && len(e.Elts) > 0 {
		if c, isNone := e.Elts[0].(*syntax.Constant); !isNone || c.Kind != syntax.NoneConstant {
			t.note("optimizer", true, pyscan.From(m, e))
		}
	}
	t.unconnected()
	adapted := t.has(modelSection, "adapted")
	switch at := gradSwitch(m, adapted); {
	case at != nil && adapted:
		t.note("peft", "training of more weights beside an adapter", pyscan.From(m, at))
	case at != nil:
		t.note("frozen", true, pyscan.From(m, at))
	}
	return t.section()
}

// section are the settings, with those of trained_model as a mapping.
func (t *trainedModel) section() []configs.Item {
	if len(t.more) == 0 {
		return t.items
	}
	at := t.more[0].KeyAt
	section := &configs.Node{Kind: configs.Mapping, At: at, Items: t.more}
	return append(t.items, configs.Item{Key: modelSection, KeyAt: at, Value: section})
}

// unconnected notes adapters and quantization in a script of which it is not known what model they are put on.
func (t *trainedModel) unconnected() {
	adapted := t.has(modelSection, "adapted")
	quantized := t.has("load_in_4bit") || t.has("load_in_8bit") || t.has(modelSection, "quantization")
	for _, site := range t.m.Calls {
		if last := pyscan.PathEnd(site.Call.Func); last != "get_peft_model" && !strings.HasSuffix(last, "Config") {
			continue
		}
		name := t.v.Library(site.Scope, nil, site.Call.Func)
		at := pyscan.From(t.m, site.Call)
		switch library, last := cutLast(name); {
		case !adapted && (library == "peft" || strings.HasPrefix(library, "peft.")):
			t.note("adapted", true, at)
			t.note("peft", "an adapter on a model that is not known", at)
		case !quantized && strings.HasPrefix(library, "transformers") && last == "BitsAndBytesConfig":
			t.note("quantization", "quantization of a model that is not known", at)
		}
	}
}

// gradSwitch is the first place where a script switches gradients of weights, nil where it does not. beside says
// that an adapter is trained: then what is switched off was off before, and the inputs that a hook switches on
// with requires_grad_ are not weights, so that only an assignment of another value than False counts.
func gradSwitch(m *pyscan.Module, beside bool) (at syntax.Node) {
	if !m.File.Has("requires_grad") {
		return nil
	}
	counts := func(e syntax.Expr) bool {
		c, ok := e.(*syntax.Constant)
		if beside {
			return !ok || c.Kind != syntax.FalseConstant
		}
		return !ok || c.Kind != syntax.TrueConstant
	}
	for _, stmt := range m.Tree.Body {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				if attr, ok := n.Targets[0].(*syntax.Attribute); ok && attr.Attr == "requires_grad" && counts(n.Value) {
					at = n
				}
			case *syntax.Call:
				value := Argument(n, "requires_grad", 0)
				switch name := pyscan.PathEnd(n.Func); {
				case name == "setattr" && len(n.Args) == 3:
					key, ok := n.Args[1].(*syntax.Constant)
					value = n.Args[2]
					if !ok || key.Text != "requires_grad" {
						return at == nil
					}
				case name != "requires_grad_" || beside:
					return at == nil
				}
				if value != nil && counts(value) {
					at = n
				}
			}
			return at == nil
		})
	}
	return at
}

// cutLast takes the last part off a dotted name.
func cutLast(name string) (rest, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// orNone is a value, or one of which nothing is known.
func orNone(value pyscan.Value) pyscan.Value {
	if value == nil {
		return &pyscan.Unknown{}
	}
	return value
}

func plainNode(value any) *configs.Node {
	n := &configs.Node{Kind: configs.Scalar, Raw: fmt.Sprint(value)}
	switch value := value.(type) {
	case bool:
		if n.Raw = "False"; value {
			n.Raw = "True"
		}
	case string:
		n.Style = configs.DoubleQuoted
	}
	return n
}

// trainerOf is the one call that makes a Trainer of these arguments; others says that there are some of other
// arguments.
func (v *View) trainerOf(m *pyscan.Module, arguments *syntax.Call) (found pyscan.Call, ok, others bool) {
	for _, site := range m.Calls {
		if !isClassName(pyscan.PathEnd(site.Call.Func)) {
			continue
		}
		name := v.ExternalBase(v.Eval(site.Scope, nil, site.Call.Func))
		library, _, _ := strings.Cut(name, ".")
		if library != "transformers" && library != "trl" || !strings.HasSuffix(name, "Trainer") {
			continue
		}
		if arguments != nil {
			made, is := v.Expand(v.Arg(site.Scope, nil, site.Call, "args", 1)).(*pyscan.Instance)
			if !is || made.Call != arguments {
				others = others || is
				continue
			}
		}
		if ok {
			return found, false, false
		}
		found, ok = site, true
	}
	return found, ok, others
}

// model takes off what stands around a model, outermost first.
func (t *trainedModel) model(value pyscan.Value, at pyscan.Origin) {
	for range maxAround {
		value = t.v.Expand(value)
		switch one := value.(type) {
		case *pyscan.Union:
			if slices.Contains(t.open, one) {
				t.back = true
			} else {
				t.oneOf(one, at)
			}
			return
		case *pyscan.Wrapped:
			if one.By == "peft.get_peft_model" {
				scope := t.v.scopeOfCall(one)
				e := Argument(one.Call, "peft_config", 1)
				if e == nil {
					t.note("peft", "an adapter", one.Origin)
				} else {
					t.adapter(t.v.Eval(scope, one.Frame, e), scope, one.Frame, e)
				}
			}
			value = one.Inner
		case *pyscan.Const:
			if name, ok := one.V.Str(); ok {
				t.add("model_name_or_path", name, one.Origin)
			}
			return
		case *pyscan.Element: // model, tokenizer = FastLanguageModel.from_pretrained(...)
			value = one.Base
		case *pyscan.Result:
			next := t.made(one)
			if next == nil {
				return
			}
			value = next
		default:
			return
		}
	}
}

// oneOf is a model that is one of several. Where they differ in what is around them nothing is known of that.
func (t *trainedModel) oneOf(union *pyscan.Union, at pyscan.Origin) {
	var first *trainedModel
	same := len(t.open) < maxAround // unions in unions
	for _, one := range union.Alternatives {
		if !same {
			break
		}
		other := &trainedModel{v: t.v, m: t.m, flags: t.flags, open: append(slices.Clip(t.open), union)}
		other.model(one, at)
		switch {
		case other.back && len(other.items)+len(other.more) == 0:
			continue // the model itself, moved
		case first == nil:
			first = other
		}
		same = slices.EqualFunc(first.items, other.items, sameItem) && slices.EqualFunc(first.more, other.more, sameItem)
	}
	switch {
	case !same:
		t.items, t.more = nil, nil
		t.note("made", "a model that is one of several", union.Origin)
		t.note("adapted", true, union.Origin) // or not: what is frozen is no question then
	case first != nil:
		t.items, t.more = append(t.items, first.items...), append(t.more, first.more...)
	default:
		t.back = true
	}
}

func sameItem(a, b configs.Item) bool {
	x, y := a.Value, b.Value
	return a.Key == b.Key && x.Kind == y.Kind && x.Raw == y.Raw && x.Open == y.Open && len(x.Items) == len(y.Items)
}

// made reads the call that made a model, or changed one; the model that it changed, or nil.
func (t *trainedModel) made(result *pyscan.Result) pyscan.Value {
	scope := t.v.scopeOfCall(result)
	if scope == nil || result.Call == nil {
		return nil
	}
	argument := func(name string, position int) pyscan.Value {
		return t.v.Arg(scope, result.Frame, result.Call, name, position)
	}
	if method, ok := result.Of.(*pyscan.Member); ok {
		switch method.Name {
		case "to", "cuda", "train", "npu", "eval", "requires_grad_":
			return method.Base
		}
	}
	name := t.v.ExternalName(result.Of)
	class, loader := cutLast(name)
	switch {
	case name == "peft.prepare_model_for_kbit_training", name == "peft.prepare_model_for_int8_training":
		t.note("kbit", true, result.Origin)
		on := argument("use_gradient_checkpointing", 1)
		if off, known := t.v.Constant(orNone(on)); !known || off.Kind() != constant.Bool || off.String() == "True" {
			t.add("gradient_checkpointing", true, result.Origin)
		}
		return argument("model", 0)
	case strings.HasPrefix(name, "peft.") && loader == "from_pretrained":
		t.note("adapted", true, result.Origin)
		t.note("peft", "an adapter that is loaded", result.Origin)
		return argument("model", 0)
	case strings.HasPrefix(name, "unsloth."):
		t.note("made", "Unsloth", result.Origin)
		t.note("adapted", true, result.Origin)
		return nil
	case strings.HasPrefix(name, "transformers.") && (loader == "from_pretrained" || loader == "from_config"),
		strings.HasPrefix(name, "trl.") && loader == "from_pretrained":
		t.loaded(result, scope, pyscan.LastPart(class))
	}
	return nil
}

// loaded reads the arguments of from_pretrained.
func (t *trainedModel) loaded(result *pyscan.Result, scope *pyscan.Scope, class string) {
	t.note("class", class, result.Origin)
	if value := t.v.Arg(scope, result.Frame, result.Call, "pretrained_model_name_or_path", 0); value != nil {
		if c, ok := t.v.Constant(t.v.Settled(value)); ok {
			if name, isText := c.Str(); isText {
				t.add("model_name_or_path", name, value.Site().Origin())
			}
		}
	}
	for _, key := range []string{"torch_dtype", "dtype", "attn_implementation", "load_in_4bit", "load_in_8bit"} {
		if value := t.v.Arg(scope, result.Frame, result.Call, key, -1); value != nil {
			t.addValue(key, value)
		}
	}
	if !t.has("torch_dtype") && !t.has("dtype") && t.v.Pin(t.m.File.Path, "transformers").Since("5.0.0") == pyscan.Yes {
		t.add("torch_dtype", "auto", result.Origin) // the default from then on
	}
	config := t.v.Arg(scope, result.Frame, result.Call, "quantization_config", -1)
	if config == nil {
		return
	}
	for _, one := range Alternatives(t.v.Expand(config)) {
		made, ok := one.(*pyscan.Instance)
		if !ok {
			if c, isConstant := t.v.Constant(one); isConstant && c.Kind() == constant.None {
				continue
			}
			t.note("quantization", "a quantization of its own", config.Site().Origin())
			return
		}
		name := pyscan.LastPart(t.v.ExternalBase(pyscan.Made(made)))
		if name != "BitsAndBytesConfig" || made.Call == nil {
			t.note("quantization", "quantization by "+name, config.Site().Origin())
			return
		}
		t.keywords(made, map[string]string{"load_in_4bit": "load_in_4bit", "load_in_8bit": "load_in_8bit",
			"bnb_4bit_use_double_quant": "bnb_4bit_use_double_quant"})
	}
}

// loraKeys are the arguments of LoraConfig by the keys of front ends.
var loraKeys = map[string]string{
	"lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout", "target_modules": "target_modules",
	"use_dora": "use_dora", "modules_to_save": "modules_to_save", "target_parameters": "target_parameters", "r": "lora_r",
}

// unevenLora are the arguments of LoraConfig that give layers different adapters, or train more than adapters.
var unevenLora = []string{
	"rank_pattern", "layers_to_transform", "layers_pattern", "layer_replication", "trainable_token_indices",
}

// adapter reads the config of an adapter, which stands at e.
func (t *trainedModel) adapter(config pyscan.Value, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) {
	at := config.Site().Origin()
	if e != nil && scope != nil {
		at = pyscan.From(scope.Module, e)
	}
	value := t.v.Expand(config)
	if c, ok := t.v.Constant(value); ok && c.Kind() == constant.None {
		return
	}
	t.note("adapted", true, at)
	made, ok := value.(*pyscan.Instance)
	if !ok || made.Call == nil {
		name := "an adapter"
		if call, isCall := e.(*syntax.Call); isCall {
			name = strings.TrimSuffix(pyscan.PathEnd(call.Func), "Config")
		}
		t.note("peft", name, at)
		return
	}
	name := t.v.ExternalBase(pyscan.Made(made))
	if library, class := cutLast(name); !strings.HasPrefix(library, "peft") || class != "LoraConfig" {
		t.note("peft", strings.TrimSuffix(pyscan.LastPart(name), "Config"), at)
		return
	}
	for _, key := range unevenLora {
		value := t.v.Arg(t.v.scopeOfCall(made), made.Frame, made.Call, key, -1)
		if value == nil {
			continue
		}
		if c, known := t.v.Constant(t.v.Settled(value)); !known || c.Kind() != constant.None {
			t.note("peft", "LoRA with "+key, at)
		}
	}
	t.keywords(made, loraKeys)
	if !t.has("lora_r") {
		if t.v.OpenKeywords(t.v.scopeOfCall(made), made.Frame, made.Call) {
			t.note("peft", "LoRA of a rank that is not known", at)
		} else {
			t.add("lora_r", 8, at)
		}
	}
}

// keywords adds the arguments of a call that makes an object, by the names of the keys.
func (t *trainedModel) keywords(made *pyscan.Instance, names map[string]string) {
	scope := t.v.scopeOfCall(made)
	if scope == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if value := t.v.Arg(scope, made.Frame, made.Call, name, -1); value != nil {
			t.addValue(names[name], value)
		}
	}
}

// addValue adds a key with a value of the script; that of a flag is what the command gives, or its default.
func (t *trainedModel) addValue(key string, value pyscan.Value) {
	if setting, ok := t.v.Expand(value).(*pyscan.Setting); ok && t.flags != nil {
		for _, item := range t.flags.Items {
			if strings.ReplaceAll(strings.TrimLeft(item.Key, "-"), "-", "_") == setting.Name && item.Value != nil {
				t.put(key, item.Value, value.Site().Origin())
				return
			}
		}
	}
	settled := t.v.Settled(value)
	if ext, ok := settled.(*pyscan.External); ok && strings.HasPrefix(ext.Name, "torch.") { // torch.bfloat16
		t.add(key, strings.TrimPrefix(ext.Name, "torch."), value.Site().Origin())
		return
	}
	t.put(key, t.v.node(settled), value.Site().Origin())
}

func (t *trainedModel) add(key string, value any, at pyscan.Origin) {
	t.put(key, plainNode(value), at)
}

// put adds a key, unless it is there: what stands outermost was done last.
func (t *trainedModel) put(key string, n *configs.Node, at pyscan.Origin) {
	if t.has(key) {
		return
	}
	place := at.Site().Place()
	if n.At.IsZero() {
		n.At = place
	}
	t.items = append(t.items, configs.Item{Key: key, KeyAt: place, Value: n})
}

func (t *trainedModel) note(key string, value any, at pyscan.Origin) {
	if t.has(modelSection, key) {
		return
	}
	n := plainNode(value)
	n.At = at.Site().Place()
	t.more = append(t.more, configs.Item{Key: key, KeyAt: n.At, Value: n})
}

func (t *trainedModel) has(path ...string) bool {
	list := t.items
	if len(path) > 1 {
		list = t.more
	}
	return slices.ContainsFunc(list, func(item configs.Item) bool { return item.Key == path[len(path)-1] })
}

// readWith is the part as it is read with settings that stand elsewhere in the script, of which its own keys win.
func (v *View) readWith(part *Part, items []configs.Item) *Part {
	root := *part.Tree.Root
	for _, item := range items {
		if !slices.ContainsFunc(part.Tree.Root.Items, func(own configs.Item) bool {
			return dialect.HFTrainingArguments.Spelled(part.Tree, own.Key) == item.Key
		}) {
			root.Items = append(slices.Clip(root.Items), item)
		}
	}
	if len(root.Items) > len(part.Tree.Root.Items) {
		whole := *part.Tree
		whole.Root = &root
		part.Plan = part.Dialect.Plan(&whole)
	}
	return part
}
