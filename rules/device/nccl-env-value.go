package device

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed nccl-env-value.md
var ncclEnvValueDoc string

// NcclEnvValue finds values that NCCL reads as something else than was meant.
var NcclEnvValue = &lint.Rule{
	Name:     "nccl-env-value",
	Family:   "device",
	Since:    "0.1",
	Doc:      ncclEnvValueDoc,
	Severity: lint.Error,
	Mentions: []string{"NCCL_"},
	Variables: func(pass *lint.Pass, variables []workspace.Variable) {
		last := map[string]workspace.Variable{}
		for _, variable := range variables {
			known, is := ncclVariables()[variable.Name]
			if !is || known.removed != "" || !variable.Known || variable.Value == "" || strings.ContainsAny(variable.Value, "${}<>%@`") { // filled in later
				continue
			}
			last[variable.Name] = variable
			if fault, certain := ncclFault(variable.Name, known, variable.Value); fault != "" {
				if d := pass.Reportf(variable.ValueAt, "%s", fault); !certain {
					d.As(lint.Warning)
				}
			}
		}
		atMost(pass, last, "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS")
		atMost(pass, last, "NCCL_MIN_CTAS", "NCCL_MAX_CTAS")
		threads, _, _ := integer(last["NCCL_SOCKET_NTHREADS"].Value)
		sockets, _, _ := integer(last["NCCL_NSOCKS_PERTHREAD"].Value)
		if threads > 0 && threads <= ncclSockets && sockets > 0 && sockets <= 1<<20 && threads*sockets > ncclSockets {
			pass.Reportf(last["NCCL_NSOCKS_PERTHREAD"].ValueAt, "%d threads with %d sockets each are more than the %d sockets of a connection: NCCL lowers the sockets of a thread", threads, sockets, ncclSockets).As(lint.Warning).
				Note(last["NCCL_SOCKET_NTHREADS"].ValueAt, "the threads")
		}
	},
}

// ncclSockets is how many sockets a connection has at most (MAX_SOCKETS of NCCL's net_socket.cc).
const ncclSockets = 64

// atMost compares a least number with a largest one.
func atMost(pass *lint.Pass, set map[string]workspace.Variable, least, most string) {
	low, isLow := set[least]
	high, isHigh := set[most]
	if !isLow || !isHigh {
		return
	}
	a, lowDigits, _ := integer(low.Value)
	b, highDigits, _ := integer(high.Value)
	if lowDigits != "" && highDigits != "" && b > 0 && a > b {
		pass.Reportf(low.ValueAt, "%s=%d is above %s=%d: NCCL cannot hold both", least, a, most, b).As(lint.Warning).Note(high.ValueAt, "the largest number")
	}
}
