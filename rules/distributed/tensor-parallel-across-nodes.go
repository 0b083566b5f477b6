package distributed

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed tensor-parallel-across-nodes.md
var docTensorParallelAcrossNodes string

// TensorParallelAcrossNodes finds tensor-parallel groups whose ranks sit on several machines.
var TensorParallelAcrossNodes = &lint.Rule{
	Name:     "tensor-parallel-across-nodes",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      docTensorParallelAcrossNodes,
	Severity: lint.Warning,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		r := &run.Plan.Parallel
		tensor, ok := r.Tensor.Get()
		node, ok2 := r.DevicesPerNode.Get()
		if !ok || !ok2 || tensor < 2 || node < 1 || node%tensor == 0 || !run.Trains() || r.DevicesPerNode.How() == plan.IsDefault || !severalNodes(r) {
			return
		}
		at, key, ok := run.Written(r.Tensor)
		if !ok {
			return
		}
		var report *lint.Diagnostic
		if tensor > node {
			report = pass.Reportf(at, "%s %d with %d devices in a machine: every layer's all-reduces cross the network between machines, several times slower than the links inside of one", key, tensor, node)
		} else {
			report = pass.Reportf(at, "%s %d does not divide the %d devices of a machine: some groups lie on two machines, and every layer's all-reduces there cross the network", key, tensor, node)
		}
		for _, place := range r.DevicesPerNode.From() {
			report.Note(place, "%d devices in a machine", node)
		}
		report.Help("keep tensor parallelism inside a machine: a size that divides %d, and pipeline or data parallelism between machines", node)
	},
}

// severalNodes: with one machine known to be all there is, a size that does not divide is no matter of the network.
func severalNodes(r *plan.Parallel) bool {
	if nodes, ok := r.Nodes.Get(); ok {
		return nodes > 1
	}
	world, ok := r.World.Get()
	return ok && world > r.DevicesPerNode.Or(0)
}
