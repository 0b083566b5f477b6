package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/workspace"
)

// fit prints the memory of each run. It cannot be told whether a run fits when facts are missing that decide; a run for which no
// device is named anywhere was asked for its memory only.
func (a *app) fit() *cobra.Command {
	var format, tokens string
	var facts factFlags
	command := &cobra.Command{
		Use:   "fit [flags] CONFIG...",
		Short: "Memory per rank of runs, whether they fit, and what would make them fit",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if format != "text" && format != "json" && format != "html" {
				return usagef("--format must be text, json or html, not %q", format)
			}
			length, err := parseTokens(tokens)
			if err != nil {
				return err
			}
			given, err := facts.plan()
			if err != nil {
				return err
			}
			p := a.open(files, given)
			if p == nil {
				return nil
			}
			answers := []fitAnswer{}
			for _, file := range p.files {
				if len(p.view.Runs(file)) == 0 {
					a.trouble("%s: holds no settings of a training run", output.Escape(file))
				}
			}
			for _, run := range p.runs() {
				answers = append(answers, a.answer(p, run, length))
			}
			switch format {
			case "json":
				return output.WriteObject(a.stdout, fitAnswers{1, answers})
			case "html":
				return writeFitPage(a.stdout, answers)
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
	command.Flags().StringVar(&format, "format", "text", "text, json or html: one page without any other file")
	command.Flags().StringVar(&tokens, "tokens", "", "length of the training in tokens (15B, 1T): adds FLOPs and days")
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
	Unmodelled    []fitUnmodelled      `json:"unmodelled"` // what the run uses and the estimate does not know
	Device        *fitDevice           `json:"device"`
	Peak          *fitPeak             `json:"peak"`
	ReservedBytes int64                `json:"reserved_bytes"`
	DeviceBytes   int64                `json:"device_bytes"`
	AtLeastBytes  int64                `json:"at_least_bytes"` // in the most favourable case of all that is not known; 0: not known
	Phases        map[string]int64     `json:"phases"`
	Parts         *fitParts            `json:"parts"`
	Assumed       []string             `json:"assumed"`
	Fullness      float64              `json:"fullness,omitempty"` // share of the device that the run needs
	Cost          *fitCost             `json:"cost"`
	Options       []fitOption          `json:"options"`
	Faster        []fitOption          `json:"faster"` // where much of the device is empty

	// Alternatives are what the run needs by what its files leave open, where that has no single answer.
	Alternatives []fitAlternative `json:"alternatives"`

	phases []memory.Phase
	needs  int64
}

type (
	fitUnmodelled struct {
		What string `json:"what"`
		Path string `json:"path"`
		Line int    `json:"line"`
	}
	// fitAlternative is the run with everything settled: what was taken, and what the run then is.
	fitAlternative struct {
		Assumed     []fitAssumption `json:"assumed"`
		Verdict     memory.Verdict  `json:"verdict"`
		Peak        fitPeak         `json:"peak"`
		DeviceBytes int64           `json:"device_bytes"`
		NeedsBytes  int64           `json:"needs_bytes"` // what the device must have
	}
	// fitAssumption is a value that no file states. Varies tells those in which the alternatives differ.
	fitAssumption struct {
		Name   string `json:"name"`
		Value  string `json:"value"`
		Text   string `json:"text"`
		Varies bool   `json:"varies"`
	}
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
		Changes         []fitChange    `json:"changes"`
		PeakBytes       int64          `json:"peak_bytes"`
		NeedsBytes      int64          `json:"needs_bytes"` // what the device must have
		Fits            bool           `json:"fits"`
		Verdict         memory.Verdict `json:"verdict"`
		Throughput      float64        `json:"throughput"`       // kept of today's, an estimate
		Numerics        bool           `json:"changes_numerics"` // touches what is computed, not only how
		ActivationBytes int64          `json:"activation_bytes"` // logits included, at the peak
		StateBytes      int64          `json:"state_bytes"`      // weights, gradients, optimizer
		Phase           string         `json:"phase"`
		Cost            fitCost        `json:"cost"`
	}
	fitChange struct {
		Name  string      `json:"name"`
		From  string      `json:"from"`
		To    string      `json:"to"`
		Path  string      `json:"path"` // of the file to change; "" where no file of the run has a key for it
		Line  int         `json:"line"` // 0: the key is to be added
		Write []fitAssign `json:"write"`
		was   string      // From in the words of the file
	}
	// fitAssign is a key of that file, as a dotted path, and what to write there.
	fitAssign struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	// fitCost is what an optimizer step costs. Rates are estimates; 0: not known.
	fitCost struct {
		Estimate        bool         `json:"estimate"`
		FLOPsPerToken   float64      `json:"flops_per_token"`
		TokensPerStep   float64      `json:"tokens_per_step"`
		Recomputed      float64      `json:"recomputed"`
		Bubble          float64      `json:"pipeline_bubble"`
		BytesPerStep    int64        `json:"bytes_per_step"` // sent by a rank
		Communications  []fitTraffic `json:"communications"`
		TokensPerSecond float64      `json:"tokens_per_second"`
		MFU             float64      `json:"mfu"`
		Train           *fitTrain    `json:"train,omitempty"`
	}
	fitTraffic struct {
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
	}
	fitTrain struct {
		Tokens float64 `json:"tokens"`
		FLOPs  float64 `json:"flops"`
		Days   float64 `json:"days"`
	}
)

// answer asks about one run, and lets the exit code say what it is.
func (a *app) answer(p *project, run *workspace.Run, tokens float64) fitAnswer {
	report, err := run.Memory()
	answer := fitAnswer{Path: run.Name, Plan: p.values(&run.Plan, false), Verdict: report.Verdict, Missing: []string{}, Unmodelled: []fitUnmodelled{}, Phases: map[string]int64{}, Assumed: []string{},
		Options: []fitOption{}, Faster: []fitOption{}, Alternatives: []fitAlternative{}, AtLeastBytes: report.AtLeast}
	answer.Missing = append(answer.Missing, report.Missing...)
	for _, u := range run.Plan.Unmodelled {
		answer.Unmodelled = append(answer.Unmodelled, fitUnmodelled{u.What, u.At.Path, p.line(u.At)})
	}
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
		answer.phases, answer.needs = u.Phases, u.Needed.Bytes
		if device != nil {
			answer.Fullness = math.Round(1000*float64(u.Needed.Bytes)/float64(device.UsableBytes)) / 1000
		}
		if cost, ok := memory.Price(&run.Plan); ok {
			priced := costOf(&cost, tokens)
			answer.Cost = &priced
		}
		for _, option := range memory.OptionsOf(&run.Plan, device, run.CanMake) {
			answer.Options = append(answer.Options, p.option(run, option, tokens))
		}
		for _, option := range memory.FasterOf(&run.Plan, device, run.CanMake) {
			answer.Faster = append(answer.Faster, p.option(run, option, tokens))
		}
	}
	if report.Verdict == memory.Unknown {
		answer.settle(memory.FindAlternatives(&run.Plan))
	}
	switch {
	case report.Verdict == memory.Overflows:
		a.raise(exitFindings)
	case report.Verdict == memory.Unknown && (report.Usage == nil || device != nil):
		a.trouble("%s: cannot tell whether it fits: %s not known", output.Escape(run.Name), strings.Join(answer.Missing, ", "))
	}
	return answer
}

// settle takes over what the run needs by what is open.
func (f *fitAnswer) settle(all memory.Alternatives) {
	for _, row := range all.Rows {
		u := row.Usage
		next := fitAlternative{Verdict: row.Verdict, Peak: fitPeak{u.Peak.Bytes, u.Peak.Low, u.Peak.High, u.Phase}, DeviceBytes: u.Total.Bytes, NeedsBytes: u.Needed.Bytes}
		for _, taken := range row.Varies {
			next.Assumed = append(next.Assumed, fitAssumption{taken.Name, taken.Value, taken.Text, true})
		}
		for _, taken := range all.Same {
			next.Assumed = append(next.Assumed, fitAssumption{taken.Name, taken.Value, taken.Text, false})
		}
		f.Alternatives = append(f.Alternatives, next)
	}
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

// option is a way of changing a run, in the words of its own files.
func (p *project) option(run *workspace.Run, o memory.Option, tokens float64) fitOption {
	next := fitOption{Changes: []fitChange{}, PeakBytes: o.PeakBytes, NeedsBytes: o.NeedsBytes, Fits: o.Fits, Verdict: o.Verdict, Throughput: o.Throughput,
		Numerics: o.Numerics, ActivationBytes: o.Usage.Parts.Activations + o.Usage.Parts.Logits, StateBytes: states(o.Usage.Parts), Phase: o.Usage.Phase,
		Cost: costOf(&o.Cost, tokens)}
	for _, change := range o.Changes {
		if change.Name == "batch.accumulation" && run.Plan.Batch.Accumulation.How() == plan.IsDerived && run.Plan.Batch.Global.How() == plan.IsWritten {
			continue // follows from the global batch that is written
		}
		if change.Name == "parallel.data" && run.Plan.Parallel.Data.How() == plan.IsDerived {
			continue
		}
		if made := p.change(run, change); len(made.Write) == 0 || !slices.ContainsFunc(next.Changes, func(c fitChange) bool { return c.Path == made.Path && slices.Equal(c.Write, made.Write) }) {
			next.Changes = append(next.Changes, made) // one key can be two values of the plan
		}
	}
	return next
}

func states(b memory.Bytes) int64 { return b.Weights + b.Gradients + b.Optimizer }

// change finds the file and the key at which a value of the run is set: where it is written, or else in the first of its files that has a
// key for it.
func (p *project) change(run *workspace.Run, change memory.Change) fitChange {
	c := fitChange{Name: change.Name, From: change.From, To: change.To, Write: []fitAssign{}, was: change.From}
	say := func(part *workspace.Part) bool {
		for _, said := range run.Says(part, change.Name, change.To) {
			c.Write = append(c.Write, fitAssign{said.Key, said.Text})
		}
		if len(c.Write) > 0 {
			c.Path = part.Path
		}
		return len(c.Write) > 0
	}
	if fact, ok := plan.Lookup(&run.Plan, change.Name); ok && fact.How() == plan.IsWritten {
		for _, place := range fact.From() {
			setting, found := run.Setting(place)
			if !found {
				continue
			}
			c.Line = p.line(place)
			if !say(setting.Part) {
				if slices.ContainsFunc(run.Parts, say) {
					c.Line = 0
				} else {
					c.Path = place.Path
				}
			} else if len(c.Write) == 1 {
				c.Write[0].Key = setting.Name() // as it is written there
				if was := run.Says(setting.Part, change.Name, change.From); len(was) == 1 {
					c.was = was[0].Text
				}
			}
			return c
		}
	}
	for _, part := range run.Parts {
		if say(part) {
			break
		}
	}
	return c
}

func costOf(c *memory.Cost, tokens float64) fitCost {
	cost := fitCost{Estimate: true, FLOPsPerToken: c.FLOPsPerToken, TokensPerStep: c.TokensPerStep, Recomputed: c.Recomputed, Bubble: c.Bubble, BytesPerStep: int64(c.Bytes()),
		Communications: []fitTraffic{}, TokensPerSecond: math.Round(c.PerSecond), MFU: math.Round(1000*c.MFU) / 1000}
	for _, t := range c.Traffic {
		cost.Communications = append(cost.Communications, fitTraffic{t.Name, int64(t.Bytes)})
	}
	if tokens > 0 {
		train := c.Train(tokens)
		cost.Train = &fitTrain{train.Tokens, train.FLOPs, math.Round(100*train.Days) / 100}
	}
	return cost
}

// parseTokens reads a number of tokens: digits, 1e12, or with k, M, B or T behind; "" is 0.
func parseTokens(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	digits, scale := text, 1.0
	if n := len(text) - 1; strings.ContainsRune("kKmMbBgGtT", rune(text[n])) {
		digits = text[:n]
		scale = map[byte]float64{'k': 1e3, 'm': 1e6, 'b': 1e9, 'g': 1e9, 't': 1e12}[text[n]|0x20]
	}
	n, err := strconv.ParseFloat(digits, 64)
	if n *= scale; err != nil || !(n >= 1 && n <= 1e18) {
		return 0, usagef("--tokens must be a number such as 15B or 1T, not %q", text)
	}
	return n, nil
}
