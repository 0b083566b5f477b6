package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/lsp"
	"github.com/trainvet/trainvet/rules/custom"
)

// lsp serves editors. Clients add --stdio by habit; there is no other way.
func (a *app) lsp() *cobra.Command {
	command := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors over the Language Server Protocol, on stdin and stdout",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.raise(lsp.Serve(context.Background(), a.stdin, a.stdout, a.stderr, lsp.Options{Rules: a.rules, Declare: custom.Rule, Version: versionNumber()}))
			return nil
		},
	}
	command.Flags().Bool("stdio", true, "speak on stdin and stdout, which is the only way")
	return command
}
