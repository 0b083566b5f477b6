// Package syntax reads Python 3.8 to 3.14 into a typed tree that is CPython 3.14's in every node, field and position.
//
//	file := syntax.Parse(src)
//	for n := range file.All() { ... }
//
// The whole text is cut into tokens first (lexer.go, lexrecover.go), and a recursive-descent parser with one token of lookahead,
// and free look at the tokens where soft keywords need it, makes the tree (parser.go, stmt.go, block.go, expr.go, pattern.go,
// fstring.go). Nodes come from slabs (alloc.go): parsing costs about ten bytes of memory for each byte of source.
//
// A file with faults gives a tree too. The lexer leaves balanced brackets whatever the text was; the parser reports one fault a
// statement, goes on behind it, and keeps what it can of the damaged part in Error nodes; and repair.go tries where a missing
// quote or bracket may have been. All of it is linear in the size of the text, and bounded in the height of the tree.
//
// What CPython checks only when it compiles (a return outside a function, a name declared global too late, a keyword given twice)
// is not checked here.
package syntax
