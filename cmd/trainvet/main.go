// Command trainvet reads the files of a training run before any accelerator is booked, and says what is wrong in them.
package main

import (
	"os"
	"runtime/debug"
)

// The collector waits until the memory of the program nears softLimit: a command makes many small values in a short time, most of what
// it holds it needs to the end, and trees that were let go can be taken up again until then. The server sets its own, for it lives long.
const (
	softLimit = 416 << 20 // bytes
	heap      = 384 << 20 // bytes of it that most checks stay within

	manyFiles  = 4000      // with more of them the limit is largeLimit: the collector works a third less, and what one file can make a check hold stays under softLimit
	largeLimit = 512 << 20 // bytes
)

// room sets the limit for a check of so many files, where main has set one.
func room(files int) {
	if files > manyFiles && debug.SetMemoryLimit(-1) == softLimit {
		debug.SetMemoryLimit(largeLimit)
	}
}

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(softLimit)
		if len(os.Args) < 2 || os.Args[1] != "lsp" {
			spread(heap)
		}
	}
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
