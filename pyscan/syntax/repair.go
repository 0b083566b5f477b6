package syntax

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// A quote or bracket that is missing changes the meaning of everything up to the next one of its kind, and of a docstring's quotes
// that is the whole file. So when the lexer found such a fault, places where the missing character may have been are tried: the
// text with the character put in is parsed, and the text with the fewest faults wins. The tree keeps the places of the real text.

// The bounds of the trials.
const (
	maxRepairs   = 3       // characters put into one file
	maxTrials    = 40      // places tried for each of them
	trialBytes   = 2 << 20 // bytes parsed in trials whatever the size of the file
	trialsBySize = 6       // or as many times the file's size, if that is more
)

// patch is a character put into a text.
type patch struct {
	at   int
	char byte
	rank int // of a candidate: the lower, the more likely
}

// attempt is a parse of a text with some characters put in.
type attempt struct {
	text    string // with sentinel
	size    int
	patches []patch // in the order in which they were put in

	body     []Stmt
	comments []source.Span
	errors   []SyntaxError
	faults   faults
}

// faults are the places of the first faults of each kind that a missing character explains, or -1.
type faults struct {
	triple int // the opening quotes of a string in three quotes that has no end
}

// parse makes the tree of the patched text.
func (a *attempt) parse() {
	lx := newLexer(a.text, a.size)
	lx.run()
	p := &parser{text: lx.text, toks: lx.toks, lexErrors: lx.errs, exprTexts: lx.exprs, prologue: true}
	p.presize(a.size)
	p.kind = p.toks[0].kind
	a.body, a.comments, a.faults = p.module(), lx.comms, lx.faults
	if len(p.errors)+len(p.lexErrors) > 0 {
		a.errors = append(p.lexErrors, p.errors...)
		slices.SortStableFunc(a.errors, func(a, b SyntaxError) int { return int(a.At.Start) - int(b.At.Start) })
	}
}

// repaired looks for a better reading of a file whose first parse found faults of quotes or brackets.
func (a *attempt) repaired() *attempt {
	best := a
	budget := max(trialBytes, trialsBySize*a.size)
	for range maxRepairs {
		round := best
		for i, c := range best.candidates() {
			if budget -= best.size; budget < 0 || i >= maxTrials || len(round.errors) == 0 {
				break
			}
			if tried := best.with(c); len(tried.errors) < len(round.errors) {
				round = tried
			}
		}
		if round == best {
			break
		}
		best = round
	}
	return best
}

// with parses the text with one more character put in.
func (a *attempt) with(p patch) *attempt {
	var text strings.Builder
	text.Grow(len(a.text) + 1)
	text.WriteString(a.text[:p.at])
	text.WriteByte(p.char)
	text.WriteString(a.text[p.at:])
	next := &attempt{text: text.String(), size: a.size + 1}
	next.patches = append(slices.Clip(a.patches), p)
	next.parse()
	return next
}

// candidates are places where a character may be missing, the likely ones first.
func (a *attempt) candidates() []patch {
	var list []patch
	// Whether the scan ran into the end of the file inside a string says little: an apostrophe can pair up with the wrong quotes.
	for _, quote := range []byte(`"'`) {
		list = a.tripleCandidates(list, quote)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].rank < list[j].rank })
	return list
}

// tripleCandidates are the places of two quotes where three may have been.
func (a *attempt) tripleCandidates(list []patch, quote byte) []patch {
	s := a.text[:a.size]
	wanted := 1
	if a.faults.triple >= 0 && s[a.faults.triple] == quote {
		wanted = 2
	}
	for i := 0; i < a.size; {
		next := strings.IndexByte(s[i:], quote)
		if next < 0 {
			break
		}
		i += next
		end := i
		for end < a.size && s[end] == quote {
			end++
		}
		if end-i == 2 {
			if rank := tripleRank(s, i); rank <= wanted {
				list = append(list, patch{i, quote, rank})
			}
		}
		i = end
	}
	return list
}

// tripleRank tells how likely two quotes at i were three. Those of an empty string stand between punctuation.
func tripleRank(s string, i int) int {
	start, end := i, i+2
	for start > 0 && s[start-1] != '\n' && s[start-1] != '\r' {
		start--
	}
	for end < len(s) && s[end] != '\n' && s[end] != '\r' {
		end++
	}
	before, after := strings.TrimLeft(s[start:i], " \t\f"), strings.TrimRight(s[i+2:end], " \t")
	switch {
	case strings.Trim(before, "rRfFbBuU") == "":
		return 0 // a docstring's quotes stand first on their line
	case after == "" && strings.IndexByte("=(,[{:+ \t", before[len(before)-1]) < 0:
		return 0 // a docstring's end
	case after != "" && classOf[after[0]]&cIdent != 0:
		return 1
	}
	return 2
}

// place is an offset of the patched text in terms of the real one.
func (a *attempt) place(offset uint32) uint32 {
	for i := len(a.patches) - 1; i >= 0; i-- {
		if int(offset) > a.patches[i].at {
			offset--
		}
	}
	return offset
}

func (a *attempt) span(at source.Span) source.Span {
	return source.Span{Start: a.place(at.Start), End: a.place(at.End)}
}

// finish gives the tree in places of the real text.
func (a *attempt) finish(f *File) {
	f.Body, f.comments, f.Errors = a.body, a.comments, a.errors
	if len(a.patches) == 0 {
		return
	}
	for i := range f.comments {
		f.comments[i] = a.span(f.comments[i])
	}
	for i := range f.Errors {
		f.Errors[i].At = a.span(f.Errors[i].At)
	}
	for _, s := range f.Body {
		a.move(s)
	}
	for i, p := range a.patches {
		at := (&attempt{patches: a.patches[:i]}).place(uint32(p.at))
		f.Errors = append(f.Errors, SyntaxError{source.Span{Start: at, End: at}, fmt.Sprintf("a %c seems to be missing here", p.char)})
	}
	slices.SortStableFunc(f.Errors, func(a, b SyntaxError) int { return int(a.At.Start) - int(b.At.Start) })
}

// move puts a node and everything below it at its place in the real text.
func (a *attempt) move(n Node) {
	at := n.base()
	at.At = a.span(at.At)
	switch n := n.(type) {
	case *FunctionDef:
		n.NameAt = a.span(n.NameAt)
		n.decoratorsAt = a.place(n.decoratorsAt)
	case *ClassDef:
		n.NameAt = a.span(n.NameAt)
		n.decoratorsAt = a.place(n.decoratorsAt)
	}
	Children(n, a.move)
}
