package memory

import "github.com/trainvet/trainvet/configs/plan"

// logitBytes is the peak of logits, loss and their gradient, bytes per token and vocabulary entry. Measured: 12V and 14V on HF
// before and after 4.45, 8V with an in-place fp32 kernel, about 0 with a fused linear cross-entropy. Megatron-core's vocabulary-parallel
// loss works in place on one fp32 copy, in backward too (core/tensor_parallel/cross_entropy.py); before 2023 it held two. Compiled as a
// whole, the loss holds the logits and their gradient in 16 bits and nothing as wide in fp32.
func (j *job) logitBytes() float64 {
	a := j.element
	switch j.loss {
	case plan.FP32Copy, plan.FP32Module:
		return 12
	case plan.FP32CopyShifted, plan.FP32Held:
		return 14
	case plan.Inplace:
		return 8
	case plan.BF16Loss:
		return 3 * a
	case plan.Chunked:
		if j.compile {
			return a + 0.25
		}
		return a + 1.5
	case plan.ChunkedHead:
		return 2 * a
	case plan.VocabParallel:
		if j.megatron() {
			return a + 4
		}
		return a + 4 + 4
	case plan.CompiledLoss:
		return 2 * a
	}
	return 0
}

// logits is the size of everything that is as wide as the vocabulary, on the last stage. Chunked and fused kernels hold the
// head's gradient while they run.
func (j *job) logits() float64 {
	if j.model.Encoder() {
		return 0
	}
	perToken := j.logitBytes()
	if perToken > 0 && j.lora != nil && j.lora.targets.Has(plan.TargetHead) {
		perToken += 2 * j.element // output of the head's adapter, and scaled
	}
	gathered := 0.0
	if j.stack == plan.Torchtitan && j.tensor > 1 {
		// DTensor's loss_parallel shifts and exponentiates out of place, and the head gathers its input over the sequence.
		perToken += 4
		gathered = j.tokens * j.element * j.hidden
	}
	n := j.tokens*perToken*j.vocab/j.tensor + gathered
	if j.lora == nil {
		switch j.loss {
		case plan.Chunked, plan.ChunkedHead, plan.FusedLinear:
			gradient := j.dtypes.gradient
			if j.sharding.FSDP() {
				gradient = 2
			}
			n += 2 * j.vocab * j.hidden * gradient / j.tensor
		}
	}
	return n
}

// finalNorm is what the last norm keeps.
func (j *job) finalNorm() float64 {
	n := 2 * j.element * j.hidden
	if !j.fusedNorm {
		n += 4 * j.hidden
	}
	n *= j.tokens
	if j.sequenceParallel {
		n /= j.tensor
	}
	return n
}
