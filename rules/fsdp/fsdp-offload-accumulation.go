package fsdp

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-offload-accumulation.md
var fsdpOffloadAccumulationDoc string

// FsdpOffloadAccumulation finds accumulation outside of no_sync on an FSDP1 model that offloads to the host.
var FsdpOffloadAccumulation = &lint.Rule{
	Name:     "fsdp-offload-accumulation",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpOffloadAccumulationDoc,
	Severity: lint.Error,
	Mentions: []string{"cpu_offload", "fsdp_offload_params"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, wrapNames) {
			call, scope := site.Call, site.Scope
			if pass.Library(scope, nil, call.Func) != fsdp1 {
				continue
			}
			value := workspace.Argument(call, "cpu_offload", offloadPosition)
			if value == nil || !offloads(pass, pass.Expand(pass.Eval(scope, nil, value))) {
				continue
			}
			var at syntax.Node = value
			if k := keywordAt(call, "cpu_offload"); k != nil {
				at = k
			}
			checkOffload(pass, module, call, module.File.At(at.Span()))
		}
	},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		if sharding, known := run.Plan.Sharding.Get(); !known || sharding != plan.FSDP1 {
			return
		}
		for _, part := range run.Parts {
			if part.Dialect != dialect.Accelerate {
				continue
			}
			if item := part.Tree.Root.Get("fsdp_config").Item("fsdp_offload_params"); item != nil && item.Value != nil {
				if on, known := item.Value.Bool(part.Dialect.Loader); known && on {
					checkPrepared(pass, run, item.KeyAt)
				}
			}
		}
	},
}

// checkPrepared looks for loops of the program of a run that accumulate by hand over what accelerator.prepare gave.
func checkPrepared(pass *lint.Pass, run *workspace.Run, at source.Place) {
	if run.Program == "" {
		return
	}
	for i, file := range pass.Closure(run.Program) {
		if i > maxElsewhere {
			return
		}
		m := pass.Module(file)
		if m == nil {
			continue
		}
		for _, l := range pass.Loops(m) {
			if len(l.Deep(loop.NoSync)) > 0 {
				continue
			}
			for _, window := range loop.Windows(l, pass) {
				backward := window.Backward[0]
				if window.Accumulates != pyscan.Yes || len(window.Steps) == 0 || backward.By != loop.Accelerate || backward.In(loop.NoSyncContext) || backward.In(loop.AccumulateContext) {
					continue
				}
				d := pass.Reportf(at, "FSDP with parameters offloaded to the host replaces the gradient of the micro-batch before instead of adding to it: only the last of the accumulated micro-batches counts")
				d.Note(backward.At, "micro-batches are accumulated here").Help("accumulate under accelerator.accumulate(model), or use FSDP2")
				return
			}
		}
	}
}

// offloads reports whether a value is CPUOffload(offload_params=True).
func offloads(pass *lint.Pass, value pyscan.Value) bool {
	made, ok := value.(*pyscan.Instance)
	if !ok || made.Call == nil || made.At.Module == nil || pyscan.LastPart(pass.ExternalName(made.Of)) != "CPUOffload" {
		return false
	}
	flag := pass.Arg(pyscan.ScopeAt(made.At.Module, made.Call), made.Frame, made.Call, "offload_params", 0)
	return flag != nil && pass.Truthy(pass.Expand(flag)) == pyscan.Yes
}

// maxElsewhere bounds the other files in which loops over the model are looked for.
const maxElsewhere = 8

// checkOffload looks for loops that accumulate over the model of a wrapping call, in this file and those that call backward.
func checkOffload(pass *lint.Pass, module *pyscan.Module, wrap *syntax.Call, at source.Place) {
	files := []string{module.File.Path}
	if elsewhere := pass.Mentioning(module.File.Path, "backward"); len(elsewhere) <= maxElsewhere {
		files = append(files, elsewhere...)
	}
	for i, file := range files {
		m := pass.Module(file)
		if m == nil || i > 0 && file == module.File.Path {
			continue
		}
		for _, l := range pass.Loops(m) {
			if len(l.Deep(loop.NoSync)) > 0 {
				continue
			}
			for _, window := range loop.Windows(l, pass) {
				w, is := fsdpForward(pass, window.Micro)
				if window.Accumulates != pyscan.Yes || len(window.Steps) == 0 || is == pyscan.No || w.Call != wrap || window.Backward[0].In(loop.NoSyncContext) {
					continue
				}
				d := pass.Reportf(at, "FSDP with parameters offloaded to the host replaces the gradient of the micro-batch before instead of adding to it: only the last of the accumulated micro-batches counts")
				if is == pyscan.Maybe {
					d.As(lint.Warning)
				}
				d.Note(window.Backward[0].At, "micro-batches are accumulated here").Help("accumulate under model.no_sync(), or use FSDP2 with CPUOffloadPolicy")
				return
			}
		}
	}
}

// gigabytes prints a size.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }
