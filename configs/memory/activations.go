package memory

import (
	"slices"

	"github.com/trainvet/trainvet/configs/plan"
)

// layerBytes is what one layer keeps for backward and needs in it, bytes per token.
type layerBytes struct {
	residual  float64 // as wide as the residual stream: divided by tensor-parallel ranks only with sequence parallelism
	split     float64 // divided by tensor-parallel ranks always
	scores    float64 // per key besides: the score matrix of eager attention
	boundary  float64 // input of a layer, all that a checkpointed layer keeps
	transient float64 // gradients alive at once in its backward
	transientScores,
	selective float64 // kept by selective-op checkpointing
}

// litgptQuantized is what LitGPT's quantised layers keep besides their input, in widths of the MLP. Fitted: published runs of
// 2023 show about half a width, those of 2024 between 1.5 and 3; which library version makes the difference is not known.
const litgptQuantized = 1.5

// fusedQKV lists the families whose attention projects q, k and v at once.
var fusedQKV = [...]string{"gpt2", "gpt_neox", "qwen", "phi3", "bloom", "falcon", "mpt", "gpt_bigcode", "chatglm"}

// rotaryFused lists those of them that rotate q and k, and so keep both the rotated copies and the buffer of which v is a view.
var rotaryFused = [...]string{"gpt_neox", "qwen", "falcon", "chatglm"}

// castScores lists the families whose eager attention keeps the scores in the activation dtype only.
var castScores = [...]string{"gpt2", "bert", "gpt_bigcode", "megatron-gpt"}

// rectified lists the families whose MLP has a ReLU: its output serves for its own backward and as the next layer's input.
var rectified = [...]string{"opt"}

// wideNorms lists the families whose RMSNorm scales in fp32.
var wideNorms = [...]string{"gemma", "gemma2"}

// layer counts what autograd saves in one layer. The rules of eager PyTorch: a linear layer saves its input only if its weight
// needs a gradient, a product the other operand, softmax, SiLU and GELU one tensor, dropout a one-byte mask, casts and sums
// nothing, and a view keeps its whole storage. For a GPT block with dropout this is sbh(34 + 5as/h), as in Korthikanti et al.
// (arXiv 2205.05198), table 2.
func (j *job) layer() layerBytes {
	var b layerBytes
	a := j.element
	m := j.model
	residual := a // element of the residual stream
	if j.autocast() || j.fp32Residual {
		residual = 4
	}
	experts := 0.0
	ffn := j.ffn
	active := float64(m.ActiveExperts)
	if m.Experts > 0 {
		experts = float64(m.Experts)
		ffn = float64(m.ExpertFFN)*active + float64(m.SharedFFN)
	}

	b.residual += float64(m.NormsPerLayer) * j.normSaved(residual)
	b.split += j.queryKeyNormSaved()
	b.residual += j.linearInputs(experts > 0)
	if j.lora != nil {
		residual, split := j.loraSaved(ffn)
		b.residual += residual
		b.split += split
	}

	attention, scores := j.attentionSaved()
	b.split += attention
	b.scores = scores
	if j.hiddenDropout {
		b.residual += 2 * j.hidden // two masks of one byte
	}

	mlp, transient := j.mlpSaved(ffn)
	if experts > 0 && j.stack == plan.HF {
		// The loop over experts has the gradients of one expert alive at a time: its share of the tokens.
		transient *= max(float64(m.ExpertFFN)*active/experts, float64(m.SharedFFN)) / ffn
	}
	if j.stack == plan.LitGPT && j.quantization != plan.NoQuantization && j.savesInput {
		mlp += litgptQuantized * a * ffn
	}
	b.split += mlp
	b.transient = transient + 2*residual*j.hidden
	if j.attention == plan.Eager {
		b.transientScores = 2 * j.heads * a
	}
	if experts > 0 {
		b.residual += 8 * experts               // router logits and probabilities
		dispatched := 2 * a * j.hidden * active // permuted tokens, expert outputs
		if j.lora != nil && j.stack == plan.HF {
			dispatched = 0 // frozen experts and router need neither
		}
		if j.sequenceParallel && j.expertTensor > 1 { // gathered over the ranks that share an expert
			dispatched *= min(j.expertTensor, j.tensor)
		}
		b.residual += dispatched
	}
	b.boundary = residual * j.hidden
	b.selective = a*(j.queryDim+j.kvDim+j.ffn+j.hidden) + a*j.queryDim + 4*j.heads + b.boundary
	return b
}

// normSaved is what one norm keeps: the fused kernels their input and a statistic or two; the eager HF RMSNorm an fp32 copy of
// its input, and the normalised copy if its weight is trained.
func (j *job) normSaved(residual float64) float64 {
	layerNorm := j.model.Norm == plan.LayerNorm
	if j.fusedNorm || j.compile || layerNorm || j.stack == plan.Megatron {
		statistics := 4.0
		if layerNorm {
			statistics = 8
		}
		return residual*j.hidden + statistics
	}
	saved := 4*j.hidden + 4
	if j.lora == nil {
		saved += j.normalised() * j.hidden
	}
	return saved
}

// normalised is the size of an element of the normalised copy that an RMSNorm written in Python keeps for its weight. PyTorch's own
// module scales in fp32 where it has no kernel of its own, before 2.8.
func (j *job) normalised() float64 {
	if j.autocast() || j.stack == plan.Torchtitan || slices.Contains(wideNorms[:], j.model.Family) {
		return 4
	}
	return j.element
}

// queryKeyNormSaved is what the norms of q and k keep, of which the output is rotated and kept as such.
func (j *job) queryKeyNormSaved() float64 {
	width := j.queryDim + j.kvDim
	switch {
	case j.model.QKNorm == plan.NoQKNorm || j.model.QKNorm == "":
		return 0
	case j.fusedNorm, j.compile, j.stack == plan.Megatron, j.model.Norm == plan.LayerNorm:
		return j.element * width
	case j.lora != nil:
		return 4 * width
	}
	return (4 + j.normalised()) * width
}

// linearInputs is what the linear layers keep of the two norm outputs. Under autocast each of them makes its own 16-bit copy
// of the fp32 norm output; otherwise they share it. Frozen layers keep nothing, unless an adapter of the same dtype and
// without dropout shares their input.
func (j *job) linearInputs(moe bool) float64 {
	consumers := 3.0
	if j.fusedQKV() {
		consumers = 1
	}
	saved := 0.0
	if j.savesInputOf(plan.TargetQ | plan.TargetK | plan.TargetV | plan.TargetQKV) {
		saved += j.inputCopies(consumers)
	}
	if j.model.NormsPerLayer == 1 && !j.autocast() {
		return saved // attention and MLP run in parallel on one norm output
	}
	switch {
	case moe && j.stack == plan.HF:
		if j.lora == nil {
			saved += j.element * j.hidden // of the router
		}
	case j.savesInputOf(plan.TargetUp | plan.TargetGate):
		consumers = 1
		if j.model.Gated {
			consumers = 2
		}
		saved += j.inputCopies(consumers)
	}
	return saved
}

func (j *job) inputCopies(consumers float64) float64 {
	if j.autocast() {
		return j.element * j.hidden * consumers
	}
	return j.element * j.hidden
}

// savesInputOf reports whether the linear layers of targets keep their input.
func (j *job) savesInputOf(targets plan.Targets) bool {
	if j.lora == nil || j.savesInput {
		return true
	}
	shared := !j.lora.dropout && j.lora.bytes == j.element && !j.lora.autocast
	return shared && j.lora.targets.Has(targets)
}

func (j *job) fusedQKV() bool {
	return slices.Contains(fusedQKV[:], j.model.Family) || j.stack == plan.LitGPT || j.stack == plan.Megatron
}

// attentionSaved is what attention keeps: q, k, v, the output and the log-sum-exp of a flash kernel, or the score matrix of
// eager attention (scores, bytes per token and key). Fused q, k, v of which v is a view keep the whole buffer; Megatron's kernels take
// contiguous copies, and let the buffer go. HF's SDPA path repeats k and v to the number of query heads.
func (j *job) attentionSaved() (saved, scores float64) {
	a, q, kv := j.element, j.queryDim, j.kvDim
	if latent := j.model.LatentAttention; latent.KVRank > 0 {
		// Latent attention keeps q and k of both parts, v, the output, and the latent vectors before and after their norms.
		perHead := float64(2*(latent.NopeDim+latent.RopeDim) + 2*latent.ValueDim)
		saved = a * (j.heads*perHead + 2*float64(latent.KVRank+latent.QRank) + float64(latent.RopeDim))
		if j.attention == plan.Eager {
			return saved, j.scoresSaved()
		}
		return saved + 4*j.heads, 0
	}
	grouped := j.model.KVHeads != j.model.Heads
	qkv := a * (q + 2*kv)
	if j.fusedQKV() && j.stack == plan.LitGPT {
		qkv = a*(2*q+2*kv) + a*kv + a*(q+kv)
	}
	switch {
	case grouped && (j.attention == plan.SDPA || j.attention == plan.Eager && j.stack == plan.HF):
		qkv = a * 3 * q
	case j.stack == plan.HF && slices.Contains(rotaryFused[:], j.model.Family):
		qkv += a * (q + kv)
	}
	if j.stack == plan.LitGPT && grouped {
		qkv = a*(q+2*kv) + a*3*q
	}
	if j.attention == plan.Eager {
		scores = j.scoresSaved()
	} else {
		qkv += 4 * j.heads
	}
	return qkv + a*q, scores
}

// scoresSaved is what eager attention keeps of the score matrix: the softmax in fp32 and its cast (or in the activation dtype
// alone), and under dropout a mask and the dropped copy instead of the cast.
func (j *job) scoresSaved() float64 {
	a := j.element
	layerNorm := j.model.Norm == plan.LayerNorm
	dropped := 0.0
	if j.attnDropout {
		dropped = 1 + a
	}
	switch {
	case j.autocast() && layerNorm:
		if j.attnDropout {
			return j.heads * (4 + 3)
		}
		return j.heads * (4 + 2)
	case layerNorm && slices.Contains(castScores[:], j.model.Family):
		return j.heads * (a + dropped)
	case j.attnDropout:
		return j.heads * (4 + dropped)
	case a == 4:
		return j.heads * 4
	}
	return j.heads * (4 + a)
}

// mlpSaved is what the MLP keeps, and the gradients alive at once in its backward. A gated MLP keeps gate, SiLU, up and, if the
// down projection needs it, the product; the fused kernel recomputes SiLU. Compiled layers recompute the product for adapters,
// but keep it where all weights are trained (torchtune's Llama-3.2-3B, 42.9 and 51.0 GiB).
func (j *job) mlpSaved(ffn float64) (saved, transient float64) {
	a := j.element
	if !j.model.Gated {
		tensors := 1.0
		if j.tanhPython {
			tensors = 4
		}
		if j.savesInputOf(plan.TargetDown) && !slices.Contains(rectified[:], j.model.Family) {
			tensors++
		}
		return tensors * a * ffn, 2 * a * ffn
	}
	tensors := 3.0
	fused := j.compile || j.fusedMLP || j.stack == plan.Megatron
	if fused {
		tensors = 2
	}
	if j.savesInputOf(plan.TargetDown) && (!j.compile || j.lora == nil) {
		tensors++
	}
	return tensors * a * ffn, 3 * a * ffn
}

// bytes is the size of the saved part for the tokens of this rank. Keys count the whole sequence.
func (j *job) bytes(b layerBytes) float64 {
	residual := 1.0
	if j.sequenceParallel {
		residual = j.tensor
	}
	return j.tokens * (b.residual/residual + b.split/j.tensor + b.scores*j.seq/j.tensor)
}
