//go:build ignore

// Growth writes Python files of one kind of line, over and over, each twice as long as the one before, and checks them with the trainvet
// of this tree: its table says how the time of the processors grows from one that takes half a second to one of twice the size. It fails
// where that is more than linear. Files end at the bound of a Python file.
//
//	go run ./cmd/gen/growth.go [-only WORD] [-trainvet FILE] [-write N]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	first    = 1000                   // repeats of the smallest file
	largest  = 5 << 20                // bytes of the largest, as lint/source.MaxPython says
	enough   = 500 * time.Millisecond // what takes less says more about the start of a process than about the file
	linear   = 2.4                    // times as long for twice the size
	patience = 5 * time.Minute        // of the clock, and the machine may be busy
)

// kind is a file of many repeats of the same text. $n is the number of a repeat, $p that of the one before.
type kind struct {
	name          string
	before, again string
	after         string
	most          int // repeats; 0: any number
}

const (
	imports = "import torch\nimport torch.distributed as dist\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nfrom torch.utils.data import DataLoader\n" +
		"from torch.cuda.amp import autocast, GradScaler\nfrom torch.utils.checkpoint import checkpoint\n"
	setup = imports + "model = nn.Linear(4, 4).cuda()\nmodel = DDP(model)\nopt = torch.optim.AdamW(model.parameters(), lr=1e-3)\nscaler = GradScaler()\nloader = DataLoader(ds, batch_size=8)\nsched = torch.optim.lr_scheduler.StepLR(opt, 10)\n"
	loop  = setup + "for i, b in enumerate(loader):\n    loss = model(b)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"
)

var kinds = []kind{
	{name: "loops", before: setup, again: "for b in loader:\n    loss = model(b)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "loops in functions", before: setup, again: "def train$n(model, opt, loader):\n    for b in loader:\n        loss = model(b)\n        loss.backward()\n        opt.step()\n        opt.zero_grad()\n"},
	{name: "loops with accumulation", before: setup, again: "for i, b in enumerate(loader):\n    with model.no_sync():\n        loss = model(b) / 4\n        loss.backward()\n    if (i + 1) % 4 == 0:\n        opt.step()\n        opt.zero_grad()\n"},
	{name: "loops with scaler", before: setup, again: "for b in loader:\n    with autocast():\n        loss = model(b)\n    scaler.scale(loss).backward()\n    scaler.step(opt)\n    scaler.update()\n"},
	{name: "loops with fp16 alone", before: setup, again: "for b in loader:\n    with torch.autocast('cuda', dtype=torch.float16):\n        loss = model(b)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "methods with fp16 alone", before: setup + "class T:\n", again: "    def f$n(self, loader, model, opt):\n        for b in loader:\n            with torch.autocast('cuda', dtype=torch.float16):\n                loss = model(b)\n            loss.backward()\n            opt.step()\n"},
	{name: "loops that never sync", before: setup, again: "for b in loader:\n    with model.no_sync():\n        model(b).backward()\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "loops past the wrapper", before: setup, again: "for b in loader:\n    loss = model.module(b)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "scalers", before: setup, again: "s$n = GradScaler()\n"},
	{name: "scalers with loops", before: setup, again: "s$n = GradScaler()\nfor b in loader:\n    with autocast(dtype=torch.bfloat16):\n        loss = model(b)\n    s$n.scale(loss).backward()\n    s$n.step(opt)\n    s$n.update()\n"},
	{name: "scalers handed on", before: setup + "from other import f\n", again: "s$n = GradScaler()\nf(s$n)\n"},
	{name: "loops calling one function", before: setup + "def one(m, b):\n    loss = m(b)\n    loss.backward()\n    return loss\n", again: "for b in loader:\n    one(model, b)\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "loops calling functions", before: setup, again: "def one$n(m, b):\n    loss = m(b)\n    loss.backward()\n    return loss\nfor b in loader:\n    one$n(model, b)\n    opt.step()\n    opt.zero_grad()\n"},
	{name: "functions in a chain", before: setup + "def f0(m, b):\n    m(b).backward()\n", again: "def f$n(m, b):\n    f$p(m, b)\n    opt.step()\n"},
	{name: "functions that call themselves", before: setup, again: "def f$n(m, b):\n    loss = m(b)\n    loss.backward()\n    opt.step()\n    return f$n(m, b)\n"},
	{name: "classes", before: imports, again: "class M$n(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(4, 4)\n        self.b = nn.Embedding(4, 4)\n    def forward(self, x):\n        return checkpoint(self.a, self.b(x))\n"},
	{name: "classes in a chain", before: imports + "class M0(nn.Module):\n    pass\n", again: "class M$n(M$p):\n    def forward(self, x):\n        return self.layer(x)\n"},
	{name: "trainers", before: setup, again: "class T$n:\n    def __init__(self, model, loader):\n        self.model = DDP(model)\n        self.opt = torch.optim.AdamW(model.parameters())\n        self.loader = loader\n    def step(self, b):\n        loss = self.model(b)\n        loss.backward()\n        self.opt.step()\n    def train(self):\n        for b in self.loader:\n            self.step(b)\n"},
	{name: "attributes of a class", before: imports + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n", again: "        self.a$n = nn.Linear(4, 4)\n", after: "    def forward(self, x):\n        return self.a1(x)\nm = M()\nfor b in loader:\n    m(b).backward()\n    opt.step()\n"},
	{name: "attributes, used", before: imports + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a0 = nn.Linear(4, 4)\n    def forward(self, x):\n", again: "        self.a$n = self.a$p\n        x = self.a$n(x)\n", after: "        return x\n"},
	{name: "methods of a class", before: setup + "class T:\n    def f0(self, b):\n        model(b).backward()\n", again: "    def f$n(self, b):\n        self.f$p(b)\n        opt.step()\n", after: "    def train(self):\n        for b in loader:\n            self.f1(b)\n            opt.step()\n"},
	{name: "methods that set one attribute", before: setup + "class T:\n", again: "    def f$n(self, b):\n        self.a(b)\n        self.a = DDP(self.a)\n"},
	{name: "methods that read attributes", before: setup + "class T:\n    def __init__(self):\n        self.a = model\n", again: "    def f$n(self, b):\n        self.a(self.c$n, b)\n        self.c$p = 1\n"},
	{name: "closures over one variable", before: setup + "def f():\n    x = model\n", again: "    x = g$n(x)\n    def f$n(b):\n        x(b)\n"},
	{name: "contexts entered", before: setup + "from contextlib import ExitStack\nwith ExitStack() as s:\n", again: "    s.enter_context(model.no_sync())\n", after: "    for b in loader:\n        model(b).backward()\n"},
	{name: "with, in each other", before: setup + "if x:\n", again: nested(20, "with model.no_sync():") + "                                          model(b).backward()\n"},
	{name: "layers of a forward", before: imports + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(4, 4)\n    def forward(self, x):\n", again: "        x = checkpoint(self.a, x)\n", after: "        return x\n"},
	{name: "imports", before: setup, again: "import m$n\n"},
	{name: "imports of names", before: setup, again: "from m$n import a as a$n\n"},
	{name: "stars", before: setup, again: "from m$n import *\n", after: "for b in loader:\n    x(b).backward()\n"},
	{name: "names in a chain", before: setup + "a0 = model\n", again: "a$n = a$p\n", after: "a1(b).backward()\n"},
	{name: "models in a chain", before: setup + "a0 = model\n", again: "a$n = DDP(a$p)\n"},
	{name: "sums in a chain", before: setup + "a0 = 1\n", again: "a$n = a$p + 1\n", after: "l = DataLoader(ds, batch_size=a1)\n"},
	{name: "one name, set again", before: setup, again: "x = nn.Linear(4, 4)\n", after: "x(b).backward()\n"},
	{name: "one name, set from itself", before: setup + "x = model\n", again: "x = DDP(x)\n"},
	{name: "one name, set and used", before: setup + "x = model\n", again: "x = x + 1\nx.cuda()\n"},
	{name: "calls of one name", before: setup + "def f(x):\n    return x\n", again: "f(model)\n"},
	{name: "calls with values", before: setup + "def f(m, x):\n    m(x).backward()\n    opt.step()\n", again: "f(model, $n)\n"},
	{name: "calls of unknown names", before: setup, again: "g$n(model)\n"},
	{name: "calls in each other", before: setup, again: "y$n = f(f(f(f(f(model)))))\n"},
	{name: "decorators of functions", before: setup, again: "@torch.no_grad()\n@deco\ndef f$n(m, b):\n    m(b)\n"},
	{name: "decorators of one", before: setup, again: "@deco$n\n", after: "def f(m, b):\n    m(b).backward()\n"},
	{name: "with, in a row", before: setup, again: "with autocast():\n    loss = model(b)\n"},
	{name: "with, many items", before: setup + "with ", again: "autocast(), ", after: "open(x):\n    model(b).backward()\n"},
	{name: "statements of a loop", before: loop, again: "    x = x + 1\n"},
	{name: "calls of a loop", before: loop, again: "    y = model(y)\n"},
	{name: "backwards of a loop", before: loop, again: "    loss.backward()\n"},
	{name: "losses of a loop", before: loop, again: "    loss$n = model(b)\n    loss$n.backward()\n"},
	{name: "sums of a loop", before: loop, again: "    total$n += loss\n"},
	{name: "steps of a loop", before: loop, again: "    opt.step()\n    opt.zero_grad()\n"},
	{name: "conditions of a loop", before: loop, again: "    if i % $n == 0:\n        opt.step()\n"},
	{name: "continues of a loop", before: loop, again: "    if c$n:\n        continue\n"},
	{name: "autocasts of a loop", before: loop, again: "    with autocast():\n        loss = model(b)\n    scaler.scale(loss).backward()\n"},
	{name: "scalers of a loop", before: loop, again: "    scaler.unscale_(opt)\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    scaler.step(opt)\n    scaler.update()\n"},
	{name: "reductions of a loop", before: loop, again: "    dist.all_reduce(loss)\n"},
	{name: "reads of a loop", before: loop, again: "    print(loss.item())\n"},
	{name: "calls of functions in a loop", before: setup + "def f(m, b):\n    loss = m(b)\n    loss.backward()\n    opt.step()\nfor b in loader:\n", again: "    f(model, b)\n"},
	{name: "loops in a loop", before: setup + "for e in range(3):\n", again: "    for b in loader:\n        model(b).backward()\n        opt.step()\n"},
	{name: "optimizers of a loop", before: setup + "for b in loader:\n    model(b).backward()\n", again: "    opt$n.step()\n"},
	{name: "moves of a loop", before: loop, again: "    b = b.cuda()\n"},
	{name: "loaders", before: setup, again: "l$n = DataLoader(ds, batch_size=8, shuffle=True, num_workers=4)\n"},
	{name: "samplers", before: setup, again: "s$n = torch.utils.data.DistributedSampler(ds)\nl$n = DataLoader(ds, sampler=s$n)\n"},
	{name: "optimizers", before: setup, again: "o$n = torch.optim.AdamW(model.parameters(), lr=1e-3)\n"},
	{name: "optimizers and schedules", before: setup, again: "o$n = torch.optim.AdamW(model.parameters(), lr=1e-3)\ns$n = torch.optim.lr_scheduler.CosineAnnealingLR(o$n, 10)\no$n.step()\ns$n.step()\n"},
	{name: "wrapped models", before: setup, again: "w$n = DDP(nn.Linear(4, 4).cuda(), find_unused_parameters=True)\n"},
	{name: "models moved after", before: setup, again: "m$n = nn.Linear(4, 4)\no$n = torch.optim.SGD(m$n.parameters(), 0.1)\nm$n.cuda()\n"},
	{name: "groups of ranks", before: setup, again: "g$n = dist.new_group([0, 1])\ndist.all_reduce(x, group=g$n)\n"},
	{name: "branches of ranks", before: setup, again: "if dist.get_rank() == 0:\n    dist.barrier()\n"},
	{name: "settings of the machine", before: setup, again: "torch.backends.cuda.matmul.allow_tf32 = True\nos.environ['NCCL_DEBUG'] = 'INFO'\ntorch.cuda.set_device(0)\n"},
	{name: "arguments of a parser", before: setup + "import argparse\np = argparse.ArgumentParser()\n", again: "p.add_argument('--a$n', type=int, default=1)\n", after: "args = p.parse_args()\nl = DataLoader(ds, batch_size=args.a1)\n"},
	{name: "arguments, used", before: setup + "import argparse\np = argparse.ArgumentParser()\n", again: "p.add_argument('--a$n', type=int, default=1)\nl$n = DataLoader(ds, batch_size=args.a$n)\n", after: "args = p.parse_args()\n"},
	{name: "keys of a config", before: "import deepspeed\nc = {'train_batch_size': 8,\n", again: "  'k$n': $n,\n", after: "}\nengine, *_ = deepspeed.initialize(model=m, config=c)\nfor b in l:\n    engine.backward(engine(b))\n    engine.step()\n"},
	{name: "keys set one by one", before: "import deepspeed\nc = {'train_batch_size': 8}\n", again: "c['k$n'] = $n\n", after: "engine, *_ = deepspeed.initialize(model=m, config=c)\nfor b in l:\n    engine.backward(engine(b))\n    engine.step()\n"},
	{name: "configs", before: "import deepspeed\n", again: "c$n = {'train_batch_size': 8, 'zero_optimization': {'stage': 3}}\ne$n = deepspeed.initialize(model=m, config=c$n)\n"},
	{name: "training arguments", before: "from transformers import TrainingArguments, Trainer\n", again: "a$n = TrainingArguments(output_dir='x', per_device_train_batch_size=8, bf16=True)\nt$n = Trainer(model=m, args=a$n)\n"},
	{name: "keywords of a call", before: "from transformers import TrainingArguments\na = TrainingArguments(output_dir='x',\n", again: "  k$n=$n,\n", after: ")\n"},
	{name: "fields of a dataclass", before: setup + "from dataclasses import dataclass\n@dataclass\nclass C:\n", again: "    a$n: int = $n\n", after: "c = C()\nl = DataLoader(ds, batch_size=c.a1)\n"},
	{name: "branches of an if", before: setup + "if a:\n    x = model\n", again: "elif a == $n:\n    x = f$n(model)\n", after: "for b in loader:\n    x(b).backward()\n    opt.step()\n", most: 3000},
	{name: "ifs that set one name", before: setup + "x = model\n", again: "if a$n:\n    x = DDP(x)\n", after: "for b in loader:\n    x(b).backward()\n    opt.step()\n"},
	{name: "tries", before: setup, again: "try:\n    import m$n\nexcept ImportError:\n    m$n = None\n"},
	{name: "functions in each other", before: setup, again: "def f$n(m):\n" + nested(20, "def g():") + "                                          m(b).backward()\n"},
	{name: "loops in each other", before: setup + "if x:\n", again: nested(20, "for b in loader:") + "                                          model(b).backward()\n"},
	{name: "ifs in each other", before: setup + "for b in loader:\n", again: nested(20, "if b:") + "                                          model(b).backward()\n"},
	{name: "lambdas", before: setup, again: "f$n = lambda m, b: m(b).backward()\n"},
	{name: "lists of layers", before: imports + "x = nn.Sequential(\n", again: "  nn.Linear(4, 4),\n", after: ")\nfor b in loader:\n    x(b).backward()\n    opt.step()\n"},
	{name: "groups of parameters", before: setup + "o = torch.optim.AdamW([\n", again: "  {'params': model.a$n.parameters(), 'lr': 1e-3},\n", after: "])\n"},
	{name: "globals", before: setup, again: "def f$n():\n    global x\n    x = DDP(x)\n", after: "for b in loader:\n    x(b).backward()\n    opt.step()\n"},
	{name: "functions that return models", before: setup, again: "def f$n():\n    return nn.Linear(4, 4)\nm$n = DDP(f$n())\n"},
	{name: "function that returns one of many", before: setup + "def f(a):\n", again: "    if a == $n:\n        return nn.Linear($n, $n)\n", after: "m = DDP(f(a))\nfor b in loader:\n    m(b).backward()\n    opt.step()\n"},
	{name: "remarks", before: setup, again: "x$n = 1  # trainvet: ignore[no-such-rule]\n"},
	{name: "texts", before: setup, again: "x$n = '''a'''\n"},
	{name: "f-strings", before: setup, again: "x$n = f'{model}{loss.item()}{opt}'\n"},
	{name: "comprehensions", before: setup, again: "x$n = [model(b) for b in loader if b]\n"},
	{name: "matches", before: setup, again: "match x:\n    case {'a': y}:\n        model(y)\n"},
	{name: "one expression", before: setup + "x = 1", again: " + y$n", after: "\n"},
	{name: "one list", before: setup + "x = [", again: "model, ", after: "]\n"},
	{name: "targets", before: setup, again: "a$n = b$n = c$n = model\n"},
	{name: "freezing", before: setup, again: "for p in model.a$n.parameters():\n    p.requires_grad = False\n"},
	{name: "checkpoints of a state", before: setup, again: "torch.save(model.state_dict(), 'x$n')\nmodel.load_state_dict(torch.load('x$n'))\n"},
	{name: "fsdp", before: imports + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n", again: "m$n = FSDP(nn.Linear(4, 4))\no$n = torch.optim.AdamW(m$n.parameters())\n"},
	{name: "evaluations", before: setup, again: "model.eval()\nwith torch.no_grad():\n    for b in loader:\n        model(b)\nmodel.train()\n"},
}

// nested is a statement in itself, two blanks deeper each time and one level below a statement before.
func nested(times int, statement string) string {
	var out strings.Builder
	for depth := range times {
		fmt.Fprintf(&out, "%s%s\n", strings.Repeat("  ", depth+1), statement)
	}
	return out.String()
}

func main() {
	only := flag.String("only", "", "run the kinds that hold this `WORD` alone")
	binary := flag.String("trainvet", "", "the trainvet to run; without it that of this tree is built")
	write := flag.Int("write", 0, "write the first of these kinds with `N` repeats to standard output, and run none")
	flag.Parse()
	if *write > 0 {
		at := slices.IndexFunc(kinds, func(k kind) bool { return strings.Contains(k.name, *only) })
		if at >= 0 {
			fmt.Print(kinds[at].text(*write))
		}
		return
	}
	if err := run(*only, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(only, binary string) error {
	top, err := os.MkdirTemp("", "growth")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	if binary == "" {
		binary = filepath.Join(top, "trainvet")
		build := exec.Command("go", "build", "-o", binary, "./cmd/trainvet")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return err
		}
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	fmt.Printf("%-34s %9s %9s %8s %8s %8s\n", "kind", "repeats", "KB", "CPU s", "before", "growth")
	failed := 0
	for _, k := range kinds {
		if !strings.Contains(k.name, only) {
			continue
		}
		line, bad, err := grow(filepath.Join(top, "case"), binary, k)
		if err != nil {
			line, bad = fmt.Sprintf("%-34s %v  FAILS", k.name, err), true
		}
		fmt.Println(line)
		if bad {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d kinds grow more than linearly", failed)
	}
	return nil
}

// grow doubles a file until what it takes can be compared.
func grow(folder, binary string, k kind) (line string, bad bool, err error) {
	var before time.Duration
	for n := first; ; n *= 2 {
		text := k.text(n)
		last := len(text)*9/4 > largest || k.most > 0 && n*2 > k.most
		took, err := check(folder, binary, text)
		if err != nil {
			return "", false, err
		}
		growth := float64(took) / float64(max(before, 1))
		line := fmt.Sprintf("%-34s %9d %9d %8.2f %8.2f %8.2f", k.name, n, len(text)>>10, took.Seconds(), before.Seconds(), growth)
		switch {
		case before >= enough && growth > linear:
			return line + "  FAILS", true, nil
		case before >= enough:
			return line, false, nil
		case last:
			return line + "  to the bound", false, nil
		}
		before = took
	}
}

func (k kind) text(repeats int) string {
	var out strings.Builder
	out.WriteString(k.before)
	for n := range repeats {
		out.WriteString(strings.NewReplacer("$n", strconv.Itoa(n+1), "$p", strconv.Itoa(n)).Replace(k.again))
	}
	out.WriteString(k.after)
	return out.String()
}

// check gives the time of the processors of a run on one file.
func check(folder, binary, text string) (time.Duration, error) {
	if err := os.MkdirAll(filepath.Join(folder, ".git"), 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(folder, "train.py"), []byte(text), 0o644); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary, "check", "--select", "all", "--fail-on", "never", "--format", "json", ".")
	command.Dir = folder
	command.Env = append(os.Environ(), "GOMEMLIMIT=off") // near the limit the collector takes most of the time, as it is meant to
	if out, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out[:min(len(out), 400)])
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}
