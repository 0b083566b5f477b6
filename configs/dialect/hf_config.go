package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"strings"
)

// HFModelConfig is the config.json of a model: its shape.
var HFModelConfig = &Dialect{
	Name:    "hf-model-config",
	Title:   "HF model config",
	Version: "transformers",
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		return d.hasAny("model_type", "architectures") && d.hasAny("hidden_size", "n_embd", "d_model", "text_config", "vocab_size") ||
			d.has("hidden_size") && d.has("num_hidden_layers") && d.has("num_attention_heads") && d.has("vocab_size") &&
				!d.hasAny("per_device_train_batch_size", "train_micro_batch_size_per_gpu", "learning_rate", "lr")
	},

	before: func(r *reader) {
		// A model of several parts keeps the shape of its language model in a section of its own.
		if !r.hasAny("hidden_size", "n_embd", "d_model") && r.mapping("text_config") {
			r.into("text_config")
		}
	},
	table: append([]entry{
		{field: "model.name", keys: paths("_name_or_path")},
		{field: "model.family", keys: paths("model_type"), read: lower},
		{field: "dtype.params", keys: paths("torch_dtype", "dtype"), read: dtype},
		{field: "model.experts", keys: paths("num_local_experts", "num_experts", "n_routed_experts"), absent: 0},
		{field: "model.active_experts", keys: paths("num_experts_per_tok", "num_experts_per_token")},
		{field: "model.expert_ffn", keys: paths("moe_intermediate_size")},
		{field: "model.shared_ffn", keys: paths("shared_expert_intermediate_size")},
		{field: "model.dense_layers", keys: paths("first_k_dense_replace")},
		{field: "model.q_lora_rank", keys: paths("q_lora_rank")},
		{field: "model.kv_lora_rank", keys: paths("kv_lora_rank")},
		{field: "model.nope_dim", keys: paths("qk_nope_head_dim")},
		{field: "model.rope_dim", keys: paths("qk_rope_head_dim")},
		{field: "model.value_dim", keys: paths("v_head_dim")},
		{field: "model.type_vocab", keys: paths("type_vocab_size")},
		{field: "model.mlp_bias", keys: paths("mlp_bias")},
		{field: "attention.kernel", keys: paths("_attn_implementation", "attn_implementation"), read: attention},
		{field: "attention.dropout", keys: paths("attention_dropout", "attention_probs_dropout_prob", "attn_pdrop")},
	}, shapeTable("")...),
	after: hfConfigAfter,
}

// gatedFamilies have a gate beside the up projection of the MLP; fusedOnly are the old ones without.
var gatedFamilies = map[string]bool{
	"llama": true, "mistral": true, "mixtral": true, "qwen2": true, "qwen3": true, "qwen2_moe": true, "qwen3_moe": true, "gemma": true,
	"gemma2": true, "gemma3_text": true, "phi3": true, "deepseek_v2": true, "deepseek_v3": true, "olmo2": true, "internlm2": true,
	"baichuan": true, "chatglm": true, "cohere": true, "granite": true, "smollm3": true,
	"gpt2": false, "gpt_neox": false, "gptj": false, "opt": false, "bloom": false, "falcon": false, "bert": false, "roberta": false,
	"phi": false, "mpt": false, "gpt_bigcode": false,
}

func hfConfigAfter(r *reader) {
	heads := r.first("num_attention_heads", "n_head", "num_heads")
	if on, known := r.truth(r.find("multi_query")); known && on {
		r.derive("model.kv_heads", 1, "multi_query", r.find("multi_query"))
	}
	if n, ok := r.plan.Model.Heads.Get(); ok {
		r.derive("model.kv_heads", n, "as many as attention heads", heads)
	}
	family, _ := r.plan.Model.Family.Get()
	if gated, known := gatedFamilies[family]; known {
		r.derive("model.gated", gated, "by the model type", r.find("model_type"))
		norm := "layernorm"
		if gated {
			norm = "rmsnorm"
		}
		r.derive("model.norm", norm, "by the model type", r.find("model_type"))
		if hidden, ok := r.plan.Model.Hidden.Get(); ok && !gated {
			r.derive("model.ffn", 4*hidden, "4 * hidden size", r.first("hidden_size", "n_embd", "d_model"))
		}
	}
	switch family {
	case "llama", "mistral", "mixtral", "qwen3", "qwen3_moe", "olmo2", "phi3":
		r.assumeOf("model.tied", false, "the class of this model type")
	case "qwen2":
		r.assumeOf("model.qkv_bias", true, "the class of this model type")
		r.assumeOf("model.tied", false, "the class of this model type")
	case "gemma", "gemma2", "gpt2", "opt", "bloom", "bert":
		r.assumeOf("model.tied", true, "the class of this model type")
	}
	bias := r.find("attention_bias")
	if on, known := r.truth(bias); known && bias.state == written && strings.HasPrefix(family, "llama") {
		r.set("model.qkv_bias", on, bias)
		r.set("model.output_bias", on, bias)
	}
	if family == "gpt2" {
		if n, ok := r.plan.Model.MaxPositions.Get(); ok {
			r.derive("model.learned_positions", n, "learned positions of this model type", r.first("n_positions", "n_ctx"))
		}
	}
	if n, ok := r.integer(r.find("n_shared_experts")); ok {
		if each, ok := r.plan.Model.ExpertFFN.Get(); ok {
			r.derive("model.shared_ffn", n*each, "shared experts * their size", r.find("n_shared_experts"), r.find("moe_intermediate_size"))
		}
	}
}
