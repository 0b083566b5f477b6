package distributed

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed launcher-rendezvous-missing.md
var docLauncherRendezvousMissing string

// LauncherRendezvousMissing finds launches on several machines that do not say where they meet.
var LauncherRendezvousMissing = &lint.Rule{
	Name:     "launcher-rendezvous-missing",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      docLauncherRendezvousMissing,
	Severity: lint.Warning,
	Mentions: []string{"nnodes", "num_machines", "num-machines"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		rule, ok := meetings[part.Dialect.Name]
		if !ok {
			return
		}
		script := pass.Script(part.Path)
		if script == nil || script.Job {
			return
		}
		for _, outer := range script.Commands {
			for command := outer; command != nil; command = command.Outer {
				if command.LauncherFlags == part.Tree {
					rule.check(pass, script, command)
				}
			}
		}
	},
}

// meeting is how processes on several machines find each other under one launcher.
type meeting struct {
	nodes   string   // the flag for the number of machines
	flags   []string // any of them says where to meet, or makes it unnecessary
	env     []string // variables that say the same
	message string
	help    string
	maybe   bool // the launcher has settings of its own on the machine, which may say it
}

var meetings = map[string]meeting{
	"torchrun": {
		nodes: "nnodes",
		flags: []string{"rdzv_endpoint", "rdzv_conf", "master_addr", "standalone", "help"},
		env:   []string{"PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "PET_RDZV_CONF"},
		message: "torchrun on %d machines without --rdzv-endpoint or --master-addr: each machine looks for its own master on 127.0.0.1, and the start waits " +
			"for the others until it times out",
		help: "add --rdzv-backend c10d --rdzv-endpoint HOST:PORT, or --master-addr HOST and --node-rank",
	},
	"accelerate-launch": {
		nodes: "num_machines",
		flags: []string{"main_process_ip", "config_file", "deepspeed_hostfile", "rdzv_backend", "rdzv_conf", "same_network", "help", "tpu", "use_xpu"},
		env:   []string{"MASTER_ADDR"},
		message: "accelerate launch on %d machines without --main_process_ip: the machines do not know where to meet, and the start waits " +
			"for the others until it times out",
		help:  "add --main_process_ip HOST, --main_process_port and --machine_rank",
		maybe: true,
	},
}

func (m meeting) check(pass *lint.Pass, script *configs.Script, command *configs.Command) {
	root := command.LauncherFlags.Root
	if root == nil || root.Open {
		return // more flags may be given than are written
	}
	nodes := 0
	for _, item := range root.Items {
		key := workspace.PlainKey(item.Key)
		if key == m.nodes && item.Value != nil && !item.Value.Open {
			nodes = mostNodes(item.Value.Raw)
		}
		for _, flag := range m.flags {
			if key == flag {
				return
			}
		}
	}
	if nodes < 2 || named(script.Env, m.env) || named(command.Env, m.env) {
		return
	}
	report := pass.Reportf(command.LauncherAt, m.message, nodes).Help("%s", m.help)
	if m.maybe {
		report.As(lint.Info)
	}
}

// mostNodes reads 4 and 1:4.
func mostNodes(text string) int {
	_, highest, elastic := strings.Cut(text, ":")
	if !elastic {
		highest = text
	}
	n, err := strconv.Atoi(strings.TrimSpace(highest))
	if err != nil {
		return 0
	}
	return n
}

func named(tree *configs.Tree, names []string) bool {
	if tree == nil || tree.Root == nil {
		return false
	}
	for _, item := range tree.Root.Items {
		for _, name := range names {
			if item.Key == name {
				return true
			}
		}
	}
	return false
}
