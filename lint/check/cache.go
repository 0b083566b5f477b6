package check

import (
	"sync"

	"github.com/trainvet/trainvet/lint/workspace"
)

// Cache keeps the results of files. A result holds as long as everything that was read for it would be answered the same; it
// is dropped as soon as that is not so. It may be used by several checks at a time. A nil Cache keeps nothing.
type Cache struct {
	mu      sync.Mutex
	results map[Target]cached
	words   ruleWords // of the rules of the last check
}

type cached struct {
	settings *Settings
	reads    []workspace.Read
	result   *result
}

// NewCache is an empty cache.
func NewCache() *Cache { return &Cache{results: map[Target]cached{}} }

func (c *Cache) get(snapshot *workspace.Snapshot, target Target, settings *Settings) *result {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	known := c.results[target]
	c.mu.Unlock()
	if known.result == nil || known.settings != settings || !snapshot.Holds(known.reads) {
		return nil
	}
	return known.result
}

func (c *Cache) put(target Target, settings *Settings, reads []workspace.Read, r *result) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.results[target] = cached{settings, reads, r}
	c.mu.Unlock()
}
