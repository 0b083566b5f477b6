package device

import (
	_ "embed"
	"strconv"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed hccl-env-value.md
var hcclEnvValueDoc string

// HcclEnvValue finds values that HCCL rejects, or that mean something else than was meant.
var HcclEnvValue = &lint.Rule{
	Name:     "hccl-env-value",
	Family:   "device",
	Since:    "0.1",
	Doc:      hcclEnvValueDoc,
	Severity: lint.Error,
	Mentions: []string{"HCCL_"},
	Variables: func(pass *lint.Pass, variables []workspace.Variable) {
		last := map[string]workspace.Variable{}
		for _, variable := range variables {
			known, is := hcclVariables[variable.Name]
			if !is || !variable.Known || variable.Value == "" { // an empty value unsets it
				continue
			}
			last[variable.Name] = variable
			if fault := known.badValue(variable.Name, variable.Value); fault != "" {
				pass.Reportf(variable.ValueAt, "%s", fault)
			}
		}
		checkRelations(pass, last)
	},
}

// checkRelations compares the variables that a file sets with each other.
func checkRelations(pass *lint.Pass, set map[string]workspace.Variable) {
	pcie, roce := set["HCCL_INTRA_PCIE_ENABLE"], set["HCCL_INTRA_ROCE_ENABLE"]
	if pcie.Value == "1" && roce.Value == "1" {
		later, earlier := roce, pcie
		if later.ValueAt.Span.Start < earlier.ValueAt.Span.Start {
			later, earlier = earlier, later
		}
		pass.Reportf(later.ValueAt, "HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1: the ranks of a node talk over one of the two").As(lint.Warning).
			Note(earlier.ValueAt, "the other one is set here")
	}
	event, eventOK := seconds(set["HCCL_EVENT_TIMEOUT"])
	execution, executionOK := seconds(set["HCCL_EXEC_TIMEOUT"])
	if eventOK && executionOK && event > 0 && event <= execution { // 0: an event never times out
		pass.Reportf(set["HCCL_EVENT_TIMEOUT"].ValueAt, "HCCL_EVENT_TIMEOUT=%d is not above HCCL_EXEC_TIMEOUT=%d: the event gives up first, and the collective's own error is lost", event, execution).As(lint.Warning).
			Note(set["HCCL_EXEC_TIMEOUT"].ValueAt, "the collective times out after this")
	}
}

func seconds(variable workspace.Variable) (int64, bool) {
	n, err := strconv.ParseInt(variable.Value, 10, 64)
	return n, err == nil && variable.Known
}
