package distributed

import (
	_ "embed"
	"fmt"
	"github.com/trainvet/trainvet/lint/source"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed parallel-divisibility.md
var docParallelDivisibility string

// ParallelDivisibility finds parallel sizes that do not divide what they split.
var ParallelDivisibility = &lint.Rule{
	Name:     "parallel-divisibility",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      docParallelDivisibility,
	Severity: lint.Error,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		d := division{pass: pass, run: run, shape: run.Plan.Model}
		if !slices.ContainsFunc(run.Parts, func(p *workspace.Part) bool { return p.Dialect.Trains() }) {
			return
		}
		d.fromCatalogue()
		d.tensor()
		d.pipeline()
		d.experts()
		d.sequence()
		d.world()
	},
}

// division compares the sizes of the model with those of the parallel groups.
type division struct {
	pass  *lint.Pass
	run   *workspace.Run
	shape plan.Model
	named string // the model of the catalogue that the shape is from
}

// fromCatalogue fills in the shape of a model that is only named.
func (d *division) fromCatalogue() {
	name, ok := d.shape.Name.Get()
	if !ok || d.shape.Layers.Known() || d.shape.Heads.Known() || d.shape.Hidden.Known() {
		return
	}
	spec, err := catalog.Model(name)
	if err != nil {
		return
	}
	d.named = spec.Name
	places := d.shape.Name.From()
	for _, size := range []struct {
		into  *plan.Value[int64]
		value int64
	}{{&d.shape.Layers, spec.Layers}, {&d.shape.Heads, spec.Heads}, {&d.shape.KVHeads, spec.KVHeads}, {&d.shape.Experts, spec.Experts}} {
		if size.value > 0 {
			*size.into = plan.Derived(size.value, places...)
		}
	}
}

// split is one size that is to be divided.
type split struct {
	size   plan.Value[int64]
	what   string // what the size counts, in the plural
	by     plan.Value[int64]
	parts  string // what it is divided over
	end    string // what happens
	atSize bool   // the finding stands at the size: it is what the framework's own message names
}

// check reports a size that is not divisible, at the parallel size.
func (d *division) check(s split) *lint.Diagnostic {
	n, ok := s.size.Get()
	by, ok2 := s.by.Get()
	if !ok || !ok2 || by < 2 || n < 1 || n%by == 0 || !stated(s.by) || s.size.How() == plan.IsDefault {
		return nil
	}
	at, key, ok := d.run.Written(s.by)
	if !ok {
		return nil
	}
	text := fmt.Sprintf("%s %d does not divide %d %s: %s", key, by, n, s.what, s.end)
	if sizeAt, _, written := d.run.Written(s.size); s.atSize && written {
		return d.pass.Reportf(sizeAt, "%s", text).Note(at, "%s %d", key, by)
	}
	report := d.pass.Reportf(at, "%s", text)
	for _, place := range s.size.From() {
		if place == at {
			continue
		}
		if d.named != "" {
			report.Note(place, "%s has %d %s", d.named, n, s.what)
		} else {
			report.Note(place, "%d %s", n, s.what)
		}
	}
	return report
}

// stated holds for sizes that somebody chose: also for those that follow from what is written.
func stated(size plan.Value[int64]) bool {
	return workspace.Stated(size) || size.How() == plan.IsDerived
}

func (d *division) tensor() {
	p := &d.run.Plan
	tensor, ok := p.Parallel.Tensor.Get()
	if !ok || tensor < 2 || d.unaligned() {
		return
	}
	heads := d.check(split{size: d.shape.Heads, what: "attention heads", by: p.Parallel.Tensor,
		end: "heads cannot be split evenly over the tensor-parallel ranks, and the run stops when it builds the model"})
	kv, grouped := d.shape.KVHeads.Get()
	if heads == nil && grouped && kv > 0 && tensor%kv != 0 { // fewer heads than ranks are copied, where that goes up evenly
		d.check(split{size: d.shape.KVHeads, what: "key-value heads", by: p.Parallel.Tensor,
			end: "they can neither be split evenly over the tensor-parallel ranks nor copied to them, and the run stops when it builds the model"})
	}
	if heads == nil && !d.shape.Heads.Known() {
		d.check(split{size: d.shape.Hidden, what: "hidden elements", by: p.Parallel.Tensor,
			end: "the layers cannot be split evenly over the tensor-parallel ranks, and the run stops when it builds the model"})
	}
	d.check(split{size: d.shape.FFN, what: "elements of the MLP", by: p.Parallel.Tensor,
		end: "its layers cannot be split evenly over the tensor-parallel ranks, and the run stops when it builds the model"})
	d.vocabulary()
}

// unaligned reports whether a setting asks for uneven slices of layers (MindSpeed's unaligned linear layers).
func (d *division) unaligned() bool {
	for _, item := range d.run.Keys() {
		if strings.Contains(workspace.PlainKey(item.Key), "unaligned") {
			return true
		}
	}
	return false
}

// vocabulary: Megatron and those built on it pad it themselves, so that only a size that is called padded is as it will be.
// Where no framework stands behind the file, nobody is known to pad.
func (d *division) vocabulary() {
	_, key, ok := d.run.Written(d.shape.Vocab)
	padded := strings.Contains(workspace.PlainKey(key), "padded")
	if !ok || !padded && !d.run.Has("model-training-parallel") {
		return
	}
	report := d.check(split{size: d.shape.Vocab, what: "rows of the embedding", by: d.run.Plan.Parallel.Tensor,
		end: "the vocabulary cannot be split evenly over the tensor-parallel ranks"})
	if report != nil {
		if !padded {
			report.As(lint.Warning)
		}
		report.Help("pad the vocabulary to a multiple of the tensor-parallel size, better of 128 times that")
	}
}

// splitsLayersEvenly are the dialects whose frameworks give every pipeline stage the same number of layers. The others
// balance the stages themselves (GPT-NeoX, nanotron, torchtitan).
var splitsLayersEvenly = []string{"megatron", "nemo", "hf-training-args", "model-training-parallel", "accelerate", "verl"}

// unevenKey are settings that lay the layers out by hand.
var unevenKey = source.Pattern(`(first|last)_(pipeline|pp|stage)|(pipeline|pp|stage)s?_(\w*_)?(layout|split|partition|division|layers|num_layers|blocks)|` +
	`layers?_(\w*_)?(list|split|partition|distribution|layout|per_stage|assignment)|uneven|standalone_embedding|account_for_(embedding|loss)|noop_layers|hybrid_(override|layer)_pattern|` +
	`schedules_method|dualpipe`)

// uneven reports whether a setting lays the layers out by hand.
func (d *division) uneven() bool {
	for _, item := range d.run.Keys() {
		key := workspace.PlainKey(item.Key)
		if unevenKey().MatchString(key) && !strings.HasPrefix(key, "num_layers_per") && key != "pipeline_parallel_layers_per_stage" {
			return true
		}
	}
	for _, part := range d.run.Parts {
		if part.Tree.Root.Open && part.Plan.Parallel.Pipeline.Known() {
			return true // more may be set than is seen
		}
	}
	return false
}

func (d *division) pipeline() {
	p := &d.run.Plan
	stages, ok := p.Parallel.Pipeline.Get()
	layers, ok2 := d.shape.Layers.Get()
	at, _, written := d.run.Written(p.Parallel.Pipeline)
	if !ok || !ok2 || !written || stages < 2 || d.uneven() {
		return
	}
	part := d.run.PartAt(at)
	if part == nil || !slices.Contains(splitsLayersEvenly, part.Dialect.Name) || d.shape.DecoderLayers.Known() {
		return
	}
	built := layers / stages * stages
	end := fmt.Sprintf("Megatron stops with an assertion, and in releases before that check builds %d layers and leaves %d out without a word", built, layers-built)
	if part.Dialect.Name == "model-training-parallel" {
		end = fmt.Sprintf("equal stages hold %d layers, and %d are left out or the run stops with an assertion", built, layers-built)
	}
	if d.check(split{size: d.shape.Layers, what: "layers", by: p.Parallel.Pipeline, end: end,
		atSize: part.Dialect.Name == "megatron" && part.Tree.Format != configs.Flags}) != nil || layers%stages != 0 {
		return
	}
	chunks := p.Parallel.VirtualPipeline
	each, _ := chunks.Get()
	if each > 1 && workspace.Stated(chunks) && (layers/stages)%each != 0 {
		if at, key, ok := d.run.Written(chunks); ok {
			d.pass.Reportf(at, "%s %d does not divide the %d layers of a pipeline stage (%d layers over %d stages): the run stops with an assertion when it builds the model",
				key, each, layers/stages, layers, stages)
		}
		return
	}
	d.virtualStage(layers / stages)
}

// virtualStage: Megatron's flag gives the layers of a chunk rather than the number of chunks.
func (d *division) virtualStage(layers int64) {
	for _, item := range d.run.Keys() {
		if workspace.PlainKey(item.Key) != "num_layers_per_virtual_pipeline_stage" || item.Value == nil || item.Value.Open {
			continue
		}
		if each, err := strconv.ParseInt(item.Value.Raw, 10, 32); err == nil && each > 0 && layers%each != 0 {
			d.pass.Reportf(item.KeyAt, "%s %d does not divide the %d layers of a pipeline stage: the run stops with an assertion when it reads its arguments", item.Key, each, layers)
		}
	}
}

func (d *division) experts() {
	if n, ok := d.shape.Experts.Get(); ok && n > 0 {
		if d.check(split{size: d.shape.Experts, what: "experts", by: d.run.Plan.Parallel.Expert,
			end: "they cannot be split evenly over the expert-parallel ranks, and the run stops"}) != nil {
			return
		}
	}
	d.expertRanks()
}

// expertRanks: expert-parallel groups lie whole in a pipeline stage. In Megatron each of their ranks is a tensor-parallel group of
// experts, of the size of the others unless that is written; DeepSpeed splits no single expert.
func (d *division) expertRanks() {
	r := &d.run.Plan.Parallel
	world, ok := r.World.Get()
	experts, ok2 := r.Expert.Get()
	stages := r.Pipeline.Or(0)
	at, key, written := d.run.Written(r.Expert)
	if !ok || !ok2 || !written || experts < 2 || world < 1 || stages < 1 || r.World.How() == plan.IsDefault || d.run.Spare(r.World) || dependsOn(r.World, r) {
		return
	}
	inside, text := int64(1), ""
	switch part := d.run.PartAt(at); {
	case part == nil:
		return
	case part.Dialect.Name == "megatron":
		if inside = r.ExpertTensor.Or(r.Tensor.Or(0)); inside < 1 {
			return
		}
		if text = fmt.Sprintf(" x expert tensor parallel %d", inside); inside == 1 {
			text = ""
		}
	case part.Dialect.Name != "deepspeed" && part.Dialect.Name != "gpt-neox":
		return
	}
	if stages > 1 {
		text += fmt.Sprintf(" x pipeline parallel %d", stages)
	}
	if experts > plan.MaxCount/inside || experts*inside > plan.MaxCount/stages || world%(experts*inside*stages) == 0 {
		return
	}
	d.launched(d.pass.Reportf(at, "%s %d%s does not divide the %d ranks that are started: the run stops when it lays out its groups of experts", key, experts, text, world))
}

// splitsSequences are the dialects whose frameworks cut sequences without padding them first.
var splitsSequences = []string{"megatron", "nemo", "torchtitan-toml", "nanotron", "model-training-parallel"}

// sequence: context parallelism gives each rank a chunk from the front and one from the back; sequence parallelism one slice.
func (d *division) sequence() {
	p := &d.run.Plan
	if !d.run.Has(splitsSequences...) || d.run.Has("hf-training-args", "llamafactory", "axolotl") {
		return
	}
	length, ok := p.Batch.SeqLength.Get()
	if !ok || length < 1 || p.Batch.SeqLength.How() == plan.IsDefault {
		return
	}
	if context, ok := p.Parallel.Context.Get(); ok && context > 1 && length%(2*context) != 0 && !d.run.Has("model-training-parallel") {
		if at, key, ok := d.run.Written(p.Parallel.Context); ok {
			report := d.pass.Reportf(at, "2 x %s %d does not divide the sequence length %d: each rank takes one chunk from the front and one from the back, and the run stops with an assertion",
				key, context, length)
			for _, place := range p.Batch.SeqLength.From() {
				report.Note(place, "sequence length, tokens")
			}
		}
	}
	if p.Parallel.SequenceParallel.Is(true) && !d.run.Has("model-training-parallel") && !d.unaligned() {
		d.check(split{size: p.Batch.SeqLength, what: "tokens of a sequence", by: p.Parallel.Tensor,
			end: "sequence parallelism cannot split them evenly over the tensor-parallel ranks, and the first collective stops"})
	}
}

// world: the ranks are a whole number of replicas of the model, and where all groups are written their product is the ranks.
func (d *division) world() {
	r := &d.run.Plan.Parallel
	world, ok := r.World.Get()
	if !ok || world < 1 || r.World.How() == plan.IsDefault || d.run.Spare(r.World) || dependsOn(r.World, r) {
		return
	}
	groups := []struct {
		size plan.Value[int64]
		name string
	}{{r.Tensor, "tensor"}, {r.Pipeline, "pipeline"}, {r.Context, "context"}}
	product, names := int64(1), []string(nil)
	var largest plan.Value[int64]
	for _, group := range groups {
		n, ok := group.size.Get()
		if !ok || n < 1 || n > plan.MaxCount/product {
			return
		}
		if n > 1 {
			product *= n
			names = append(names, fmt.Sprintf("%s parallel %d", group.name, n))
			if n > largest.Or(0) && stated(group.size) {
				largest = group.size
			}
		}
	}
	at, _, ok := d.run.Written(largest)
	if !ok {
		return
	}
	switch data, known := r.Data.Get(); {
	case product > world && r.Nodes.How() == plan.IsDefault && d.run.Has("nemo", "lightning-cli"): // their settings leave num_nodes to the launcher, and mean several machines
	case world%product != 0:
		d.launched(d.pass.Reportf(at, "%s take %d ranks a replica, which does not divide the %d that are started: the run stops when it lays out its groups",
			strings.Join(names, " x "), product, world))
	case known && workspace.Stated(r.Data) && data*product != world:
		if at, _, ok := d.run.Written(r.Data); ok && d.run.Has("nanotron", "model-training-parallel") {
			d.launched(d.pass.Reportf(at, "data parallel %d x %s are %d ranks, and %d are started: the run stops when it lays out its groups",
				data, strings.Join(names, " x "), data*product, world))
		}
	}
}

// dependsOn reports whether the number of ranks follows from the parallel sizes, so that comparing them says nothing.
func dependsOn(world plan.Value[int64], r *plan.Parallel) bool {
	if world.How() != plan.IsDerived {
		return false
	}
	for _, group := range []plan.Value[int64]{r.Data, r.Tensor, r.Pipeline, r.Context} {
		if !workspace.Stated(group) {
			continue // it follows from the ranks, not they from it
		}
		for _, place := range group.From() {
			if slices.Contains(world.From(), place) {
				return true
			}
		}
	}
	return false
}

// launched adds where the number of ranks is from.
func (d *division) launched(report *lint.Diagnostic) {
	for _, place := range d.run.Plan.Parallel.World.From() {
		if place != report.At {
			report.Note(place, "%d ranks follow from this", d.run.Plan.Parallel.World.Or(0))
		}
	}
}
