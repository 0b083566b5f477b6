package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Sharding says who shards what over the data-parallel ranks.
type Sharding string

// The shardings. MegatronDist is Megatron's distributed optimizer: optimizer states only.
const (
	NoSharding   Sharding = "none"
	DDP          Sharding = "ddp"
	ZeRO1        Sharding = "zero1"
	ZeRO2        Sharding = "zero2"
	ZeRO3        Sharding = "zero3"
	FSDP1        Sharding = "fsdp1"
	FSDP2        Sharding = "fsdp2"
	MegatronDist Sharding = "megatron_dist"
)

func (Sharding) options() []string {
	return []string{"none", "ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2", "megatron_dist"}
}

// ZeRO reports whether DeepSpeed shards, at any stage.
func (s Sharding) ZeRO() bool { return s == ZeRO1 || s == ZeRO2 || s == ZeRO3 }

// FSDP reports whether PyTorch's FSDP shards, of either version.
func (s Sharding) FSDP() bool { return s == FSDP1 || s == FSDP2 }

// Weights reports whether the weights are sharded.
func (s Sharding) Weights() bool { return s == ZeRO3 || s.FSDP() }

// Gradients reports whether the gradients are sharded.
func (s Sharding) Gradients() bool { return s == ZeRO2 || s.Weights() }

// States reports whether the optimizer states are sharded.
func (s Sharding) States() bool { return s == ZeRO1 || s == MegatronDist || s.Gradients() }

// Precision is a recipe: the dtypes of weights, gradients and optimizer states together.
type Precision string

// The recipes; bytes per parameter of weights + gradients + master copy and Adam states.
const (
	FP32                   Precision = "fp32"                     // 4 + 4 + 8
	Autocast               Precision = "autocast"                 // 4 + 4 + 8, and cached 16-bit copies of weights
	Pure16                 Precision = "pure_16bit"               // 2 + 2 + 4
	FSDPMixed              Precision = "fsdp_mixed"               // 4 + 4 + 8, all sharded, 16-bit all-gathers
	DeepSpeedMixed         Precision = "deepspeed_mixed"          // 2 + 2 + 12
	DeepSpeedBF16Optimizer Precision = "deepspeed_bf16_optimizer" // 2 + (2 + 4) + 12
	MegatronMixed          Precision = "megatron_mixed"           // 2 + 4 + 12
)

func (Precision) options() []string {
	return []string{"fp32", "autocast", "pure_16bit", "fsdp_mixed", "deepspeed_mixed", "deepspeed_bf16_optimizer", "megatron_mixed"}
}

// DType is the element type of a tensor.
type DType string

// The element types.
const (
	Float32  DType = "fp32"
	Float16  DType = "fp16"
	BFloat16 DType = "bf16"
	Float8   DType = "fp8"
)

func (DType) options() []string { return []string{"fp32", "fp16", "bf16", "fp8"} }

// Is16 reports whether an element takes two bytes.
func (d DType) Is16() bool { return d == Float16 || d == BFloat16 }

// OptimizerType is the update rule.
type OptimizerType string

// The update rules. Adam and AdamW are one, since they hold the same states.
const (
	AdamW       OptimizerType = "adamw"
	AdamW8bit   OptimizerType = "adamw_8bit"
	AdamW4bit   OptimizerType = "adamw_4bit"
	Adafactor   OptimizerType = "adafactor"
	Lion        OptimizerType = "lion"
	SGD         OptimizerType = "sgd"
	SGDMomentum OptimizerType = "sgd_momentum"
	Muon        OptimizerType = "muon"
)

func (OptimizerType) options() []string {
	return []string{"adamw", "adamw_8bit", "adamw_4bit", "adafactor", "lion", "sgd", "sgd_momentum", "muon"}
}

// Kernel is how the optimizer step runs over the parameters; it decides the temporaries of the step.
type Kernel string

// The kernels of an optimizer step.
const (
	Foreach Kernel = "foreach"
	Fused   Kernel = "fused"
	Loop    Kernel = "loop"
)

func (Kernel) options() []string { return []string{"foreach", "fused", "loop"} }

// Checkpointing says which activations are recomputed in backward.
type Checkpointing string

// The kinds of activation checkpointing.
const (
	NoCheckpointing    Checkpointing = "none"
	Full               Checkpointing = "full"                // each layer
	Half               Checkpointing = "half"                // every other layer
	EveryN             Checkpointing = "every_n"             // blocks of n layers
	AllButNth          Checkpointing = "all_but_nth"         // every n-th layer is stored, the others are recomputed each
	SelectiveOp        Checkpointing = "selective_op"        // every second matmul and attention kept (torchtitan)
	SelectiveAttention Checkpointing = "selective_attention" // attention core recomputed (Megatron)
)

func (Checkpointing) options() []string {
	return []string{"none", "full", "half", "every_n", "all_but_nth", "selective_op", "selective_attention"}
}

// Attention is the attention kernel.
type Attention string

// The attention kernels. Eager keeps the score matrix.
const (
	Flash Attention = "flash"
	SDPA  Attention = "sdpa"
	Eager Attention = "eager"
)

func (Attention) options() []string { return []string{"flash", "sdpa", "eager"} }

// MLPActivation says whether the activation function of the MLP is one kernel.
type MLPActivation string

// The kinds of MLP activation. TanhPython is GELU written out in Python.
const (
	FusedActivation MLPActivation = "fused"
	TanhPython      MLPActivation = "tanh_python"
)

func (MLPActivation) options() []string { return []string{"fused", "tanh_python"} }

// LossKernel is how logits become a loss. The comments give bytes per token at the peak for a vocabulary of V.
type LossKernel string

// The loss kernels.
const (
	FP32Copy        LossKernel = "fp32_copy"         // 12V: fp32 copy, log-softmax, gradient (HF from 4.45)
	FP32CopyShifted LossKernel = "fp32_copy_shifted" // 14V: the same after a contiguous shift (HF before 4.45)
	FP32Module      LossKernel = "fp32_module"       // 12V: the same outside HF
	FP32Held        LossKernel = "fp32_held"         // 14V: 16-bit and fp32 logits both held (torchtitan)
	Inplace         LossKernel = "inplace"           // 8V: fp32 logits, gradient written in place
	BF16Loss        LossKernel = "bf16"              // 6V: no fp32 copy
	Chunked         LossKernel = "chunked"           // about 3.5V: logits in one piece, loss in chunks
	ChunkedHead     LossKernel = "chunked_head"      // 4V: head computed once, cross-entropy in chunks
	VocabParallel   LossKernel = "vocab_parallel"    // 6V / tensor-parallel ranks (Megatron-core; 10V before)
	CompiledLoss    LossKernel = "compiled"          // 4V: cross-entropy compiled as a whole, nothing as wide in fp32
	FusedLinear     LossKernel = "fused_linear"      // 0: head and loss in one kernel
	NoLogits        LossKernel = "none"              // 0: no vocabulary-sized output
)

func (LossKernel) options() []string {
	return []string{"fp32_copy", "fp32_copy_shifted", "fp32_module", "fp32_held", "inplace", "bf16", "chunked", "chunked_head",
		"vocab_parallel", "compiled", "fused_linear", "none"}
}

// Stack is whose model code runs.
type Stack string

// The stacks.
const (
	HF         Stack = "hf"
	HFBert     Stack = "hf_bert"
	LitGPT     Stack = "litgpt"
	Torchtune  Stack = "torchtune"
	Torchtitan Stack = "torchtitan"
	Megatron   Stack = "megatron"
)

func (Stack) options() []string {
	return []string{"hf", "hf_bert", "litgpt", "torchtune", "torchtitan", "megatron"}
}

// Quantization is of the frozen base of an adapter.
type Quantization string

// The quantizations. NF4Double quantises the block scales too.
const (
	NoQuantization Quantization = "none"
	NF4            Quantization = "nf4"
	NF4Double      Quantization = "nf4_double"
	Int8           Quantization = "int8"
	GPTQ           Quantization = "gptq"
)

func (Quantization) options() []string {
	return []string{"none", "nf4", "nf4_double", "int8", "gptq"}
}

// Offload is where states live outside of the device.
type Offload string

// The places of offloaded states.
const (
	NoOffload Offload = "none"
	CPU       Offload = "cpu"
	NVMe      Offload = "nvme"
)

func (Offload) options() []string { return []string{"none", "cpu", "nvme"} }

// Norm is the normalisation of a model.
type Norm string

// The normalisations. NonParametric is OLMo-1's LayerNorm without weights.
const (
	RMSNorm       Norm = "rmsnorm"
	LayerNorm     Norm = "layernorm"
	NonParametric Norm = "non_parametric"
)

func (Norm) options() []string { return []string{"rmsnorm", "layernorm", "non_parametric"} }

// QKNorm says whether queries and keys are normalised: per head (Qwen3) or over all heads (OLMo 2).
type QKNorm string

// The query-key normalisations.
const (
	NoQKNorm   QKNorm = "none"
	HeadQKNorm QKNorm = "head"
	FullQKNorm QKNorm = "full"
)

func (QKNorm) options() []string { return []string{"none", "head", "full"} }

// WarmupUnit is what a warm-up is counted in.
type WarmupUnit string

// The units of a warm-up. UnknownUnit: a bare loop decides it.
const (
	OptimizerSteps WarmupUnit = "optimizer"
	MicroSteps     WarmupUnit = "micro"
	UnknownUnit    WarmupUnit = "unknown"
	Samples        WarmupUnit = "samples"
	Tokens         WarmupUnit = "tokens"
	Fraction       WarmupUnit = "fraction" // of all steps
	Epochs         WarmupUnit = "epochs"
)

func (WarmupUnit) options() []string {
	return []string{"optimizer", "micro", "unknown", "samples", "tokens", "fraction", "epochs"}
}

// Targets is the set of linear layers that carry a LoRA adapter.
type Targets uint16

// The layers. TargetQKV is the fused projection.
const (
	TargetQ Targets = 1 << iota
	TargetK
	TargetV
	TargetO
	TargetQKV
	TargetUp
	TargetGate
	TargetDown
	TargetHead
	AllTargets = TargetQ | TargetK | TargetV | TargetO | TargetUp | TargetGate | TargetDown // "all-linear": without the head
)

var targetNames = [...]string{"q", "k", "v", "o", "qkv", "up", "gate", "down", "head"}

// ParseTargets is the set of these short names; an unknown name is an error.
func ParseTargets(names ...string) (Targets, error) {
	var set Targets
	for _, name := range names {
		i := slices.Index(targetNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", name, strings.Join(targetNames[:], ", "))
		}
		set |= 1 << i
	}
	return set, nil
}

// Has reports whether any layer of other is in the set.
func (t Targets) Has(other Targets) bool { return t&other != 0 }

// Names are the short names, in a fixed order.
func (t Targets) Names() []string {
	names := []string{}
	for i, name := range targetNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (t Targets) String() string { return strings.Join(t.Names(), " ") }

// MarshalJSON writes the set as a list of names.
func (t Targets) MarshalJSON() ([]byte, error) { return json.Marshal(t.Names()) }
