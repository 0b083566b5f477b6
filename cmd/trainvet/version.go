package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of a build from the source tree; an installed module says its own.
const release = "0.1.0"

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, "trainvet", versionText())
			return err
		},
	}
}

// versionText is the release, and the compiler where the build knows it.
func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionNumber() + " " + info.GoVersion
	}
	return versionNumber()
}

// versionNumber is the release.
func versionNumber() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" && v[0] == 'v' {
			return v[1:]
		}
	}
	return release
}
