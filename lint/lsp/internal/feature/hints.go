package feature

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Hint is a remark that editors show behind a value.
type Hint struct {
	At    uint32 // offset in the text of the file
	Label string
	More  string // Markdown, for who points at it; may be empty
}

// Hints are the remarks on a config: the global batch and the peak of its runs, and numbers that its loader takes for text.
func Hints(view *workspace.View, file *source.File) []Hint {
	var hints []Hint
	seen := map[Hint]bool{}
	add := func(at source.Place, label, more string) {
		hint := Hint{at.Span.End, label, more}
		if at.Path == file.Path && !seen[hint] {
			seen[hint] = true
			hints = append(hints, hint)
		}
	}
	for _, run := range view.Runs(file.Path) {
		anchor := valueIn(run, file.Path, run.Plan.Batch.Micro.From())
		if anchor.IsZero() {
			anchor = valueIn(run, file.Path, run.Plan.Batch.Global.From())
		}
		if anchor.IsZero() {
			continue
		}
		if label := globalBatch(run); label != "" {
			add(anchor, label, "")
		}
		if label := peak(run); label != "" {
			add(anchor, label, memoryTable(run))
		}
	}
	for _, part := range view.Parts(file.Path) {
		if part.Tree != nil && part.Tree.Format == configs.YAML && part.Section == "" {
			texts(part.Dialect, part.Tree, part.Tree.Root, func(n *configs.Node) {
				add(n.At, "a string here", fmt.Sprintf("The loader of %s reads `%s` as text, not as a number: YAML 1.1 wants a dot and a sign, as in `%s`.", part.Dialect.Title, n.Raw, dotted(n.Raw)))
			})
		}
	}
	return hints
}

// valueIn is where the value stands in a file whose key is one of the places.
func valueIn(run *workspace.Run, file string, places []source.Place) source.Place {
	for _, at := range places {
		if at.Path != file {
			continue
		}
		if setting, ok := run.Setting(at); ok && setting.Item.Value != nil && setting.Item.Value.At.Path == file && !setting.Item.Value.Bare {
			return setting.Item.Value.At
		}
	}
	return source.Place{}
}

// globalBatch is `global batch = 4 x 8 x 8 = 256`: micro-batch, accumulation, data-parallel ranks.
func globalBatch(run *workspace.Run) string {
	micro, ok := run.Plan.Batch.Micro.Get()
	accumulation, ok2 := run.Plan.Batch.Accumulation.Get()
	data, ok3 := run.Plan.Parallel.Data.Get()
	if !ok || !ok2 || !ok3 || micro <= 0 || accumulation <= 0 || data <= 0 || micro > maxProduct || accumulation > maxProduct || data > maxProduct {
		return ""
	}
	return fmt.Sprintf("global batch = %d x %d x %d = %d", micro, accumulation, data, micro*accumulation*data)
}

// maxProduct bounds each factor of a product that is shown.
const maxProduct = 1 << 20

// peak is `peak 45.3 of 61.0 GiB`.
func peak(run *workspace.Run) string {
	report, err := run.Memory()
	if err != nil || report.Usage == nil {
		return ""
	}
	label := "peak " + gib(report.Usage.Total.Bytes)
	if device := report.Usage.Device; device != nil {
		label = fmt.Sprintf("peak %.1f of %s", float64(report.Usage.Total.Bytes)/(1<<30), gib(device.UsableBytes))
		if report.Verdict == memory.Overflows {
			label += ": does not fit"
		}
	}
	return label
}

// number is text that people mean as a number, and that YAML 1.1 does not take for one.
var number = source.Pattern(`^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$`)

// texts visits the scalars that look like numbers and are text to the loader.
func texts(d *dialect.Dialect, tree *configs.Tree, n *configs.Node, visit func(*configs.Node)) {
	if n == nil {
		return
	}
	if n.Kind == configs.Scalar && n.Style == configs.Plain && number().MatchString(n.Raw) && d.LoaderOf(tree).Resolve(n).Kind() == constant.String {
		visit(n)
	}
	for i := range n.Items {
		texts(d, tree, n.Items[i].Value, visit)
	}
}

// dotted is a number with an exponent as YAML 1.1 takes it.
func dotted(raw string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '-' && exponent[0] != '+' {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}

// Lens is a remark above a config: whether the run that it belongs to fits.
type Lens struct {
	At    source.Span
	Title string
}

// Lenses say of each run of a config file whether it fits, at the first key.
func Lenses(view *workspace.View, file *source.File) []Lens {
	switch file.Kind {
	case source.JSON, source.YAML, source.TOML, source.Shell:
	default:
		return nil
	}
	var lenses []Lens
	for _, run := range view.Runs(file.Path) {
		if title := verdictLine(run); title != "" {
			if run.Name != file.Path {
				title += " (" + run.Name + ")"
			}
			lenses = append(lenses, Lens{firstKey(run, file.Path), title})
		}
	}
	return lenses
}

// firstKey is where the first part of a run in a file begins.
func firstKey(run *workspace.Run, file string) source.Span {
	for _, part := range run.Parts {
		if part.Path == file && part.Tree != nil && part.Tree.Root != nil && len(part.Tree.Root.Items) > 0 {
			if at := part.Tree.Root.Items[0].KeyAt; at.Path == file {
				return at.Span
			}
		}
	}
	return source.Span{}
}

// PlanText is what `trainvet plan` says about the runs of a file, in Markdown.
func PlanText(view *workspace.View, name string) string {
	var text strings.Builder
	for _, run := range view.Runs(name) {
		fmt.Fprintf(&text, "## %s\n\n| value | | how | from |\n|---|---|---|---|\n", run.Name)
		writeValues(&text, view, run)
		text.WriteString("\n")
	}
	if text.Len() == 0 {
		return "This file holds no settings of a training run.\n"
	}
	return text.String()
}
