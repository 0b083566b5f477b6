package feature

import (
	"slices"
	"strings"
)

// meanings say in a few words what a value of the plan is; keys that set one mean that, whatever their framework calls it.
var meanings = map[string]string{
	"model.name": "the model that is trained", "model.hidden": "width of the hidden states, elements", "model.layers": "number of transformer layers",
	"model.heads": "attention heads of a layer", "model.kv_heads": "heads of keys and values (grouped-query attention)", "model.head_dim": "elements of one attention head",
	"model.ffn": "inner width of the feed-forward block, elements", "model.vocab": "entries of the vocabulary: rows of the embedding, columns of the head",
	"model.tied": "whether the head shares the weights of the embedding", "model.experts": "experts of a mixture-of-experts layer",
	"model.active_experts": "experts that each token visits", "model.parameters": "parameters of the model", "model.max_positions": "longest sequence that has positions, tokens",
	"batch.micro":         "sequences that one rank takes through forward and backward at a time (the micro-batch)",
	"batch.accumulation":  "micro-batches whose gradients are summed before the optimizer steps",
	"batch.global":        "sequences of one optimizer step over all data-parallel ranks: micro-batch x accumulation x data-parallel ranks",
	"batch.global_tokens": "tokens of one optimizer step over all data-parallel ranks", "batch.seq_length": "tokens of one sequence",
	"parallel.world": "ranks of the run", "parallel.nodes": "machines of the run", "parallel.devices_per_node": "devices, and so ranks, of one machine",
	"parallel.data": "data-parallel ranks: each sees other sequences", "parallel.tensor": "ranks that share the weights of one layer (tensor parallel)",
	"parallel.pipeline": "stages that the layers are cut into (pipeline parallel)", "parallel.context": "ranks that share one sequence (context or sequence parallel)",
	"parallel.expert": "ranks that share the experts of a layer", "parallel.sequence_parallel": "whether activations outside of tensor-parallel blocks are cut along the sequence",
	"sharding": "what of weights, gradients and optimizer states is spread over the data-parallel ranks", "precision": "which copies of the weights are kept, and in what type",
	"dtype.compute": "type of forward and backward", "dtype.params": "type of the weights that are kept", "dtype.reduce": "type in which gradients are summed over ranks",
	"optimizer.type": "the optimizer; it decides the bytes of its states per parameter", "optimizer.lr": "learning rate at the peak of the schedule", "optimizer.min_lr": "learning rate at the end of the schedule",
	"optimizer.weight_decay": "decay of the weights per step, relative", "optimizer.beta1": "decay of the mean of gradients", "optimizer.beta2": "decay of the mean of squared gradients",
	"optimizer.eps": "added to the root of the second moment", "optimizer.clip": "norm to which the gradients of a step are clipped",
	"schedule.type": "how the learning rate changes over the run", "schedule.warmup": "steps in which the learning rate rises", "schedule.warmup_ratio": "share of all steps in which the learning rate rises",
	"schedule.total_steps": "optimizer steps of the run", "schedule.epochs": "times that the data is gone through",
	"checkpointing.kind": "which activations are dropped and computed again in backward: less memory, more time", "checkpointing.every": "layers from one kept activation to the next",
	"checkpointing.offload": "whether kept activations wait in host memory", "checkpointing.reentrant": "which implementation of torch.utils.checkpoint runs",
	"attention.kernel": "implementation of attention; it decides whether the scores are kept", "attention.dropout": "share of attention weights that are dropped",
	"hidden_dropout": "share of hidden states that are dropped", "compile": "whether torch.compile traces the model",
	"lora.rank": "rank of the low-rank adapters; only they train", "lora.alpha": "scale of the low-rank adapters", "lora.targets": "layers that get an adapter",
	"device": "the accelerator; it decides the memory that a run has",
}

// keyMeanings are the keys that set no value of the plan, or more than the value tells, by dialect and path.
var keyMeanings = map[string]map[string]string{
	"deepspeed": {
		"zero_optimization":                                           "ZeRO: what is spread over the data-parallel ranks, and how it moves",
		"zero_optimization.stage":                                     "0: nothing is spread; 1: optimizer states; 2: gradients too; 3: weights too",
		"zero_optimization.overlap_comm":                              "reduce gradients while backward goes on; takes a second bucket",
		"zero_optimization.reduce_bucket_size":                        "elements of gradients that are reduced at a time; a buffer of that size is held",
		"zero_optimization.allgather_bucket_size":                     "elements of weights that are gathered at a time; a buffer of that size is held",
		"zero_optimization.contiguous_gradients":                      "copy gradients into one buffer as they are made, against fragmentation",
		"zero_optimization.offload_optimizer":                         "keep optimizer states, and step, in host memory or on NVMe",
		"zero_optimization.offload_param":                             "keep weights in host memory or on NVMe (stage 3)",
		"zero_optimization.stage3_prefetch_bucket_size":               "elements of weights that are gathered ahead",
		"zero_optimization.stage3_max_live_parameters":                "elements of gathered weights that may be held at a time",
		"zero_optimization.stage3_max_reuse_distance":                 "elements within which a gathered weight that is needed again is kept",
		"zero_optimization.stage3_param_persistence_threshold":        "weights with fewer elements are never spread",
		"zero_optimization.stage3_gather_16bit_weights_on_model_save": "gather the weights of all ranks when the model is saved",
		"zero_optimization.sub_group_size":                            "elements of optimizer states that are updated at a time",
		"fp16":                                                        "mixed precision in float16, with loss scaling",
		"fp16.loss_scale":                                             "fixed loss scale; 0: dynamic",
		"fp16.initial_scale_power":                                    "power of two from which the dynamic loss scale starts",
		"fp16.loss_scale_window":                                      "steps without overflow before the loss scale is doubled",
		"fp16.hysteresis":                                             "overflows before the loss scale is halved",
		"fp16.min_loss_scale":                                         "below this the loss scale is not lowered",
		"bf16":                                                        "mixed precision in bfloat16; no loss scaling is needed",
		"activation_checkpointing":                                    "settings of DeepSpeed's own checkpoint function; they do nothing for torch.utils.checkpoint",
		"activation_checkpointing.partition_activations":              "spread kept activations over the tensor-parallel ranks",
		"activation_checkpointing.cpu_checkpointing":                  "keep activations in host memory",
		"gradient_clipping":                                           "norm to which the gradients of a step are clipped; 0: not at all",
		"steps_per_print":                                             "optimizer steps between two lines of progress",
		"wall_clock_breakdown":                                        "time forward, backward and step; it synchronises the device at each",
		"prescale_gradients":                                          "divide gradients before they are summed over ranks",
		"communication_data_type":                                     "type in which gradients are summed over ranks",
	},
	"hf-training-args": {
		"gradient_checkpointing":        "drop activations in forward and compute them again in backward: less memory, more time",
		"torch_empty_cache_steps":       "steps between two calls of empty_cache; each gives memory back to the driver and costs time",
		"group_by_length":               "put sequences of like length into one batch, against padding",
		"dataloader_num_workers":        "processes that load batches beside each rank",
		"max_grad_norm":                 "norm to which the gradients of a step are clipped",
		"ddp_find_unused_parameters":    "look in every step for weights without a gradient; it costs a walk of the graph",
		"deepspeed":                     "the DeepSpeed config: a file, or the settings themselves",
		"fsdp":                          "ways of PyTorch's fully sharded data parallel",
		"optim":                         "the optimizer; it decides the bytes of its states per parameter",
		"average_tokens_across_devices": "divide the loss by the tokens of all ranks, not of each",
	},
}

// meaning is what a key does, in words; "" where that is not known.
func meaning(k key) string {
	fields := k.part.Dialect.Fields(k.path)
	var texts []string
	if text := keyMeanings[k.part.Dialect.Name][k.path]; text != "" {
		texts = append(texts, text)
	}
	for _, field := range fields {
		if text := meanings[field]; text != "" && len(texts) == 0 {
			texts = append(texts, text)
		}
	}
	return strings.Join(slices.Compact(texts), "; ")
}
