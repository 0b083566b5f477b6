package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint/output"
)

// part is one part of the memory, with its name for people.
type part struct {
	Name  string
	Bytes int64
}

// parts lists the parts in the order in which they are shown.
func parts(b memory.Bytes) []part {
	return []part{{"weights", b.Weights}, {"gathered weights", b.Gathered}, {"gradients", b.Gradients}, {"optimizer states", b.Optimizer},
		{"activations", b.Activations}, {"logits", b.Logits}, {"buckets", b.Buffers}, {"temporaries", b.Temporaries}}
}

func (f *fitAnswer) print(out io.Writer, paint output.Paint) {
	verdict := string(f.Verdict)
	switch f.Verdict {
	case memory.Fits:
		verdict = paint.Added(verdict)
	case memory.Overflows:
		verdict = paint.Removed(verdict)
	}
	fmt.Fprintf(out, "%s: %s\n", paint.Bold(output.Escape(f.Path)), verdict)
	if f.Device != nil {
		fmt.Fprintf(out, "  on %s with %s usable", output.Escape(f.Device.Name), gib(f.Device.UsableBytes))
		if f.Device.Assumption != "" {
			fmt.Fprintf(out, " (%s)", output.Escape(f.Device.Assumption))
		}
		fmt.Fprintln(out)
	}
	if len(f.Missing) > 0 {
		fmt.Fprintf(out, "  not known: %s\n", strings.Join(f.Missing, ", "))
	}
	if f.Peak == nil {
		if f.AtLeastBytes > 0 {
			fmt.Fprintf(out, "  needs at least %s per rank, whatever these are\n", gib(f.AtLeastBytes))
		}
		f.printAlternatives(out)
		return
	}
	fmt.Fprintf(out, "  %s on the device per rank: %s allocated at the peak (%s, between %s and %s), %s reserved\n", gib(f.DeviceBytes), gib(f.Peak.Bytes),
		phaseName(f.Peak.Phase), gib(f.Peak.LowBytes), gib(f.Peak.HighBytes), gib(f.ReservedBytes))
	for _, part := range append(parts(f.Parts.Bytes), part{"context", f.Parts.Context}, part{"communication", f.Parts.Communication}) {
		if part.Bytes >= 1<<30/20 {
			fmt.Fprintf(out, "  %12s  %s\n", gib(part.Bytes), part.Name)
		}
	}
	if f.Cost != nil {
		fmt.Fprintf(out, "  %s\n", f.Cost.sentence())
	}
	if len(f.Assumed) > 0 {
		fmt.Fprintf(out, "  assumed, since nothing says otherwise: %s\n", strings.Join(f.Assumed, ", "))
	}
	f.printOptions(out)
	f.printFaster(out)
}

// printAlternatives tells what the run needs by what is open, a line for each case.
func (f *fitAnswer) printAlternatives(out io.Writer) {
	for i, row := range f.Alternatives {
		var same, differs []string
		for _, taken := range row.Assumed {
			if taken.Varies {
				differs = append(differs, taken.Text)
			} else {
				same = append(same, taken.Text)
			}
		}
		if i == 0 {
			fmt.Fprintln(out, "  on the device per rank, by what these are:")
			if len(same) > 0 {
				fmt.Fprintf(out, "  (in every line: %s)\n", output.Escape(strings.Join(same, "; ")))
			}
		}
		verdict := ""
		if f.Device != nil {
			verdict = fmt.Sprintf("  %-9s", row.Verdict)
		}
		fmt.Fprintf(out, "  %12s%s  %s\n", gib(row.DeviceBytes), verdict, output.Escape(strings.Join(differs, ", ")))
	}
}

func phaseName(phase string) string { return strings.ReplaceAll(phase, "_", " ") }

// sentence tells what a step costs.
func (c *fitCost) sentence() string {
	text := fmt.Sprintf("a step: %s tokens, %s FLOPs", amount(c.TokensPerStep), amount(c.TokensPerStep*c.FLOPsPerToken))
	if len(c.Communications) > 0 {
		var all []string
		for _, t := range c.Communications {
			all = append(all, t.Name+" "+gib(t.Bytes))
		}
		text += fmt.Sprintf("; each rank sends %s (%s)", gib(c.BytesPerStep), strings.Join(all, ", "))
	}
	if c.TokensPerSecond > 0 {
		text += fmt.Sprintf("; about %s tokens/s, MFU %.0f %% (an estimate)", amount(c.TokensPerSecond), 100*c.MFU)
	}
	if c.Train != nil {
		text += fmt.Sprintf("\n  %s tokens: %.2e FLOPs", amount(c.Train.Tokens), c.Train.FLOPs)
		if c.Train.Days > 0 {
			text += fmt.Sprintf(", about %s days", amount(c.Train.Days))
		}
	}
	return text
}

// amount writes a number in three digits with a letter for its size.
func amount(n float64) string {
	for _, unit := range []struct {
		size   float64
		letter string
	}{{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size*10000 || n >= unit.size && unit.size < 1e18 {
			return fmt.Sprintf("%.3g%s", n/unit.size, unit.letter)
		}
	}
	return fmt.Sprintf("%.3g", n)
}

const row = "  %3s %11s %11s %11s %-14s %12s %10s %6s\n"

// printOptions compares today's plan with what would make it fit, by what people compare: states, activations, total, where the peak is,
// what a step sends, and speed.
func (f *fitAnswer) printOptions(out io.Writer) {
	if len(f.Options) == 0 {
		return
	}
	title := "it would fit with"
	if !f.Options[0].Fits {
		title = "nothing fits; the smallest is"
	}
	fmt.Fprintf(out, "  %s\n", title)
	fmt.Fprintf(out, row, "", "activations", "states", "needed", "peak", "sent a step", "tokens/s", "MFU")
	fmt.Fprintf(out, row, "now", gib(f.Parts.Activations+f.Parts.Logits), gib(states(f.Parts.Bytes)), gib(f.needs), phaseName(f.Peak.Phase), gib(f.Cost.BytesPerStep), rate(f.Cost), mfu(f.Cost))
	for i := range f.Options {
		f.Options[i].print(out, fmt.Sprint(i+1))
	}
}

// printFaster says what would use the empty part of the device.
func (f *fitAnswer) printFaster(out io.Writer) {
	if len(f.Faster) == 0 {
		return
	}
	fmt.Fprintf(out, "  only %.0f %% of the device is used; it would be faster with\n", 100*f.Fullness)
	for i := range f.Faster {
		f.Faster[i].print(out, fmt.Sprint(i+1))
	}
}

func rate(c *fitCost) string {
	if c == nil || c.TokensPerSecond <= 0 {
		return "-"
	}
	return "~" + amount(c.TokensPerSecond)
}

func mfu(c *fitCost) string {
	if c == nil || c.MFU <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*c.MFU)
}

func (o *fitOption) print(out io.Writer, number string) {
	fmt.Fprintf(out, row, number, gib(o.ActivationBytes), gib(o.StateBytes), gib(o.NeedsBytes), phaseName(o.Phase), gib(o.Cost.BytesPerStep), rate(&o.Cost), mfu(&o.Cost))
	var changes []string
	for _, change := range o.Changes {
		changes = append(changes, change.String())
	}
	note := ""
	if o.Verdict == memory.Tight {
		note = ", tightly"
	}
	if o.Numerics {
		note += ", other numbers"
	}
	fmt.Fprintf(out, "      %.0f %% of the throughput%s: %s\n", 100*o.Throughput, note, strings.Join(changes, ", "))
}

// String is the change as the user makes it: the keys of the file, or the plan's name where no file has a key for it.
func (c *fitChange) String() string {
	if len(c.Write) == 0 {
		text := fmt.Sprintf("%s %s -> %s", c.Name, c.From, c.To)
		if c.Line > 0 {
			text += fmt.Sprintf(" (%s:%d)", output.Escape(c.Path), c.Line)
		}
		return text
	}
	var all []string
	for _, w := range c.Write {
		all = append(all, fmt.Sprintf("%s: %s", output.Escape(w.Key), w.Value))
	}
	text := strings.Join(all, ", ")
	if len(c.Write) == 1 && c.Line > 0 {
		text += " instead of " + c.was
	}
	if c.Line > 0 {
		return fmt.Sprintf("%s (%s:%d)", text, output.Escape(c.Path), c.Line)
	}
	return fmt.Sprintf("%s (to add to %s)", text, output.Escape(c.Path))
}

// gib writes bytes in GiB.
func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
