//go:build !unix

package workspace

const noWait = 0
