package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/workspace"
)

// fit prints the memory of each run. It cannot be told whether a run fits when facts are missing that decide; a run for which no
// device is named anywhere was asked for its memory only.
func (a *app) fit() *cobra.Command {
	var format string
	var facts factFlags
	command := &cobra.Command{
		Use:   "fit [flags] CONFIG...",
		Short: "Memory per rank of runs, whether they fit, and what would make them fit",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			p, err := a.openAs(format, files, &facts)
			if p == nil {
				return err
			}
			answers := []fitAnswer{}
			for _, file := range p.files {
				if len(p.view.Runs(file)) == 0 {
					a.trouble("%s: holds no settings of a training run", output.Escape(file))
				}
			}
			for _, run := range p.runs() {
				answers = append(answers, a.answer(p, run))
			}
			if format == "json" {
				return output.WriteObject(a.stdout, fitAnswers{1, answers})
			}
			for i, answer := range answers {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				answer.print(a.stdout, a.paint(a.stdout))
			}
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text or json")
	facts.add(command.Flags())
	return command
}

// fitAnswers is what `fit --format json` prints.
type fitAnswers struct {
	Version int         `json:"version"`
	Runs    []fitAnswer `json:"runs"`
}

// fitAnswer is the answer about one run: the contract with other tools. Bytes are integers.
type fitAnswer struct {
	Path          string               `json:"path"`
	Plan          map[string]planValue `json:"plan"`
	Verdict       memory.Verdict       `json:"verdict"`
	Missing       []string             `json:"missing"`
	Device        *fitDevice           `json:"device"`
	Peak          *fitPeak             `json:"peak"`
	ReservedBytes int64                `json:"reserved_bytes"`
	DeviceBytes   int64                `json:"device_bytes"`
	AtLeastBytes  int64                `json:"at_least_bytes"` // in the most favourable case of all that is not known; 0: not known
	Phases        map[string]int64     `json:"phases"`
	Parts         *fitParts            `json:"parts"`
	Assumed       []string             `json:"assumed"`
	Options       []fitOption          `json:"options"`
}

type (
	fitDevice struct {
		Name        string `json:"name"`
		UsableBytes int64  `json:"usable_bytes"`
		Assumption  string `json:"assumption,omitempty"`
	}
	fitPeak struct {
		Bytes     int64  `json:"bytes"`
		LowBytes  int64  `json:"low_bytes"`
		HighBytes int64  `json:"high_bytes"`
		Phase     string `json:"phase"`
	}
	fitParts struct {
		memory.Bytes
		Context       int64 `json:"context"`
		Communication int64 `json:"communication"`
	}
	fitOption struct {
		Changes    []fitChange `json:"changes"`
		PeakBytes  int64       `json:"peak_bytes"`
		Fits       bool        `json:"fits"`
		Throughput float64     `json:"throughput"`
	}
	fitChange struct {
		Name string `json:"name"`
		From string `json:"from"`
		To   string `json:"to"`
	}
)

// answer asks about one run, and lets the exit code say what it is.
func (a *app) answer(p *project, run *workspace.Run) fitAnswer {
	report, err := run.Memory()
	answer := fitAnswer{Path: run.Name, Plan: p.values(&run.Plan, false), Verdict: report.Verdict, Missing: []string{}, Phases: map[string]int64{}, Assumed: []string{},
		Options: []fitOption{}, AtLeastBytes: report.AtLeast}
	answer.Missing = append(answer.Missing, report.Missing...)
	if err != nil {
		a.trouble("%s: %s", output.Escape(run.Name), output.Escape(err.Error()))
		return answer
	}
	device := answer.device(run)
	if u := report.Usage; u != nil {
		answer.Peak = &fitPeak{u.Peak.Bytes, u.Peak.Low, u.Peak.High, u.Phase}
		answer.ReservedBytes, answer.DeviceBytes = u.Reserved, u.Total.Bytes
		answer.Parts = &fitParts{u.Parts, u.Context, u.Communication}
		answer.Assumed = append(answer.Assumed, u.Assumed...)
		for _, phase := range u.Phases {
			answer.Phases[phase.Name] = phase.Bytes
		}
		for _, option := range memory.Options(&run.Plan, device) {
			next := fitOption{[]fitChange{}, option.PeakBytes, option.Fits, option.Throughput}
			for _, change := range option.Changes {
				next.Changes = append(next.Changes, fitChange{change.Name, change.From, change.To})
			}
			answer.Options = append(answer.Options, next)
		}
	}
	switch {
	case report.Verdict == memory.Overflows:
		a.raise(exitFindings)
	case report.Verdict == memory.Unknown && (report.Usage == nil || device != nil):
		a.trouble("%s: cannot tell whether it fits: %s not known", output.Escape(run.Name), strings.Join(answer.Missing, ", "))
	}
	return answer
}

// device is the device that the plan names, or nil.
func (f *fitAnswer) device(run *workspace.Run) *catalog.DeviceSpec {
	name, known := run.Plan.Device.Get()
	if !known {
		return nil
	}
	device, err := catalog.Device(name)
	if err != nil {
		return nil
	}
	f.Device = &fitDevice{device.Name, device.UsableBytes, device.Assumption}
	return device
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
		return
	}
	fmt.Fprintf(out, "  %s on the device per rank: %s allocated at the peak (%s, between %s and %s), %s reserved\n", gib(f.DeviceBytes), gib(f.Peak.Bytes),
		strings.ReplaceAll(f.Peak.Phase, "_", " "), gib(f.Peak.LowBytes), gib(f.Peak.HighBytes), gib(f.ReservedBytes))
	for _, part := range []struct {
		name  string
		bytes int64
	}{{"weights", f.Parts.Weights}, {"gathered weights", f.Parts.Gathered}, {"gradients", f.Parts.Gradients}, {"optimizer states", f.Parts.Optimizer},
		{"activations", f.Parts.Activations}, {"logits", f.Parts.Logits}, {"buckets", f.Parts.Buffers}, {"temporaries", f.Parts.Temporaries},
		{"context", f.Parts.Context}, {"communication", f.Parts.Communication}} {
		if part.bytes > 0 {
			fmt.Fprintf(out, "  %12s  %s\n", gib(part.bytes), part.name)
		}
	}
	if len(f.Assumed) > 0 {
		fmt.Fprintf(out, "  assumed, since nothing says otherwise: %s\n", strings.Join(f.Assumed, ", "))
	}
	f.printOptions(out)
}

func (f *fitAnswer) printOptions(out io.Writer) {
	if len(f.Options) == 0 {
		return
	}
	title := "it would fit with"
	if !f.Options[0].Fits {
		title = "nothing fits; the smallest is"
	}
	fmt.Fprintf(out, "  %s\n", title)
	for _, option := range f.Options {
		var changes []string
		for _, change := range option.Changes {
			changes = append(changes, fmt.Sprintf("%s %s -> %s", change.Name, change.From, change.To))
		}
		fmt.Fprintf(out, "  %12s  %3.0f %% of the throughput: %s\n", gib(option.PeakBytes), 100*option.Throughput, strings.Join(changes, ", "))
	}
}

// gib writes bytes in GiB.
func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
