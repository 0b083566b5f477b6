package memory

import (
	"math"

	"github.com/trainvet/trainvet/configs/plan"
)

// Defaults of DeepSpeed (runtime/zero/config.py), elements.
const (
	defaultBucket   = 5e8 // reduce_bucket_size, allgather_bucket_size
	defaultMaxLive  = 1e9 // stage3_max_live_parameters
	defaultSubGroup = 1e9 // sub_group_size
)

// gathered are buffers that communication needs while a step runs, bytes.
type gathered struct {
	live  float64 // unsharded weights and gradients of the layers at work in backward, or buckets
	final float64 // unsharded weights of layers at the end of forward
	root  float64 // unit that stays unsharded from forward to the end of backward (FSDP)
	ddp   bool    // live are DDP's buckets: they exist as long as gradients do
}

// gathered counts unsharded weights and buckets.
//
// FSDP: the root unit holds embedding, head and final norm. In backward the current and the prefetched layer are unsharded, and
// one layer's unsharded gradient waits for its reduction; of a frozen base one layer is. At the end of forward FSDP1 has
// resharded all layers, FSDP2 keeps the last. (Measured on HF with two and four ranks to about 20 MB.) ZeRO-3: at most
// stage3_max_live_parameters are gathered, all of them are partitioned again before the step (stage3.py, _partition_all_parameters), and
// the gradient bucket is doubled by overlap_comm. ZeRO-1 and -2: the gradient
// bucket alone. DDP: the reducer's buckets are a copy of the gradients unless gradients are views into them, as in Megatron.
func (j *job) gathered() gathered {
	var g gathered
	n := j.local
	switch {
	case j.ungathered:
	case j.sharding == plan.FSDP2 && j.pipeline > 1:
		// A pipeline stage runs many micro-batches before it reduces: units stay unsharded and gradients gather in fp32.
		g.root = j.rootBytes()
		g.live = n.all * (2 + 4)
		g.final = g.live
	case j.sharding.FSDP() && j.shard > 1 && j.fsdp.ReshardAfterForward.Is(false):
		g.live = n.all * j.gatherBytes() // unsharded from forward to the end of backward
		g.final = g.live
	case j.sharding.FSDP() && j.shard > 1:
		g.root = j.rootBytes()
		layer := n.layer * j.gatherBytes()
		g.live = layer * j.liveLayers()
		if j.lora == nil {
			g.live += n.layer * j.gatherBytes()
		}
		if j.sharding == plan.FSDP2 {
			g.final = layer
		}
		if j.fsdp.KeepsFrozen.Or(false) {
			g.live = n.all * 2
			g.final = g.live
		}
	case j.sharding == plan.ZeRO3:
		// A module's parameters are gathered together, whatever the limit.
		unit := max(n.layer, n.embedding, n.head)
		g.live = max(min(float64(j.buckets.MaxLive.Or(defaultMaxLive)), n.all), unit) * j.gatherBytes()
		if j.lora == nil {
			bucket := float64(defaultBucket)
			if j.buckets.Auto.Or(false) {
				bucket = j.hidden * j.hidden // transformers fills "auto" with hidden_size squared
			}
			g.live += j.bucketBytes(bucket)
		}
		g.final = max(g.live/2, n.head*j.gatherBytes())
	case j.sharding == plan.ZeRO1 || j.sharding == plan.ZeRO2:
		if j.lora == nil {
			g.live = min(j.bucketBytes(defaultBucket), n.trainable*2*2)
		}
	case j.sharding == plan.DDP && j.wrapped:
		g.ddp = true
		if !j.megatron() && !j.buckets.GradientAsBucketView.Or(false) {
			g.live = n.trainable * j.dtypes.gradient
		}
	}
	return g
}

// liveLayers is the number of unsharded layers in backward: as stated, or two, or one of a frozen base.
func (j *job) liveLayers() float64 {
	layers := j.fsdp.LiveLayers
	if n, ok := layers.Get(); ok && layers.How() > plan.IsDefault {
		return float64(max(n, 0))
	}
	if j.lora != nil {
		return 1
	}
	return 2
}

// gatherBytes is the size of one gathered weight: 16 bits under mixed precision, as stored otherwise.
func (j *job) gatherBytes() float64 {
	if j.precision == plan.FP32 || j.precision == plan.Autocast {
		return 4
	}
	return j.quantizedBytes()
}

// rootBytes is FSDP's root unit: embedding and head, half of it alive at once where they are units of their own.
func (j *job) rootBytes() float64 {
	root := float64(j.counts.Embedding + j.counts.Head)
	if j.pipeline > 1 {
		root = math.Max(float64(j.counts.Embedding), j.local.head)
	}
	root *= j.rootElement() / j.tensor
	if j.fsdp.SeparateEmbeddings.Or(false) {
		root /= 2
	}
	return root
}

// rootElement is the size of a gathered weight that is not quantised.
func (j *job) rootElement() float64 {
	if j.precision == plan.FP32 || j.precision == plan.Autocast {
		return 4
	}
	return 2
}

// bucketBytes is DeepSpeed's gradient bucket in 16 bits; overlap_comm keeps two.
func (j *job) bucketBytes(defaultSize float64) float64 {
	n := defaultSize
	if size, ok := j.buckets.Reduce.Get(); ok {
		n = float64(size)
	}
	n *= 2
	if j.buckets.OverlapComm.Or(true) {
		n *= 2
	}
	return n
}

// castWeights are the 16-bit copies of fp32 weights that torch.autocast caches from their first use to the end of forward, and
// that autograd keeps to the end of backward. The embedding needs none. Only leaves in fp32 that need a gradient are cached
// (aten/src/ATen/autocast_mode.cpp, cached_cast), so that of an adapter it is the adapter alone: weights in 16 bits are not cast at
// all, and quantised ones are unpacked for one product. A frozen base in fp32 is cast for each product, and autograd keeps that
// copy for the gradient of the input, unless the layer is recomputed.
func (j *job) castWeights() float64 {
	if !j.autocast() || j.sharding.FSDP() {
		return 0
	}
	if j.lora != nil {
		copies := 0.0
		if j.lora.bytes == 4 {
			copies = 2 * j.local.trainable
		}
		if j.frozenElement == 4 && j.quantization == plan.NoQuantization {
			kept := j.local.body
			switch j.checkpointing {
			case plan.NoCheckpointing:
			case plan.Half:
				kept /= 2
			case plan.AllButNth:
				kept /= j.every
			default:
				kept = j.local.layer
			}
			copies += 2 * (kept + float64(j.counts.Head)/j.tensor)
		}
		return copies
	}
	if j.model.Encoder() {
		return 2 * float64(j.counts.Body)
	}
	return 2 * (j.local.all - float64(j.counts.Embedding)/j.tensor)
}

// embeddingGradient is what the end of backward holds besides the gradients: a tied weight gets a second, dense gradient from
// the embedding (measured on Llama-3.2-3B: 0.73 GiB); a sharded root its unsharded gradient.
func (j *job) embeddingGradient() float64 {
	switch {
	case j.lora != nil:
		return 0
	case j.sharding.Weights():
		root := float64(j.counts.Embedding + j.counts.Head)
		if j.pipeline > 1 {
			root = math.Max(float64(j.counts.Embedding), j.local.head)
		}
		bytes := j.rootElement()
		if j.sharding == plan.FSDP2 && j.stack == plan.Torchtitan && bytes == 2 {
			bytes += 4 // it reduces in fp32, so that the 16-bit gradient is copied into an input of that type
		}
		return root / j.tensor * bytes
	case j.model.Tied && !j.model.Encoder():
		gradient := j.dtypes.gradient
		if j.precision == plan.FSDPMixed {
			gradient = 2
		}
		return j.vocab * j.hidden * gradient / j.tensor
	}
	return 0
}

// stepTemporaries is what the optimizer step needs for a moment besides states and gradients, bytes.
func (j *job) stepTemporaries() float64 {
	n := j.local.trainable
	if j.sharding.States() {
		n /= j.shard
	}
	state := j.dtypes.state
	switch {
	case j.offloadOptimizer != plan.NoOffload && j.optimizer != plan.Adafactor:
		return 0 // DeepSpeedCPUAdam steps in host memory
	case j.precision == plan.DeepSpeedBF16Optimizer:
		return j.kernelTemporaries(n, state) // its fp32 gradients are there already
	case j.sharding.ZeRO() || j.precision == plan.DeepSpeedMixed:
		return j.partitionStep(n)
	case j.optimizer == plan.Adafactor && j.flat():
		return n * 2 * 4
	case j.optimizer == plan.Adafactor:
		return j.vocab * j.hidden * 4 * 3
	case j.megatron() && j.half:
		return n * 4 // fp32 copies of the 16-bit gradients
	case j.kernel == plan.Loop || j.optimizer == plan.Muon:
		return j.kernelTemporaries(j.vocab*j.hidden/j.tensor, state)
	}
	return j.kernelTemporaries(n, state)
}

// partitionStep is the step of DeepSpeed, which works on flat partitions of n parameters: the gradients of a rank are copied into one
// flat tensor, and that to the type of the master weights; then both are freed, and the kernel runs on the whole partition at once
// (runtime/zero/stage_1_and_2.py, step; stage3.py does so for sub_group_size parameters at a time, and its gradients stay in their
// buffer). What a kernel takes thus comes on top of an fp32 copy of the gradients.
func (j *job) partitionStep(n float64) float64 {
	n, flat, master := j.partition(n)
	freed := flat // its gradients are counted beside
	if j.sharding == plan.ZeRO3 {
		freed = 0
	}
	if j.dtypes.master == 0 {
		return max(n*flat, n*(flat-freed)+j.kernelTemporaries(n, j.dtypes.state)) // the kernel reads the flat copy
	}
	return max(n*(flat+master), n*(master-freed)+j.kernelTemporaries(n, master))
}

// partition is how many of n parameters are stepped at once, and the bytes of one element of the flat copy of their gradients and of
// the copy in the type of the master weights.
func (j *job) partition(n float64) (at, flat, master float64) {
	switch j.sharding {
	case plan.ZeRO3:
		n = min(float64(j.buckets.SubGroup.Or(defaultSubGroup)), n)
	case plan.ZeRO1, plan.ZeRO2:
	default:
		return n, 0, j.dtypes.master
	}
	return n, j.dtypes.gradient, j.dtypes.master
}

// kernelTemporaries is what a kernel of the update rule takes beside n parameters that it steps at once, with states of so many bytes.
// Fused kernels (torch's, Apex's, DeepSpeed's FusedAdam and FusedLion, bitsandbytes) take nothing. torch's foreach Adam makes one list
// of exp_avg_sq.sqrt(), before torch 2.1 a second one; its loop two tensors (torch/optim/adam.py: sqrt, and the quotient of it).
func (j *job) kernelTemporaries(n, state float64) float64 {
	switch j.optimizer {
	case plan.AdamW:
		switch j.kernel {
		case plan.Foreach:
			return j.adamCopies * n * state
		case plan.Loop:
			return 2 * n * state
		}
	case plan.Adafactor:
		return 2 * n * 4 // the square of the gradient, and the update
	case plan.Muon:
		return 3 * 2 * float64(j.counts.LargestMatrix) / j.tensor // Newton-Schulz iterates in bf16
	case plan.Lion, plan.SGDMomentum, plan.SGD:
		if j.kernel == plan.Loop {
			return 2 * n * state
		}
	}
	return 0
}

// flat reports whether the optimizer sees one-dimensional pieces of weights instead of matrices: the partitions of ZeRO, and FSDP1's
// shards of flattened units.
func (j *job) flat() bool { return j.sharding.ZeRO() || j.sharding == plan.FSDP1 }

// workspace is what cuBLAS takes from the allocator: one for the thread of forward and one for that of backward, 32 MiB each on
// Hopper and later, 8 MiB before (PyTorch, CUDABlas.cpp and CublasHandlePool.cpp).
func (j *job) workspace() float64 {
	if j.device != nil && j.device.Hopper() {
		return 2 * 32 << 20
	}
	return 2 * 8 << 20
}

// dequantized is a weight that a quantised layer unpacks for one product, 16 bits: the largest of a layer, or the head where it
// is quantised too.
func (j *job) dequantized() (layer, head float64) {
	if j.quantization == plan.NoQuantization || j.lora == nil {
		return 0, 0
	}
	if j.stack == plan.LitGPT {
		head = float64(j.counts.Head) * 2 / j.tensor
	}
	return float64(j.counts.LargestMatrix) * 2 / j.tensor, head
}
