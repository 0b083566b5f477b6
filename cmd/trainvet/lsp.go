package main

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/lsp"
	"github.com/trainvet/trainvet/rules/custom"
)

// How the garbage of the server is collected: rarely, as long as it takes less than so many bytes.
const (
	serverGrowth = 400 // percent of what is alive
	serverMemory = 256 << 20
)

// lsp serves editors. Clients add --stdio by habit; there is no other way.
func (a *app) lsp() *cobra.Command {
	command := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors over the Language Server Protocol, on stdin and stdout",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			// A check makes much that is dropped at once, beside little that stays.
			debug.SetGCPercent(serverGrowth)
			debug.SetMemoryLimit(serverMemory)
			a.raise(lsp.Serve(context.Background(), a.stdin, a.stdout, a.stderr, lsp.Options{Rules: a.rules, Declare: custom.Rule, Version: versionNumber(), Release: release}))
			return nil
		},
	}
	command.Flags().Bool("stdio", true, "speak on stdin and stdout, which is the only way")
	return command
}
