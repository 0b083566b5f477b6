//go:build !unix

package workspace

// NoWait opens a FIFO without waiting for somebody who writes to it.
const NoWait = 0
