package source

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a notebook.
const (
	maxNotebookDepth = 64
	maxCells         = 20_000
)

// notebook makes one Python text of the code cells of a Jupyter notebook (nbformat 4: cells[].source is text or a list of
// texts), each ending in a line break, with segments that lead back to the bytes of the file. Lines of IPython magic and
// shell escapes become comments of the same length, and a cell of another language is left out, but for a shell that installs packages. A notebook
// that does not parse is a File with a Fault; only one beyond the limits cannot be read.
func notebook(file *File) (*File, error) {
	n := &notebookReader{raw: file.Raw}
	if len(file.Segments) > 0 { // a byte order mark
		n.at = int(file.Segments[0].Raw.Start)
	}
	cells, err := n.document()
	out := &File{Path: file.Path, Kind: Notebook, Raw: file.Raw}
	var limit *limitError
	switch {
	case errors.As(err, &limit):
		return nil, &Error{file.Path, err.Error(), TooLarge}
	case err != nil:
		at := uint32(min(n.at, len(n.raw)))
		out.Fault = "is no notebook: " + err.Error()
		out.Segments = []Segment{{Raw: Span{at, at}}}
		return out, nil
	}
	var commands []byte
	for i, cell := range cells {
		kind := languageOf(cell.text, false)
		if cell.code && (kind == pythonCell || kind == shellCell && bytes.Contains(cell.text, []byte("install"))) {
			if commands = out.addCell(cell, int32(i+1), kind, commands); len(out.Text) > maxText(Notebook) {
				return nil, &Error{file.Path, fmt.Sprintf("cell %d: more than %d MB of code, not read", i+1, maxText(Notebook)>>20), TooLarge}
			}
		}
	}
	out.settleCommands(commands)
	if out.Segments == nil {
		out.Segments = []Segment{{}}
	}
	return out, nil
}

// addCell appends the text of a cell, commented where it is no Python, and its commands.
func (f *File) addCell(cell notebookCell, number int32, kind language, commands []byte) []byte {
	base := uint32(len(f.Text))
	text := append([]byte(nil), cell.text...)
	own := blank(text)
	isolate(text, own, kind)
	f.Text = append(f.Text, text...)
	for _, s := range cell.segments {
		s.Text.Start += base
		s.Text.End += base
		s.Cell = number
		f.Segments = append(f.Segments, s)
	}
	end := uint32(len(f.Text))
	if len(text) == 0 || text[len(text)-1] != '\n' {
		f.Text, own = append(f.Text, '\n'), append(own, '\n')
		raw := uint32(cell.end)
		f.Segments = append(f.Segments, Segment{Text: Span{end, end + 1}, Raw: Span{raw, raw}, Cell: number})
	}
	return append(commands, own...)
}

type notebookCell struct {
	code     bool
	text     []byte
	segments []Segment
	end      int // raw offset behind the last text
}

// notebookReader reads just as much JSON as a notebook needs, with offsets.
type notebookReader struct {
	raw []byte
	at  int
}

func (n *notebookReader) fault(format string, args ...any) error {
	line := 1 + strings.Count(string(n.raw[:min(n.at, len(n.raw))]), "\n")
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// limitError is a notebook that is beyond a limit of ours.
type limitError struct{ error }

func (n *notebookReader) blanks() {
	for n.at < len(n.raw) && strings.IndexByte(" \t\r\n", n.raw[n.at]) >= 0 {
		n.at++
	}
}

func (n *notebookReader) next(c byte) bool {
	n.blanks()
	if n.at < len(n.raw) && n.raw[n.at] == c {
		n.at++
		return true
	}
	return false
}

// document reads the top object and gives its cells.
func (n *notebookReader) document() (cells []notebookCell, err error) {
	found := false
	err = n.object(func(key string) error {
		if key != "cells" {
			return n.skip(0)
		}
		found = true
		return n.array(func() error {
			cell, err := n.cell()
			cells = append(cells, cell)
			if len(cells) > maxCells {
				return &limitError{n.fault("more than %d cells, not read", maxCells)}
			}
			return err
		})
	})
	if err == nil && !found {
		err = fmt.Errorf("it has no cells (nbformat 4 is read)")
	}
	return cells, err
}

func (n *notebookReader) cell() (cell notebookCell, err error) {
	err = n.object(func(key string) error {
		switch key {
		case "cell_type":
			kind := notebookCell{}
			if err := n.text(&kind); err != nil {
				return err
			}
			cell.code = string(kind.text) == "code"
			return nil
		case "source":
			if n.blanks(); n.at < len(n.raw) && n.raw[n.at] == '[' {
				return n.array(func() error { return n.text(&cell) })
			}
			return n.text(&cell)
		}
		return n.skip(0)
	})
	return cell, err
}

func (n *notebookReader) object(member func(key string) error) error {
	if !n.next('{') {
		return n.fault("an object was expected")
	}
	if n.next('}') {
		return nil
	}
	for {
		key := notebookCell{}
		n.blanks()
		if err := n.text(&key); err != nil {
			return err
		}
		if !n.next(':') {
			return n.fault("a colon was expected")
		}
		n.blanks()
		if err := member(string(key.text)); err != nil {
			return err
		}
		if n.next('}') {
			return nil
		}
		if !n.next(',') {
			return n.fault("a comma or } was expected")
		}
	}
}

func (n *notebookReader) array(element func() error) error {
	if !n.next('[') {
		return n.fault("a list was expected")
	}
	if n.next(']') {
		return nil
	}
	for {
		n.blanks()
		if err := element(); err != nil {
			return err
		}
		if n.next(']') {
			return nil
		}
		if !n.next(',') {
			return n.fault("a comma or ] was expected")
		}
	}
}

// skip passes over any value.
func (n *notebookReader) skip(depth int) error {
	n.blanks()
	switch {
	case depth > maxNotebookDepth:
		return &limitError{n.fault("nested more than %d deep, not read", maxNotebookDepth)}
	case n.at >= len(n.raw):
		return n.fault("the file ends in the middle")
	case n.raw[n.at] == '{':
		return n.object(func(string) error { return n.skip(depth + 1) })
	case n.raw[n.at] == '[':
		return n.array(func() error { return n.skip(depth + 1) })
	case n.raw[n.at] == '"':
		n.at++
		for n.at < len(n.raw) && n.raw[n.at] != '"' {
			if n.raw[n.at] == '\\' {
				n.at++
			}
			n.at++
		}
		n.at++
		return nil
	}
	start := n.at
	for n.at < len(n.raw) && strings.IndexByte(",]} \t\r\n", n.raw[n.at]) < 0 {
		n.at++
	}
	if start == n.at {
		return n.fault("a value was expected")
	}
	return nil
}

// text reads a string onto the end of a cell's text: one segment for each stretch without escapes, and one for each escape.
func (n *notebookReader) text(cell *notebookCell) error {
	if n.at >= len(n.raw) || n.raw[n.at] != '"' {
		return n.fault("text was expected")
	}
	n.at++
	add := func(text []byte, from int) {
		if len(text) == 0 {
			return
		}
		start := uint32(len(cell.text))
		cell.text = append(cell.text, text...)
		cell.segments = append(cell.segments, Segment{Text: Span{start, uint32(len(cell.text))}, Raw: Span{uint32(from), uint32(n.at)}})
	}
	for from := n.at; n.at < len(n.raw); {
		switch n.raw[n.at] {
		case '"':
			add(n.raw[from:n.at], from)
			cell.end = n.at
			n.at++
			return nil
		case '\\':
			add(n.raw[from:n.at], from)
			from = n.at
			escaped, size := unescape(n.raw[n.at:])
			if size == 0 {
				return n.fault("an escape that JSON has not")
			}
			n.at += size
			add(escaped, from)
			from = n.at
		default:
			n.at++
		}
	}
	return n.fault("text that does not end")
}

// unescape reads one JSON escape; size is 0 where it is none. A lone surrogate becomes the replacement character.
func unescape(raw []byte) (text []byte, size int) {
	if len(raw) < 2 {
		return nil, 0
	}
	if at := strings.IndexByte(`"\/bfnrt`, raw[1]); at >= 0 {
		return []byte{"\"\\/\b\f\n\r\t"[at]}, 2
	}
	unit := func(raw []byte) rune {
		if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
			return -1
		}
		code, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
		if err != nil {
			return -1
		}
		return rune(code)
	}
	high := unit(raw)
	switch {
	case high < 0:
		return nil, 0
	case high >= 0xD800 && high < 0xDC00:
		if low := unit(raw[6:]); low >= 0xDC00 && low < 0xE000 {
			return utf8.AppendRune(nil, (high-0xD800)<<10|(low-0xDC00)+0x10000), 12
		}
	}
	return utf8.AppendRune(nil, high), 6
}
