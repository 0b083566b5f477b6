package memory

import (
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Alternatives are what a run would need by what its files leave open: an answer where there is no single one. Rows differ in
// what Varies says; Same was taken in all of them.
type Alternatives struct {
	Same []Assumption
	Rows []Alternative
}

// Alternative is a run with everything settled.
type Alternative struct {
	Varies  []Assumption
	Usage   *Usage
	Verdict Verdict // Unknown without a device
}

// Assumption is a value of the plan that no file states, and what it means in words.
type Assumption struct{ Name, Value, Text string }

// What is tried where nothing is stated.
const usualVocab = 32000

var usualLengths = [...]int64{2048, 4096}

// missingVocab is how a model that lacks its vocabulary alone is called missing.
const missingVocab = MissingModel + " (model.vocab)"

// FindAlternatives settles what a plan leaves open of sequence length, sharding, recomputation, precision and vocabulary, each in
// the ways that people have it. None where the plan has an answer of its own, or lacks more than that.
func FindAlternatives(p *plan.Plan) (all Alternatives) {
	usage, missing, err := Estimate(p)
	if usage != nil || err != nil {
		return all
	}
	for _, name := range missing {
		if !slices.Contains([]string{missingVocab, MissingSeqLength, MissingPrecision, MissingSharding}, name) {
			return all
		}
	}
	base := *p
	all.Same = settle(&base)
	for _, length := range lengths(&base) {
		for _, sharding := range waysToShard(&base) {
			for _, kind := range waysToRecompute(&base) {
				q, row := base, Alternative{}
				if !q.Batch.SeqLength.Known() {
					q.Batch.SeqLength = plan.Default(length, alternativeNote)
					row.vary("batch.seq_length", fmt.Sprint(length), fmt.Sprintf("%d tokens", length))
				}
				if q.Checkpointing.Kind.How() <= plan.IsDefault {
					q.Checkpointing.Kind = plan.Default(kind, alternativeNote)
					row.vary("checkpointing.kind", string(kind), recomputation(kind))
				}
				if !q.Sharding.Known() {
					q.Sharding = plan.Default(sharding, alternativeNote)
					row.vary("sharding", string(sharding), shardingText(sharding, q.Parallel.Data.Or(1)))
				}
				plan.Derive(&q)
				if row.Usage, _, err = Estimate(&q); err != nil || row.Usage == nil {
					return Alternatives{}
				}
				row.Verdict = Fit(row.Usage, row.Usage.Device)
				all.Rows = append(all.Rows, row)
			}
		}
	}
	return all
}

// alternativeNote marks values that no file states.
const alternativeNote = "one of several cases"

func (a *Alternative) vary(name, value, text string) {
	a.Varies = append(a.Varies, Assumption{name, value, text})
}

// settle sets what has one usual answer: the vocabulary of a model of this shape, 16-bit training, and Megatron's model code where the
// model is divided over tensor-parallel ranks or stages, Hugging Face's elsewhere.
func settle(p *plan.Plan) (same []Assumption) {
	set := func(name, value, text string) { same = append(same, Assumption{name, value, text}) }
	if !p.Model.Vocab.Known() && !p.Model.Name.Known() {
		vocab, of := usualVocab, ""
		if m := sameShape(p); m != nil {
			vocab, of = int(m.Vocab), ", as "+m.Name+" has with this shape"
		}
		p.Model.Vocab = plan.Default(int64(vocab), alternativeNote)
		set("model.vocab", fmt.Sprint(vocab), fmt.Sprintf("a vocabulary of %d%s", vocab, of))
	}
	if !p.Stack.Known() {
		stack, loss, text := plan.HF, plan.FP32Copy, "model code and loss as Hugging Face's"
		if p.Parallel.Tensor.Or(1) > 1 || p.Parallel.Pipeline.Or(1) > 1 {
			stack, loss, text = plan.Megatron, plan.VocabParallel, "model code and loss as Megatron's"
		}
		p.Stack = plan.Default(stack, alternativeNote)
		set("stack", string(stack), text)
		if !p.Loss.Known() {
			p.Loss = plan.Default(loss, alternativeNote)
		}
	}
	if !p.Precision.Known() && !p.DType.Compute.Known() {
		p.DType.Compute = plan.Default(plan.BFloat16, alternativeNote)
		set("dtype.compute", string(plan.BFloat16), "bf16 with fp32 main weights")
	}
	return same
}

// sameShape is the first model of the catalogue with the sizes that a plan states.
func sameShape(p *plan.Plan) *catalog.ModelSpec {
	for _, m := range catalog.Models() {
		if p.Model.Hidden.Is(m.Hidden) && p.Model.Layers.Is(m.Layers) && p.Model.Heads.Is(m.Heads) && p.Model.FFN.Is(m.FFN) &&
			p.Model.KVHeads.Or(p.Model.Heads.Or(0)) == m.KVHeads {
			return m
		}
	}
	return nil
}

// lengths are the sequence lengths to try, none of them longer than what the model takes.
func lengths(p *plan.Plan) []int64 {
	if length, known := p.Batch.SeqLength.Get(); known {
		return []int64{length}
	}
	longest := p.Model.MaxPositions.Or(usualLengths[len(usualLengths)-1])
	fitting := slices.DeleteFunc(slices.Clone(usualLengths[:]), func(n int64) bool { return n > longest })
	if len(fitting) == 0 {
		return []int64{max(longest, 1)}
	}
	return fitting
}

// waysToShard are nothing, and what shards the states of such a layout.
func waysToShard(p *plan.Plan) []plan.Sharding {
	sharding, known := p.Sharding.Get()
	switch {
	case known:
		return []plan.Sharding{sharding}
	case p.Parallel.Data.Or(1) <= 1:
		return []plan.Sharding{plan.NoSharding}
	case p.Stack.Is(plan.Megatron):
		return []plan.Sharding{plan.MegatronDist, plan.NoSharding}
	}
	return []plan.Sharding{plan.DDP, plan.ZeRO1, plan.ZeRO3}
}

// waysToRecompute are both where the files state neither.
func waysToRecompute(p *plan.Plan) []plan.Checkpointing {
	if kind, known := p.Checkpointing.Kind.Get(); known && p.Checkpointing.Kind.How() > plan.IsDefault {
		return []plan.Checkpointing{kind}
	}
	return []plan.Checkpointing{plan.NoCheckpointing, plan.Full}
}

func recomputation(kind plan.Checkpointing) string {
	if kind == plan.NoCheckpointing {
		return "all activations stored"
	}
	return "every layer recomputed"
}

func shardingText(sharding plan.Sharding, ranks int64) string {
	over := fmt.Sprintf("sharded over the %d data-parallel ranks", ranks)
	switch {
	case sharding.Weights():
		return "weights, gradients and optimizer states " + over
	case sharding.Gradients():
		return "gradients and optimizer states " + over
	case sharding.States():
		return "optimizer states " + over
	}
	return "optimizer states not sharded"
}
