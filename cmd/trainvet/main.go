// Command trainvet reads the files of a training run before any accelerator is booked, and says what is wrong in them.
package main

import "os"

func main() {
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
