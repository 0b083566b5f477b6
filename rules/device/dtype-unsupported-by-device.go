package device

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed dtype-unsupported-by-device.md
var dtypeUnsupportedByDeviceDoc string

// DtypeUnsupportedByDevice finds precisions for which the device of the run has no arithmetic.
var DtypeUnsupportedByDevice = &lint.Rule{
	Name:     "dtype-unsupported-by-device",
	Family:   "device",
	Since:    "0.1",
	Doc:      dtypeUnsupportedByDeviceDoc,
	Severity: lint.Error,
	Run:      checkRunDtype,
	Module:   checkModuleDtype,
}

// lacks says which of bf16 and fp8 a device has no arithmetic for; nil where nothing is known of it.
func lacks(name string) (device *catalog.DeviceSpec, missing map[plan.DType]bool) {
	device, err := catalog.Device(name)
	if err != nil || device.Vendor == "" || device.Assumption != "" && device.BF16 {
		return nil, nil
	}
	return device, map[plan.DType]bool{plan.BFloat16: !device.BF16, plan.Float8: !device.FP8}
}

func checkRunDtype(pass *lint.Pass, run *workspace.Run) {
	name, known := run.Plan.Device.Get()
	if !known || !run.Trains() {
		return
	}
	device, missing := lacks(name)
	reported := map[source.Place]bool{}
	for _, value := range []plan.Value[plan.DType]{run.Plan.DType.Compute, run.Plan.DType.Params} {
		dtype, known := value.Get()
		if device == nil || !known || !missing[dtype] || value.How() != plan.IsWritten && value.How() != plan.IsFlag || len(value.From()) == 0 {
			continue
		}
		setting, found := run.Setting(value.From()[0])
		if !found || !setting.Part.Dialect.Trains() || reported[setting.Item.KeyAt] {
			continue
		}
		reported[setting.Item.KeyAt] = true
		at := setting.Item.KeyAt
		if setting.Item.Value != nil && !setting.Item.Value.At.IsZero() {
			at = setting.Item.Value.At
		}
		pass.Reportf(at, "%s", without(device, dtype)).Help("%s", other(device, dtype))
	}
}

func without(device *catalog.DeviceSpec, dtype plan.DType) string {
	if dtype == plan.Float8 {
		return device.Name + " has no fp8 arithmetic: the first fp8 matrix product fails"
	}
	return device.Name + " has no bf16 arithmetic: the run fails at the start, or emulates it many times slower"
}

func other(device *catalog.DeviceSpec, dtype plan.DType) string {
	if dtype == plan.Float8 && device.BF16 {
		return "use bf16"
	}
	return "use fp16 with loss scaling, or fp32"
}

// checkModuleDtype looks at dtype arguments where the user says which device the run has.
func checkModuleDtype(pass *lint.Pass, module *pyscan.Module) {
	facts := pass.Facts(module.File.Path)
	if facts == nil {
		return
	}
	name, known := facts.Device.Get()
	if !known {
		return
	}
	device, missing := lacks(name)
	if device == nil || !missing[plan.BFloat16] && !missing[plan.Float8] {
		return
	}
	pass.Placed(module.File.Path)
	report := func(scope *pyscan.Scope, e syntax.Expr, node syntax.Node) {
		if dtype := dtypeOf(pass, scope, e); missing[dtype] && condition(pass, scope, node) == always {
			pass.Reportf(module.File.At(e.Span()), "%s", without(device, dtype)).Help("%s", other(device, dtype))
		}
	}
	for _, site := range module.Calls {
		call, scope := site.Call, site.Scope
		attr, method := call.Func.(*syntax.Attribute)
		if method && attr.Attr == "bfloat16" && len(call.Args) == 0 && missing[plan.BFloat16] && condition(pass, scope, call) == always {
			pass.Reportf(module.File.At(call.Span()), "%s", without(device, plan.BFloat16)).Help("%s", other(device, plan.BFloat16))
		}
		if method && (attr.Attr == "to" || attr.Attr == "type") {
			for _, argument := range call.Args {
				report(scope, argument, call)
			}
		}
		for _, k := range call.Keywords {
			switch k.Arg {
			case "dtype", "torch_dtype", "param_dtype", "reduce_dtype":
				report(scope, k.Value, call)
			case "bf16", "fp8":
				dtype := map[string]plan.DType{"bf16": plan.BFloat16, "fp8": plan.Float8}[k.Arg]
				if strings.HasSuffix(pass.Library(scope, nil, call.Func), "TrainingArguments") && missing[dtype] && pass.Truthy(pass.Eval(scope, nil, k.Value)) == pyscan.Yes && condition(pass, scope, call) == always {
					pass.Reportf(module.File.At(k.Value.Span()), "%s", without(device, dtype)).Help("%s", other(device, dtype))
				}
			case "mixed_precision", "precision":
				if c, ok := pass.Constant(pass.Eval(scope, nil, k.Value)); ok {
					text, _ := c.Str()
					dtype := plan.DType("")
					switch {
					case strings.HasPrefix(text, "bf16"):
						dtype = plan.BFloat16
					case strings.HasPrefix(text, "fp8"):
						dtype = plan.Float8
					}
					if missing[dtype] && condition(pass, scope, call) == always {
						pass.Reportf(module.File.At(k.Value.Span()), "%s", without(device, dtype)).Help("%s", other(device, dtype))
					}
				}
			}
		}
	}
}

func dtypeOf(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr) plan.DType {
	switch name := pass.Library(scope, nil, e); {
	case name == "torch.bfloat16":
		return plan.BFloat16
	case strings.HasPrefix(name, "torch.float8_"):
		return plan.Float8
	}
	return ""
}
