// Command trainvet reads the files of a training run before any accelerator is booked, and says what is wrong in them.
package main

import (
	"os"
	"runtime/debug"
)

// The collector runs seldom while the heap is small, and as often as it must near softLimit: a check makes many small values, and
// most of what it holds it needs to the end.
const (
	growth    = 400       // percent of the live heap
	softLimit = 384 << 20 // bytes
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
