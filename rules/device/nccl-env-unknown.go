package device

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed nccl-env-unknown.md
var ncclEnvUnknownDoc string

// NcclEnvUnknown finds NCCL variables that nothing reads.
var NcclEnvUnknown = &lint.Rule{
	Name:     "nccl-env-unknown",
	Family:   "device",
	Since:    "0.1",
	Doc:      ncclEnvUnknownDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"NCCL_"},
	Variables: func(pass *lint.Pass, variables []workspace.Variable) {
		set := map[string]string{}
		for _, variable := range variables {
			set[variable.Name] = variable.Value
		}
		for _, variable := range variables {
			if strings.HasPrefix(variable.Name, "NCCL_") || strings.HasPrefix(variable.Name, "TORCH_NCCL_") {
				checkNcclName(pass, variable, set)
			}
		}
	},
}

// checkNcclName looks at one variable. Set are the names that the file sets, and their values.
func checkNcclName(pass *lint.Pass, variable workspace.Variable, set map[string]string) {
	name := variable.Name
	isSet := func(name string) bool { _, ok := set[name]; return ok }
	known, is := ncclVariables()[name]
	switch {
	case is && known.removed != "":
		pass.Reportf(variable.NameAt, "NCCL does not read %s since %s: the setting has no effect", name, known.removed).As(lint.Info)
		return
	case slices.Contains(torchRenamed, name):
		torch := pass.Pin(variable.NameAt.Path, "torch")
		if torch.Since("2.2") == pyscan.No || isSet("TORCH_"+name) { // for both
			return
		}
		d := pass.Reportf(variable.NameAt, "PyTorch calls it TORCH_%s since 2.2, and warns of the old name", name).As(lint.Info)
		if torch.Since("2.2") == pyscan.Yes {
			rename(d, variable, "TORCH_"+name)
		}
		return
	case is:
		if old := strings.TrimPrefix(name, "TORCH_"); old != name && slices.Contains(torchRenamed, old) && !isSet(old) {
			if torch := pass.Pin(variable.NameAt.Path, "torch"); torch.Since("2.2") == pyscan.No {
				rename(pass.Reportf(variable.NameAt, "%s does not read %s: before 2.2 it is %s, so the setting has no effect", torch, name, old), variable, old)
			}
		}
		return
	}
	if instead := ncclInstead[name]; instead != "" {
		pass.Reportf(variable.NameAt, "neither NCCL nor PyTorch reads %s, so the setting has no effect", name).Help("use %s", instead)
		return
	}
	if instead := ncclIdle[name]; instead != "" {
		pass.Reportf(variable.NameAt, "neither NCCL nor PyTorch reads %s", name).As(lint.Info).Help("use %s", instead)
		return
	}
	near, opposite := ncclNear(name)
	switch {
	case near == "":
	case isSet(near) && set[near] == variable.Value && !opposite: // for both: what was wanted has been got
	case opposite:
		pass.Reportf(variable.NameAt, "neither NCCL nor PyTorch reads %s, so the setting has no effect; there is %s, with the opposite meaning", name, near)
	default:
		rename(pass.Reportf(variable.NameAt, "neither NCCL nor PyTorch reads %s, so the setting has no effect; there is %s", name, near), variable, near)
	}
}

// rename suggests another name where the name is written out.
func rename(d *lint.Diagnostic, variable workspace.Variable, name string) {
	at := variable.NameAt
	if variable.Node != nil && at.Span.Len() == len(variable.Name)+2 { // inside the quotes
		at.Span.Start, at.Span.End = at.Span.Start+1, at.Span.End-1
	}
	if at.Span.Len() == len(variable.Name) {
		d.Suggest("rename it to "+name, lint.Unsafe, lint.Edit{At: at, Text: name})
	}
}
