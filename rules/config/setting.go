package config

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// setting is one written entry of a part, with what its dialect knows of the key.
type setting struct {
	part    *workspace.Part
	table   *dialect.KeyTable
	within  *configs.Node // the mapping that it stands in
	index   int           // there
	section string        // dotted path of that mapping in the part
	dotted  string        // path of the setting itself there
	policy  dialect.KeySection
	name    string       // as the dialect spells it
	key     *dialect.Key // nil: not known
}

func (s *setting) item() *configs.Item { return &s.within.Items[s.index] }

func (s *setting) path() string { return s.dotted }

func under(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// framework is who reads the part.
func framework(d *dialect.Dialect) string {
	name := d.Title
	for _, ending := range []string{" config", " arguments", " YAML", " TOML", " JSON"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// settings are the entries of a part in all sections that its dialect knows; none where it knows no keys. Templates are left
// out: what fills them in may change keys too. A dozen rules go through them.
func settings(part *workspace.Part) []*setting {
	return workspace.Shared(part, func() []*setting { return slices.Collect(entries(part)) })
}

func entries(part *workspace.Part) iter.Seq[*setting] {
	return func(yield func(*setting) bool) {
		table := dialect.Keys(part.Dialect)
		if table == nil || part.Tree.Template || part.Tree.Root == nil || part.Tree.Root.Kind != configs.Mapping {
			return
		}
		root := part.Tree.Root
		if inner := root.Get(settingsUnder[part.Dialect.Name]); inner != nil && inner.Kind == configs.Mapping {
			root = inner
		}
		switch {
		case part.Dialect == dialect.Kohya && part.Tree.Format != configs.TOML:
			return // of the graphical front end, which has names of its own
		case !walk(part, table, root, "", 0, yield):
			return
		}
		switch part.Dialect {
		case dialect.GPTNeoX:
			for _, section := range handedOn {
				if item := entry(part, section); item != nil && item.Value != nil && item.Value.Kind == configs.Mapping && !walk(part, dialect.Keys(dialect.DeepSpeed), item.Value, section, 1, yield) {
					return
				}
			}
		case dialect.Kohya:
			for i := range root.Items {
				group := &root.Items[i]
				if _, known := table.Section(group.Key); !known && group.Value != nil && group.Value.Kind == configs.Mapping && !walk(part, table, group.Value, "", 1, yield) {
					return // headings mean nothing
				}
			}
		case dialect.Torchtune:
			walkComponents(part, table, root, "", 0, yield)
		}
	}
}

// minOwn is how many keys that DeepSpeed does not know make a file the program's own.
const minOwn = 5

// ownSettings reports whether a file that reads as DeepSpeed's is the settings of a program, which makes DeepSpeed's dict of some of them:
// most keys of its top level are no key of DeepSpeed, nor all but one.
func ownSettings(part *workspace.Part) bool {
	if part.Dialect != dialect.DeepSpeed || part.Tree.Format == configs.Python || part.Tree.Root == nil {
		return false
	}
	table, own := dialect.Keys(part.Dialect), 0
	for i := range part.Tree.Root.Items {
		name := part.Tree.Root.Items[i].Key
		if table.Lookup(name) == nil && !remark(name) && table.Slip("", name) == "" && elsewhere[name] == "" {
			own++
		}
	}
	return own >= minOwn && 2*own > len(part.Tree.Root.Items)
}

// settingsUnder are the keys below which a dialect's own keys stand in some of its files: jobs, and test cases.
var settingsUnder = map[string]string{"llm-foundry": "parameters", "megatron": "MODEL_ARGS"}

// walkComponents visits the arguments of the functions and classes that a torchtune config names under _component_.
func walkComponents(part *workspace.Part, table *dialect.KeyTable, node *configs.Node, section string, depth int, yield func(*setting) bool) bool {
	if node == nil || depth > maxSections {
		return true
	}
	params := componentParams(part, table, node)
	for i := range node.Items {
		item := &node.Items[i]
		s := &setting{part: part, table: table, within: node, index: i, section: section, dotted: under(section, item.Key), policy: dialect.KeySection{Unknown: dialect.Rejected}, name: item.Key}
		if params != nil && !item.Merge && item.Value != nil && !meta(item.Key) {
			if s.key = params[item.Key]; !yield(s) {
				return false
			}
		}
		if !walkComponents(part, table, item.Value, s.dotted, depth+1, yield) {
			return false
		}
	}
	return true
}

// componentParams are the parameters of what a mapping of torchtune builds; nil where that is not known.
func componentParams(part *workspace.Part, table *dialect.KeyTable, node *configs.Node) map[string]*dialect.Key {
	if part.Dialect != dialect.Torchtune {
		return nil
	}
	name, _ := node.Get("_component_").Str(part.Dialect.LoaderOf(part.Tree))
	return table.Params("_component_", name)
}

// meta reports whether a key speaks to Hydra and its like and not to the framework: _target_, _component_.
func meta(name string) bool { return strings.HasPrefix(name, "_") && strings.HasSuffix(name, "_") }

// handedOn are sections that GPT-NeoX gives to DeepSpeed as they are.
var handedOn = []string{"zero_optimization", "fp16", "bf16", "optimizer", "activation_checkpointing", "comms_logger", "flops_profiler", "data_types", "tensorboard", "wandb", "csv_monitor", "checkpoint"}

// maxSections bounds how deep sections stand in each other.
const maxSections = 12

func walk(part *workspace.Part, table *dialect.KeyTable, node *configs.Node, section string, depth int, yield func(*setting) bool) bool {
	policy, known := table.Section(section)
	if !known || depth > maxSections {
		return true
	}
	if part.Dialect == dialect.GPTNeoX && section != "" {
		policy.Unknown = dialect.Accepted // its own release of DeepSpeed takes more
	}
	for i := range node.Items {
		item := &node.Items[i]
		if item.Merge || item.Value == nil || item.Key == "<<" || meta(item.Key) || section == "" && part.Dialect.Loader == configs.LoaderOmegaConf && (item.Key == "defaults" || item.Key == "hydra") {
			continue
		}
		s := &setting{part: part, table: table, within: node, index: i, section: section, policy: policy, name: part.Dialect.Spelled(part.Tree, item.Key)}
		s.dotted = under(section, s.name)
		if s.key = table.Lookup(s.dotted); s.key == nil {
			if _, isSection := table.Section(s.dotted); isSection {
				s.key = &dialect.Key{Path: s.dotted} // under a name of the user's own
			}
		}
		if s.key == nil && section != "" && strings.HasSuffix(section, ".params") {
			if s.key = constructorKey(part, table, section, s.name); s.key == nil {
				s.key = constructorParams(s)[s.name]
			}
		}
		if !yield(s) {
			return false
		}
		if item.Value.Kind == configs.Mapping && !walk(part, table, item.Value, s.dotted, depth+1, yield) {
			return false
		}
		if item.Value.Kind == configs.Sequence && depth < maxSections {
			for j := range item.Value.Items { // a list of sections
				if element := item.Value.Items[j].Value; element != nil && element.Kind == configs.Mapping && !walk(part, table, element, s.dotted, depth+1, yield) {
					return false
				}
			}
		}
	}
	return true
}

// constructorKey is a key of `optimizer.params` or `scheduler.params`, which the written type decides.
func constructorKey(part *workspace.Part, table *dialect.KeyTable, section, name string) *dialect.Key {
	owner := strings.TrimSuffix(section, ".params")
	kind, _ := part.Tree.Root.Get(owner, "type").Str(part.Dialect.LoaderOf(part.Tree))
	return table.Params(owner, kind)[name]
}

// fromFlags reports whether the part stands on a command line or in an environment, where other programs have keys too.
func fromFlags(part *workspace.Part) bool {
	return part.Tree.Format == configs.Flags || part.Tree.Format == configs.Env || part.Tree.Format == configs.Python
}

// remark reports whether an entry is a comment in the way of JSON files: "_comment", "//".
func remark(name string) bool {
	lower := strings.ToLower(name)
	return lower == "" || lower[0] == '_' || lower[0] == '#' || strings.HasPrefix(lower, "//") || strings.Contains(lower, "comment")
}

// value is the scalar of a node as the part's loader reads it. False: a collection, text that is filled in later, or damage.
func value(part *workspace.Part, node *configs.Node) (constant.Value, bool) {
	if node == nil || node.Kind != configs.Scalar || node.Open {
		return constant.Value{}, false
	}
	return part.Dialect.LoaderOf(part.Tree).Resolve(node), true
}

// textAt is the value at a path of the part, in lower case; "" where there is none.
func textAt(part *workspace.Part, path ...string) string {
	v, _ := value(part, part.Tree.Root.Get(path...))
	s, _ := v.Str()
	return strings.ToLower(s)
}

// numberAt is the number at a path of the part; text that spells one counts, for pydantic takes it.
func numberAt(part *workspace.Part, path ...string) (float64, bool) {
	v, ok := value(part, part.Tree.Root.Get(path...))
	if !ok || v.Kind() == constant.Bool {
		return 0, false
	}
	if v.Kind() == constant.String {
		v, _ = constant.Convert("float", v)
	}
	return v.Number()
}

// switchAt is a truth value at a path: on, and whether it is known to be one. Nothing written is off.
func switchAt(part *workspace.Part, path ...string) (on, known bool) {
	node := part.Tree.Root.Get(path...)
	if node == nil {
		return false, !part.Tree.Root.Open
	}
	v, ok := value(part, node)
	if !ok {
		return false, false
	}
	if b, ok := v.Bool(); ok {
		return b, true
	}
	if n, ok := v.Number(); ok {
		return n != 0, true
	}
	if s, ok := v.Str(); ok {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return true, true
		case "false", "no", "off", "0":
			return false, true
		}
		return false, false
	}
	return false, true
}

func isAuto(v constant.Value) bool {
	s, ok := v.Str()
	return ok && strings.EqualFold(s, "auto")
}

// isNull reports whether nothing is written for a key: null, None, ~ or an empty value of YAML.
func isNull(part *workspace.Part, node *configs.Node) bool {
	v, ok := value(part, node)
	return ok && v.Kind() == constant.None && !node.Bare
}

// rename is a fix that writes another key.
func rename(pass *lint.Pass, d *lint.Diagnostic, item *configs.Item, from, to string, safety lint.Safety) {
	file := pass.Text(item.KeyAt.Path)
	if file == nil || int(item.KeyAt.Span.End) > len(file.Text) {
		return
	}
	text := string(file.Text[item.KeyAt.Span.Start:item.KeyAt.Span.End])
	if dashed := strings.ReplaceAll(from, "_", "-"); strings.Count(text, from) == 0 && strings.Count(text, dashed) == 1 {
		from, to = dashed, strings.ReplaceAll(to, "_", "-")
	}
	if strings.Count(text, from) != 1 {
		return
	}
	d.Suggest(fmt.Sprintf("rename it to %s", to), safety, lint.Edit{At: item.KeyAt, Text: strings.Replace(text, from, to, 1)})
}

// without is the edit that takes an entry out of its mapping: the whole line where it stands alone on lines of its own, with the
// comma that separated it. False where the text around it is not that plain.
func without(pass *lint.Pass, node *configs.Node, index int) (lint.Edit, bool) {
	item := &node.Items[index]
	file := pass.Text(item.KeyAt.Path)
	if file == nil || item.Value == nil || item.Value.At.Path != item.KeyAt.Path || !item.Value.Via.IsZero() || item.Value.At.Span.End <= item.KeyAt.Span.Start {
		return lint.Edit{}, false
	}
	text := file.Text
	start, end := item.KeyAt.Span.Start, item.Value.At.Span.End
	if int(end) > len(text) {
		return lint.Edit{}, false
	}
	after := end
	for int(after) < len(text) && (text[after] == ' ' || text[after] == '\t') {
		after++
	}
	comma := int(after) < len(text) && text[after] == ','
	if comma {
		end = after + 1
	} else if before := bytes.TrimRight(text[:start], " \t\r\n"); len(before) > 0 && before[len(before)-1] == ',' {
		// The last of its mapping takes the comma before it along, and what lies between.
		return lint.Edit{At: source.Place{Path: item.KeyAt.Path, Span: source.Span{Start: uint32(len(before) - 1), End: end}}}, true
	}
	from := start
	for from > 0 && (text[from-1] == ' ' || text[from-1] == '\t') {
		from--
	}
	to := end
	for int(to) < len(text) && (text[to] == ' ' || text[to] == '\t' || text[to] == '\r') {
		to++
	}
	switch {
	case (from == 0 || text[from-1] == '\n') && int(to) < len(text) && text[to] == '\n':
		start, end = from, to+1 // lines of its own
	case comma:
		end = to
	case from > 0 && text[from-1] == '\n' && int(to) == len(text):
		start, end = from, to
	default:
		return lint.Edit{}, false
	}
	return lint.Edit{At: source.Place{Path: item.KeyAt.Path, Span: source.Span{Start: start, End: end}}}, true
}

// named are words of which a file holds one that is of a dialect, as the dialects recognise theirs; a rule about keys
// can find something in any of them. TestNamed holds them against all configs of the cases.
var named = []string{
	"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization", "gradient_accumulation_steps", "fp16",
	"bf16", "optimizer", "learning_rate", "num_train_epochs", "per_device", "_component_", "exp_manager",
	"peft_type", "d_model", "datasets", "trainer", "actor_rollout_ref", "network_module", "distributed_type",
	"base_model", "model_name_or_path", "micro_batch", "batch_size", "warmup", "TrainingArguments", "fsdp",
	"DeepSpeedPlugin", "num_layers", "num-layers", "steps_per_print", "output_dir", "torchrun",
	"torch.distributed.run", "torch.distributed.launch", "deepspeed", "accelerate", "[training]", "[parallelism]",
	"[activation_checkpoint]", "elasticity", "model_type", `"architectures"`, "hidden_size", "hidden-size",
	"finetuning_type", "cutoff_len", "lr_scheduler_type", "max_steps", "train_iters", "max_duration", "train_loader",
	"LoRA_type", "max_resolution", "MODEL_ARGS", "language_model", "model_parallel", "model-parallel", "micro-batch",
	"pipe_parallel", "pipe-parallel", "data_parallel", "tensor_parallel", "pipeline_parallel", "parallelism:",
	"n_layer", "accumulative_counts", "lr_decay", "checkpoint_activations", "partition_activations",
	"tokenizer_type", "vocab_file", "merge_file", "wall_clock_breakdown", "zero_allow_untested_optimizer",
	"communication_data_type", "prescale_gradients", "flops_profiler", "comms_logger", "activation_checkpointing",
	"compression_training", "data_efficiency", "trainvet_plan",
}
