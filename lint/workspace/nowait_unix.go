//go:build unix

package workspace

import "syscall"

// NoWait keeps an open from waiting for the other end of a FIFO.
// NoWait opens a FIFO without waiting for somebody who writes to it.
const NoWait = syscall.O_NONBLOCK
