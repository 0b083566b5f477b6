package syntax

// kind is the kind of a token.
type kind uint8

// The kinds of tokens. The augmented assignments stand in the order of Operator.
const (
	kEOF kind = iota
	kNewline
	kIndent
	kDedent
	kName
	kNumber
	kString
	kFStart  // prefix and opening quotes of an f-string or t-string
	kFMiddle // literal text inside one
	kFEnd
	kError // characters that start no token

	kLPar
	kRPar
	kLSqb
	kRSqb
	kLBrace
	kRBrace

	kComma
	kColon
	kSemi
	kDot
	kEllipsis
	kArrow
	kBang
	kAssign
	kWalrus

	kPlus
	kMinus
	kStar
	kAt
	kSlash
	kPercent
	kDoubleStar
	kLShift
	kRShift
	kVBar
	kCaret
	kAmp
	kDoubleSlash
	kTilde

	kPlusEq
	kMinusEq
	kStarEq
	kAtEq
	kSlashEq
	kPercentEq
	kDoubleStarEq
	kLShiftEq
	kRShiftEq
	kVBarEq
	kCaretEq
	kAmpEq
	kDoubleSlashEq

	kEqEq
	kNotEq
	kLess
	kLessEq
	kGreater
	kGreaterEq

	kFalse
	kNone
	kTrue
	kAnd
	kAs
	kAssert
	kAsync
	kAwait
	kBreak
	kClass
	kContinue
	kDef
	kDel
	kElif
	kElse
	kExcept
	kFinally
	kFor
	kFrom
	kGlobal
	kIf
	kImport
	kIn
	kIs
	kLambda
	kNonlocal
	kNot
	kOr
	kPass
	kRaise
	kReturn
	kTry
	kWhile
	kWith
	kYield

	nKinds
)

// The bits of token.flags. The first four are for strings, the fifth also for names.
const (
	fBytes    uint8 = 1 << iota // prefix b
	fRaw                        // prefix r
	fTemplate                   // prefix t
	fEscape                     // holds a backslash
	fNonASCII                   // holds bytes of 0x80 and above
	fReturn                     // holds a carriage return
	fTriple                     // three quotes
	fVirtual                    // stands for something missing; has no text
)

// fDoubled marks literal text of an f-string that ends with a doubled brace.
const fDoubled = fBytes

// token is a piece of the text: [start, end) in bytes.
type token struct {
	start, end uint32
	kind       kind
	flags      uint8
}

// keywords finds a hard keyword by keywordHash; the multipliers were searched so that no two keywords collide.
var keywords = func() (table [128]struct {
	word string
	kind kind
}) {
	words := [...]string{"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
		"del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
		"not", "or", "pass", "raise", "return", "try", "while", "with", "yield"}
	for i, word := range words {
		at := &table[keywordHash(word)]
		at.word, at.kind = word, kFalse+kind(i)
	}
	return table
}()

// keywordHash is for words of at least two bytes.
func keywordHash(word string) int {
	return (int(word[0]) + 11*int(word[len(word)-1]) + len(word)) & 127
}

func wordKind(word string) kind {
	if len(word) < 2 {
		return kName
	}
	if entry := &keywords[keywordHash(word)]; entry.word == word {
		return entry.kind
	}
	return kName
}

// The classes of bytes.
const (
	cIdentStart uint16 = 1 << iota
	cIdent
	cDigit
	cHex
	cPrefix // a letter of a string prefix
	cQuote
	cLineStop   // a line end or NUL
	cStringStop // a byte at which the scan of a string must look closer
	cFieldStop  // the same for the literal part of an f-string
)

var classOf = func() (table [256]uint16) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= 0x80:
			table[c] |= cIdentStart | cIdent
		case c >= '0' && c <= '9':
			table[c] |= cIdent | cDigit | cHex
		}
		if c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' {
			table[c] |= cHex
		}
		switch c {
		case 'b', 'r', 'u', 'f', 't', 'B', 'R', 'U', 'F', 'T':
			table[c] |= cPrefix
		case '\'', '"':
			table[c] |= cQuote | cStringStop | cFieldStop
		case '\n', '\r', 0:
			table[c] |= cLineStop | cStringStop | cFieldStop
		case '\\':
			table[c] |= cStringStop | cFieldStop
		case '{', '}':
			table[c] |= cFieldStop
		}
	}
	return table
}()

// kindSet is a set of kinds.
type kindSet [2]uint64

func setOf(kinds ...kind) (set kindSet) {
	for _, k := range kinds {
		set[k>>6] |= 1 << (k & 63)
	}
	return set
}

func (s *kindSet) has(k kind) bool { return s[k>>6&1]>>(k&63)&1 != 0 }

var (
	// startsExpr are the tokens that an expression can start with, `*` and `yield` aside.
	startsExpr = setOf(kName, kNumber, kString, kFStart, kLPar, kLSqb, kLBrace, kEllipsis, kPlus, kMinus, kTilde, kFalse, kNone,
		kTrue, kAwait, kLambda, kNot)
	// statementOnly are the keywords that no expression holds.
	statementOnly = setOf(kAssert, kBreak, kClass, kContinue, kDef, kDel, kElif, kExcept, kFinally, kGlobal, kImport, kNonlocal,
		kPass, kRaise, kReturn, kTry, kWhile, kWith)
	// headers are the keywords that start the head of a block.
	headers = setOf(kAsync, kClass, kDef, kElif, kElse, kExcept, kFinally, kFor, kIf, kTry, kWhile, kWith)
)

// tokenNames are for messages.
var tokenNames = [nKinds]string{
	kEOF: "end of file", kNewline: "end of line", kIndent: "indent", kDedent: "dedent", kName: "name", kNumber: "number",
	kString: "string", kFStart: "string", kFMiddle: "string", kFEnd: "string",
	kLPar: "'('", kRPar: "')'", kLSqb: "'['", kRSqb: "']'", kLBrace: "'{'", kRBrace: "'}'",
	kComma: "','", kColon: "':'", kAssign: "'='", kIn: "'in'", kImport: "'import'",
}
