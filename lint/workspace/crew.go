package workspace

import "sync"

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
