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
	trialsBySize = 12      // or as many times the file's size, if that is more
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
	triple    int // the opening quotes of a string in three quotes that has no end
	unmatched int // a closing bracket that closes nothing
	quote     int // the quote of a string on one line that has no end
}

var noFaults = faults{triple: -1, unmatched: -1, quote: -1}

// parse makes the tree of the patched text.
func (a *attempt) parse() {
	lx := newLexer(a.text, a.size)
	lx.run()
	p := &parser{text: lx.text, toks: lx.toks, lexErrors: lx.errs, exprTexts: lx.exprs, prologue: true}
	p.presize(a.size)
	p.kind = p.toks[0].kind
	a.body, a.comments, a.faults = p.module(), lx.comms, lx.faults
	release(p.toks)
	p.toks = nil
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
	if a.faults.quote >= 0 {
		list = a.quoteCandidates(list)
	}
	if a.faults.unmatched >= 0 {
		list = a.openerCandidates(list)
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

// quoteCandidates are the places on the line of a string without end where a quote like its own may have been: around words, and
// first where strings usually start and end. What the lexer took for strings on that line may be what is between them.
func (a *attempt) quoteCandidates(list []patch) []patch {
	s := a.text
	quote := s[a.faults.quote]
	lx := lexer{text: s, size: a.size}
	start := lx.lineStart(a.faults.quote)
	_, start = lx.indentOf(start)
	for i := start; i <= a.size && i < start+maxLook; i++ {
		end := s[i] == '\n' || s[i] == '\r' || i == a.size
		before, after := s[max(i-1, 0)], s[i]
		switch {
		case i > start && strings.IndexByte("([{,=: ", before) >= 0 && classOf[after]&cIdent != 0:
			list = append(list, patch{i, quote, 0})
		case i > start && (end || strings.IndexByte(")]},:", after) >= 0) && strings.IndexByte("([{ ", before) < 0:
			list = append(list, patch{i, quote, 0})
		case i > start && (classOf[before]^classOf[after])&cIdent != 0, end, before == ' ' && after != ' ':
			list = append(list, patch{i, quote, 1})
		}
		if end {
			break
		}
	}
	return list
}

// maxOpenerLines is how many lines before a closing bracket its opening one is looked for.
const maxOpenerLines = 100

// openerCandidates are the places where the bracket may have been that the unmatched one closes.
func (a *attempt) openerCandidates(list []patch) []patch {
	s := a.text[:a.size]
	lx := lexer{text: a.text, size: a.size}
	closer := s[a.faults.unmatched]
	opener := openers[closerKind(closer)-1]
	start := lx.lineStart(a.faults.unmatched)
	col, first := lx.indentOf(start)
	hanging := first == a.faults.unmatched
	for n := 0; n < maxOpenerLines; n++ {
		end := a.faults.unmatched
		if n > 0 {
			end = lx.lineTextEnd(start)
		}
		if hanging && n > 0 {
			if at, text := lx.indentOf(start); text < end && at <= col {
				// The closer stands below the line whose end it belongs to, with deeper lines between them.
				if at == col && n > 1 {
					list = append(list, patch{end, opener, 0})
				}
				hanging = false
			}
		}
		if n == 0 || lineBalance(s[start:end]) < 0 {
			list = openersInLine(list, s, start, end, opener, n)
		}
		if start == 0 {
			break
		}
		start = lx.lineStart(start - 1)
	}
	return list
}

// lineTextEnd is where the text of the line at start ends, without a comment and white space.
func (lx *lexer) lineTextEnd(start int) int {
	end := start
	var quote byte
	for pos := start; pos < lx.size && lx.text[pos] != '\n' && lx.text[pos] != '\r'; pos++ {
		c := lx.text[pos]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return end
		}
		if c != ' ' && c != '\t' {
			end = pos + 1
		}
	}
	return end
}

// lineBalance is the number of opening brackets less that of closing ones, those that stand first on the line aside.
func lineBalance(line string) int {
	balance := 0
	line = strings.TrimLeft(line, " \t\f)]}")
	var quote byte
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			balance++
		case c == ')' || c == ']' || c == '}':
			balance--
		}
	}
	return balance
}

// openersInLine are the places before the tokens of a line; between a name and a string a call is likely.
func openersInLine(list []patch, s string, start, end int, opener byte, away int) []patch {
	var quote byte
	for i := start; i < end; i++ {
		c := s[i]
		if quote != 0 {
			if c == quote {
				quote = 0
			}
			continue
		}
		previous := byte(' ')
		if i > start {
			previous = s[i-1]
		}
		word := classOf[c]&cIdent != 0
		inWord := word && classOf[previous]&cIdent != 0
		switch {
		case c == '"' || c == '\'':
			quote = c
			if classOf[previous]&cIdent != 0 {
				list = append(list, patch{i, opener, 1 + away})
				continue
			}
			fallthrough
		case word && !inWord, c == '(', c == '[', c == '{', c == '*':
			list = append(list, patch{i, opener, 2 + away})
		}
	}
	return list
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
		f.Errors = append(f.Errors, SyntaxError{source.Span{Start: at, End: at}, missingMessage(p.char)})
	}
	slices.SortStableFunc(f.Errors, func(a, b SyntaxError) int { return int(a.At.Start) - int(b.At.Start) })
}

func missingMessage(char byte) string {
	switch char {
	case '(':
		return "unmatched ')'; a '(' seems to be missing here"
	case '[':
		return "unmatched ']'; a '[' seems to be missing here"
	case '{':
		return "unmatched '}'; a '{' seems to be missing here"
	}
	return fmt.Sprintf("unterminated string literal; a %c seems to be missing here", char)
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
