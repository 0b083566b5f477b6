//go:build !linux

package main

// spread is for Linux.
func spread(int) {}
