package device

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed hccl-env-unknown.md
var hcclEnvUnknownDoc string

// HcclEnvUnknown finds HCCL variables that nothing reads.
var HcclEnvUnknown = &lint.Rule{
	Name:     "hccl-env-unknown",
	Family:   "device",
	Since:    "0.1",
	Doc:      hcclEnvUnknownDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"HCCL_"},
	Variables: func(pass *lint.Pass, variables []workspace.Variable) {
		for _, variable := range variables {
			checkName(pass, variable)
		}
	},
}

func checkName(pass *lint.Pass, variable workspace.Variable) {
	name := variable.Name
	if _, known := hcclVariables[name]; known || !strings.HasPrefix(name, "HCCL_") && !strings.HasPrefix(name, "TORCH_HCCL_") || strings.HasPrefix(name, "TORCH_HCCL_STATUS_SAVE_") {
		return
	}
	if instead, known := hcclInstead[name]; known {
		d := pass.Reportf(variable.NameAt, "%s is not read by HCCL or torch_npu and has no effect%s", name, instead.meant())
		if instead.name == "" {
			d.Help("remove it")
		}
		return
	}
	prefix := name[:strings.Index(name, "HCCL_")+len("HCCL_")]
	var names []string
	for known := range hcclVariables {
		if rest, same := strings.CutPrefix(known, prefix); same {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	if near := nearest.Of(name[len(prefix):], names); near != "" {
		near = prefix + near
		d := pass.Reportf(variable.NameAt, "%s is not read by HCCL or torch_npu and has no effect (did you mean %s?)", name, near)
		at := variable.NameAt
		if variable.Node != nil && at.Span.Len() == len(name)+2 { // inside the quotes
			at.Span.Start, at.Span.End = at.Span.Start+1, at.Span.End-1
		}
		if at.Span.Len() == len(name) {
			d.Suggest("rename it to "+near, lint.Unsafe, lint.Edit{At: at, Text: near})
		}
		return
	}
	pass.Reportf(variable.NameAt, "%s is no HCCL variable that CANN or torch_npu document; a misspelt one has no effect", name).As(lint.Info)
}
