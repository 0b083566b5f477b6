// Command trainvet reads the files of a training run before any accelerator is booked, and says what is wrong in them.
package main

import (
	"os"
	"runtime"
)

// reserve counts as live memory, in bytes, so that the collector first runs when the heap has grown by as much: never in most
// checks, which hold less. It is never touched, and takes up addresses only.
const reserve = 64 << 20

func main() {
	idle := make([]byte, reserve)
	code := Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(idle)
	os.Exit(code)
}
