package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Canonical gives one name to what libraries offer under several: the public path that their documentation uses.
func Canonical(name string) string { return canonical(name) }

// canonical gives one name to what libraries offer under several: the public path that their documentation uses.
func canonical(name string) string {
	if better, known := renamed[name]; known {
		return better
	}
	for _, prefix := range renamedPrefixes {
		if strings.HasPrefix(name, prefix[0]) {
			return canonical(prefix[1] + name[len(prefix[0]):])
		}
	}
	return name
}

// renamed are whole names; each was read in the library's own re-export.
var renamed = map[string]string{
	"torch.nn.parallel.distributed.DistributedDataParallel":                          "torch.nn.parallel.DistributedDataParallel",
	"torch.nn.DistributedDataParallel":                                               "torch.nn.parallel.DistributedDataParallel",
	"torch.nn.parallel.DataParallel":                                                 "torch.nn.DataParallel",
	"torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel":    "torch.distributed.fsdp.FullyShardedDataParallel",
	"torch.distributed._composable.fsdp.fully_shard":                                 "torch.distributed.fsdp.fully_shard",
	"torch.distributed.fsdp._fully_shard.fully_shard":                                "torch.distributed.fsdp.fully_shard",
	"torch.distributed._composable.replicate.replicate":                              "torch.distributed._composable.replicate",
	"torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper": "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
	"accelerate.accelerator.Accelerator":                                             "accelerate.Accelerator",
	"accelerate.utils.dataclasses.DistributedDataParallelKwargs":                     "accelerate.DistributedDataParallelKwargs",
	"accelerate.utils.DistributedDataParallelKwargs":                                 "accelerate.DistributedDataParallelKwargs",
	"transformers.training_args.TrainingArguments":                                   "transformers.TrainingArguments",
	"transformers.trainer.Trainer":                                                   "transformers.Trainer",
	"transformers.trainer_callback.TrainerCallback":                                  "transformers.TrainerCallback",
	"deepspeed.runtime.activation_checkpointing.checkpointing.checkpoint":            "deepspeed.checkpointing.checkpoint",
	"megatron.core.tensor_parallel.random.checkpoint":                                "megatron.core.tensor_parallel.checkpoint",
	"megatron.core.tensor_parallel.layers.VocabParallelEmbedding":                    "megatron.core.tensor_parallel.VocabParallelEmbedding",
	"megatron.core.tensor_parallel.layers.ColumnParallelLinear":                      "megatron.core.tensor_parallel.ColumnParallelLinear",
	"fairscale.nn.model_parallel.layers.ParallelEmbedding":                           "fairscale.nn.model_parallel.ParallelEmbedding",
	"torch.utils.data.distributed.DistributedSampler":                                "torch.utils.data.DistributedSampler",
	"torch.utils.data.dataloader.DataLoader":                                         "torch.utils.data.DataLoader",
	"torch.cuda.memory.empty_cache":                                                  "torch.cuda.empty_cache",
	"torch.npu.memory.empty_cache":                                                   "torch.npu.empty_cache",
	"torch.accelerator.memory.empty_cache":                                           "torch.accelerator.empty_cache",
	"torch_npu.npu.memory.empty_cache":                                               "torch.npu.empty_cache",
	"torch.nn.utils.clip_grad.clip_grad_norm_":                                       "torch.nn.utils.clip_grad_norm_",
	"torch.nn.utils.clip_grad.clip_grad_value_":                                      "torch.nn.utils.clip_grad_value_",
	"torch.autocast_mode.autocast":                                                   "torch.autocast",
	"torch.amp.autocast_mode.autocast":                                               "torch.autocast",
	"torch.amp.autocast":                                                             "torch.autocast",
	"torch.amp.grad_scaler.GradScaler":                                               "torch.amp.GradScaler",
	"torch.cuda.amp.grad_scaler.GradScaler":                                          "torch.cuda.amp.GradScaler",
	"torch.cuda.amp.autocast_mode.autocast":                                          "torch.cuda.amp.autocast",
	"torch.distributed.distributed_c10d.init_process_group":                          "torch.distributed.init_process_group",
	"torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler":                   "torch.distributed.fsdp.ShardedGradScaler",
	"torch.nn.modules.Module":                                                        "torch.nn.Module",
	"torch.autograd.grad_mode.no_grad":                                               "torch.no_grad",
	"torch.autograd.no_grad":                                                         "torch.no_grad",
	"torch.autograd.grad_mode.inference_mode":                                        "torch.inference_mode",
	"contextlib.nullcontext":                                                         "contextlib.nullcontext",
	"deepspeed.accelerator.get_accelerator":                                          "deepspeed.accelerator.get_accelerator",
	"deepspeed.get_accelerator":                                                      "deepspeed.accelerator.get_accelerator",
	"bitsandbytes.nn.modules.StableEmbedding":                                        "bitsandbytes.nn.StableEmbedding",
	"lightning.LightningModule":                                                      "pytorch_lightning.LightningModule",
	"lightning.LightningDataModule":                                                  "pytorch_lightning.LightningDataModule",
	"lightning.Callback":                                                             "pytorch_lightning.Callback",
	"lightning.Trainer":                                                              "pytorch_lightning.Trainer",
	"lightning.Fabric":                                                               "lightning_fabric.Fabric",
	"lightning_fabric.fabric.Fabric":                                                 "lightning_fabric.Fabric",
	"pytorch_lightning.core.LightningModule":                                         "pytorch_lightning.LightningModule",
	"pytorch_lightning.core.module.LightningModule":                                  "pytorch_lightning.LightningModule",
	"pytorch_lightning.core.lightning.LightningModule":                               "pytorch_lightning.LightningModule",
	"pytorch_lightning.trainer.Trainer":                                              "pytorch_lightning.Trainer",
	"pytorch_lightning.trainer.trainer.Trainer":                                      "pytorch_lightning.Trainer",
	"pytorch_lightning.callbacks.Callback":                                           "pytorch_lightning.Callback",
	"pytorch_lightning.callbacks.callback.Callback":                                  "pytorch_lightning.Callback",
	"transformers.optimization.get_linear_schedule_with_warmup":                      "transformers.get_linear_schedule_with_warmup",
}

// renamedPrefixes are packages that offer another one's names.
var renamedPrefixes = [][2]string{
	{"torch_npu.npu.", "torch.npu."},
	{"torch.nn.modules.sparse.", "torch.nn."},
	{"torch.nn.modules.linear.", "torch.nn."},
	{"torch.nn.modules.container.", "torch.nn."},
	{"torch.nn.modules.module.", "torch.nn."},
	{"torch.nn.modules.loss.", "torch.nn."},
	{"torch.optim.adamw.", "torch.optim."},
	{"torch.optim.adam.", "torch.optim."},
	{"torch.optim.sgd.", "torch.optim."},
	{"lightning.pytorch.", "pytorch_lightning."},
	{"lightning.fabric.", "lightning_fabric."},
	{"megatron.core.tensor_parallel.layers.", "megatron.core.tensor_parallel."},
}

// builtins are the names that every module sees.
var builtins = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(`abs all any bool bytes callable chr classmethod dict dir divmod enumerate eval exec filter float format frozenset
		getattr globals hasattr hash id input int isinstance issubclass iter len list locals map max min next object open ord pow print property range repr
		reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip __import__ __name__ __file__ NotImplementedError Exception
		RuntimeError ValueError TypeError KeyError StopIteration AssertionError BaseException OSError MemoryError AttributeError ImportError IndexError`) {
		names[name] = true
	}
	return names
}()

// Library is the dotted name of the thing of a library that an expression stands for, "" for anything else. It is ExternalName of
// Eval, asked only where the answer can be a name: of most method calls the receiver need not be known.
func (v *View) Library(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) string {
	if attr, ok := e.(*syntax.Attribute); ok && !v.mayName(scope, attr) {
		return ""
	}
	return v.ExternalName(v.Eval(scope, frame, e))
}

// mayName reports whether an attribute can be a thing of a library: it is looked up in a module, or somebody assigns one to an
// attribute of that name.
func (v *View) mayName(scope *pyscan.Scope, attr *syntax.Attribute) bool {
	if v.about(scope.Module, attr.Attr)&referred != 0 {
		return true
	}
	root := attr.Value
	for {
		inner, ok := root.(*syntax.Attribute)
		if !ok {
			break
		}
		root = inner.Value
	}
	name, ok := root.(*syntax.Name)
	if !ok {
		return false
	}
	def := scope.Def(name)
	for s := scope.Parent; def == nil && s != nil; s = s.Parent {
		if s.Kind != pyscan.ClassScope {
			def = s.Exit(name.ID)
		}
	}
	return def == nil || modular(def, 3)
}

// modular reports whether a definition may give a name to a module or to a class.
func modular(def *pyscan.Def, depth int) bool {
	switch def.Kind {
	case pyscan.ImportDef, pyscan.ScopeDef:
		return true
	case pyscan.AssignDef:
		switch def.Value.(type) {
		case *syntax.Name, *syntax.Attribute, *syntax.IfExp, *syntax.BoolOp:
			return true
		case *syntax.Call: // importlib.import_module("torch"), getattr(torch, "cuda")
			name := pyscan.LastName(def.Value.(*syntax.Call).Func)
			return name == "import_module" || name == "__import__" || name == "getattr"
		}
	case pyscan.PhiDef:
		for _, one := range def.Alternatives() {
			if depth > 0 && modular(one, depth-1) {
				return true
			}
		}
	}
	return false
}
