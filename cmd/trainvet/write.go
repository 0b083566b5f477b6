package main

import (
	"bufio"
	"os"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
)

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
