package pyscan

import (
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Code is the text of the file in a span with blanks in place of what runs nothing: comments, and texts that are
// statements, as docstrings are. Who asks which words code holds asks it, since a comment does nothing.
func (m *Module) Code(at source.Span) string { return m.code()[at.Start:at.End] }

// LowerCode is the code of all the file in lower case.
func (m *Module) LowerCode() string { return strings.ToLower(m.code()) }

// Says reports whether the code of the file holds one of some words.
func (m *Module) Says(words ...string) bool {
	for _, word := range words {
		if m.File.Has(word) && strings.Contains(m.code(), word) {
			return true
		}
	}
	return false
}

func (m *Module) code() string {
	m.codeOnce.Do(func() {
		text := []byte(string(m.File.Text))
		blank := func(at source.Span) {
			for i := at.Start; i < at.End; i++ {
				if text[i] != '\n' {
					text[i] = ' '
				}
			}
		}
		for _, comment := range m.Tree.Comments() {
			blank(comment)
		}
		for node := range m.Tree.All() {
			if stmt, is := node.(*syntax.ExprStmt); is {
				if c, is := stmt.Value.(*syntax.Constant); is && c.Kind == syntax.StrConstant {
					blank(stmt.Span())
				}
			}
		}
		m.codeText = string(text)
	})
	return m.codeText
}
