package memory

import "github.com/trainvet/trainvet/configs/plan"

// localParameters are numbers of parameters on the most loaded rank, before sharding over data-parallel ranks.
type localParameters struct {
	all            float64 // base model
	trainable      float64 // adapters, or all
	frozen         float64
	layer          float64 // one layer; of a mixture of experts one with experts
	body           float64 // layers of this stage
	experts        float64 // routed experts among them
	trainedExperts float64
	embedding      float64
	head           float64
}

// localParameters splits the model over tensor-, pipeline- and expert-parallel ranks. Megatron-LM's column and row layers
// divide attention, MLP, embedding and head by the tensor-parallel ranks; routed experts are divided by the expert-parallel
// ones, and in Megatron each by the expert-tensor-parallel ones; the first stage holds the embedding and the last the head, or a copy of a tied embedding.
func (j *job) localParameters() localParameters {
	var l localParameters
	body := float64(j.counts.Body)
	l.layer = body / j.layers / j.tensor
	l.body = j.stageLayers * l.layer
	if experts := float64(j.counts.Experts); experts > 0 {
		perStage := j.stageLayers * float64(j.model.Layers-j.model.DenseLayers) / j.layers // layers with experts
		l.experts = perStage * experts / (j.expert * j.expertTensor)
		l.body = j.stageLayers*body/j.layers/j.tensor - perStage*experts/j.tensor + l.experts
		l.layer = (float64(j.counts.Layer)-experts)/j.tensor + experts/(j.expert*j.expertTensor)
	}
	l.embedding = float64(j.counts.Embedding) / j.tensor
	l.head = float64(j.counts.Head) / j.tensor
	if j.counts.Head == 0 && j.pipeline > 1 {
		l.head = l.embedding
	}
	switch {
	case j.pipeline > 1:
		l.all = max(l.body+l.embedding, l.body+l.head)
	case j.counts.Experts > 0:
		l.all = l.body + l.embedding + l.head
	default:
		l.all = float64(j.counts.Total) / j.tensor
	}
	l.trainable, l.trainedExperts = l.all, l.experts
	if j.lora != nil {
		l.trainable, l.trainedExperts, l.frozen = j.loraParameters(), 0, l.all
	}
	return l
}

// stateBytes are bytes per trainable parameter.
type stateBytes struct{ weight, gradient, state, master, optimizer float64 }

// stateBytes is the table of model states: weights + gradients + optimizer. fp32, autocast and FSDP's MixedPrecision keep
// 4 + 4 and fp32 states; a pure 16-bit run keeps everything in two bytes; DeepSpeed's fp16 and bf16 optimizers keep 2 + 2 and
// an fp32 master (ZeRO paper, arXiv 1910.02054, section 3.1: 16 bytes with Adam); its BF16_Optimizer adds fp32 gradient
// accumulators (runtime/bf16_optimizer.py); Megatron keeps fp32 main gradients (core/distributed, core/optimizer), with fp16
// 16-bit ones. ZeRO keeps a partition of master weights whatever its type, so that 16-bit master weights make 2 + 2 + 6.
func (j *job) stateBytes() stateBytes {
	var b stateBytes
	switch j.precision {
	case plan.FP32, plan.Autocast, plan.FSDPMixed:
		b = stateBytes{weight: 4, gradient: 4, state: 4}
	case plan.Pure16:
		b = stateBytes{weight: 2, gradient: 2, state: 2}
	case plan.DeepSpeedMixed:
		b = stateBytes{weight: 2, gradient: 2, state: 4, master: 4}
	case plan.DeepSpeedBF16Optimizer:
		b = stateBytes{weight: 2, gradient: 6, state: 4, master: 4}
	case plan.MegatronMixed:
		b = stateBytes{weight: 2, gradient: 4, state: 4, master: 4}
		if j.half {
			b.gradient = 2 // gradients are accumulated in fp32 with bf16 only
		}
	}
	if j.precision == plan.Pure16 && j.sharding.ZeRO() {
		b.master = 2
	}
	if j.lora != nil && j.lora.bytes == 4 && j.precision == plan.Pure16 {
		// PEFT casts adapters to fp32 (autocast_adapter_dtype) over a 16-bit base.
		b = stateBytes{weight: 4, gradient: 4, state: 4}
	}
	b.optimizer = j.optimizerBytes(b.state)
	return b
}

// optimizerBytes is the size of the states of the update rule per parameter, without a master copy; state is the size of one
// state element. Block-wise quantised states carry 1.03 and 0.53 bytes with their scales (bitsandbytes and torchao, blocks of
// 256); Adafactor factors the second moment into rows and columns (arXiv 1804.04235).
func (j *job) optimizerBytes(state float64) float64 {
	switch j.optimizer {
	case plan.AdamW8bit:
		return 2 * 1.03
	case plan.AdamW4bit:
		return 2 * 0.53
	case plan.Lion, plan.SGDMomentum:
		return state
	case plan.SGD:
		return 0
	case plan.Adafactor:
		if j.flat() {
			return 4 // nothing to factor in one dimension (transformers, Adafactor._get_options)
		}
		return 0.01 * state
	case plan.Muon:
		return 1.1 * state
	}
	return 2 * state
}

// quantizedBytes is the size of one quantised weight with its scales: nf4 in blocks of 64 with fp32 scales, which double
// quantisation stores in 8 bits in blocks of 256 (QLoRA, arXiv 2305.14314, section 3); GPTQ in groups of 128.
func (j *job) quantizedBytes() float64 {
	switch j.quantization {
	case plan.NF4:
		return 0.5 + 4.0/64
	case plan.NF4Double:
		return 0.5 + 1.0/64 + 4.0/(64*256)
	case plan.GPTQ:
		return 0.5 + 2.5/128
	case plan.Int8:
		return 1
	}
	return 2
}

// states are what a rank holds from the first step on, bytes.
type states struct{ weights, gradients, optimizer float64 }

// states shards the table of stateBytes: ZeRO stage 1 the optimizer, stage 2 the gradients too, stage 3 and FSDP everything
// (arXiv 1910.02054, section 5).
func (j *job) states() states {
	n := j.local
	s := states{
		weights:   j.held(j.sharding.Weights()) * j.dtypes.weight,
		gradients: j.held(j.sharding.Gradients()) * j.dtypes.gradient,
		optimizer: j.held(j.sharding.States()) * (j.dtypes.optimizer + j.dtypes.master),
	}
	frozen := j.frozenWeights()
	if frozen > 0 && j.sharding.Weights() {
		frozen *= j.sharded(n.frozen, n.experts) / n.frozen
	}
	if j.offloadOptimizer != plan.NoOffload {
		s.optimizer = 0
		if j.sharding.Gradients() {
			s.gradients = 0
		}
	}
	if j.offloadParam != plan.NoOffload {
		s.weights, frozen = 0, 0
	}
	s.weights += frozen
	return s
}

// held is the number of trainable parameters of which a rank keeps its share of a state.
func (j *job) held(sharded bool) float64 {
	if !sharded {
		return j.local.trainable
	}
	return j.sharded(j.local.trainable, j.local.trainedExperts)
}

// sharded divides n parameters, experts of which are routed experts, over the shard group. Experts are already divided over the
// expert-parallel ranks, which lie inside of the data-parallel group, so that only the rest of it shards them.
func (j *job) sharded(n, experts float64) float64 {
	group := j.shard / j.expert
	if j.stack == plan.Megatron {
		group *= j.tensor / j.expertTensor
	}
	return (n-experts)/j.shard + experts/max(group, 1)
}

// frozenWeights is the unsharded size of the frozen base under an adapter. Embedding, head and norms are not quantised and
// keep 2 bytes, or 4 after prepare_model_for_kbit_training.
func (j *job) frozenWeights() float64 {
	if j.lora == nil {
		return 0
	}
	if j.quantization == plan.NoQuantization {
		return j.local.frozen * j.frozenElement
	}
	whole := float64(j.counts.Embedding + j.counts.Head)
	if j.stack == plan.LitGPT {
		whole = float64(j.counts.Embedding) // Lightning's plugin replaces every linear layer, the head too
	}
	wholeBytes := 2.0
	if j.fp32Residual {
		wholeBytes = 4
	}
	return (j.local.frozen-whole)*j.quantizedBytes() + whole*wholeBytes
}
