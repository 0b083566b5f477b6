//go:build !unix

package main

import "errors"

const canFIFO = false

func makeFIFO(string) error { return errors.ErrUnsupported }
