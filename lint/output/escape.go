package output

import (
	"fmt"
	"github.com/trainvet/trainvet/lint/source"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape writes control characters, and characters that change the direction of text or show nothing, as escapes: what stands
// in a file must not reach a terminal raw, nor begin a line of our output, nor be read as a command of a CI service.
func Escape(text string) string { return noCommand(replace(text, unprintable, escaped), `\x5b`) }

// logCommand is what GitHub Actions (##[add-mask]), Azure Pipelines (##vso[...]) and TeamCity (##teamcity[...]) obey wherever it
// stands in a line of a log.
var logCommand = source.Pattern(`##(\w*)\[`)

// noCommand writes the bracket of such commands in another way.
func noCommand(text, bracket string) string {
	if !strings.Contains(text, "##") {
		return text
	}
	return logCommand().ReplaceAllString(text, "##${1}"+bracket)
}

// LinePath is a path for the beginning of a line of a log. GitHub Actions obeys lines that begin with `::`, whatever blanks stand
// before it.
func LinePath(name string) string {
	if strings.HasPrefix(strings.TrimSpace(name), "::") {
		name = "./" + name
	}
	return Escape(name)
}

// replace writes the special characters of a text in another way, and bytes that are no UTF-8 (lone surrogates among them) as
// escapes.
func replace(text string, special func(rune) bool, as func(rune) string) string {
	if !strings.ContainsFunc(text, special) && utf8.ValidString(text) {
		return text
	}
	var safe strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			fmt.Fprintf(&safe, `\x%02x`, text[i])
		case !special(r):
			safe.WriteRune(r)
		default:
			safe.WriteString(as(r))
		}
	}
	return safe.String()
}

// xmlText is a text for elements and (double-quoted) attributes of XML. What XML can carry is kept, if need be as a reference; what
// it cannot is written as in Escape.
func xmlText(text string) string {
	return noCommand(replace(text, func(r rune) bool { return unprintable(r) || xmlEntities[r] != "" || !inXML(r) }, func(r rune) string {
		switch {
		case xmlEntities[r] != "":
			return xmlEntities[r]
		case inXML(r):
			return fmt.Sprintf("&#x%X;", r)
		}
		return escaped(r)
	}), "&#x5B;")
}

var xmlEntities = map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;"}

// inXML holds for the characters that XML 1.0 allows (its production Char).
func inXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || 0x20 <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || 0x10000 <= r
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// unprintable holds for C0, DEL and C1, for all format characters (bidirectional overrides, zero-width ones, tags) but the
// joiner that emoji are made with, and for line and paragraph separators.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r != '\u200d' && unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// percentEncode keeps the unreserved characters of RFC 3986 and slashes. A colon is none: in front it would make a scheme.
func percentEncode(name string) string {
	var uri strings.Builder
	for _, b := range []byte(name) {
		if b >= utf8.RuneSelf || !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/", rune(b)) {
			fmt.Fprintf(&uri, "%%%02X", b)
		} else {
			uri.WriteByte(b)
		}
	}
	return uri.String()
}
