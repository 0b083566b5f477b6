package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
)

//go:embed syntax-error.md
var docSyntaxError string

// SyntaxError is reported by the engine, from what the parsers could not read. A folder may hold any number of files that are
// no part of a run; the words are those by which a file is taken for one that is. A file that is named is always looked at.
var SyntaxError = &lint.Rule{
	Name:     "syntax-error",
	Family:   "config",
	Since:    "0.1",
	Doc:      docSyntaxError,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{
		"torch", "deepspeed", "transformers", "accelerate", "lightning", "megatron", // Python, and command lines
		"train_batch_size", "train_micro_batch_size_per_gpu", "micro_batch", "gradient_accumulation", "gradient_checkpointing", "zero_optimization", "learning_rate",
		"global_batch_size", "per_device_train_batch_size", "batch_size", "num_hidden_layers", "num_layers", "warmup", "mixed_precision", "bf16", "fp16", "fsdp", "trainvet_plan",
	},
}
