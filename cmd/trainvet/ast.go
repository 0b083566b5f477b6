package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// ast prints the syntax trees of Python files, one line a file, in the order given.
func (a *app) ast() *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:    "ast --format json FILE...",
		Short:  "Print the syntax tree of Python files",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if format != "json" {
				return usagef("ast knows one format, json, not %q", format)
			}
			out := bufio.NewWriter(a.stdout)
			disk := workspace.NewConfined(a.dir, files...)
			for _, name := range files {
				line, err := astLine(disk, filepath.ToSlash(name))
				switch {
				case name == "":
					a.unreadable(`""`, check.ErrEmptyName.Error())
				case err != nil:
					a.unreadable(name, reason(err))
				case bytes.Contains(line, []byte(`,"errors":[`)):
					a.raise(exitFindings)
				}
				out.Write(line)
			}
			return out.Flush()
		},
	}
	command.Flags().StringVar(&format, "format", "json", "json")
	return command
}

// astLine is the line of one file. Of one that cannot be read it holds the reason in place of the tree.
func astLine(disk *workspace.Confined, name string) ([]byte, error) {
	raw, err := disk.ReadFile(name)
	if err == nil {
		var file *source.File
		if file, err = source.Decode(name, source.Python, raw); err == nil {
			return syntax.AppendDump(nil, name, syntax.Parse(file)), nil
		}
	}
	line, _ := json.Marshal(struct {
		Path  string `json:"path"`
		Error string `json:"error"`
	}{name, reason(err)})
	return append(line, '\n'), err
}
