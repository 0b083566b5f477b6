package syntax

import (
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// recovery is what the lexer does about brackets and quotes that do not match.
//
// A sound file never gets here. When something does not fit, the logical line is scanned again in layout mode, where the
// indentation may end it: a line that starts no deeper than the statement did, with something that can start a statement,
// ends all open brackets. Afterwards the scan is strict again.
type recovery struct {
	snap   snapshot
	layout bool

	physical int // where the physical line at hand starts, as far as brackets care
	budget   int // bytes that may still be scanned twice; it keeps the scan linear
}

// snapshot is the state at the first token of a logical line.
type snapshot struct {
	pos, col                 int
	toks, comms, errs, exprs int
}

func (lx *lexer) begin(pos, col, toks int) {
	lx.layout = lx.budget <= 0
	lx.physical = pos
	lx.snap = snapshot{pos, col, toks, len(lx.comms), len(lx.errs), len(lx.exprs)}
}

// retry goes back to the start of the logical line and to layout mode. It reports false when it already did so.
func (lx *lexer) retry(pos int) bool {
	if lx.layout || lx.budget <= 0 {
		return false
	}
	at := &lx.snap
	lx.budget -= pos - at.pos + 64
	lx.toks, lx.comms, lx.errs, lx.exprs = lx.toks[:at.toks], lx.comms[:at.comms], lx.errs[:at.errs], lx.exprs[:at.exprs]
	lx.brackets, lx.fstrings = lx.brackets[:0], lx.fstrings[:0]
	lx.layout = true
	lx.pos = at.pos
	return true
}

var (
	openers = [...]byte{kLPar: '(', kLSqb: '[', kLBrace: '{'}
	closers = [...]byte{kLPar: ')', kLSqb: ']', kLBrace: '}'}
)

func closerKind(c byte) kind {
	switch c {
	case ')':
		return kRPar
	case ']':
		return kRSqb
	}
	return kRBrace
}

// close handles a closing bracket. It gives -1 after a retry, else the position of the bracket.
func (lx *lexer) close(c byte, pos int) int {
	n := len(lx.brackets)
	level := uint8(len(lx.fstrings))
	if n > 0 {
		if top := &lx.brackets[n-1]; closers[top.kind] == c && top.strings == level {
			lx.pop()
			lx.toks = append(lx.toks, token{uint32(pos), uint32(pos + 1), top.kind + 1, 0})
			return pos
		}
	}
	match := -1
	inside := false
	for i := n - 1; i >= 0 && lx.brackets[i].strings == level; i-- {
		inside = true
		if closers[lx.brackets[i].kind] == c {
			match = i
			break
		}
		if lx.brackets[i].field {
			break
		}
	}
	if !inside {
		lx.noteUnmatched(pos)
		lx.fault(pos, pos+1, "unmatched '%c'", c)
		return pos
	}
	top := lx.brackets[n-1]
	if int(top.at) < lx.physical && lx.retry(pos) {
		return -1
	}
	lx.fault(pos, pos+1, "closing parenthesis '%c' does not match opening parenthesis '%c'", c, openers[top.kind])
	if match < 0 || lx.closesLater(pos+1, closers[top.kind]) {
		lx.noteUnmatched(pos)
		return pos
	}
	for len(lx.brackets) > match+1 {
		lx.closeOne()
	}
	lx.toks = append(lx.toks, token{uint32(pos), uint32(pos + 1), closerKind(c), 0})
	lx.pop()
	return pos
}

func (lx *lexer) noteUnmatched(pos int) {
	if lx.unmatched < 0 && len(lx.fstrings) == 0 {
		lx.unmatched = pos
	}
}

// maxLook bounds how far closesLater looks, in bytes.
const maxLook = 1_000

// closesLater reports whether the rest of the line holds the closer of the innermost bracket: then the closer at hand is the
// one too many.
func (lx *lexer) closesLater(pos int, closer byte) bool {
	depth := 0
	for end := min(lx.size, pos+maxLook); pos < end; pos++ {
		switch c := lx.text[pos]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return c == closer
			}
			depth--
		case '\n', '\r', '#', '"', '\'':
			return false
		}
	}
	return false
}

// closeOne puts a closer without text where the innermost bracket should have ended, behind the last token.
func (lx *lexer) closeOne() {
	top := lx.brackets[len(lx.brackets)-1]
	at := top.at + 1
	if n := len(lx.toks); n > 0 {
		at = max(at, lx.toks[n-1].end)
	}
	for len(lx.fstrings) > int(top.strings) {
		lx.toks = append(lx.toks, token{at, at, kFEnd, fVirtual})
		lx.fstrings = lx.fstrings[:len(lx.fstrings)-1]
	}
	lx.toks = append(lx.toks, token{at, at, top.kind + 1, fVirtual})
	lx.pop()
}

// closeBrackets ends everything that is open.
func (lx *lexer) closeBrackets(pos int) {
	if n := len(lx.brackets); n > 0 {
		top := lx.brackets[n-1]
		lx.fault(int(top.at), int(top.at)+1, "'%c' was never closed", openers[top.kind])
	}
	for len(lx.brackets) > 0 {
		lx.closeOne()
	}
	for len(lx.fstrings) > 0 {
		at := uint32(pos)
		if n := len(lx.toks); n > 0 {
			at = lx.toks[n-1].end
		}
		lx.toks = append(lx.toks, token{at, at, kFEnd, fVirtual})
		lx.fstrings = lx.fstrings[:len(lx.fstrings)-1]
	}
}

// closeAll ends everything that is open and the logical line.
func (lx *lexer) closeAll(start, end int) {
	lx.closeBrackets(start)
	lx.toks = append(lx.toks, token{uint32(start), uint32(end), kNewline, fVirtual})
}

// lineStart is where the physical line that holds pos begins.
func (lx *lexer) lineStart(pos int) int {
	for pos > 0 && lx.text[pos-1] != '\n' && lx.text[pos-1] != '\r' {
		pos--
	}
	return pos
}

// startsLine reports whether only white space stands before pos on its line.
func (lx *lexer) startsLine(pos int) bool {
	for pos > 0 {
		switch lx.text[pos-1] {
		case ' ', '\t', '\f':
			pos--
		case '\n', '\r':
			return true
		default:
			return false
		}
	}
	return true
}

// unclosed handles a keyword that only a statement can hold, first on a line inside brackets. The scan goes on at the result:
// inside the logical line after a retry, else at the start of a line.
func (lx *lexer) unclosed(start int) (pos int, retried bool) {
	if lx.retry(start) {
		return lx.pos, true
	}
	at := lx.lineStart(start)
	lx.closeAll(at, at)
	return at, false
}

// indentOf is the column of the first character at or behind pos, a line start, and its position.
func (lx *lexer) indentOf(pos int) (col, first int) {
	for ; ; pos++ {
		switch lx.text[pos] {
		case ' ':
			col++
		case '\t':
			col = (col/tabSize + 1) * tabSize
		case '\f':
			col = 0
		default:
			return col, pos
		}
	}
}

// closesBefore reports whether the line at pos starts a new statement, in layout mode inside brackets.
func (lx *lexer) closesBefore(pos int) bool {
	col, first := lx.indentOf(pos)
	if col > lx.snap.col {
		return false
	}
	s := lx.text
	switch c := s[first]; {
	case c == '(' || c == '[':
		return true
	case c == '@':
		return classOf[s[first+1]]&cIdentStart != 0
	case classOf[c]&cIdentStart == 0:
		return false
	}
	if quote, _ := stringPrefix(s, first); quote >= 0 {
		return false
	}
	end := first
	for classOf[s[end]]&cIdent != 0 {
		end++
	}
	switch s[first:end] {
	case "and", "or", "in", "is", "as", "not":
		return false
	}
	return true
}

// endsHeader reports whether a colon before pos, inside brackets, ends the head of a block: nothing follows it on its line, and
// the next line is indented deeper than the statement, which starts with a block's keyword.
func (lx *lexer) endsHeader(pos int) bool {
	if len(lx.fstrings) > 0 || lx.snap.toks >= len(lx.toks) {
		return false
	}
	switch first := lx.toks[lx.snap.toks]; {
	case headers.has(first.kind):
	case first.kind == kName && (lx.text[first.start:first.end] == "match" || lx.text[first.start:first.end] == "case"):
	default:
		return false
	}
	s := lx.text
	_, pos = lx.indentOf(pos)
	for {
		if s[pos] == '#' {
			for s[pos] != '\n' && s[pos] != '\r' && pos < lx.size {
				pos++
			}
		}
		next := lineEnd(s, pos)
		if next < 0 {
			return false
		}
		col, first := lx.indentOf(next)
		if s[first] != '#' && lineEnd(s, first) < 0 {
			return first < lx.size && col > lx.snap.col
		}
		pos = first
	}
}

// isDef reports whether the logical line starts with def.
func (lx *lexer) isDef(toks []token) bool {
	at := lx.snap.toks
	if at < len(toks) && toks[at].kind == kAsync {
		at++
	}
	return at < len(toks) && toks[at].kind == kDef && len(lx.fstrings) == 0
}

// unterminated chooses where a string without an end should end.
func (lx *lexer) unterminated(start, pos int, flags uint8) int {
	what := "unterminated string literal"
	if flags&fTriple != 0 {
		what = "unterminated triple-quoted string literal"
		lx.triple = strings.IndexAny(lx.text[start:], "\"'") + start
		lx.budget -= pos - start
		if lx.budget > 0 {
			pos = start
			for pos < lx.size && lx.text[pos] != '\n' && lx.text[pos] != '\r' {
				pos++
			}
		}
		lx.fault(start, start+3, "%s", what)
		return pos
	}
	lx.fault(start, start+1, "%s", what)
	lx.noteQuote(start)
	return max(lx.trimClosers(start, pos), start+1)
}

// noteQuote keeps the place of the first string on one line without end; its prefix may stand before the quote.
func (lx *lexer) noteQuote(start int) {
	if lx.faults.quote < 0 {
		lx.faults.quote = start + strings.IndexAny(lx.text[start:], `"'`)
	}
}

// trimClosers gives pos, the end of a line, without the brackets, commas and colons before it: they more likely close what is
// open than belong to a string that lost a quote.
func (lx *lexer) trimClosers(start, pos int) int {
	for pos > start && strings.IndexByte(")]}:, \t", lx.text[pos-1]) >= 0 {
		pos--
	}
	return pos
}

// ---- f-strings ----

func (lx *lexer) startFString(start, quote int, flags uint8, triple bool) int {
	end := quote + 1
	if triple {
		end = quote + 3
		flags |= fTriple
	}
	if len(lx.fstrings) >= maxFStrings {
		lx.fault(start, end, "too many nested f-strings or t-strings")
		lx.toks = append(lx.toks, token{uint32(start), uint32(end), kError, 0})
		return end
	}
	lx.toks = append(lx.toks, token{uint32(start), uint32(end), kFStart, flags})
	lx.fstrings = append(lx.fstrings, fstring{start: uint32(start), flags: flags, quote: lx.text[quote], triple: triple,
		literal: true, fieldDepth: -1, exprEnd: -1})
	return end
}

// fieldPunctuation keeps track of the text of a replacement field's expression at `{`, `}`, `!` and `:`, as CPython does. It
// reports whether a colon starts the format specification.
func (lx *lexer) fieldPunctuation(c byte, pos, toks int) bool {
	f := &lx.fstrings[len(lx.fstrings)-1]
	if f.fieldDepth < 0 {
		return false
	}
	depth := f.depth
	if c != '{' {
		depth--
	}
	if depth == 0 || depth == 1 && (f.debug || f.inSpec) {
		switch c {
		case '{':
			f.exprStart, f.exprEnd = uint32(pos+1), -1
		case ':':
			if f.exprEnd < 0 {
				f.exprEnd = pos
			}
		default:
			f.exprEnd = pos
		}
		if c != '{' && (f.debug || f.flags&fTemplate != 0) {
			lx.exprs = append(lx.exprs, exprText{toks, source.Span{Start: f.exprStart, End: uint32(f.exprEnd)}})
		}
	}
	if c == ':' && depth == f.fieldDepth {
		f.literal, f.inSpec = true, true
		return true
	}
	return false
}

// middle scans literal text of the innermost f-string at pos, up to the next thing that ends a token there. Literal braces end
// one, because CPython's positions show it.
func (lx *lexer) middle(pos int) int {
	f := &lx.fstrings[len(lx.fstrings)-1]
	s := lx.text
	start := pos
	flags := f.flags & (fRaw | fTriple)
	var seen uint8
	piece := func(end int) {
		if end > start {
			if seen >= 0x80 {
				flags |= fNonASCII
			}
			lx.toks = append(lx.toks, token{uint32(start), uint32(end), kFMiddle, flags})
		}
	}
	inSpec := f.inSpec && f.fieldDepth >= 0
	named := false
	for {
		c := s[pos]
		for classOf[c]&cFieldStop == 0 {
			seen |= c
			pos++
			c = s[pos]
		}
		switch c {
		case '{':
			double := s[pos+1] == '{'
			if pos > start || double {
				f.exprStart, f.exprEnd = uint32(pos+1), -1
				if double && !inSpec {
					flags |= fDoubled
					piece(pos + 2)
					return pos + 2
				}
				f.inSpec = false
			}
			if f.fieldDepth+1 >= maxSpecNesting || len(lx.brackets) >= maxBrackets {
				lx.fault(pos, pos+1, "f-string: expressions nested too deeply")
				pos++
				continue
			}
			piece(pos)
			f.fieldDepth++
			f.literal = false
			lx.fieldPunctuation('{', pos, len(lx.toks))
			lx.brackets = append(lx.brackets, bracket{uint32(pos), kLBrace, uint8(len(lx.fstrings)), true})
			f.depth++
			lx.toks = append(lx.toks, token{uint32(pos), uint32(pos + 1), kLBrace, 0})
			return pos + 1
		case '}':
			if named {
				piece(pos + 1)
				return pos + 1
			}
			if f.depth == 0 {
				if s[pos+1] == '}' {
					flags |= fDoubled
					piece(pos + 2)
					return pos + 2
				}
				lx.fault(pos, pos+1, "f-string: single '}' is not allowed")
				pos++
				continue
			}
			piece(pos)
			f.literal, f.inSpec = false, false
			return pos
		case f.quote:
			if f.triple && (s[pos+1] != c || s[pos+2] != c) {
				pos++
				continue
			}
			piece(pos)
			return lx.endField(pos)
		case '\\':
			flags |= fEscape
			switch next := s[pos+1]; {
			case next == '{' || next == '}':
				pos++
			case next == '\r':
				flags |= fReturn
				pos = lineEnd(s, pos+1)
			case next == 0 && pos+1 >= lx.size:
				pos++
			case next == 'N' && f.flags&fRaw == 0:
				pos += 2
				if s[pos] == '{' {
					named = true
					pos++
				}
			default:
				pos += 2
			}
		case '\n', '\r':
			if f.triple {
				if c == '\r' {
					flags |= fReturn
				}
				pos++
				continue
			}
			if inSpec {
				lx.fault(pos, pos, "f-string: newlines are not allowed in format specifiers for single quoted f-strings")
			} else {
				lx.fault(int(f.start), int(f.start)+1, "unterminated f-string literal")
				lx.noteQuote(int(f.start))
			}
			pos = lx.trimClosers(start, pos)
			piece(pos)
			lx.endFStringAt(pos, pos)
			return pos
		case 0:
			if pos < lx.size {
				pos++
				continue
			}
			if f.triple && !lx.layout && lx.retry(pos) {
				return lx.pos
			}
			what := "unterminated f-string literal"
			if f.triple {
				what = "unterminated triple-quoted f-string literal"
				lx.triple = strings.IndexAny(lx.text[f.start:], "\"'") + int(f.start)
			}
			lx.fault(int(f.start), int(f.start)+1, "%s", what)
			piece(pos)
			lx.endFStringAt(pos, pos)
			return pos
		default: // the other quote
			pos++
		}
	}
}

// endsFString reports whether a quote inside a field of f ends f: it does when it cannot start a string of its own.
func (lx *lexer) endsFString(f *fstring, pos int, quote byte, triple bool) bool {
	if f.quote != quote || f.fieldDepth < 0 {
		return false
	}
	if f.triple {
		return triple && lx.layout
	}
	if triple {
		return false
	}
	s := lx.text
	for pos++; ; pos++ {
		switch s[pos] {
		case quote:
			return false
		case '\\':
			if s[pos+1] != 0 {
				pos++
			}
		case '\n', '\r':
			return true
		case 0:
			if pos >= lx.size {
				return true
			}
		}
	}
}

// endField ends the innermost f-string at its closing quotes, and before it the fields that are still open.
func (lx *lexer) endField(pos int) int {
	end := pos + 1
	if lx.fstrings[len(lx.fstrings)-1].triple {
		end = pos + 3
	}
	lx.endFStringAt(pos, end)
	return end
}

func (lx *lexer) endFStringAt(pos, end int) {
	level := uint8(len(lx.fstrings))
	if n := len(lx.brackets); n > 0 && lx.brackets[n-1].strings >= level {
		lx.fault(pos, pos, "f-string: expecting '}'")
		for n := len(lx.brackets); n > 0 && lx.brackets[n-1].strings >= level; n-- {
			lx.closeOne()
		}
	}
	lx.fstrings = lx.fstrings[:level-1]
	var flags uint8
	if pos == end {
		flags = fVirtual
	}
	lx.toks = append(lx.toks, token{uint32(pos), uint32(end), kFEnd, flags})
}
