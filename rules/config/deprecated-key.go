package config

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed deprecated-key.md
var docDeprecatedKey string

// DeprecatedKey reports keys that have a successor, or that newer releases no longer take.
var DeprecatedKey = &lint.Rule{
	Name:     "deprecated-key",
	Family:   "config",
	Since:    "0.1",
	Doc:      docDeprecatedKey,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		for _, s := range settings(part) {
			switch {
			case s.key == nil || s.key.Renamed != "" && bothWritten(s):
			case s.key.Removed != "":
				checkRemoved(pass, s)
			case s.key.Deprecated && (part.Dialect == dialect.DeepSpeed || part.Dialect == dialect.Accelerate):
				checkDeprecated(pass, s) // elsewhere the successor needs the newest major release, which few have
			case s.path() == "zero_optimization" && part.Dialect == dialect.DeepSpeed:
				checkOldZero(pass, s)
			}
		}
	},
}

// bothWritten: the framework refuses, or ignores, an old key beside its successor, which conflicting-keys reports.
func bothWritten(s *setting) bool {
	section, name := cutPath(s.key.Replacement)
	return section == s.section && s.within.Item(name) != nil
}

func cutPath(path string) (section, name string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// checkRemoved: where no pin says which release will read the file, a key which was taken without a word until the last major release is
// told as advice.
func checkRemoved(pass *lint.Pass, s *setting) {
	rejects, lenient := rejection(pass, s)
	if pin := pass.Pin(s.part.Path, owner(s)); pin.Known() && s.key.Removed[0] >= '0' && s.key.Removed[0] <= '9' {
		switch pin.Since(s.key.Removed) {
		case pyscan.Yes:
			d := pass.Reportf(s.item().KeyAt, "%s was removed in %s %s, and %s is asked for: %s%s", s.name, owner(s), s.key.Removed, pin,
				rejects, instead(pass, s)).As(lint.Error).Pinned(pin, s.key.Removed)
			if s.part.Tree.Format == configs.Flags || lenient != pyscan.No {
				d.As(lint.Info) // it may be the program's own
			}
			repair(pass, d, s)
			return
		case pyscan.No:
			if s.key.Deprecated {
				d := pass.Reportf(s.item().KeyAt, "%s is removed in %s %s; %s still takes it", s.name, owner(s), s.key.Removed, pin).
					As(lint.Info).Pinned(pin, s.key.Removed)
				repair(pass, d, s)
			}
			return
		}
	}
	d := pass.Reportf(s.item().KeyAt, "%s was removed in %s %s: %s%s", s.name, owner(s), s.key.Removed, rejects, instead(pass, s))
	if !s.key.Deprecated || fromFlags(s.part) || lenient != pyscan.No {
		d.As(lint.Info)
	}
	repair(pass, d, s)
}

// rejection says what the reader of a part does with a key that it does not have, and whether it takes it without a word; Maybe where a
// program of the project decides that, and it is not known how.
func rejection(pass *lint.Pass, s *setting) (text string, lenient pyscan.Truth) {
	reader := framework(s.part.Dialect)
	if s.part.Dialect == dialect.HFTrainingArguments {
		reader = "HfArgumentParser"
		switch s.part.Tree.Format {
		case configs.Python:
			return "the call raises TypeError", pyscan.No
		case configs.Flags:
			return reader + " rejects flags that no dataclass has", pyscan.No
		}
		switch readers := pass.KeyReaders(s.part.Path); {
		case !readers.Known:
			return reader + " rejects the file unless allow_extra_keys is set", pyscan.No
		case readers.Lenient == pyscan.Yes:
			return "the program reads this file with extra keys allowed, and ignores it", pyscan.Yes
		case readers.Lenient == pyscan.Maybe:
			return "it is ignored where extra keys are allowed, else " + reader + " rejects the file", pyscan.Maybe
		}
	}
	return reader + " rejects it", pyscan.No
}

// owner is the package whose releases have a key or not: programs on top of the Trainer take its keys.
func owner(s *setting) string {
	name := strings.Fields(s.table.Version)[0]
	if name == "LLaMA-Factory" {
		return "transformers"
	}
	return name
}

func checkDeprecated(pass *lint.Pass, s *setting) {
	if s.key.Dropped {
		pass.Reportf(s.item().KeyAt, "%s has no effect any more: %s takes it, and does nothing%s", s.name, framework(s.part.Dialect), instead(pass, s))
		return
	}
	d := pass.Reportf(s.item().KeyAt, "%s is deprecated%s", s.name, instead(pass, s))
	if s.part.Dialect != dialect.DeepSpeed {
		d.As(lint.Info) // it still works, and which release will be used is not known
	}
	repair(pass, d, s)
}

// instead says what to write, and from which release on where an older one is allowed.
func instead(pass *lint.Pass, s *setting) string {
	if s.key.Replacement == "" {
		return ""
	}
	if pin := pass.Pin(s.part.Path, owner(s)); s.key.Renamed != "" && pin.Known() && pin.Since(s.key.Renamed) != pyscan.Yes {
		return fmt.Sprintf("; write %s, which needs %s %s", s.key.Replacement, owner(s), s.key.Renamed)
	}
	return "; write " + s.key.Replacement
}

// repair offers the new name where the release that reads the file has it: safe where all releases that are asked for do, unsafe where
// nothing is known of the release.
func repair(pass *lint.Pass, d *lint.Diagnostic, s *setting) {
	section, name := cutPath(s.key.Replacement)
	if s.key.Renamed == "" || section != s.section {
		return
	}
	switch pin := pass.Pin(s.part.Path, owner(s)); {
	case pin.Since(s.key.Renamed) == pyscan.Yes:
		rename(pass, d, s.item(), s.name, name, lint.Safe)
	case !pin.Known():
		rename(pass, d, s.item(), s.name, name, lint.Unsafe)
	}
}

// checkOldZero: before it had stages, ZeRO was on or off.
func checkOldZero(pass *lint.Pass, s *setting) {
	node := s.item().Value
	v, _ := value(s.part, node)
	on, ok := v.Bool()
	if !ok {
		return
	}
	d := pass.Reportf(s.item().KeyAt, "zero_optimization is a switch in the oldest form; DeepSpeed reads it as stage %d", map[bool]int{true: 1}[on])
	if text, known := map[bool]string{true: `{"stage": 1}`, false: `{"stage": 0}`}[on]; known {
		d.Suggest("write the stage", lint.Safe, lint.Edit{At: node.At, Text: text})
	}
}
