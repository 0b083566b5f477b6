package distributed

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed process-group-timeout-short.md
var processGroupTimeoutShortDoc string

// Below these many seconds a collective gives up while another rank may still save, compile or read its data.
const (
	tooShort  = 120
	rareShort = 300
)

// groupMakers are the last names of what makes process groups.
var groupMakers = &pyscan.Words{Alias: true, Names: map[string]bool{"init_process_group": true, "init_distributed": true, "InitProcessGroupKwargs": true, "DDPStrategy": true,
	"FSDPStrategy": true, "TrainingArguments": true, "Seq2SeqTrainingArguments": true}}

// ProcessGroupTimeoutShort finds process groups that give up before slow but healthy steps end.
var ProcessGroupTimeoutShort = &lint.Rule{
	Name:     "process-group-timeout-short",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      processGroupTimeoutShortDoc,
	Severity: lint.Warning,
	Mentions: []string{"timeout"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, groupMakers) {
			call, scope := site.Call, site.Scope
			keyword, position := "timeout", -1
			switch pass.Library(scope, nil, call.Func) {
			case "torch.distributed.init_process_group":
				position = 2
			case "deepspeed.init_distributed":
				position = 4
			case "accelerate.InitProcessGroupKwargs", "accelerate.utils.InitProcessGroupKwargs":
				position = 2
			case "pytorch_lightning.strategies.DDPStrategy", "pytorch_lightning.strategies.FSDPStrategy", "lightning_fabric.strategies.DDPStrategy", "lightning_fabric.strategies.FSDPStrategy":
			case "transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments":
				keyword = "ddp_timeout"
			default:
				continue
			}
			argument := workspace.Argument(call, keyword, position)
			if argument == nil {
				continue
			}
			value := pass.Eval(scope, nil, argument)
			limit, known := number(pass, value)
			if keyword == "timeout" {
				limit, known = duration(pass, value)
			}
			if known {
				reportTimeout(pass, module.File.At(argument.Span()), limit)
			}
		}
	},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if part.Tree == nil || part.Section != "" {
			return
		}
		for _, key := range []string{"ddp_timeout", "--ddp_timeout", "--ddp-timeout", "--distributed-timeout-minutes"} {
			node := part.Tree.Root.Get(key)
			if node == nil || node.Open {
				continue
			}
			if n, ok := node.Int(configs.LoaderPydantic); ok && n > 0 {
				if key == "--distributed-timeout-minutes" {
					n *= 60
				}
				reportTimeout(pass, node.At, float64(n))
			}
		}
	},
}

func reportTimeout(pass *lint.Pass, at source.Place, limit float64) {
	if limit <= 0 || limit >= rareShort {
		return
	}
	d := pass.Reportf(at, "collectives give up after %g s: a rank that waits longer for another one to save a checkpoint, compile or read its data brings the whole job down", limit)
	if limit >= tooShort || workspace.IsTest(at.Path) {
		d.As(lint.Info)
	}
	d.Help("leave the default (10 minutes for NCCL, 30 for others), or more than the longest pause; on NPUs also more than HCCL_CONNECT_TIMEOUT and HCCL_EXEC_TIMEOUT")
}

func number(pass *lint.Pass, value pyscan.Value) (float64, bool) {
	c, ok := pass.Constant(pass.Settled(value))
	if !ok {
		return 0, false
	}
	return c.Number()
}

// duration is the length in seconds of a datetime.timedelta that is written out.
func duration(pass *lint.Pass, value pyscan.Value) (float64, bool) {
	inst, ok := value.(*pyscan.Result) // the class has a name in small letters
	if !ok || inst.Call == nil || inst.At.Module == nil || pass.ExternalName(inst.Of) != "datetime.timedelta" {
		return 0, false
	}
	scope := pyscan.ScopeAt(inst.At.Module, inst.Call)
	if pass.OpenKeywords(scope, inst.Frame, inst.Call) {
		return 0, false
	}
	total := 0.0
	for position, unit := range []struct {
		name    string
		seconds float64
	}{{"days", 86400}, {"seconds", 1}, {"microseconds", 1e-6}, {"milliseconds", 1e-3}, {"minutes", 60}, {"hours", 3600}, {"weeks", 7 * 86400}} {
		argument := pass.Arg(scope, inst.Frame, inst.Call, unit.name, position)
		if argument == nil {
			continue
		}
		n, ok := number(pass, argument)
		if !ok {
			return 0, false
		}
		total += n * unit.seconds
	}
	return total, true
}
