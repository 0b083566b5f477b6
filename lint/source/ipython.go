package source

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A cell of a notebook is Python with commands in it: `!cmd`, `!!cmd`, `%magic`, `x = !cmd`, `x = %magic`, `?x`,
// `x?`, and `,f a`, `;f a`, `/f a`, which call f. They begin a logical line, as IPython's inputtransformer2 has it:
// what stands in brackets, in a string or behind a backslash is Python. escapes makes Python of the same length of
// such a text.

// escapes makes comments of the commands of a cell in place, a statement of those in a block and a name of those
// that are assigned, and copies those for a shell to commands, which is as long and blank but for its line ends.
func escapes(text, commands []byte) {
	e := escaper{text: text, commands: commands}
	for at := 0; at < len(text); {
		at = e.logicalLine(at)
	}
}

type escaper struct {
	text, commands []byte
	opens          bool // the statement before begins a block
	lines          bool // a bracket or string never ended: each line is read for itself from then on
}

// logicalLine reads the logical line at an offset and gives the offset of the next one.
func (e *escaper) logicalLine(start int) (next int) {
	at := start
	for at < len(e.text) && (e.text[at] == ' ' || e.text[at] == '\t') {
		at++
	}
	end := lineEnd(e.text, at)
	if at < end && strings.IndexByte("%!?,;/", e.text[at]) >= 0 {
		return e.command(at, func() { e.hideStatement(at, end) })
	}
	assigned, last, next, ended := e.scan(at)
	opened := e.opens
	if e.opens = last >= 0 && e.text[last] == ':' || opened && last < 0; assigned >= 0 {
		e.opens = false
	}
	switch {
	case !ended && !e.lines:
		e.lines, e.opens = true, opened
		return e.logicalLine(start)
	case assigned >= 0:
		return e.command(assigned, func() {
			e.text[assigned] = '_' // which is what it gave, and not known
			if assigned+1 < lineEnd(e.text, assigned) {
				e.hide(assigned + 1)
			}
		})
	case last >= 0 && e.text[last] == '?' && helpEnd().Match(e.text[at:last+1]):
		e.opens = opened
		e.hideStatement(at, last+1)
	}
	return next
}

// hideStatement makes a comment of the text between two offsets, or a statement where a block has begun, which wants
// one.
func (e *escaper) hideStatement(at, end int) {
	e.hide(at)
	if e.opens {
		e.text[at] = '0'
		if at+1 < end {
			e.hide(at + 1)
		}
	}
	e.opens = false
}

// hide puts a # in the place of the character at an offset.
func (e *escaper) hide(at int) {
	_, size := utf8.DecodeRune(e.text[at:])
	for i := range size {
		e.text[at+i] = '#'
	}
}

// command reads the command whose escape stands at an offset, with the lines that a backslash joins to it, and gives
// the offset behind it. Rewrite changes its first line; the others become comments.
func (e *escaper) command(at int, rewrite func()) (next int) {
	end := lineEnd(e.text, at)
	shell := shellPart(e.text[at:end])
	if shell >= 0 {
		copy(e.commands[at+shell:], e.text[at+shell:end])
	}
	joined := bytes.HasSuffix(bytes.TrimRight(e.text[at:end], " \t\r"), []byte{'\\'})
	rewrite()
	for joined && end < len(e.text) {
		start := end + 1
		end = lineEnd(e.text, start)
		joined = bytes.HasSuffix(bytes.TrimRight(e.text[start:end], " \t\r"), []byte{'\\'})
		if shell >= 0 {
			copy(e.commands[start:], e.text[start:end])
		}
		for start < end && (e.text[start] == ' ' || e.text[start] == '\t') {
			start++
		}
		if start < end {
			e.hide(start)
		}
	}
	return min(end+1, len(e.text))
}

// scan reads Python from an offset to the end of its logical line. Assigned is the escape behind the first `=`, or
// -1; last is the last character outside of strings and comments, or -1. Ended is false where a bracket or a string
// has no end.
func (e *escaper) scan(at int) (assigned, last, next int, ended bool) {
	depth, equals := 0, false
	last = -1
	text := e.text
	for at < len(text) {
		switch c := text[at]; {
		case c == '\n':
			if depth <= 0 || e.lines {
				return -1, last, at + 1, true
			}
		case c == '#':
			at = lineEnd(text, at)
			continue
		case c == '\\' && at+1 < len(text):
			if at++; text[at] == '\r' && at+1 < len(text) {
				at++
			}
		case c == '"' || c == '\'':
			last = at
			var closed bool
			if at, closed = e.quoted(at); !closed {
				return -1, last, len(text), false
			}
			continue
		case c == '(' || c == '[' || c == '{':
			depth, last = depth+1, at
		case c == ')' || c == ']' || c == '}':
			depth, last = depth-1, at
		case c == '=' && depth <= 0 && !equals && isAssignment(text, at):
			equals, last = true, at
			right := at + 1
			for right < len(text) && (text[right] == ' ' || text[right] == '\t') {
				right++
			}
			if right+1 < len(text) {
				if second := text[right+1]; text[right] == '!' && second != '=' || text[right] == '%' && isLetter(second) {
					return right, last, right, true
				}
			}
		case c != ' ' && c != '\t' && c != '\r':
			last = at
		}
		at++
	}
	return -1, last, len(text), depth <= 0 || e.lines
}

// isAssignment tells `=` from `==`, `<=`, `+=` and their like.
func isAssignment(text []byte, at int) bool {
	return (at+1 == len(text) || text[at+1] != '=') && (at == 0 || strings.IndexByte("=!<>+-*/%&|^@:~", text[at-1]) < 0)
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// quoted gives the offset behind the string whose first quote is at an offset. One on a line ends with that.
func (e *escaper) quoted(at int) (end int, closed bool) {
	text, quote := e.text, e.text[at]
	triple := !e.lines && at+2 < len(text) && text[at+1] == quote && text[at+2] == quote
	if triple {
		at += 2
	}
	for at++; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\\':
			at++
		case c == '\n' && !triple:
			return at, true
		case c == quote && !triple:
			return at + 1, true
		case c == quote && at+2 < len(text) && text[at+1] == quote && text[at+2] == quote:
			return at + 3, true
		}
	}
	return len(text), !triple
}

func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// helpEnd is what may stand before the question mark or two that ask IPython for help: `x?`, `np.*load*?`, `x[0].f??`.
var helpEnd = Pattern(`(?:^|[^\pL\pN_*.\]?])%{0,2}[\pL_*][\pL\pN_*]*(?:\.[\pL_*][\pL\pN_*]*|\[-?\d+\])*\?\??$`)

// shellPart is where the command for a shell begins in a line that begins with an escape, or -1: `!cmd`, `!!cmd`,
// `%sh cmd`, and the magics that are programs, such as `%pip install`.
func shellPart(line []byte) int {
	switch {
	case bytes.HasPrefix(line, []byte("!!")):
		return 2
	case line[0] == '!':
		return 1
	case line[0] != '%':
		return -1
	}
	name, _, _ := strings.Cut(string(line[1:]), " ")
	switch strings.TrimSpace(name) {
	case "pip", "conda", "mamba", "micromamba", "uv":
		return 1
	case "sh", "sx", "system":
		return 1 + len(name)
	}
	return -1
}
