package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is the version of a build from the source tree, and the one whose rules are in it; an installed module says its own.
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
		return versionOf(info.Main.Version)
	}
	return release
}

// versionOf is the release of a build by the version that Go stamps on it. A build from a clone without tags gets v0.0.0 with the time
// and the commit, which says nothing of the release: it is that of the source tree.
func versionOf(stamped string) string {
	if commit, untagged := strings.CutPrefix(stamped, "v0.0.0-"); untagged {
		_, commit, _ = strings.Cut(commit, "-")
		return release + "+" + strings.ReplaceAll(commit, "+", ".")
	}
	if stamped == "" || stamped == "(devel)" || stamped[0] != 'v' {
		return release
	}
	return stamped[1:]
}
