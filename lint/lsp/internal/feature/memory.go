package feature

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint/workspace"
)

// gib writes bytes in GiB.
func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// parts are the parts of an estimate that are not empty, with their names.
func parts(u *memory.Usage) (names []string, sizes []int64) {
	for _, part := range []struct {
		name  string
		bytes int64
	}{{"weights", u.Parts.Weights}, {"gathered weights", u.Parts.Gathered}, {"gradients", u.Parts.Gradients}, {"optimizer states", u.Parts.Optimizer},
		{"activations", u.Parts.Activations}, {"logits", u.Parts.Logits}, {"buckets", u.Parts.Buffers}, {"temporaries", u.Parts.Temporaries},
		{"context", u.Context}, {"communication", u.Communication}} {
		if part.bytes > 0 {
			names, sizes = append(names, part.name), append(sizes, part.bytes)
		}
	}
	return names, sizes
}

// memoryTable is the memory of a run by part, in Markdown; "" where it cannot be computed.
func memoryTable(run *workspace.Run) string {
	report, err := run.Memory()
	if err != nil || report.Usage == nil {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s on the device per rank%s\n\n| part | memory |\n|---|---:|\n", gib(report.Usage.Total.Bytes), ofUsable(report))
	names, sizes := parts(report.Usage)
	for i, name := range names {
		fmt.Fprintf(&text, "| %s | %s |\n", name, gib(sizes[i]))
	}
	return text.String()
}

// ofUsable names what the device has, where there is one.
func ofUsable(report memory.Report) string {
	if report.Usage == nil || report.Usage.Device == nil {
		return ""
	}
	return fmt.Sprintf(" of %s usable on %s", gib(report.Usage.Device.UsableBytes), report.Usage.Device.Name)
}

// verdictLine says in one line whether a run fits; "" where nothing can be said.
func verdictLine(run *workspace.Run) string {
	report, err := run.Memory()
	if err != nil {
		return ""
	}
	u := report.Usage
	switch {
	case report.Verdict == memory.Overflows && u == nil:
		return fmt.Sprintf("does not fit: at least %s per rank", gib(report.AtLeast))
	case u == nil:
		return ""
	case report.Verdict == memory.Fits:
		return fmt.Sprintf("fits: peak %s%s", gib(u.Total.Bytes), ofUsable(report))
	case report.Verdict == memory.Tight:
		return fmt.Sprintf("tight: peak %s%s", gib(u.Total.Bytes), ofUsable(report))
	case report.Verdict == memory.Overflows:
		return fmt.Sprintf("does not fit: peak %s%s", gib(u.Total.Bytes), ofUsable(report))
	}
	return fmt.Sprintf("peak %s; not known: %s", gib(u.Total.Bytes), strings.Join(report.Missing, ", "))
}

// Fit is what `trainvet fit` says about the runs of a file, in Markdown.
func Fit(view *workspace.View, name string) string {
	var text strings.Builder
	for _, run := range view.Runs(name) {
		fmt.Fprintf(&text, "## %s\n\n", run.Name)
		report, err := run.Memory()
		if err != nil {
			fmt.Fprintf(&text, "%s\n\n", err)
			continue
		}
		if line := verdictLine(run); line != "" {
			fmt.Fprintf(&text, "**%s**\n\n", line)
		}
		if len(report.Missing) > 0 {
			fmt.Fprintf(&text, "Not known: %s. To check: %s.\n\n", strings.Join(report.Missing, ", "), report.Missing.Supply())
		}
		if table := memoryTable(run); table != "" {
			text.WriteString(table + "\n")
		}
		if u := report.Usage; u != nil && len(u.Assumed) > 0 {
			fmt.Fprintf(&text, "Assumed, since nothing says otherwise: %s.\n\n", strings.Join(u.Assumed, ", "))
		}
		writeOptions(&text, run)
	}
	if text.Len() == 0 {
		return "This file holds no settings of a training run.\n"
	}
	return text.String()
}

func writeOptions(text *strings.Builder, run *workspace.Run) {
	name, known := run.Plan.Device.Get()
	if !known {
		return
	}
	device, err := catalog.Device(name)
	if err != nil {
		return
	}
	options := memory.Options(&run.Plan, device)
	if len(options) == 0 {
		return
	}
	title := "It would fit with"
	if !options[0].Fits {
		title = "Nothing fits; the smallest is"
	}
	fmt.Fprintf(text, "%s\n\n| peak | throughput | changes |\n|---:|---:|---|\n", title)
	for _, option := range options {
		changes := make([]string, len(option.Changes))
		for i, change := range option.Changes {
			changes[i] = change.String()
		}
		fmt.Fprintf(text, "| %s | %.0f %% | %s |\n", gib(option.PeakBytes), 100*option.Throughput, strings.Join(changes, ", "))
	}
	text.WriteString("\n")
}
