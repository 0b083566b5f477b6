package session

import (
	"encoding/json"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
	"go.lsp.dev/uri"
)

// Notebook is one that the editor shows cell by cell; each cell is a document of its own.
type Notebook struct {
	URI     uri.URI
	Path    string
	Version int32
	Cells   []Cell
}

// Cell is one cell of a notebook.
type Cell struct {
	Document uri.URI
	Code     bool
}

// OpenBook takes in a notebook; the texts of its cells are documents already, or follow.
func (s *Session) OpenBook(u uri.URI, version int32, cells []Cell, texts []*Document) {
	s.update(func(st *State) {
		name, ok := PathOf(u)
		if !ok {
			name = pathFor(u, "", st) + ".ipynb"
		}
		st.books[u] = &Notebook{u, name, version, cells}
		st.takeCells(u, name, texts)
		st.overlayBook(u)
	})
}

func (st *State) takeCells(book uri.URI, name string, texts []*Document) {
	for _, doc := range texts {
		doc.Book, doc.Path, doc.edited = book, name, st.Number
		st.docs[doc.URI] = doc
	}
}

// CellEdit is the change of the text of a cell.
type CellEdit struct {
	Document uri.URI
	Version  int32
	Changes  []Change
}

// BookChange is what changes in a notebook.
type BookChange struct {
	Start, Delete int // of the list of cells; Start -1: the list stays
	Insert        []Cell
	Opened        []*Document
	Closed        []uri.URI
	Code          map[uri.URI]bool // cells whose kind is now this
	Edits         []CellEdit
}

// ChangeBook edits a notebook; false where none of that name is open.
func (s *Session) ChangeBook(u uri.URI, version int32, change BookChange) bool {
	known := false
	s.update(func(st *State) {
		old := st.books[u]
		if known = old != nil; !known {
			return
		}
		book := *old
		book.Version, book.Cells = version, slices.Clone(old.Cells)
		if change.Start >= 0 {
			start := min(change.Start, len(book.Cells))
			end := min(start+max(change.Delete, 0), len(book.Cells))
			book.Cells = slices.Replace(book.Cells, start, end, change.Insert...)
		}
		for i, cell := range book.Cells {
			if code, told := change.Code[cell.Document]; told {
				book.Cells[i].Code = code
			}
		}
		for _, closed := range change.Closed {
			delete(st.docs, closed)
		}
		st.takeCells(u, book.Path, change.Opened)
		for _, edit := range change.Edits {
			if cell := st.docs[edit.Document]; cell != nil && cell.Book == u {
				doc := *cell
				doc.Version, doc.Text, doc.edited = edit.Version, cell.Text.Apply(edit.Changes, st.Encoding), st.Number
				st.docs[edit.Document] = &doc
			}
		}
		st.books[u] = &book
		st.overlayBook(u)
	})
	return known
}

// CloseBook drops a notebook with its cells, and gives those.
func (s *Session) CloseBook(u uri.URI) (cells []uri.URI) {
	s.update(func(st *State) {
		book := st.books[u]
		if book == nil {
			return
		}
		delete(st.books, u)
		for _, cell := range book.Cells {
			delete(st.docs, cell.Document)
			cells = append(cells, cell.Document)
		}
		st.fromDisk(book.Path)
	})
	return cells
}

// overlayBook lets the cells hold in place of the file: as the JSON that an editor would save of them.
func (st *State) overlayBook(u uri.URI) {
	book := st.books[u]
	if book == nil {
		return
	}
	type cell struct {
		Kind   string `json:"cell_type"`
		Source string `json:"source"`
	}
	content := struct {
		Cells  []cell `json:"cells"`
		Format int    `json:"nbformat"`
	}{Cells: []cell{}, Format: 4}
	for _, c := range book.Cells {
		next := cell{Kind: "markdown"}
		if doc := st.docs[c.Document]; doc != nil {
			next.Source = doc.Text.String()
		}
		if c.Code {
			next.Kind = "code"
		}
		content.Cells = append(content.Cells, next)
	}
	text, err := json.Marshal(content)
	if err == nil {
		st.text(book.Path, source.Notebook, string(text))
	}
}

// BookOf is the notebook whose file has that path, or nil.
func (st *State) BookOf(absolute string) *Notebook {
	for _, book := range st.books {
		if book.Path == absolute {
			return book
		}
	}
	return nil
}

// Book is the open notebook of that name, or nil.
func (st *State) Book(u uri.URI) *Notebook { return st.books[u] }
