package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

// ruleOfFramework are the values that a framework refuses for another reason than their type: most of them only beside
// another setting.
func ruleOfFramework(pass *lint.Pass, s *setting) *fault {
	if s.item().Value.Open {
		return nil
	}
	if f := wrapClassFault(s); f != nil {
		return f
	}
	switch s.part.Dialect {
	case dialect.DeepSpeed:
		return deepspeedFault(pass, s)
	case dialect.HFTrainingArguments, dialect.LLaMAFactory:
		return trainerFault(pass, s)
	}
	return nil
}

func trainerFault(pass *lint.Pass, s *setting) *fault {
	v, ok := value(s.part, s.item().Value)
	if !ok || s.section != "" {
		return nil
	}
	if text, isText := v.Str(); isText && s.part.Tree.Format == configs.Flags && strings.Contains(text, ".") {
		v, _ = constant.Convert("float", v)
	}
	n, isNumber := v.Number()
	if s.name == "warmup_steps" && isNumber && v.Kind() == constant.Float && n != math.Trunc(n) {
		if pin := pass.Pin(s.part.Path, "transformers"); pin.Since("5") == pyscan.Yes && n > 0 && n < 1 {
			return nil // the share of all steps
		} else if pin.Since("5") == pyscan.No {
			f := refused("is %s, not a whole number of steps: %s raises ValueError; write warmup_ratio for a share of all steps", v, pin)
			f.pin, f.since = pin, "5"
			return f
		}
		f := refused("is %s: transformers before 5 raises ValueError, 5 and later take a value below 1 as the share of all steps", v)
		if s.part.Dialect != dialect.LLaMAFactory || n >= 1 {
			f.severity = lint.Info // right with the newest release
		}
		return f
	}
	return nil
}

func deepspeedFault(pass *lint.Pass, s *setting) *fault {
	if f := listFault(s); f != nil {
		return f
	}
	v, ok := value(s.part, s.item().Value)
	if !ok || isAuto(v) {
		return elasticFault(s)
	}
	if f := engineFault(s, v); f != nil {
		return f
	}
	if f := besideFault(s, v); f != nil {
		return f
	}
	n, isNumber := v.Number()
	if isBool := v.Kind() == constant.Bool; isBool {
		isNumber = false
	}
	text, isText := v.Str()
	switch s.path() {
	case "fp16.loss_scale":
		if v.Kind() == constant.Bool {
			return refused("is %s, wanted a number: DeepSpeed refuses the config", v)
		}
		if isNumber && (n < 0 || math.IsInf(n, 0)) {
			return refused("is %s, wanted 0 (dynamic) or a positive number", v)
		}
	case "fp16.loss_scale_window", "fp16.min_loss_scale":
		scale, fixed := numberAt(s.part, "fp16", "loss_scale")
		if on, known := switchAt(s.part, "fp16", "enabled"); on && known && isNumber && n <= 0 && !(fixed && scale != 0) {
			return refused("is %s, wanted more than 0 where the loss is scaled dynamically: DeepSpeed refuses the config", v)
		}
	case "zero_optimization.offload_optimizer.ratio":
		if stage, known := zeroStage(s.part); known && isNumber && n < 1 && n >= 0 && stage != 3 {
			return refused("is %s, and only ZeRO stage 3 offloads a part of the optimizer: DeepSpeed refuses the config", v)
		}
	case "zero_optimization.legacy_stage1":
		if on, ok := v.Bool(); ok && on {
			f := refused("is true, which the engine refuses when it starts: that implementation is gone")
			f.severity = lint.Warning
			return f
		}
	case "zero_optimization.zenflow.select_interval", "zero_optimization.zenflow.update_interval":
		if isText {
			if _, err := strconv.Atoi(text); err != nil {
				return refused("is %q: of texts only auto is taken", text)
			}
		}
	case "gradient_allreduce_op":
		stage, known := zeroStage(s.part)
		if known && stage == 3 && strings.EqualFold(text, "sum") {
			return refused("is sum, which ZeRO stage 3 cannot do: DeepSpeed refuses it")
		}
	case "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states", "fp16.fp16_master_weights_and_grads":
		stage, known := zeroStage(s.part)
		on, sure := switchAt(s.part, strings.Split(s.path(), ".")...)
		if on && sure && known && stage == 0 {
			return refused("is on, which needs ZeRO stage 1, 2 or 3: DeepSpeed refuses the config")
		}
		if master, known := switchAt(s.part, "bf16", "bf16_master_weights_and_grads"); on && sure && s.name == "bf16_optimizer_states" && known && !master {
			return refused("is on, which needs bf16.bf16_master_weights_and_grads too")
		}
	case "scheduler.params.warmup_num_steps":
		return warmupFault(pass, s, v)
	case "scheduler.params.total_num_steps":
		warmup, ok := numberAt(s.part, "scheduler", "params", "warmup_num_steps")
		if ok && isNumber && n < warmup && isWarmup(s.part) {
			f := refused("is %s, less than the %s steps of the warm-up: the rate falls at once when the warm-up ends", v, strconv.FormatFloat(warmup, 'g', -1, 64))
			f.severity = lint.Warning
			return f
		}
	case "pipeline.pipe_partitioned", "pipeline.grad_partitioned":
		if v.Kind() != constant.Bool {
			return refused("is %s, wanted true or false: the pipeline engine refuses others", v)
		}
	case "communication_data_type":
		if v.Kind() == constant.Bool {
			return refused("is %s, wanted fp16, bf16 or fp32: DeepSpeed fails when it loads the config", v)
		}
	case "wall_clock_breakdown":
		if isText {
			return refused("is the text %q, wanted true or false: DeepSpeed fails when it loads the config", text)
		}
	case "zero_optimization":
		if isText {
			return refused("is the text %q, wanted a mapping: DeepSpeed fails when it loads the config", text)
		}
	case "quantize_training.eigenvalue.enabled":
		if on, ok := v.Bool(); ok && on {
			return refused("is true, which DeepSpeed refuses: it is switched off for now")
		}
	}
	return elasticFault(s)
}

func isWarmup(part *workspace.Part) bool {
	return strings.HasPrefix(textAt(part, "scheduler", "type"), "warmup")
}

// The releases in which DeepSpeed changed what it makes of warmup_num_steps: at first it took the logarithm of the number as it is,
// then of max(2, number), and by now the constructor wants an int above 0.
const (
	warmupAtLeastTwo = "0.3.12"
	warmupChecked    = "0.19.3"
)

// warmupFault: what the release makes of a number of warm-up steps that is not a whole one above 0.
func warmupFault(pass *lint.Pass, s *setting, v constant.Value) *fault {
	n, ok := v.Number()
	if !isWarmup(s.part) || v.Kind() == constant.Bool || !ok || v.Kind() != constant.Float && n >= 1 {
		return nil
	}
	pin := pass.Pin(s.part.Path, "deepspeed")
	checked := pin.Since(warmupChecked)
	since := "DeepSpeed from " + warmupChecked + " on"
	if checked == pyscan.Yes {
		since = pin.String()
	}
	if n < 1 {
		return fewWarmupSteps(s, v, pin, since)
	}
	if checked == pyscan.No { // it warms up over so many steps
		return nil
	}
	f := refused("is %s, wanted a whole number without a point: %s raises ValueError when the engine starts", v, since)
	if f.pin, f.since = pin, warmupChecked; n == math.Trunc(n) {
		f.instead = strconv.FormatFloat(n, 'f', -1, 64)
	}
	return f
}

// fewWarmupSteps is the fault of a number of warm-up steps below 1.
func fewWarmupSteps(s *setting, v constant.Value, pin workspace.Pin, since string) *fault {
	switch {
	case pin.Since(warmupAtLeastTwo) == pyscan.No:
		f := refused("is %s, wanted at least 2: %s takes its logarithm, which raises when the engine starts", v, pin)
		f.pin, f.since = pin, warmupAtLeastTwo
		return f
	case pin.Since(warmupChecked) == pyscan.No:
		f := refused("is %s, wanted at least 1: %s warms up over 2 steps instead, and DeepSpeed from %s on raises ValueError", v, pin, warmupChecked)
		f.severity, f.pin, f.since = lint.Warning, pin, warmupChecked
		low, written := numberAt(s.part, "scheduler", "params", "warmup_min_lr")
		if high, both := numberAt(s.part, "scheduler", "params", "warmup_max_lr"); written && both && low == high {
			f.severity = lint.Info // steps between equal rates change nothing
		}
		return f
	}
	f := refused("is %s, wanted at least 1: %s raises ValueError when the engine starts", v, since)
	if f.pin, f.since = pin, warmupChecked; pin.Since(warmupChecked) != pyscan.Yes {
		f.message += "; earlier releases warm up over 2 steps"
	}
	return f
}

// elasticFault are the rules of the section elasticity.
func elasticFault(s *setting) *fault {
	if s.section != "elasticity" {
		return nil
	}
	if on, known := switchAt(s.part, "elasticity", "enabled"); !on || !known {
		return nil
	}
	n, isNumber := numberAt(s.part, "elasticity", s.name)
	switch s.name {
	case "max_gpus":
		if low, ok := numberAt(s.part, "elasticity", "min_gpus"); ok && isNumber && n < low {
			return refused("is less than min_gpus: DeepSpeed refuses the config")
		}
	case "min_time":
		if isNumber && n < 0 {
			return refused("is less than 0: DeepSpeed refuses the config")
		}
	case "min_gpus", "max_train_batch_size", "num_gpus_per_node":
		if isNumber && n < 1 {
			return refused("is less than 1: DeepSpeed refuses the config")
		}
	case "version":
		if isNumber && n > 0.2 {
			return refused("is newer than 0.2, the last one that DeepSpeed knows")
		}
	case "model_parallel_size":
		if version, ok := numberAt(s.part, "elasticity", "version"); ok && isNumber && n > 1 && version < 0.2 {
			return refused("needs version 0.2: DeepSpeed refuses the config")
		}
	case "micro_batch_sizes":
		top, ok := numberAt(s.part, "elasticity", "max_train_batch_size")
		for i := range s.item().Value.Items {
			element := s.item().Value.Items[i].Value
			v, known := value(s.part, element)
			if size, numeric := v.Number(); known && (!numeric || size < 1 || ok && size > top) {
				return refused("holds %s, wanted whole numbers from 1 to max_train_batch_size: DeepSpeed refuses the config", v)
			}
		}
	}
	return nil
}

// layerClasses are classes of transformers that wrapping policies name. FSDP looks for them among the modules of the model by
// their exact names.
var layerClasses = []string{
	"LlamaDecoderLayer", "MistralDecoderLayer", "MixtralDecoderLayer", "Qwen2DecoderLayer", "Qwen2MoeDecoderLayer", "Qwen3DecoderLayer", "Qwen3MoeDecoderLayer", "GemmaDecoderLayer",
	"Gemma2DecoderLayer", "Gemma3DecoderLayer", "PhiDecoderLayer", "Phi3DecoderLayer", "FalconDecoderLayer", "OPTDecoderLayer", "GPT2Block", "GPTJBlock", "GPTNeoXLayer", "GPTBigCodeBlock",
	"BloomBlock", "MptBlock", "T5Block", "BertLayer", "RobertaLayer", "CohereDecoderLayer", "OlmoDecoderLayer", "Olmo2DecoderLayer", "DbrxBlock", "StableLmDecoderLayer",
	"Starcoder2DecoderLayer", "DeepseekV3DecoderLayer", "GraniteDecoderLayer", "Llama4TextDecoderLayer", "Qwen2VLDecoderLayer", "GptOssDecoderLayer", "MiniCPMDecoderLayer", "JambaMambaDecoderLayer", "JambaAttentionDecoderLayer",
	"Idefics2VisionTransformer", "MllamaSelfAttentionDecoderLayer", "MllamaCrossAttentionDecoderLayer", "MllamaVisionEncoderLayer", "WhisperEncoderLayer", "WhisperDecoderLayer", "ViTLayer", "FluxTransformerBlock", "FluxSingleTransformerBlock",
}

// wrapClassFault: the class that FSDP wraps differs from one of transformers only in the case of its letters.
func wrapClassFault(s *setting) *fault {
	if s.name != "transformer_layer_cls_to_wrap" && s.name != "fsdp_transformer_layer_cls_to_wrap" {
		return nil
	}
	node := s.item().Value
	var names []string
	if node.Kind == configs.Sequence {
		for i := range node.Items {
			v, _ := value(s.part, node.Items[i].Value)
			if text, ok := v.Str(); ok {
				names = append(names, text)
			}
		}
	} else if v, ok := value(s.part, node); ok {
		text, _ := v.Str()
		names = strings.Split(text, ",")
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(layerClasses, name) {
			continue
		}
		for _, class := range layerClasses {
			if strings.EqualFold(class, name) || len(name) > 12 && len(name) != len(class) && nearest.Within(name, []string{class}, 1) != "" && !digitsDiffer(name, class) {
				return refused("names the class %s, which does not exist; transformers calls it %s: the wrapping policy finds no layer, and the run stops", name, class)
			}
		}
	}
	return nil
}

// digitsDiffer: Qwen2 and Qwen3, Phi and Phi3 are different models.
func digitsDiffer(a, b string) bool {
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, s)
	}
	return digits(a) != digits(b)
}
