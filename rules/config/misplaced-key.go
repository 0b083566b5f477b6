package config

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed misplaced-key.md
var docMisplacedKey string

// MisplacedKey reports keys that the framework knows, but not where they stand.
var MisplacedKey = &lint.Rule{
	Name:     "misplaced-key",
	Family:   "config",
	Since:    "0.1",
	Doc:      docMisplacedKey,
	Severity: lint.Error,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if fromFlags(part) {
			return
		}
		own := ownSettings(part)
		for _, s := range settings(part) {
			if s.key != nil || own && s.section == "" {
				continue
			}
			if to := home(s); to != "" {
				policy, since, deepspeed := strictness(pass, s, misplacedPolicy(s))
				d := pass.Reportf(s.item().KeyAt, "%s does not belong in %s%s", s.name, place(s), effect(part.Dialect, policy)+since).Pinned(deepspeed, strictPrecision)
				if deepspeed.Since(strictPrecision) == pyscan.No {
					d.As(lint.Warning) // a later release refuses it
				}
				d.Help("%s", to)
				if s.name == "max_grad_norm" && entry(part, "gradient_clipping") != nil {
					// It runs where the program brings an optimizer of its own; DeepSpeed then reads none of these.
					d.As(lint.Warning).Message = "max_grad_norm stands in optimizer.params beside gradient_clipping: DeepSpeed refuses it where it makes the optimizer itself, and reads none of them otherwise"
				}
				if part.Dialect == dialect.Accelerate && strings.HasPrefix(to, "write it in a DeepSpeed config") {
					d.As(lint.Warning) // no setting of accelerate's own was meant
				}
			}
		}
	},
}

// misplacedPolicy: what stands below optimizer.params is passed on, and raises there.
func misplacedPolicy(s *setting) dialect.Unknown {
	if s.policy.Unknown == dialect.Accepted {
		return dialect.Rejected
	}
	return s.policy.Unknown
}

// homes are sections whose keys say by their names where they belong, wherever else the same name is known.
var homes = map[string]string{"opt_level": "amp", "loss_scale": "fp16", "stage": "zero_optimization", "device": ""}

// generic are names that many sections have: standing in another one they may mean anything.
var generic = []string{
	"enabled", "enable", "type", "params", "seed", "profile", "dtype", "mode", "name", "verbose", "debug", "version", "project", "group", "team", "output_path", "job_name", "fast",
	"overwrite", "metric", "device", "steps", "warmup", "dataset", "attention", "block", "format", "log", "data", "model", "eval", "folder", "interval", "tensorboard", "num_workers", "max_steps", "pin_memory",
}

// home says where a setting belongs that its section does not know; "" where that is not certain.
func home(s *setting) string {
	if s.policy.Unknown == dialect.Accepted {
		if s.part.Dialect == dialect.DeepSpeed && s.section == "optimizer.params" && s.name == "max_grad_norm" {
			return "write gradient_clipping at the top level"
		}
		return ""
	}
	if s.part.Dialect == dialect.Accelerate && s.section == "deepspeed_config" {
		return accelerateHome(s)
	}
	if slices.Contains(generic, s.name) && homes[s.name] == "" {
		return ""
	}
	paths := slices.DeleteFunc(s.table.Paths(s.name), func(path string) bool {
		return path == s.path() || strings.Count(path, ".") > 2 || strings.HasPrefix(path, "fsdp_config.") && s.part.Dialect.Name == "llamafactory"
	})
	if at := homes[s.name]; at != "" {
		paths = []string{under(at, s.name)}
		if s.table.Lookup(paths[0]) == nil {
			return ""
		}
	}
	if len(paths) == 0 && s.part.Dialect == dialect.DeepSpeed {
		paths = constructorPaths(s)
	}
	switch {
	case len(paths) == 0 || len(paths) > 2:
		return ""
	case !strings.Contains(paths[0], "."):
		return "write it at the top level"
	}
	if s.part.Dialect == dialect.DeepSpeed && s.section == "bf16" && strings.HasPrefix(paths[0], "fp16.") {
		return "leave it out: it scales the loss for fp16, which bf16 does not need"
	}
	return "write it as " + oneOf(paths)
}

// constructorPaths are where the argument of an optimizer or scheduler belongs: written beside params, or at the top.
func constructorPaths(s *setting) []string {
	var paths []string
	for _, owner := range []string{"optimizer", "scheduler"} {
		kind := textAt(s.part, owner, "type")
		if (s.section == "" || s.section == owner) && s.table.Params(owner, kind)[s.name] != nil && s.part.Tree.Root.Get(owner, "params", s.name) == nil {
			paths = append(paths, owner+".params."+s.name)
		}
	}
	return paths
}

// accelerateNames are what accelerate calls settings of DeepSpeed in its own file.
var accelerateNames = map[string]string{
	"stage": "zero_stage", "zero_optimization": "zero_stage", "offload_optimizer": "offload_optimizer_device", "offload_param": "offload_param_device", "cpu_offload": "offload_optimizer_device",
	"stage3_gather_16bit_weights_on_model_save": "zero3_save_16bit_model", "gather_16bit_weights_on_model_save": "zero3_save_16bit_model", "stage3_gather_fp16_weights_on_model_save": "zero3_save_16bit_model",
}

// accelerateHome: in accelerate's own file DeepSpeed's keys have other names, or none.
func accelerateHome(s *setting) string {
	name := accelerateNames[s.name]
	known := dialect.Keys(dialect.DeepSpeed)
	switch {
	case name != "" && s.part.Tree.Root.Get("deepspeed_config", name) != nil:
		return "leave it out: accelerate calls it " + name + ", which is written too"
	case name != "":
		return "accelerate calls it " + name
	case slices.Contains(generic, s.name):
		return ""
	case s.name == "fp16" || s.name == "bf16":
		return "write mixed_precision: " + s.name + " at the top level"
	case s.name == "nvme_path":
		return "accelerate calls it offload_optimizer_nvme_path and offload_param_nvme_path"
	case len(known.Paths(s.name)) > 0:
		return "write it in a DeepSpeed config, and name that as deepspeed_config_file"
	}
	if own := s.table.Paths(s.name); len(own) == 1 && s.item().Value.Kind == configs.Scalar && !strings.Contains(own[0], ".") {
		return "write it at the top level"
	}
	return ""
}
