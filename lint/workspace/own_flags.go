package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
)

// ownFlags reports whether the flags of a command are the project's own, though they are called as those of a
// dialect: what the program imports from the project reads a command line, and none of it imports the framework that
// has these flags.
func (v *View) ownFlags(d *dialect.Dialect, script string, c *configs.Command) bool {
	program := v.likelyProgram(script, c)
	if program == "" && c.Module && !c.ProgramOpen {
		program = v.locate(script, c.Program, 0)
	}
	if program == "" || d != dialect.HFTrainingArguments && len(d.Packages()) == 0 {
		return false
	}
	reads := false
	for _, file := range v.Closure(program) {
		imports := v.importsOf(file)
		if v.feeds(d, file, imports) {
			return false
		}
		reads = reads || slices.ContainsFunc(imports, readsFlags)
	}
	return reads
}

// feeds reports whether a file imports what reads the flags of a dialect.
func (v *View) feeds(d *dialect.Dialect, file string, imports []imported) bool {
	if d != dialect.HFTrainingArguments {
		return v.ImportsAny(file, d.Packages()...)
	}
	return slices.ContainsFunc(imports, func(i imported) bool {
		switch top := firstPart(i.module); {
		case slices.Contains(trainerPackages, top):
			return true
		case top == "lightning" || top == "pytorch_lightning":
			return false
		case top == "transformers" && (i.member == "" || i.member == "*"): // `import transformers`
			text := v.Text(file)
			return text != nil && (text.Has("TrainingArguments") || text.Has("Trainer("))
		case top == "transformers" && i.member == "Trainer":
			return true
		}
		return strings.HasSuffix(i.member, "TrainingArguments") || strings.HasSuffix(i.member, "TrlParser")
	})
}

// trainerPackages are packages on top of HF's Trainer, each with a parser or an entry point of its own.
var trainerPackages = []string{"trl", "swift", "alignment", "open_r1", "llamafactory", "axolotl", "autotrain"}

// flagReaders are libraries that read a command line.
var flagReaders = []string{
	"argparse", "click", "typer", "fire", "absl.flags", "absl.app", "tyro", "simple_parsing", "jsonargparse", "draccus", "pyrallis",
	"tap", "configargparse", "docopt", "optparse", "getopt", "plac", "cyclopts", "chanfig", "gflags",
}

func readsFlags(i imported) bool {
	ofTransformers := firstPart(i.module) == "transformers" && i.member == "HfArgumentParser"
	return i.of(flagReaders) || ofTransformers
}
