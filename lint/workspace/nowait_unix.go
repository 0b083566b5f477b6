//go:build unix

package workspace

import "syscall"

// noWait keeps an open from waiting for the other end of a FIFO.
const noWait = syscall.O_NONBLOCK
