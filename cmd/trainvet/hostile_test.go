package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/trainvet/trainvet/lint/output"
)

// TestHostileNames holds that no command lets a name, a key or a value reach a terminal raw, or begin a line of a log that a CI service
// would obey.
func TestHostileNames(t *testing.T) {
	need(t, "git")
	isolateGit(t)
	const name = "a\n::error::x\x1b[2J ##[error] \u202e"
	quoted := strings.NewReplacer("\n", `\n`, "\x1b", `\u001b`, "\u202e", `\u202e`).Replace(name)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
		t.Skip("NO such names on this system: ", err)
	}
	config := `{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "` + quoted + `": 1}, "optimizer": {"type": "` + quoted + `", "params": {"lr": "` + quoted + `"}}}`
	repository(t, dir, map[string]string{
		"trainvet.toml": "[known]\n\"" + quoted + "\" = \"torch.f\"\n[[custom]]\nname = \"own\"\nmessage = \"" + quoted + "\"\nhelp = \"" + quoted + "\"\nkey = \"gradient_accumulation_steps\"\nmax = 1\n",
		name + ".json":  config,
		name + ".py":    unknownLine,
		"run.sh":        "deepspeed --num_gpus 8 '" + name + ".py' --deepspeed --deepspeed_config '" + name + ".json'\n",
	})
	if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(strings.Replace(config, ": 4,", ": 8,", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	facts := []string{"--model", "llama-2-7b", "--device", "a100-80g", "--world-size", "8", "--seq-len", "4096"}
	commands := [][]string{
		{"config", "."}, {"config", "--format", "json", "."}, {"config", name + "x"}, {"plan", name + ".json"}, {"plan", "--format", "json", name + ".json"}, {"plan", "run.sh"}, {"plan", name + ".py"},
		append([]string{"fit", name + ".json"}, facts...), append([]string{"fit", "--format", "json", name + ".json"}, facts...), append([]string{"fit", "--format", "html", name + ".json"}, facts...),
		{"fit", name + "x"}, {"summary", "."}, {"diff", "HEAD"}, {"diff", "--format", "json", "HEAD"}, {"diff", "--format", "markdown", "HEAD"}, {"diff", name}, {"rule", name}, {"help", name}, {name}, {"--" + name},
		{"check", "--statistics", "."}, {"check", "--select", name, "."}, {"check", "--config", name + "x", "."}, {"check", "--baseline", name + "x", "."}, {"check", "--device", name, "."}, {"check", "--output", name + "=x", "."},
		{"check", "--output", name + "/x", "."}, {"check", "--new-from-rev", name, "."}, {"check", "--new-from-patch", name + "x", "."}, {"check", "--", name}, {"check", "--", "torchrun", name + ".py"},
		{"review", "--pull", "1", "--repo", name}, {"review", "--pull", "1", "--repo", "a/b", "--api", name}, {"completion", name}, {"init"},
		{"check", "--write-baseline", name + ".baseline", "."}, {"check", "--fix", "."},
	}
	for _, format := range output.Names() {
		commands = append(commands, []string{"check", "--format", format, "."})
	}
	obeyed := regexp.MustCompile(`(?m)^\s*(::[a-z]|##\[|##vso)|##\w*\[error`)
	for _, command := range commands {
		said, _ := runIn(t, dir, command...)
		for _, r := range said {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%q prints %U\n%q", command, r, said)
				break
			}
		}
		if command[0] == "check" && strings.Contains(strings.Join(command, " "), "github") {
			said = strings.NewReplacer("::error ", "", "::warning ", "", "::notice ", "").Replace(said)
		}
		if at := obeyed.FindStringIndex(said); at != nil {
			t.Errorf("%q prints %q", command, said[at[0]:min(len(said), at[0]+80)])
		}
	}
}
