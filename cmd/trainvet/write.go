package main

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/output"
)

// sink is one place that findings are written to.
type sink struct {
	format output.Format
	file   string // "" or "-": stdout
}

// sinks reads --format and --output. A plain file takes the place of stdout; NAME=FILE comes besides.
func (a *app) sinks(format string, outputs []string) ([]sink, error) {
	main := sink{}
	var err error
	if main.format, err = lookupFormat(format); err != nil {
		return nil, err
	}
	var more []sink
	plain := false
	for _, text := range outputs {
		name, file, named := strings.Cut(text, "=")
		switch {
		case !named || strings.Contains(name, "/"):
			if plain {
				return nil, usagef("--output names two files for one format; write --output NAME=FILE for more formats")
			}
			plain, main.file = true, text
		default:
			next := sink{file: file}
			if next.format, err = lookupFormat(name); err != nil {
				return nil, err
			}
			if file == "" {
				return nil, usagef("--output %s names no file", text)
			}
			more = append(more, next)
		}
	}
	all := append([]sink{main}, more...)
	if !plain && slices.ContainsFunc(more, func(next sink) bool { return next.file == "-" }) { // it takes stdout
		all = more
	}
	seen := map[string]bool{}
	for _, to := range all {
		name := "-"
		if to.file != "" && to.file != "-" {
			name = clean(to.file)
		}
		if seen[name] {
			return nil, usagef("two outputs go to %s, and the second would take the place of the first", cmp.Or(to.file, "stdout"))
		}
		seen[name] = true
	}
	return all, nil
}

func lookupFormat(name string) (output.Format, error) {
	format, ok := output.Lookup(name)
	if ok {
		return format, nil
	}
	if near := nearest.Of(name, output.Names()); near != "" {
		return format, usagef("unknown format %q; did you mean %q?", name, near)
	}
	return format, usagef("unknown format %q; there are %s", name, strings.Join(output.Names(), ", "))
}

// write sends the report to every sink.
func (a *app) write(sinks []sink, report *check.Report) error {
	for _, to := range sinks {
		if to.file == "" || to.file == "-" {
			if err := to.format.Write(a.stdout, report, a.paint(a.stdout)); err != nil {
				return err
			}
			continue
		}
		if err := writeFile(to, report, a.paint(nil)); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(to sink, report *check.Report, paint output.Paint) error {
	file, err := os.Create(to.file)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	if err := to.format.Write(out, report, paint); err != nil {
		file.Close()
		return err
	}
	if err := out.Flush(); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
