package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
)

// recordBaseline writes what was found to the baseline; findings then fail nothing.
func (a *app) recordBaseline(f *checkFlags, in *inputs, report *check.Report) error {
	var text bytes.Buffer
	if err := check.WriteBaseline(&text, report, in.settings, f.writeBaseline); err != nil {
		return err
	}
	if err := a.writeWhole(f.writeBaseline, text.Bytes()); err != nil {
		return err
	}
	a.complain("%s records %d findings", output.Escape(f.writeBaseline), len(report.Findings))
	for i := range report.Findings {
		report.Findings[i].Fails = false
	}
	a.conclude(f, in, report)
	return nil
}

// writeWhole writes a file of ours, all or nothing where it is there already.
func (a *app) writeWhole(name string, text []byte) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(name, text, 0o666)
	}
	if err != nil {
		return err
	}
	return a.replace(name, old, text)
}

// concludeBaselines tells what baselines record in vain, and takes it out where that is asked for: so a baseline only ever shrinks.
func (a *app) concludeBaselines(f *checkFlags, report *check.Report) {
	for _, gone := range report.Gone {
		name := output.LinePath(a.relative(gone.File))
		if !f.ratchet {
			a.complain("%s: %d of %d recorded findings are gone; --update-baseline takes them out", name, len(gone.Entries), len(gone.Before))
			if f.strict {
				a.raise(exitFindings)
			}
			continue
		}
		var text bytes.Buffer
		err := gone.WriteRest(&text)
		if err == nil {
			err = a.writeWhole(gone.File, text.Bytes())
		}
		if err != nil {
			a.trouble("%s: %s", name, osReason(err))
			continue
		}
		a.complain("%s: %d of %d recorded findings are gone, and taken out", name, len(gone.Entries), len(gone.Before))
	}
}
