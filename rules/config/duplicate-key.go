package config

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed duplicate-key.md
var docDuplicateKey string

// DuplicateKey reports keys that stand twice in one mapping.
var DuplicateKey = &lint.Rule{
	Name:     "duplicate-key",
	Family:   "config",
	Since:    "0.1",
	Doc:      docDuplicateKey,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if fromFlags(part) || part.Section != "" { // a section is looked at with its file
			return
		}
		findDuplicates(pass, part, part.Tree.Root, 0)
	},
}

func findDuplicates(pass *lint.Pass, part *workspace.Part, node *configs.Node, depth int) {
	if node == nil || depth > configs.MaxDepth || !node.Via.IsZero() {
		return
	}
	first := map[string]int{}
	for i := range node.Items {
		item := &node.Items[i]
		findDuplicates(pass, part, item.Value, depth+1)
		if node.Kind != configs.Mapping || item.Merge || item.Key == "<<" {
			continue
		}
		name := part.Dialect.Spelled(part.Tree, item.Key)
		earlier, twice := first[name]
		if first[name] = i; !twice || item.KeyAt.IsZero() || item.KeyAt.Path != node.Items[earlier].KeyAt.Path {
			continue
		}
		reportDuplicate(pass, part, node, earlier, i)
	}
}

func reportDuplicate(pass *lint.Pass, part *workspace.Part, node *configs.Node, earlier, later int) {
	item := &node.Items[later]
	what := "the last one counts"
	severity := lint.Warning
	switch {
	case part.Dialect == dialect.DeepSpeed && part.Tree.Format == configs.JSON:
		what, severity = "DeepSpeed refuses the config; where another library reads the file, the last one counts", lint.Error
	case part.Tree.Format == configs.YAML && part.Dialect.Loader == configs.LoaderOmegaConf:
		what, severity = "OmegaConf refuses the file", lint.Error
	}
	same := pass.Text(item.KeyAt.Path) != nil && textOfValue(pass, node.Items[earlier].Value) == textOfValue(pass, item.Value)
	d := pass.Reportf(item.KeyAt, "%s stands here a second time: %s", item.Key, what).As(severity)
	d.Note(node.Items[earlier].KeyAt, "the first one")
	if same {
		if edit, ok := without(pass, node, later); ok {
			d.Suggest("take out the second one, which says the same", lint.Safe, edit)
		}
		return
	}
	if edit, ok := without(pass, node, earlier); ok {
		d.Suggest(fmt.Sprintf("take out the first %s, which does not count", item.Key), lint.Unsafe, edit)
	}
}

// textOfValue is the text of a value as it stands in the file.
func textOfValue(pass *lint.Pass, node *configs.Node) string {
	if node == nil || node.At.IsZero() {
		return ""
	}
	file := pass.Text(node.At.Path)
	if file == nil {
		return ""
	}
	return string(textOf(file, node.At.Span))
}

func textOf(file *source.File, span source.Span) []byte {
	if int(span.End) > len(file.Text) || span.Start > span.End {
		return nil
	}
	return file.Text[span.Start:span.End]
}
