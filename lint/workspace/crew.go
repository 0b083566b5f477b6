package workspace

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// crew is goroutines that work for the one that waits for them. A panic in one of them comes out there, where it is caught as that of the
// file which is being checked: by itself it would end the process.
type crew struct {
	working sync.WaitGroup
	once    sync.Once
	fault   any
}

// Go starts a piece of work.
func (c *crew) Go(work func()) {
	c.working.Go(func() {
		defer func() {
			if reason := recover(); reason != nil {
				c.once.Do(func() { c.fault = reason })
			}
		}()
		work()
	})
}

// Wait returns when all work is done, or panics as one of the workers did.
func (c *crew) Wait() {
	c.working.Wait()
	if c.fault != nil {
		panic(c.fault)
	}
}

const (
	fewFiles = 64 // so many files are not worth a second goroutine
	atOnce   = 16 // files that one goroutine takes in a row: neighbours are alike, and none is to wait long for another
)

// readers is how many goroutines so many files are worth.
func readers(files int) int {
	return max(1, min(runtime.GOMAXPROCS(0), (files+fewFiles-1)/fewFiles))
}

// share has work done for each of so many files, each by one of readers(files) goroutines, and by each in order.
func share(files int, work func(reader, file int)) {
	var next atomic.Int64
	var all crew
	for reader := range readers(files) {
		all.Go(func() {
			for {
				first := int(next.Add(atOnce)) - atOnce
				if first >= files {
					return
				}
				for file := first; file < min(first+atOnce, files); file++ {
					work(reader, file)
				}
			}
		})
	}
	all.Wait()
}
