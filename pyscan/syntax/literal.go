package syntax

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxIntDigits bounds the digits of an integer literal that are converted to another base; longer ones keep their source text.
const maxIntDigits = 100_000

// unquote gives the decoded text of a string token. problem is "" or what CPython says against it; its place is the whole token.
func (p *parser) unquote(t token) (text, problem string) {
	s := p.text[t.start:t.end]
	pos := 0
	for pos < len(s) && s[pos] != '"' && s[pos] != '\'' {
		pos++
	}
	quotes := 1
	if t.flags&fTriple != 0 {
		quotes = 3
	}
	start, end := min(pos+quotes, len(s)), len(s)
	// A string without an end has been reported; it has no closing quotes to cut off.
	if end-quotes >= start && strings.Count(s[end-quotes:], s[pos:pos+1]) == quotes {
		end -= quotes
	}
	if t.flags&fBytes != 0 && t.flags&fNonASCII != 0 {
		problem = "bytes can only contain ASCII literal characters"
	}
	s = s[start:end]
	if t.flags&(fEscape|fReturn) == 0 {
		return s, problem
	}
	text, fault := p.decode(s, t.flags)
	if problem == "" {
		problem = fault
	}
	return text, problem
}

// decode replaces line ends by \n and, unless the string is raw, escapes by what they stand for. A lone surrogate (\ud800) is
// kept in the three bytes that UTF-8 would give it.
func (p *parser) decode(s string, flags uint8) (text, problem string) {
	raw := flags&fRaw != 0 || flags&fEscape == 0
	if raw && flags&fReturn == 0 {
		return s, ""
	}
	out := p.scratch[:0]
	for i := 0; i < len(s); {
		c := s[i]
		if c == '\r' {
			out = append(out, '\n')
			i++
			if i < len(s) && s[i] == '\n' {
				i++
			}
			continue
		}
		if c != '\\' || raw || i+1 == len(s) {
			out = append(out, c)
			i++
			continue
		}
		i++
		c = s[i]
		i++
		switch c {
		case '\n':
		case '\r':
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case '\\', '\'', '"':
			out = append(out, c)
		case 'a':
			out = append(out, '\a')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'v':
			out = append(out, '\v')
		case '0', '1', '2', '3', '4', '5', '6', '7':
			value := rune(c - '0')
			for n := 1; n < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; n++ {
				value = value<<3 | rune(s[i]-'0')
				i++
			}
			out = appendChar(out, value, flags)
		case 'x':
			value, n := hexValue(s[i:], 2)
			if n < 2 {
				problem = "truncated \\xXX escape"
				if flags&fBytes != 0 {
					problem = "invalid \\x escape"
				}
				out = append(out, '\\', 'x')
				continue
			}
			i += 2
			out = appendChar(out, value, flags)
		case 'u', 'U', 'N':
			if flags&fBytes != 0 {
				out = append(out, '\\', c)
				continue
			}
			if c == 'N' {
				end := strings.IndexByte(s[i:], '}')
				if end < 2 || s[i] != '{' {
					problem = "malformed \\N character escape"
					out = append(out, '\\', c)
					continue
				}
				r, ok := runeNamed(s[i+1 : i+end])
				if !ok {
					problem = "unknown Unicode character name"
					out = append(out, '\\', c)
					continue
				}
				i += end + 1
				out = utf8.AppendRune(out, r)
				continue
			}
			width := 4
			if c == 'U' {
				width = 8
			}
			value, n := hexValue(s[i:], width)
			switch {
			case n < width:
				problem = "truncated \\" + string(rune(c)) + strings.Repeat("X", width) + " escape"
			case value > unicode.MaxRune || value < 0:
				problem = "illegal Unicode character"
			default:
				i += width
				out = appendChar(out, value, flags)
				continue
			}
			out = append(out, '\\', c)
		default:
			out = append(out, '\\', c)
		}
	}
	p.scratch = out
	return string(out), problem
}

// appendChar appends one byte of a bytes literal, or one character of a string, surrogates included.
func appendChar(out []byte, value rune, flags uint8) []byte {
	switch {
	case flags&fBytes != 0:
		return append(out, byte(value))
	case value >= 0xD800 && value <= 0xDFFF:
		return append(out, 0xE0|byte(value>>12), 0x80|byte(value>>6&0x3F), 0x80|byte(value&0x3F))
	}
	return utf8.AppendRune(out, value)
}

// hexValue reads up to width hexadecimal digits and tells how many there were.
func hexValue(s string, width int) (value rune, n int) {
	for n < width && n < len(s) && classOf[s[n]]&cHex != 0 {
		c := s[n]
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		if value > unicode.MaxRune {
			value = unicode.MaxRune + 1
		} else {
			value = value<<4 | rune(c)
		}
		n++
	}
	return value, n
}

// number fills in a numeric constant from its source text.
func number(text string, c *Constant) {
	digits := text
	if strings.IndexByte(digits, '_') >= 0 {
		digits = strings.ReplaceAll(digits, "_", "")
	}
	c.Text = text
	if len(digits) > 1 && digits[0] == '0' {
		bits := 0
		switch digits[1] | 0x20 {
		case 'x':
			bits = 4
		case 'o':
			bits = 3
		case 'b':
			bits = 1
		}
		if bits != 0 {
			c.Kind = IntConstant
			c.Text = fromPowerOfTwo(digits[2:], bits, text)
			return
		}
	}
	last := digits[len(digits)-1]
	switch {
	case last == 'j' || last == 'J':
		c.Kind = ComplexConstant
		c.Float, _ = strconv.ParseFloat(digits[:len(digits)-1], 64)
	case strings.IndexByte(digits, '.') >= 0 || strings.IndexByte(digits, 'e') >= 0 || strings.IndexByte(digits, 'E') >= 0:
		c.Kind = FloatConstant
		c.Float, _ = strconv.ParseFloat(digits, 64)
	default:
		c.Kind = IntConstant
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		c.Text = digits
	}
}

// fromPowerOfTwo converts digits of 1, 3 or 4 bits to decimal; source is what to keep when they are too many or none.
func fromPowerOfTwo(digits string, bits int, source string) string {
	if len(digits)*bits <= 64 {
		value, err := strconv.ParseUint(digits, 1<<bits, 64)
		if err != nil {
			return source
		}
		return strconv.FormatUint(value, 10)
	}
	if len(digits) > maxIntDigits {
		return source
	}
	value, ok := new(big.Int).SetString(digits, 1<<bits)
	if !ok {
		return source
	}
	return value.String()
}

// identifier gives the name in a token in the form that Python compares: NFKC.
func (p *parser) identifier(t token) string {
	name := p.text[t.start:t.end]
	if t.flags&fNonASCII != 0 {
		return norm.NFKC.String(name)
	}
	return name
}

// invalidInName is the position of the first character that an identifier cannot hold there, or -1.
func invalidInName(name string) int {
	for i, r := range name {
		if r < utf8.RuneSelf {
			continue
		}
		if i == 0 && !identStart(r) || !identContinue(r) {
			return i
		}
	}
	return -1
}

func identStart(r rune) bool { return isXID(r, idStart) || unicode.Is(newStarts, r) }

func identContinue(r rune) bool { return isXID(r, idContinue) || unicode.Is(newContinues, r) }

func idStart(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) &&
		!unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space)
}

func idContinue(r rune) bool {
	return idStart(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// isXID applies the closure under NFKC that makes XID_Start and XID_Continue of ID_Start and ID_Continue.
func isXID(r rune, first func(rune) bool) bool {
	if !first(r) {
		return false
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if norm.NFKC.IsNormal(buf[:n]) {
		return true
	}
	for i, r := range string(norm.NFKC.Bytes(buf[:n])) {
		if i == 0 && !first(r) || i > 0 && !idContinue(r) {
			return false
		}
	}
	return true
}
