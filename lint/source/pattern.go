package source

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first asked for: a program that starts needs few of those it has. It
// panics then where the expression is wrong.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
