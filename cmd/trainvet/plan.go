package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// plan prints what trainvet understood of files: the values of a run with their origins, or the loops of a script.
func (a *app) plan() *cobra.Command {
	var format string
	var facts factFlags
	command := &cobra.Command{
		Use:   "plan [flags] FILE...",
		Short: "The training plan of configs and launch scripts, and the loops of Python files",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			p, err := a.openAs(format, files, &facts)
			if p == nil {
				return err
			}
			if format == "json" {
				return output.WriteObject(a.stdout, p.planAnswer())
			}
			p.printPlan(a.stdout, a.paint(a.stdout))
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text or json")
	facts.add(command.Flags())
	return command
}

// planAnswer is the contract with other tools.
type (
	planAnswer struct {
		Version int          `json:"version"`
		Runs    []planRun    `json:"runs"`
		Scripts []planScript `json:"scripts"`
	}
	planRun struct {
		Name      string               `json:"name"`
		Parts     []planPart           `json:"parts"`
		Values    map[string]planValue `json:"values"`
		Conflicts []planConflict       `json:"conflicts"`
	}
	planPart struct {
		Path    string `json:"path"`
		Dialect string `json:"dialect"`
		Section string `json:"section,omitempty"`
	}
	planConflict struct {
		Name   string      `json:"name"`
		Values []planValue `json:"values"`
	}
	planScript struct {
		Path     string        `json:"path"`
		Loops    []planLoop    `json:"loops"`
		Wrappers []planWrapper `json:"wrappers"`
	}
	planLoop struct {
		Line       int         `json:"line"`
		Function   string      `json:"function"`
		MicroBatch string      `json:"micro_batch"` // one iteration is one micro-batch: yes, maybe, no
		Framework  string      `json:"framework,omitempty"`
		Events     []planEvent `json:"events"`
		Loops      []planLoop  `json:"loops"`
	}
	planEvent struct {
		Kind    string `json:"kind"`
		Path    string `json:"path"`
		Line    int    `json:"line"`
		Guarded bool   `json:"guarded"`
	}
	planWrapper struct {
		Kind string `json:"kind"`
		Path string `json:"path"`
		Line int    `json:"line"`
	}
)

func (p *project) planAnswer() planAnswer {
	answer := planAnswer{Version: 1, Runs: []planRun{}, Scripts: []planScript{}}
	for _, run := range p.runs() {
		next := planRun{Name: run.Name, Parts: []planPart{}, Values: p.values(&run.Plan, true), Conflicts: []planConflict{}}
		for _, part := range run.Parts {
			next.Parts = append(next.Parts, planPart{part.Path, part.Dialect.Name, part.Section})
		}
		for _, conflict := range run.Conflicts {
			c := planConflict{Name: conflict.Name}
			for _, fact := range conflict.Values {
				value, _ := fact.Any()
				v := planValue{Value: value, How: fact.How().String(), From: []planPlace{}}
				for _, at := range fact.From() {
					v.From = append(v.From, planPlace{at.Path, p.line(at)})
				}
				c.Values = append(c.Values, v)
			}
			next.Conflicts = append(next.Conflicts, c)
		}
		answer.Runs = append(answer.Runs, next)
	}
	for _, file := range p.files {
		if module := p.view.Module(file); module != nil {
			script := planScript{Path: file, Loops: []planLoop{}, Wrappers: p.wrappers(module)}
			for _, l := range p.view.EveryLoop(module) {
				script.Loops = append(script.Loops, p.loop(l))
			}
			answer.Scripts = append(answer.Scripts, script)
		}
	}
	return answer
}

func (p *project) loop(l *loop.Loop) planLoop {
	next := planLoop{Line: p.line(l.At), Function: l.Scope.Qualified(), MicroBatch: l.Micro.String(), Framework: l.Framework, Events: []planEvent{}, Loops: []planLoop{}}
	for _, item := range l.Items {
		if item.Loop != nil {
			next.Loops = append(next.Loops, p.loop(item.Loop))
		} else if item.Event.Kind != loop.Other {
			next.Events = append(next.Events, planEvent{item.Event.Kind.String(), item.Event.At.Path, p.line(item.Event.At), len(item.Event.Guard) > 0})
		}
	}
	return next
}

// wrappers are what the models that a file's loops call are wrapped into, outermost first.
func (p *project) wrappers(module *pyscan.Module) []planWrapper {
	all := []planWrapper{}
	seen := map[planWrapper]bool{}
	for _, l := range p.view.EveryLoop(module) {
		for _, event := range l.Deep(loop.Forward) {
			if event.On == nil {
				continue
			}
			found, _, _ := p.view.Wrappers(event.On)
			for _, wrapper := range found {
				if wrapper.Call == nil || wrapper.Scope == nil {
					continue
				}
				at := wrapper.Scope.Module.File.At(wrapper.Call.Span())
				if next := (planWrapper{wrapper.Kind.String(), at.Path, p.line(at)}); !seen[next] {
					seen[next] = true
					all = append(all, next)
				}
			}
		}
	}
	return all
}

func (p *project) printPlan(out io.Writer, paint output.Paint) {
	runs := p.runs()
	for i, run := range runs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p.printRun(out, paint, run)
	}
	for i, file := range p.files {
		module := p.view.Module(file)
		if module == nil {
			continue
		}
		if i > 0 || len(runs) > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, paint.Bold(output.Escape(file)))
		for _, wrapper := range p.wrappers(module) {
			fmt.Fprintf(out, "wrapped in %s at %s:%d\n", wrapper.Kind, output.Escape(wrapper.Path), wrapper.Line)
		}
		for _, l := range p.view.EveryLoop(module) {
			for line := range strings.Lines(loop.Describe(l)) {
				fmt.Fprintln(out, output.Escape(strings.TrimSuffix(line, "\n")))
			}
		}
	}
}

// printRun is a table of what is known: value, how it came, and from where.
func (p *project) printRun(out io.Writer, paint output.Paint, run *workspace.Run) {
	fmt.Fprintln(out, paint.Bold(output.Escape(run.Name)))
	for _, part := range run.Parts {
		section := ""
		if part.Section != "" {
			section = ", section " + part.Section
		}
		fmt.Fprintf(out, "  %s: %s%s\n", output.Escape(part.Path), part.Dialect.Title, output.Escape(section))
	}
	values := p.values(&run.Plan, false)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range plan.Names() {
		value, known := values[name]
		if !known {
			continue
		}
		var from []string
		for _, at := range value.From {
			from = append(from, fmt.Sprintf("%s:%d", output.Escape(at.Path), at.Line))
		}
		if value.Note != "" {
			from = append(from, output.Escape(value.Note))
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", name, output.Escape(fmt.Sprint(value.Value)), value.How, strings.Join(from, ", "))
	}
	table.Flush()
	for _, conflict := range run.Conflicts {
		fmt.Fprintf(out, "  %s is written differently:", conflict.Name)
		for _, fact := range conflict.Values {
			value, _ := fact.Any()
			fmt.Fprintf(out, " %s", output.Escape(fmt.Sprint(value)))
			for _, at := range fact.From() {
				fmt.Fprintf(out, " (%s:%d)", output.Escape(at.Path), p.line(at))
			}
		}
		fmt.Fprintln(out)
	}
}
