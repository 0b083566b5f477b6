package rules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
)

// TestMadePrograms checks programs that are made at random of what training code is made of, in which names, attributes, functions,
// classes and files are given to each other in circles. Most would fail at their first line; a check must end all the same, and without
// a fault. What recurses without a bound ends the whole test, for a full stack cannot be recovered from.
func TestMadePrograms(t *testing.T) {
	programs := 25
	if os.Getenv("TRAINVET_ALL") != "" {
		programs = 700
	}
	findings := 0
	for seed := range programs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // each in a folder without neighbours
			folder := t.TempDir()
			m := maker{rand.New(rand.NewPCG(uint64(seed), 1))}
			for i := range 3 {
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("m%d.py", i)), []byte(m.module()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir := filepath.ToSlash(folder)
			snapshot := workspace.NewSnapshot(workspace.Disk{})
			settings := &check.Resolver{Snapshot: snapshot, Dir: dir, Rules: All(), Flags: check.Flags{Isolated: true, Select: []string{"all"}}}
			targets, _ := check.Discover([]string{dir}, settings)
			if len(targets) != 3 {
				t.Fatalf("%d targets", len(targets))
			}
			report, err := check.Run(context.Background(), snapshot, targets, check.Options{Rules: All(), Settings: settings})
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range report.Faults {
				t.Errorf("program %d: %s: %s", seed, fault.Path, fault.Reason)
			}
			findings += len(report.Findings)
			for _, finding := range report.Findings {
				if finding.Rule.Name == "syntax-error" {
					t.Errorf("program %d is none: %s:%v: %s", seed, finding.At.Path, finding.At.Span, finding.Message)
				}
			}
		})
	}
	if findings == 0 {
		t.Error("nothing was found in any of them")
	}
}

// maker makes programs.
type maker struct{ *rand.Rand }

func (m maker) of(words ...string) string { return words[m.IntN(len(words))] }

func (m maker) name() string {
	return m.of("model", "optimizer", "loader", "x", "loss", "scheduler", "block", "config", "n", "scaler")
}

// shapes of expressions; each % is one more expression.
var shapes = []string{"nn.Linear(4, 4)", "nn.Sequential(%)", "nn.Sequential(*%)", "nn.ModuleList([%])", "nn.ModuleList(%)", "nn.Sequential(OrderedDict(%))", "DDP(%)", "FSDP(%)",
	"torch.compile(%)", "checkpoint(%, %, use_reentrant=True)", "deepspeed.initialize(model=%, config=%)", "torch.optim.AdamW(%.parameters())", "DataLoader(%)", `%.to("cuda")`,
	"%.requires_grad_(False)", "functools.partial(%, %)", "(% if n else %)", "[% for _ in range(3)]", `{"a": %}`, `%["a"]`, "%[0]", "accelerator.prepare(%, %)", "%.module",
	"%.no_sync()", "enumerate(%)", "len(%)", "(% + %)", "(% / n)", `getattr(%, "module")`, "(lambda y: %(y))", "copy.deepcopy(%)", "autocast(dtype=%)", "dict(**%)",
	"GradScaler(enabled=%)", "cosine(%, %, len(loader))"}

func (m maker) expression(depth int) string {
	switch r := m.IntN(20); {
	case depth == 0 || r < 5:
		return m.name()
	case r < 8:
		return "self." + m.name()
	case r < 11:
		return fmt.Sprintf("%s%d(%s, %s)", m.of("f", "g", "h"), m.IntN(4), m.expression(depth-1), m.expression(depth-1))
	case r < 13:
		return m.of("A", "B") + "(" + m.expression(depth-1) + ")"
	}
	text := m.of(shapes...)
	for strings.Contains(text, "%") {
		text = strings.Replace(text, "%", m.expression(depth-1), 1)
	}
	return text
}

func (m maker) body(out *strings.Builder, indent string, depth int) {
	line := func(words ...string) { out.WriteString(indent + strings.Join(words, "") + "\n") }
	for range 2 + m.IntN(4) {
		name := m.name()
		switch r := m.IntN(20); {
		case r < 6:
			line(name, " = ", m.expression(2))
		case r < 10:
			line("self.", name, " = ", m.expression(2))
		case r < 12:
			line("self.", name, " = nn.", m.of("Sequential(*", "ModuleList(", "ModuleDict("), "self.", name, ")")
		case r < 15 && depth > 0:
			line(m.of("for "+name+" in ", "if ", "with "), m.expression(2), ":")
			m.body(out, indent+"    ", depth-1)
		case r < 17:
			line(m.of("loss.backward()", "optimizer.step()", "optimizer.zero_grad()", "scheduler.step()", "torch.cuda.empty_cache()", "scaler.scale(loss).backward()",
				"torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"))
		case r < 19 || indent == "":
			line(m.expression(2))
		default:
			line("return ", m.expression(2))
		}
	}
}

// module is a file that takes all names of another one, itself and later ones included.
func (m maker) module() string {
	var out strings.Builder
	out.WriteString("import copy\nimport functools\nfrom collections import OrderedDict\nimport deepspeed\nimport torch\nfrom accelerate import Accelerator\nfrom torch import autocast, nn\n" +
		"from torch.cuda.amp import GradScaler\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n" +
		"from torch.utils.checkpoint import checkpoint\nfrom torch.utils.data import DataLoader\nfrom transformers import get_cosine_schedule_with_warmup as cosine\n")
	fmt.Fprintf(&out, "from m%d import *\naccelerator = Accelerator()\n", m.IntN(3))
	for _, letter := range "fgh" {
		for i := range 4 {
			fmt.Fprintf(&out, "def %c%d(%s, y=None):\n", letter, i, m.name())
			m.body(&out, "    ", 2)
		}
	}
	for _, letter := range "AB" {
		fmt.Fprintf(&out, "class %c(%s):\n", letter, m.of("nn.Module", "A", "B", "nn.Sequential"))
		for _, method := range []string{"__init__", "forward", "run", "step"} {
			fmt.Fprintf(&out, "    def %s(self, %s):\n", method, m.name())
			m.body(&out, "        ", 2)
		}
	}
	m.body(&out, "", 2)
	return out.String()
}
