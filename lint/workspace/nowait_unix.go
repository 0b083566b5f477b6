//go:build unix

package workspace

import "syscall"

// NoWait keeps an open from waiting for the other end of a FIFO.
const NoWait = syscall.O_NONBLOCK
