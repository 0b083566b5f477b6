//go:build !unix

package workspace

// NoWait is nothing where opening a file waits for nobody.
const NoWait = 0
