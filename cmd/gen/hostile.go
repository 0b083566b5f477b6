//go:build ignore

// Hostile puts files of every kind that trainvet reads, broken or built to be slow in every way we know, beside a sound one and checks
// them with the trainvet of this tree, each in a process of its own. Its table says how long that took, how much memory was held, and
// what was told. It fails where a run takes longer or more than the bounds below, crashes, does not tell what it could not read, or
// leaves the sound file unchecked. For Linux.
//
//	go run ./cmd/gen/hostile.go [-only WORD] [-trainvet FILE]
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"
)

// The bounds of one run. Its time is that of the processors, of all threads together: that of the clock is longer where others work.
const (
	maxTime   = 5 * time.Second
	maxMemory = 500 << 20        // bytes held at a time
	patience  = 10 * time.Minute // ends what hangs without a processor, on the most loaded of machines
)

// sound has one finding, which every run must report.
const (
	sound   = "x = 1  # trainvet: ignore[no-such-rule]\n"
	finding = "sound.py:1:8: warning[unknown-suppression]"
)

// kind is a kind of file: how one is called, a sound line of it, and what is long in it.
type kind struct {
	name string
	line string    // a whole file may hold any number of them
	long [3]string // one line: what stands before, inside (repeated) and after
	args []string  // beside the folder

	before, named, after string // many lines, each with a name of its own
}

var kinds = []kind{
	{name: "a.py", before: "", named: "n%d = torch.nn.Linear(1, 2)\n", after: "import torch\n", line: "x = 1\n", long: [3]string{"x = [", "1,", "]\n"}},
	{name: "a.json", before: `{`, named: `"n%d": 1,` + "\n", after: `"train_batch_size": 1}`, line: "\n", long: [3]string{`{"train_batch_size": [`, "1,", "1]}\n"}},
	{name: "a.yaml", before: "", named: "n%d: 1\n", after: "train_batch_size: 1\n", line: "- 1\n", long: [3]string{"train_batch_size: [", "1,", "1]\n"}},
	{name: "a.toml", before: "", named: "n%d = 1\n", after: "", line: "# x\n", long: [3]string{"a = [", "1,", "1]\n"}},
	{name: "a.sh", before: "", named: "export N%d=1\n", after: "torchrun a.py\n", line: "python a.py\n", long: [3]string{"python a.py ", "--a 1 ", "\n"}},
	{name: "a.ipynb", before: `{"cells":[{"cell_type":"code","source":["import torch\n"`, named: `,"n%d = torch.nn.Linear(1, 2)\n"`, after: `]}]}`, line: "\n", long: [3]string{`{"cells":[{"cell_type":"code","source":["x = [`, "1,", `]"]}]}`}},
	{name: "requirements.txt", before: "", named: "n%d==1\n", after: "torch==2\n", line: "torch==2.1\n", long: [3]string{"torch==2.1", ",<3", "\n"}},
	{name: "Dockerfile", before: "", named: "ENV N%d=1\n", after: "RUN torchrun a.py\n", line: "RUN pip install torch\n", long: [3]string{"RUN pip install ", "torch ", "\n"}},
	{name: "job.yaml", before: "services:\n", named: "  n%d: {command: torchrun a.py}\n", after: "", line: "a: 1\n---\n", long: [3]string{"kind: Job\nspec:\n  template:\n    spec:\n      containers:\n      - command: [", "a,", "b]\n"}},
	{name: "trainvet.toml", before: "[known]\n", named: "\"n%d\" = \"torch.nn.Linear\"\n", after: "", line: "# x\n", long: [3]string{"exclude = [", `"a",`, "]\n"}},
	{name: "baseline.json", before: `{"version": 1, "findings": [`, named: `{"path":"a%d","rule":"b","ordinal":1},`, after: `{"path":"a","rule":"b","ordinal":1}]}`, line: "\n", long: [3]string{`{"version": 1, "findings": [`, `{"path":"a","rule":"b","ordinal":1},`, `{"path":"a","rule":"b","ordinal":1}]}`}, args: []string{"--baseline", "baseline.json"}},
	{name: "new.patch", before: "", named: "--- a/n%d\n+++ b/n\n@@ -1 +1 @@\n+x\n", after: "", line: "--- a/x\n", long: [3]string{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n+", "x", "\n"}, args: []string{"--new-from-patch", "new.patch"}},
	{name: ".gitignore", before: "", named: "n%d*\n", after: "", line: "b*\n", long: [3]string{"b", "*", "\n"}},
}

// isSettings holds for files that the whole run depends on: nothing is checked where one is broken.
func (k kind) isSettings() bool { return len(k.args) > 0 || k.name == "trainvet.toml" }

// hostile is one way for a file to be bad. Make is given the folder and the name.
type hostile struct {
	name string
	make func(path string, k kind) error
	told bool // it cannot be read, and that must be said
}

func content(text func(kind) []byte) func(string, kind) error {
	return func(path string, k kind) error { return os.WriteFile(path, text(k), 0o644) }
}

// repeated writes piece by piece: what this process holds would count as held by those that it starts.
func repeated(of func(kind) (before, again, after string, size int)) func(string, kind) error {
	return func(path string, k kind) error {
		before, again, after, size := of(k)
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		out := bufio.NewWriter(file)
		out.WriteString(before)
		for range size / len(again) {
			out.WriteString(again)
		}
		out.WriteString(after)
		return out.Flush()
	}
}

func lines(count int) func(string, kind) error {
	return repeated(func(k kind) (string, string, string, int) { return "", k.line, "", count * len(k.line) })
}

// python writes Python alone, with a number in place of each %d.
func python(text string, size int) func(string, kind) error {
	return func(path string, k kind) error {
		if k.name != "a.py" {
			return errSkip
		}
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		out := bufio.NewWriter(file)
		out.WriteString("import torch\nfrom torch.utils.data import DataLoader\n")
		for n := range size / len(text) {
			out.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(n)))
		}
		return out.Flush()
	}
}

// project writes Python alone: a.py, and files beside it.
func project(files func() map[string]string) func(string, kind) error {
	return func(path string, k kind) error {
		if k.name != "a.py" {
			return errSkip
		}
		for name, text := range files() {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
}

// chain writes steps that each name the one before many times, so that all ways through them are more than anybody can go.
func chain(before, head, again string, times, steps int, tail, after string) func(string, kind) error {
	return project(func() map[string]string {
		var out strings.Builder
		out.WriteString("import torch\nimport deepspeed\nfrom contextlib import contextmanager\n" + before)
		for n := 1; n <= steps; n++ {
			fmt.Fprintf(&out, head, n)
			for range times {
				fmt.Fprintf(&out, again, n-1)
			}
			out.WriteString(tail)
		}
		return map[string]string{"a.py": out.String() + after}
	})
}

// errSkip is a way that is none for a kind.
var errSkip = errors.New("not for this kind")

func words(text string, size int) func(string, kind) error {
	return repeated(func(k kind) (string, string, string, int) { return "", text, "", size })
}

const million, fiftyMB = 1_000_000, 50_000_000

var ways = []hostile{
	{"empty", content(func(kind) []byte { return nil }), false},
	{"binary", content(func(kind) []byte {
		raw := make([]byte, 1<<16)
		random := rand.NewChaCha8([32]byte{1})
		random.Read(raw)
		return raw
	}), true},
	{"NUL", content(func(k kind) []byte { return []byte(k.line + "\x00") }), true},
	{"UTF-16", content(func(k kind) []byte {
		raw := []byte{0xFF, 0xFE}
		for _, unit := range utf16.Encode([]rune(k.line)) {
			raw = append(raw, byte(unit), byte(unit>>8))
		}
		return raw
	}), true},
	{"invalid UTF-8", content(func(k kind) []byte { return []byte(k.line + "# \xff\xfe\n") }), true},
	{"BOM", content(func(k kind) []byte { return []byte("\uFEFF" + k.line) }), false},
	{"1,000,000 lines", lines(million), false},
	{"100,000 names", func(path string, k kind) error {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		out := bufio.NewWriter(file)
		out.WriteString(k.before)
		for n := range 100_000 {
			fmt.Fprintf(out, k.named, n)
		}
		out.WriteString(k.after)
		return out.Flush()
	}, false},
	{"line of 50 MB", repeated(func(k kind) (string, string, string, int) { return k.long[0], k.long[1], k.long[2], fiftyMB }), false},
	{"line of 5 MB", repeated(func(k kind) (string, string, string, int) { return k.long[0], k.long[1], k.long[2], fiftyMB / 10 }), false},
	{"line of 3 MB", repeated(func(k kind) (string, string, string, int) { return k.long[0], k.long[1], k.long[2], 3_000_000 }), false},
	{"50 MB of one word", words("x", fiftyMB), false},
	{"50 MB of brackets", words("[", fiftyMB), false},
	{"50 MB of quotes", words(`"`, fiftyMB), false},
	{"4 MB of one word", words("x", 4_000_000), false},
	{"4 MB of brackets", words("[", 4_000_000), false},
	{"4 MB of braces", words(`{"a":`, 4_000_000), false},
	{"4 MB of quotes", words(`"`, 4_000_000), false},
	{"5 MB of lambda", words("lambda:", 5_000_000), false},
	{"5 MB of def", words("def f():0\n", 5_000_000), false},
	{"2 MB of loops", python("for b in loader:\n    loss = model(b)\n    loss.backward()\n    opt.step()\n", 2_000_000), false},
	{"2 MB of functions", python("def f%d(m, x):\n    loss = m(x)\n    loss.backward()\n    opt.step()\n    return f%d(m, x)\n", 2_000_000), false},
	{"2 MB of loaders", python("l%d = DataLoader(ds, batch_size=8, shuffle=True)\n", 2_000_000), false},
	{"2 MB of findings", python("x = 1  # trainvet: ignore[no-such-rule]\n", 2_000_000), false},
	{"2 MB of remarks", python("# trainvet: ignore[memory]\n", 2_000_000), false},
	{"2 MB of short loops", python("for b in loader: loss = model(b); loss.backward(); total%d += loss; opt.step()\n", 2_000_000), false},
	{"dicts in dicts", chain("c0 = {'train_batch_size': 8}\n", "c%d = {", "'k': c%d, ", 20, 15, "}\n", "e = deepspeed.initialize(model=m, config=c15)\n"), false},
	{"calls of calls", chain("def f0(m, x):\n    m(x).backward()\n", "def f%d(m, x):\n", "    f%d(m, x)\n", 20, 4, "", strings.Repeat("def t():\n    for b in loader:\n        f4(model, b)\n        opt.step()\n", 300)), false},
	{"contexts of contexts", chain("@contextmanager\ndef c0():\n    with model.no_sync():\n        yield\n", "@contextmanager\ndef c%d():\n    with ", "c%d(), ", 15, 20, "x:\n        yield\n", "for b in loader:\n    with c20():\n        model(b).backward()\n    opt.step()\n"), false},
	{"choices of choices", chain("c0 = model.no_sync()\n", "c%d = x", " if y else c%d", 2, 40, "\n", "for b in loader:\n    with c40:\n        model(b).backward()\n    opt.step()\n"), false},
	{"stars in a circle", project(func() map[string]string {
		files := map[string]string{}
		const modules = 1500
		for n := range modules {
			name := fmt.Sprintf("m%d.py", n)
			if n == 0 {
				name = "a.py"
			}
			files[name] = fmt.Sprintf("import torch\nfrom m%d import *\nfrom m%d import *\nfor b in loader:\n    model(b).backward()\n    opt.step()\n", (n+1)%modules, (n+7)%modules)
		}
		return files
	}), false},
	{"scripts of scripts", project(func() map[string]string {
		var outer, inner strings.Builder
		for n := range 300 {
			fmt.Fprintf(&outer, "N=%d bash inner.sh\n", n)
			fmt.Fprintf(&inner, "deepspeed --num_gpus 8 a.py --deepspeed_config a.json --num-layers %d --hidden-size 1024 --x%d 3\n", n, n)
		}
		return map[string]string{"a.py": "import deepspeed\n", "a.json": `{"train_batch_size": 8}`, "outer.sh": outer.String(), "inner.sh": inner.String()}
	}), false},
	{"names of a remark", python("x = 1  # trainvet: ignore["+strings.Repeat("a,", 1_000_000)+"b]\n", 2_000_040), false},
	{"remarks of a line", python("x = 1 # noqa # trainvet: ignore[a]", 1_000_000), false},
	{"parameters", project(func() map[string]string {
		var given, used strings.Builder
		for n := range 50_000 {
			fmt.Fprintf(&given, "a%d=model, ", n)
			fmt.Fprintf(&used, "    a%d(b).backward()\n", n)
		}
		return map[string]string{"a.py": "import torch\ndef f(" + given.String() + "b=1):\n" + used.String() + "f(" + given.String() + ")\n"}
	}), false},
	{"65 MB", repeated(func(k kind) (string, string, string, int) { return "", k.line, "", 65 << 20 }), true},
	{"FIFO", func(path string, _ kind) error { return syscall.Mkfifo(path, 0o666) }, false},
	{"device", func(path string, _ kind) error {
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|5); err != nil { // /dev/zero
			return os.Symlink("/dev/zero", path)
		}
		return nil
	}, false},
	{"dangling link", func(path string, _ kind) error { return os.Symlink("nowhere", path) }, false},
	{"link loop", func(path string, _ kind) error { return os.Symlink(filepath.Base(path), path) }, false},
	{"link out", func(path string, k kind) error {
		outside := filepath.Join(filepath.Dir(filepath.Dir(path)), "outside-"+k.name)
		if err := os.WriteFile(outside, []byte(k.line), 0o644); err != nil {
			return err
		}
		return os.Symlink(outside, path)
	}, false},
	{"unreadable", func(path string, k kind) error {
		if err := os.WriteFile(path, []byte(k.line), 0); err != nil {
			return err
		}
		return os.Chmod(path, 0)
	}, true},
	{"a folder", func(path string, k kind) error { return os.Mkdir(path, 0o755) }, false},
}

func main() {
	only := flag.String("only", "", "run the cases that hold this `WORD` alone")
	binary := flag.String("trainvet", "", "the trainvet to run; without it that of this tree is built")
	flag.Parse()
	if err := run(*only, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(only, binary string) error {
	syscall.Umask(0o022) // another user runs what is built here, and reads what is written
	top, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	if err := os.Chmod(top, 0o755); err != nil {
		return err
	}
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
	fmt.Printf("%-16s %-18s %6s %6s %6s %4s  %s\n", "file", "what", "CPU s", "wall s", "MB", "exit", "told")
	failed := 0
	for _, k := range kinds {
		for _, way := range ways {
			if !strings.Contains(k.name+" "+way.name, only) || k.name == "new.patch" && way.name == "FIFO" { // a patch may come from a FIFO
				continue
			}
			if bad := one(top, binary, k, way); bad != "" {
				fmt.Printf("  FAILS: %s\n", bad)
				failed++
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d cases fail", failed)
	}
	return nil
}

// readAsBytes reports whether a file that is not UTF-8 is read all the same, as a shell reads a script and a Dockerfile.
func readAsBytes(k kind, way hostile) bool {
	return way.name == "invalid UTF-8" && (k.name == "a.sh" || k.name == "Dockerfile")
}

// skipped is what the line on stderr says of a file that a walk passes over as data.
const skipped = "1 data file skipped"

// one runs one case; it gives what is wrong, or "".
func one(top, binary string, k kind, way hostile) string {
	folder := filepath.Join(top, "case")
	err := errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Join(folder, ".git"), 0o755), os.WriteFile(filepath.Join(folder, "sound.py"), []byte(sound), 0o644), way.make(filepath.Join(folder, k.name), k))
	switch {
	case errors.Is(err, errSkip):
		return ""
	case err != nil:
		return err.Error()
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary, append([]string{"check", "--format", "concise", "."}, k.args...)...)
	command.Dir = folder
	if os.Geteuid() == 0 { // to root nothing is unreadable
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	start := time.Now()
	command.Run()
	wall := time.Since(start)
	took := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	usage, _ := command.ProcessState.SysUsage().(*syscall.Rusage)
	memory := int64(0)
	if usage != nil {
		memory = usage.Maxrss << 10
	}
	told, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	if len(told) > 110 {
		told = told[:110] + "..."
	}
	code := command.ProcessState.ExitCode()
	fmt.Printf("%-16s %-18s %6.2f %6.2f %6d %4d  %s\n", k.name, way.name, took.Seconds(), wall.Seconds(), memory>>20, code, told)
	checked := strings.Contains(stdout.String(), finding)
	switch {
	case took > maxTime, wall >= patience:
		return fmt.Sprintf("took %v", took)
	case memory > maxMemory:
		return fmt.Sprintf("held %d MB", memory>>20)
	case code < 0 || code > 2 || strings.Contains(stderr.String(), "internal error") || strings.Contains(stderr.String(), "goroutine "):
		return "crashed"
	case way.told && !strings.Contains(stderr.String(), k.name+":") && !strings.Contains(stderr.String(), skipped) && k.name != ".gitignore" && !readAsBytes(k, way):
		return "not told"
	case !checked && !k.isSettings():
		return "the sound file was not checked"
	case !checked && code != 2 && k.name != "new.patch":
		return "neither checked nor told"
	}
	return ""
}
