//go:build linux

package workspace

import "syscall"

// changed is when an entry changed, its owner and rights included.
func changed(of *syscall.Stat_t) syscall.Timespec { return of.Ctim }
