package lsp

// Commands: the first two run here and give text, the others are of clients that show it.
const (
	commandFit    = "trainvet.fit"
	commandValues = "trainvet.plan"
	commandMemory = "trainvet.showMemory"
	commandPlan   = "trainvet.showPlan"
)
