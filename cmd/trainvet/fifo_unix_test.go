//go:build unix

package main

import "syscall"

const canFIFO = true

func makeFIFO(name string) error { return syscall.Mkfifo(name, 0o666) }
