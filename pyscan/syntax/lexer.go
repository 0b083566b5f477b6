package syntax

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint/source"
)

// The bounds of nesting are CPython's own, so that nothing it accepts is lost.
const (
	maxBrackets    = 200 // open brackets
	maxIndents     = 100 // levels of indentation
	maxFStrings    = 150 // f-strings inside f-strings
	maxSpecNesting = 3   // replacement fields inside format specifications
	tabSize        = 8
)

// maxErrors is how many faults of a file are kept.
const maxErrors = 200

// sentinel ends the text that the lexer scans, so that it can look ahead without asking for the end: what source.File.Padded has there.
const sentinel = "\x00\x00\x00\x00"

var _ [source.Padding]byte = [len(sentinel)]byte{}

type bracket struct {
	at      uint32
	kind    kind  // kLPar, kLSqb or kLBrace
	strings uint8 // how many f-strings were open
	field   bool  // it opens a replacement field
}

// fstring is an open f-string or t-string. The fields after triple follow CPython's lexer, whose quirks show in the tree.
type fstring struct {
	start      uint32
	flags      uint8
	quote      byte
	triple     bool
	literal    bool   // the scan is in the literal text, or in a format specification
	inSpec     bool   // in a format specification
	debug      bool   // an `=` was seen in the field, outside brackets
	depth      int    // open brackets inside the f-string
	fieldDepth int    // open fields, less one
	exprStart  uint32 // where the text of the expression begins
	exprEnd    int    // where it ends, or -1
}

// exprText is the source text of a replacement field, for `=` and t-strings; token is the index of the `!`, `:` or `}` behind it.
type exprText struct {
	token int
	text  source.Span
}

type lexer struct {
	text  string // ends with sentinel
	size  int    // without sentinel
	pos   int
	toks  []token
	comms []source.Span
	errs  []SyntaxError
	exprs []exprText
	faults

	indents  [maxIndents + 1]struct{ col, alt int }
	level    int // index into indents
	brackets []bracket
	fstrings []fstring
	recovery
}

// tokens are slices that a parse is done with: a tree keeps none, and they are a sixth of what parsing allocates.
var tokens sync.Pool

// maxHeld bounds the tokens of a slice that is kept for the next file.
const maxHeld = 1 << 16

func release(toks []token) {
	if cap(toks) <= maxHeld {
		tokens.Put(&toks)
	}
}

func newLexer(text string, size int) *lexer {
	lx := &lexer{text: text, size: size}
	if held, ok := tokens.Get().(*[]token); ok && cap(*held) >= size/6+64 {
		lx.toks = (*held)[:0]
	} else {
		lx.toks = make([]token, 0, size/6+64)
	}
	lx.recovery.budget = 4*size + 1024
	lx.faults = noFaults
	return lx
}

func (lx *lexer) fault(start, end int, format string, args ...any) {
	if len(lx.errs) < maxErrors {
		lx.errs = append(lx.errs, SyntaxError{source.Span{Start: uint32(start), End: uint32(min(end, lx.size))}, fmt.Sprintf(format, args...)})
	}
}

// run cuts the whole text into tokens. Brackets are balanced in what it leaves, whatever the text was.
func (lx *lexer) run() {
	s := lx.text
	pos := 0
	toks := lx.toks
	emit := func(k kind, start, end int) {
		toks = append(toks, token{uint32(start), uint32(end), k, 0})
	}

newLine:
	{
		col, alt, contCol := 0, 0, 0
	indentation:
		for {
			switch s[pos] {
			case ' ':
				col++
				alt++
			case '\t':
				col = (col/tabSize + 1) * tabSize
				alt++
			case '\f':
				col, alt = 0, 0
			case '\\':
				// The first backslash says how far the line that goes on after it is indented.
				next := lineEnd(s, pos+1)
				if next < 0 {
					break indentation
				}
				if contCol == 0 {
					contCol = col
				}
				if next >= lx.size {
					lx.fault(pos, pos+1, "unexpected end of file after a line continuation")
					pos = lx.size
					break indentation
				}
				pos = next
				continue
			default:
				break indentation
			}
			pos++
		}
		switch c := s[pos]; c {
		case '#':
			start := pos
			pos = lx.comment(pos)
			lx.comms = append(lx.comms, source.Span{Start: uint32(start), End: uint32(pos)})
			if pos < lx.size {
				pos = lineEnd(s, pos)
			}
			goto newLine
		case '\n':
			pos++
			goto newLine
		case '\r':
			pos = lineEnd(s, pos)
			goto newLine
		case 0:
			if pos >= lx.size {
				goto end
			}
		}
		if contCol != 0 {
			col, alt = contCol, contCol
		}
		if top := lx.indents[lx.level]; col != top.col || alt != top.alt {
			toks = lx.indent(toks, pos, col, alt)
		}
		lx.begin(pos, col, len(toks))
	}

again:
	for {
		c := s[pos]
		start := pos
		if class := classOf[c]; class&cIdentStart != 0 {
			if class&cPrefix != 0 && (classOf[s[pos+1]]|classOf[s[pos+2]])&cQuote != 0 {
				if quote, flags := stringPrefix(s, pos); quote >= 0 {
					lx.toks = toks
					pos = lx.quoted(start, quote, flags)
					toks = lx.toks
					goto literal
				}
			}
			for pos++; classOf[s[pos]]&cIdent != 0; pos++ {
				c |= s[pos]
			}
			if c >= 0x80 {
				lx.checkName(start, pos)
				toks = append(toks, token{uint32(start), uint32(pos), kName, fNonASCII})
				continue
			}
			k := wordKind(s[start:pos])
			if len(lx.brackets) > 0 && statementOnly.has(k) && lx.startsLine(start) {
				// No expression holds this word: a bracket was not closed.
				lx.toks = toks
				var retried bool
				pos, retried = lx.unclosed(start)
				toks = lx.toks
				if retried {
					continue
				}
				goto newLine
			}
			emit(k, start, pos)
			continue
		}
		switch c {
		case ' ', '\t', '\f':
			pos++
			continue

		case '"', '\'':
			lx.toks = toks
			pos = lx.quoted(start, pos, 0)
			toks = lx.toks

		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			pos = lx.number(pos)
			emit(kNumber, start, pos)
			continue

		case '\n', '\r':
			pos = lineEnd(s, pos)
			if len(lx.brackets) == 0 && len(lx.fstrings) == 0 {
				emit(kNewline, start, pos)
				goto newLine
			}
			lx.physical = pos
			if lx.layout && lx.closesBefore(pos) {
				lx.toks = toks
				lx.closeAll(start, pos)
				toks = lx.toks
				goto newLine
			}
			continue

		case '#':
			pos = lx.comment(pos)
			lx.comms = append(lx.comms, source.Span{Start: uint32(start), End: uint32(pos)})
			continue

		case '\\':
			next := lineEnd(s, pos+1)
			if next < 0 {
				lx.fault(pos, pos+1, "unexpected character after a line continuation")
				pos++
				continue
			}
			if next >= lx.size {
				lx.fault(pos, pos+1, "unexpected end of file after a line continuation")
			}
			pos = next
			continue

		case '(':
			toks = lx.open(toks, kLPar, pos)
			pos++
			continue
		case '[':
			toks = lx.open(toks, kLSqb, pos)
			pos++
			continue
		case '{':
			if len(lx.fstrings) > 0 {
				lx.fieldPunctuation(c, pos, len(toks))
			}
			toks = lx.open(toks, kLBrace, pos)
			pos++
			continue

		case ')', ']', '}':
			if len(lx.fstrings) > 0 && c == '}' {
				lx.fieldPunctuation(c, pos, len(toks))
			}
			lx.toks = toks
			if next := lx.close(c, pos); next < 0 {
				pos = lx.snap.pos
				toks = lx.toks
				continue
			}
			toks = lx.toks
			pos++

		case ',':
			pos++
			emit(kComma, start, pos)
			continue
		case ';':
			pos++
			emit(kSemi, start, pos)
			continue
		case '~':
			pos++
			emit(kTilde, start, pos)
			continue

		case ':':
			if len(lx.fstrings) > 0 && lx.fieldPunctuation(c, pos, len(toks)) {
				pos++
				emit(kColon, start, pos)
				break
			}
			if s[pos+1] == '=' {
				pos += 2
				emit(kWalrus, start, pos)
				continue
			}
			if lx.layout && len(lx.brackets) > 0 {
				lx.toks = toks
				if lx.endsHeader(pos + 1) {
					lx.closeBrackets(start)
				}
				toks = lx.toks
			}
			pos++
			emit(kColon, start, pos)
			continue

		case '.':
			switch {
			case s[pos+1] == '.' && s[pos+2] == '.':
				pos += 3
				emit(kEllipsis, start, pos)
			case classOf[s[pos+1]]&cDigit != 0:
				pos = lx.number(pos)
				emit(kNumber, start, pos)
			default:
				pos++
				emit(kDot, start, pos)
			}
			continue

		case '=':
			if s[pos+1] == '=' {
				pos += 2
				emit(kEqEq, start, pos)
				continue
			}
			if n := len(lx.fstrings); n > 0 && lx.fstrings[n-1].depth == lx.fstrings[n-1].fieldDepth+1 {
				lx.fstrings[n-1].debug = true
			}
			pos++
			emit(kAssign, start, pos)
			continue

		case '!':
			if len(lx.fstrings) > 0 {
				lx.fieldPunctuation(c, pos, len(toks))
			}
			if s[pos+1] == '=' {
				pos += 2
				emit(kNotEq, start, pos)
				continue
			}
			pos++
			if len(lx.fstrings) == 0 {
				lx.fault(start, pos, "invalid syntax")
				emit(kError, start, pos)
				continue
			}
			emit(kBang, start, pos)
			continue

		case '-':
			if s[pos+1] == '>' {
				if lx.layout && len(lx.brackets) > 0 && lx.isDef(toks) {
					lx.toks = toks
					lx.closeBrackets(start)
					toks = lx.toks
				}
				pos += 2
				emit(kArrow, start, pos)
				continue
			}
			pos = lx.operator(&toks, pos, kMinus, kMinusEq)
			continue
		case '+':
			pos = lx.operator(&toks, pos, kPlus, kPlusEq)
			continue
		case '*':
			if s[pos+1] == '*' {
				pos = lx.operator(&toks, pos, kDoubleStar, kDoubleStarEq)
				continue
			}
			pos = lx.operator(&toks, pos, kStar, kStarEq)
			continue
		case '/':
			if s[pos+1] == '/' {
				pos = lx.operator(&toks, pos, kDoubleSlash, kDoubleSlashEq)
				continue
			}
			pos = lx.operator(&toks, pos, kSlash, kSlashEq)
			continue
		case '%':
			pos = lx.operator(&toks, pos, kPercent, kPercentEq)
			continue
		case '@':
			pos = lx.operator(&toks, pos, kAt, kAtEq)
			continue
		case '&':
			pos = lx.operator(&toks, pos, kAmp, kAmpEq)
			continue
		case '|':
			pos = lx.operator(&toks, pos, kVBar, kVBarEq)
			continue
		case '^':
			pos = lx.operator(&toks, pos, kCaret, kCaretEq)
			continue
		case '<':
			switch s[pos+1] {
			case '<':
				pos = lx.operator(&toks, pos, kLShift, kLShiftEq)
			case '>':
				pos += 2
				emit(kNotEq, start, pos)
			default:
				pos = lx.operator(&toks, pos, kLess, kLessEq)
			}
			continue
		case '>':
			if s[pos+1] == '>' {
				pos = lx.operator(&toks, pos, kRShift, kRShiftEq)
				continue
			}
			pos = lx.operator(&toks, pos, kGreater, kGreaterEq)
			continue

		default:
			if c == 0 && pos >= lx.size {
				lx.toks = toks
				if len(lx.brackets) > 0 && lx.retry(pos) {
					toks = lx.toks
					pos = lx.pos
					continue
				}
				lx.closeBrackets(pos)
				toks = lx.toks
				emit(kNewline, pos, pos)
				goto end
			}
			pos++
			if c == '$' || c == '?' || c == '`' {
				lx.fault(start, pos, "invalid character '%c'", c)
			} else {
				lx.fault(start, pos, "invalid non-printable character U+%04X", c)
			}
			emit(kError, start, pos)
			continue
		}

	literal:
		// After a string start, a `}` or a format specification's colon the scan may be in the literal part of an f-string.
		for n := len(lx.fstrings); n > 0 && lx.fstrings[n-1].literal; n = len(lx.fstrings) {
			lx.toks = toks
			pos = lx.middle(pos)
			toks = lx.toks
		}
		continue again
	}

end:
	for ; lx.level > 0; lx.level-- {
		emit(kDedent, pos, pos)
	}
	emit(kEOF, pos, pos)
	lx.toks = toks
}

// lineEnd is the position behind the line end at pos, or -1 when there is none.
func lineEnd(s string, pos int) int {
	switch s[pos] {
	case '\n':
		return pos + 1
	case '\r':
		if s[pos+1] == '\n' {
			return pos + 2
		}
		return pos + 1
	}
	return -1
}

// comment gives the end of the comment at pos.
func (lx *lexer) comment(pos int) int {
	s := lx.text
	for {
		pos++
		for classOf[s[pos]]&cLineStop == 0 {
			pos++
		}
		if s[pos] != 0 || pos >= lx.size {
			return pos
		}
	}
}

// operator emits an operator of one or two characters, or its augmented assignment.
func (lx *lexer) operator(toks *[]token, pos int, plain, augmented kind) int {
	start := pos
	pos++
	switch plain {
	case kDoubleStar, kDoubleSlash, kLShift, kRShift:
		pos++
	}
	if lx.text[pos] == '=' {
		pos++
		plain = augmented
	}
	*toks = append(*toks, token{uint32(start), uint32(pos), plain, 0})
	return pos
}

// indent compares a line's indentation with the open levels. Columns count with tabs to 8 and with tabs to 1; where the two
// disagree, the meaning would depend on the width of a tab.
func (lx *lexer) indent(toks []token, pos, col, alt int) []token {
	top := &lx.indents[lx.level]
	at := uint32(pos)
	switch {
	case col == top.col:
		lx.fault(pos-min(col, pos), pos, "inconsistent use of tabs and spaces in indentation")
		top.alt = alt
	case col > top.col:
		if lx.level+1 >= maxIndents {
			lx.fault(pos, pos, "too many levels of indentation")
			return toks
		}
		if alt <= top.alt {
			lx.fault(pos, pos, "inconsistent use of tabs and spaces in indentation")
		}
		lx.level++
		lx.indents[lx.level].col, lx.indents[lx.level].alt = col, alt
		toks = append(toks, token{at, at, kIndent, 0})
	default:
		for lx.level > 0 && col < lx.indents[lx.level].col {
			lx.level--
			toks = append(toks, token{at, at, kDedent, 0})
		}
		top = &lx.indents[lx.level]
		switch {
		case col != top.col:
			lx.fault(pos, pos, "unindent does not match any outer indentation level")
			// The line most likely goes on with the block that was closed last.
			toks = toks[:len(toks)-1]
			lx.level++
			lx.indents[lx.level].col, lx.indents[lx.level].alt = col, alt
		case alt != top.alt:
			lx.fault(pos, pos, "inconsistent use of tabs and spaces in indentation")
			top.alt = alt
		}
	}
	return toks
}

func (lx *lexer) open(toks []token, k kind, pos int) []token {
	if len(lx.brackets) >= maxBrackets {
		lx.fault(pos, pos+1, "too many nested brackets")
		return append(toks, token{uint32(pos), uint32(pos + 1), kError, 0})
	}
	lx.brackets = append(lx.brackets, bracket{uint32(pos), k, uint8(len(lx.fstrings)), false})
	if n := len(lx.fstrings); n > 0 {
		lx.fstrings[n-1].depth++
	}
	return append(toks, token{uint32(pos), uint32(pos + 1), k, 0})
}

// pop removes the innermost bracket and, when it is a field, goes on with the literal text behind it.
func (lx *lexer) pop() {
	top := lx.brackets[len(lx.brackets)-1]
	lx.brackets = lx.brackets[:len(lx.brackets)-1]
	if n := len(lx.fstrings); n > 0 {
		f := &lx.fstrings[n-1]
		f.depth--
		if top.field {
			f.fieldDepth--
			f.literal, f.inSpec, f.debug = true, false, false
		}
	}
}

// checkName reports characters that no identifier may hold (PEP 3131).
func (lx *lexer) checkName(start, end int) {
	name := lx.text[start:end]
	if at := invalidInName(name); at >= 0 {
		r, size := utf8.DecodeRuneInString(name[at:])
		lx.fault(start+at, start+at+size, "invalid character '%c' (U+%04X)", r, r)
	}
}

// stringPrefix looks at letters before a quote. It gives the position of the quote, or -1 when they are a name.
func stringPrefix(s string, pos int) (quote int, flags uint8) {
	bytes, raw, unicode, format := false, false, false, false
	for {
		switch s[pos] {
		case 'b', 'B':
			if bytes || unicode || format {
				return -1, 0
			}
			bytes = true
			flags |= fBytes
		case 'r', 'R':
			if raw || unicode {
				return -1, 0
			}
			raw = true
			flags |= fRaw
		case 'u', 'U':
			if bytes || raw || unicode || format {
				return -1, 0
			}
			unicode = true
		case 'f', 'F', 't', 'T':
			if bytes || unicode || format {
				return -1, 0
			}
			format = true
			if s[pos]|0x20 == 't' {
				flags |= fTemplate
			}
		case '"', '\'':
			return pos, flags
		default:
			return -1, 0
		}
		pos++
	}
}

// quoted scans a string from its prefix at start, with its quote at pos. Of an f-string it scans only the start.
func (lx *lexer) quoted(start, pos int, flags uint8) int {
	s := lx.text
	quote := s[pos]
	triple := s[pos+1] == quote && s[pos+2] == quote
	if n := len(lx.fstrings); n > 0 && lx.endsFString(&lx.fstrings[n-1], pos, quote, triple) {
		return lx.endField(pos)
	}
	if start < pos && strings.ContainsAny(s[start:pos], "fFtT") {
		return lx.startFString(start, pos, flags, triple)
	}
	var seen uint8
	if triple {
		flags |= fTriple
		pos += 3
		for {
			c := s[pos]
			for classOf[c]&cStringStop == 0 {
				seen |= c
				pos++
				c = s[pos]
			}
			switch c {
			case quote:
				if s[pos+1] == quote && s[pos+2] == quote {
					pos += 3
					goto done
				}
				pos++
			case '\\':
				flags |= fEscape
				if s[pos+1] == '\r' {
					flags |= fReturn
				}
				pos += 2
				if s[pos-1] == 0 && pos > lx.size {
					pos--
				}
			case '\r':
				flags |= fReturn
				pos++
			case 0:
				if pos >= lx.size {
					pos = lx.unterminated(start, pos, flags)
					goto done
				}
				pos++
			default:
				pos++
			}
		}
	}
	pos++
	for {
		c := s[pos]
		for classOf[c]&cStringStop == 0 {
			seen |= c
			pos++
			c = s[pos]
		}
		switch c {
		case quote:
			pos++
			goto done
		case '\\':
			flags |= fEscape
			switch s[pos+1] {
			case '\r':
				flags |= fReturn
				pos = lineEnd(s, pos+1)
			case 0:
				pos++
			default:
				pos += 2
			}
		case '\n', '\r':
			pos = lx.unterminated(start, pos, flags)
			goto done
		case 0:
			if pos >= lx.size {
				pos = lx.unterminated(start, pos, flags)
				goto done
			}
			pos++
		default:
			pos++
		}
	}
done:
	if seen >= 0x80 {
		flags |= fNonASCII
	}
	lx.toks = append(lx.toks, token{uint32(start), uint32(pos), kString, flags})
	return pos
}

// number scans a number at pos and gives its end.
func (lx *lexer) number(pos int) int {
	s := lx.text
	start := pos
	if s[pos] == '0' {
		base := ""
		switch s[pos+1] {
		case 'x', 'X':
			base = "hexadecimal"
		case 'o', 'O':
			base = "octal"
		case 'b', 'B':
			base = "binary"
		}
		if base != "" {
			digits := 0
			for pos += 2; ; pos++ {
				c := s[pos]
				if c == '_' && classOf[s[pos+1]]&cHex != 0 {
					continue
				}
				if base == "hexadecimal" && classOf[c]&cHex == 0 || base != "hexadecimal" && classOf[c]&cDigit == 0 {
					break
				}
				if base == "octal" && c > '7' || base == "binary" && c > '1' {
					lx.fault(pos, pos+1, "invalid digit '%c' in %s literal", c, base)
				}
				digits++
			}
			if digits == 0 {
				lx.fault(start, pos, "invalid %s literal", base)
			}
			return lx.numberEnd(start, pos, base)
		}
	}
	pos = lx.digits(pos)
	kind := "decimal"
	integer := true
	if s[pos] == '.' {
		integer = false
		pos++
		if classOf[s[pos]]&cDigit != 0 {
			pos = lx.digits(pos)
		}
	}
	if s[pos]|0x20 == 'e' {
		next := pos + 1
		if s[next] == '+' || s[next] == '-' {
			next++
			if classOf[s[next]]&cDigit == 0 {
				lx.fault(start, next, "invalid decimal literal")
				return next
			}
		}
		if classOf[s[next]]&cDigit != 0 {
			integer = false
			pos = lx.digits(next)
		}
	}
	if s[pos]|0x20 == 'j' {
		integer = false
		kind = "imaginary"
		pos++
	}
	if integer && s[start] == '0' && strings.Trim(s[start:pos], "0_") != "" {
		lx.fault(start, pos, "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers")
	}
	return lx.numberEnd(start, pos, kind)
}

// digits scans decimal digits with single underscores between them.
func (lx *lexer) digits(pos int) int {
	s := lx.text
	for {
		for classOf[s[pos]]&cDigit != 0 {
			pos++
		}
		if s[pos] != '_' {
			return pos
		}
		pos++
		if classOf[s[pos]]&cDigit == 0 {
			lx.fault(pos-1, pos, "invalid decimal literal")
			return pos
		}
	}
}

// numberEnd reports a letter right behind a number. Keywords that can follow a number are still allowed there.
func (lx *lexer) numberEnd(start, pos int, what string) int {
	s := lx.text
	if classOf[s[pos]]&cIdent == 0 || s[pos] >= 0x80 {
		return pos
	}
	end := pos
	for classOf[s[end]]&cIdent != 0 {
		end++
	}
	switch word := s[pos:end]; word {
	case "and", "else", "for", "or", "not":
		return pos
	default:
		if len(word) >= 2 && word[0] == 'i' && (word[1] == 'f' || word[1] == 'n' || word[1] == 's') {
			return pos
		}
	}
	lx.fault(start, end, "invalid %s literal", what)
	return pos
}
