// Command trainvet reads the files of a training run before any accelerator is booked, and says what is wrong in them.
package main

import (
	"os"
	"runtime/debug"
)

// The collector waits until the memory of the program nears softLimit: a command makes many small values in a short time, most of what
// it holds it needs to the end, and trees that were let go can be taken up again until then. The server sets its own, for it lives long.
const softLimit = 416 << 20 // bytes

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(-1)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
