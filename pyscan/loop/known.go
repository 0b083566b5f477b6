package loop

import (
	"sync"

	"github.com/trainvet/trainvet/pyscan"
)

// Known keeps what Find came to know about functions, for the next file of the same project: many loops call the same functions. What it
// holds is true as long as no file of the project changes. It may be used by several goroutines.
type Known struct {
	mu    sync.Mutex
	quiet map[function]bool
	parts map[function][]uint32 // where the quiet statements begin
}

// function is a function by where it stands, since trees come and go.
type function struct {
	path string
	at   uint32
}

// NewKnown is an empty one.
func NewKnown() *Known {
	return &Known{quiet: map[function]bool{}, parts: map[function][]uint32{}}
}

func functionOf(scope *pyscan.Scope) function {
	if scope.Node == nil {
		return function{scope.Module.File.Path, ^uint32(0)}
	}
	return function{scope.Module.File.Path, scope.Node.Span().Start}
}

func (m *Known) silent(scope *pyscan.Scope) (silent, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent, known = m.quiet[functionOf(scope)]
	return silent, known
}

// sound keeps that functions are not silent.
func (m *Known) sound(scopes ...*pyscan.Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, scope := range scopes {
		m.quiet[functionOf(scope)] = false
	}
}

// hush keeps that functions are silent.
func (m *Known) hush(scopes map[*pyscan.Scope]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for scope := range scopes {
		m.quiet[functionOf(scope)] = true
	}
}

func (m *Known) quietIn(scope *pyscan.Scope) (starts []uint32, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	starts, known = m.parts[functionOf(scope)]
	return starts, known
}

func (m *Known) setQuietIn(scope *pyscan.Scope, starts []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[functionOf(scope)] = starts
}
