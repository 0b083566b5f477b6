package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/output"
)

//go:embed fit.html.tmpl
var fitTemplate string

var fitPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("fit").Funcs(template.FuncMap{
		"gib": gib, "plain": output.Escape, "phase": phaseName, "percent": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }, "amount": amount, "states": states,
		"rate": rate, "mfu": mfu, "inc": func(i int) int { return i + 1 }, "sentence": func(c *fitCost) string { return c.sentence() },
	}).Parse(fitTemplate))
})

// bar is one phase of a step, as it is drawn.
type bar struct {
	Name  string
	Bytes int64
	Peak  bool
	Parts []segment
}

type segment struct {
	part
	Class int
	Width float64 // percent of the scale
}

// Bars are the phases, with the parts as shares of the scale.
func (f *fitAnswer) Bars() []bar {
	var bars []bar
	for _, phase := range f.phases {
		b := bar{Name: phaseName(phase.Name), Bytes: phase.Bytes, Peak: f.Peak != nil && f.Peak.Phase == phase.Name}
		for i, p := range parts(phase.Parts) {
			if p.Bytes > 0 {
				b.Parts = append(b.Parts, segment{p, i, 100 * float64(p.Bytes) / float64(f.scale())})
			}
		}
		bars = append(bars, b)
	}
	return bars
}

// Legend are the parts that any phase has.
func (f *fitAnswer) Legend() []segment {
	var legend []segment
	for i, p := range parts(f.Parts.Bytes) {
		for _, phase := range f.phases {
			if all := parts(phase.Parts); all[i].Bytes > 0 {
				legend = append(legend, segment{part: p, Class: i})
				break
			}
		}
	}
	return legend
}

// scale is what the full width of a bar stands for, bytes: a little more than the largest phase, and than the device.
func (f *fitAnswer) scale() int64 {
	most := int64(1)
	for _, phase := range f.phases {
		most = max(most, phase.Bytes)
	}
	if f.Device != nil {
		most = max(most, f.Device.UsableBytes)
	}
	return most + most/50
}

// Limit is where the line of the device stands, percent of the scale; context and communication are taken off. 0: no device.
func (f *fitAnswer) Limit() float64 {
	if f.Device == nil || f.Parts == nil {
		return 0
	}
	return 100 * float64(max(f.Device.UsableBytes-f.Parts.Context-f.Parts.Communication, 0)) / float64(f.scale())
}

// Now is the plan as it is, as a row of the table of strategies.
func (f *fitAnswer) Now() fitOption {
	o := fitOption{NeedsBytes: f.needs, Phase: f.Peak.Phase, Throughput: 1, Verdict: f.Verdict, StateBytes: states(f.Parts.Bytes),
		ActivationBytes: f.Parts.Activations + f.Parts.Logits}
	if f.Cost != nil {
		o.Cost = *f.Cost
	}
	return o
}

// CostOf is what a step costs with the option.
func (o fitOption) CostOf() *fitCost { return &o.Cost }

// Told are the changes of an option in words.
func (o fitOption) Told() string {
	var all []string
	for _, change := range o.Changes {
		all = append(all, change.String())
	}
	return strings.Join(all, ", ")
}

// writeFitPage writes the answers as one page that needs no other file.
func writeFitPage(out io.Writer, answers []fitAnswer) error {
	pointers := make([]*fitAnswer, len(answers))
	for i := range answers {
		pointers[i] = &answers[i]
	}
	return fitPage().Execute(out, pointers)
}
