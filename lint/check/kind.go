package check

import (
	"bytes"
	"regexp"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// What the first lines of the formats look like. The order decides between them.
var looks = []struct {
	kind    source.Kind
	pattern func() *regexp.Regexp
}{
	{source.JSON, source.Pattern(`\A\s*(?://[^\n]*\n\s*|/\*(?s:.*?)\*/\s*)*[{\[]\s*(?:["'}\]/\n{\[]|\w+\s*:)`)},
	{source.Python, source.Pattern(`(?m)^(?:from [.\w]+ import |import [\w.]+|(?:async )?def \w+\(|class \w+[(:]|@\w+|if __name__ ==)`)},
	{source.TOML, source.Pattern(`(?m)^(?:\[{1,2}[\w."-]+\]{1,2}\s*(?:#.*)?$|[\w-]+ = )`)},
	{source.YAML, source.Pattern(`(?m)^(?:---\s*$|[\w."'-]+:(?:\s|$))`)},
	{source.Shell, source.Pattern(`(?m)^(?:export \w+=|#SBATCH |\w+=\S|(?:torchrun|deepspeed|accelerate|srun|python3?) )`)},
}

// guessWindow bounds the bytes from which the kind of a file is guessed.
const guessWindow = 16 << 10

// GuessKinds gives a snapshot in which named files of a kind that their name does not tell are read as what their content
// looks like. Files that look like nothing stay as they are; there is nothing to find in them.
func GuessKinds(snapshot *workspace.Snapshot, targets []Target) *workspace.Snapshot {
	var guessed []*source.File
	for _, target := range targets {
		if !target.Named {
			continue
		}
		file, err := snapshot.File(target.Path)
		if err != nil || file.Kind != source.Other {
			continue
		}
		if kind := guessKind(file.Text); kind != source.Other {
			if again, err := source.Decode(file.Path, kind, file.Raw); err == nil {
				guessed = append(guessed, again)
			}
		}
	}
	if len(guessed) == 0 {
		return snapshot
	}
	return snapshot.With(guessed...)
}

func guessKind(text []byte) source.Kind {
	head := text[:min(len(text), guessWindow)]
	if line, _, _ := bytes.Cut(head, []byte("\n")); bytes.HasPrefix(line, []byte("#!")) {
		if kind := source.KindOf("script", line); kind != source.Other {
			return kind
		}
	}
	for _, look := range looks {
		if look.pattern().Match(head) {
			return look.kind
		}
	}
	return source.Other
}
