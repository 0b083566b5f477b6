package lsp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkKeystroke measures, from the client, the time between a keystroke in a file of some 2,000 lines and its findings, in a
// project of 1,500 files. TRAINVET_BENCH_FILE names a file of a project on disk to take instead; its checkout or folder is the
// workspace. Where TRAINVET_BENCH_SCAN is set, the whole workspace is checked before. Run it with -benchtime 300x: each keystroke is
// one iteration.
func BenchmarkKeystroke(b *testing.B) {
	file := os.Getenv("TRAINVET_BENCH_FILE")
	root := os.Getenv("TRAINVET_BENCH_ROOT")
	if file == "" {
		root = largeProject(b, 1500)
		file = filepath.Join(root, "train", "main.py")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	text := string(raw)
	c := start(b)
	c.initialize(root, object{})
	u := fileURI(file)
	if os.Getenv("TRAINVET_BENCH_SCAN") != "" {
		c.request("workspace/diagnostic", object{"previousResultIds": []any{}})
	}
	began := time.Now()
	c.open(u, "python", text)
	c.published(u, 1)
	cold := time.Since(began)

	lines := strings.Split(text, "\n")
	var spent []time.Duration
	version := 1
	typed := func(line, from, to int, insert string) {
		version++
		began := time.Now()
		c.change(u, version, edit(line, from, line, to, insert))
		c.published(u, version)
		spent = append(spent, time.Since(began))
		c.mu.Lock()
		c.notes = nil
		c.mu.Unlock()
	}
	for i := 0; b.Loop(); i++ {
		line := (i / 2 * 37) % max(len(lines)-1, 1)
		end := len(lines[line])
		if i%2 == 0 {
			typed(line, end, end, "x")
		} else {
			typed(line, end, end+1, "")
		}
	}
	slices.Sort(spent)
	at := func(share float64) float64 {
		return float64(spent[min(int(share*float64(len(spent))), len(spent)-1)].Microseconds()) / 1000
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(len(lines)), "lines")
	b.ReportMetric(float64(cold.Milliseconds()), "ms-first")
	b.ReportMetric(at(0.5), "ms-median")
	b.ReportMetric(at(0.99), "ms-p99")
	b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "MiB-live")
	b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB-sys")
}

// largeProject writes a project of so many Python modules that import each other, with a training script of 2,000 lines.
func largeProject(t testing.TB, count int) string {
	files := map[string]string{
		"ds_config.json": "{\n  \"train_micro_batch_size_per_gpu\": 4,\n  \"gradient_accumulation_steps\": 8\n}\n",
		".git/HEAD":      "ref: refs/heads/main\n",
		"run.sh":         "deepspeed --num_gpus 8 train/main.py --deepspeed ds_config.json\n",
	}
	for i := range count - 3 {
		files[fmt.Sprintf("pkg%d/mod%d.py", i%40, i)] = fmt.Sprintf(`import torch
from pkg%d.mod%d import Block%d

class Block%d(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
        self.embed = torch.nn.Embedding(1000, width)

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x)

def build_%d(width):
    return Block%d(width)
`, (i+1)%40, i+1, i+1, i, i, i)
	}
	var text strings.Builder
	text.WriteString("import torch\nimport deepspeed\nfrom torch.utils.checkpoint import checkpoint\n")
	for i := range 60 {
		fmt.Fprintf(&text, "from pkg%d.mod%d import Block%d, build_%d\n", i%40, i, i, i)
	}
	for i := 0; strings.Count(text.String(), "\n") < 1960; i++ {
		fmt.Fprintf(&text, `

class Layer%d(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = Block%d(width)
        self.embedding = torch.nn.Embedding(32000, width)

    def forward(self, x):
        hidden = checkpoint(self.block, x, use_reentrant=False)
        return self.embedding(hidden)
`, i, i%60)
	}
	text.WriteString(`

def main(loader):
    model = Layer0(1024)
    engine, optimizer, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(3):
        for step, batch in enumerate(loader):
            loss = engine(batch).mean()
            engine.backward(loss)
            torch.cuda.empty_cache()
            engine.step()


if __name__ == "__main__":
    main([])
`)
	files["train/main.py"] = text.String()
	return project(t, files)
}
