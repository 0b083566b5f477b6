package config

import (
	"math"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/constant"
)

// torchOptimizers and torchSchedulers are the classes of torch 2 that DeepSpeed finds by their exact names beside its own.
var (
	torchOptimizers = []string{"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam"}
	torchSchedulers = []string{"ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR",
		"MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"}
)

// engineFault are values that DeepSpeed loads and that stop it when the engine starts, or at the first step. Each was seen to, with
// DeepSpeed 0.19.6 and torch 2.8.
func engineFault(s *setting, v constant.Value) *fault {
	n, isNumber := v.Number()
	if v.Kind() == constant.Bool {
		isNumber = false
	}
	text, isText := v.Str()
	switch s.path() {
	case "optimizer.type":
		if isText && text != "" && !slices.ContainsFunc(words(s.key.Choices), func(known string) bool { return strings.EqualFold(known, text) }) && !slices.Contains(torchOptimizers, text) {
			return refused("is %q, which is no optimizer of DeepSpeed's, and no class of torch.optim: the engine refuses it when it starts", text)
		}
	case "scheduler.type":
		if !isText || text == "" || slices.Contains(torchSchedulers, text) || slices.Contains(words(s.key.Choices), text) {
			return nil
		}
		f := refused("is %q, which is no schedule of DeepSpeed's, and no class of torch.optim.lr_scheduler: the engine refuses it when it starts", text)
		for _, known := range words(s.key.Choices) {
			if strings.EqualFold(known, text) {
				f.message += "; " + known + " is meant, it seems"
				f.instead = requote(s, known)
			}
		}
		return f
	case "optimizer.params.lr":
		if isNumber && n < 0 {
			return refused("is %s: a rate is not negative", v)
		}
	case "steps_per_print":
		if isNumber && n == 0 {
			return refused("is 0: DeepSpeed divides by it at the first step; leave it out to print nothing")
		}
	case "managed_gradient_accumulation":
		stage, known := zeroStage(s.part)
		overlap, sure := switchAt(s.part, "zero_optimization", "overlap_comm")
		if on, is := v.Bool(); is && !on && known && stage == 1 && overlap && sure {
			return refused("is false, which works with overlap_comm at ZeRO stage 2 alone: the engine refuses it when it starts")
		}
	case "data_types.grad_accum_dtype":
		return accumulationFault(s, text)
	case "scheduler.params.cycle_first_step_size", "scheduler.params.cycle_second_step_size":
		first := s.name == "cycle_first_step_size"
		if textAt(s.part, "scheduler", "type") == "onecycle" && isNumber && (n < 0 || first && n == 0) {
			return refused("is %s, wanted %s: the scheduler refuses it when the engine starts", v, map[bool]string{true: "more than 0", false: "at least 0"}[first])
		}
	case "scheduler.params.lr_range_test_step_size":
		if isNumber && (n < 1 || n != math.Trunc(n)) {
			return refused("is %s, wanted a whole number from 1: the scheduler refuses it when the engine starts", v)
		}
	}
	return nil
}

// accumulationFault: without ZeRO gradients are accumulated in the type of the model.
func accumulationFault(s *setting, written string) *fault {
	stage, known := zeroStage(s.part)
	if !known || stage != 0 || !slices.Contains([]string{"fp32", "fp16", "bf16"}, written) {
		return nil
	}
	model := "fp32"
	for _, section := range [][]string{{"fp16"}, {"bf16", "bfloat16"}} {
		for _, name := range section {
			on, sure := switchAt(s.part, name, "enabled")
			if !sure {
				return nil
			}
			if on {
				model = section[0]
			}
		}
	}
	if model == written {
		return nil
	}
	return refused("is %s, and the model is in %s: without ZeRO the engine takes no other type, and refuses it when it starts", written, model)
}

// listFault are faults of the elements of a list.
func listFault(s *setting) *fault {
	node := s.item().Value
	if node.Kind != configs.Sequence || node.Open {
		return nil
	}
	var numbers []float64
	for i := range node.Items {
		v, ok := value(s.part, node.Items[i].Value)
		if !ok {
			return nil
		}
		if text, is := v.Str(); is && s.path() == "compile.passes" && !slices.Contains([]string{"z1", "z3", "autosp", "autotp"}, text) {
			return refused("holds %q, wanted z1, z3, autosp or autotp: DeepSpeed refuses the config", text)
		}
		if n, is := v.Number(); is {
			numbers = append(numbers, n)
		}
	}
	if s.path() == "compile.passes" && len(node.Items) > 1 && slices.Contains(passes(s.part), "autotp") {
		return refused("holds autotp beside other passes, and it runs alone: DeepSpeed refuses it when it compiles the model")
	}
	if s.path() == "optimizer.params.betas" && len(numbers) == len(node.Items) {
		if len(numbers) < 2 {
			return refused("holds %d numbers, wanted two", len(numbers))
		}
		for _, beta := range numbers {
			if beta < 0 || beta >= 1 {
				return refused("holds %g, wanted numbers from 0 to below 1", beta)
			}
		}
	}
	return nil
}
