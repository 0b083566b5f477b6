package session

import (
	"github.com/trainvet/trainvet/lint/source"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// Reader converts between places in the files of one project and what editors show of them.
type Reader struct {
	state   *State
	project *Project
	texts   map[string]*Text
}

// Reader prepares conversions for the files of a project.
func (st *State) Reader(p *Project) *Reader {
	return &Reader{st, p, map[string]*Text{}}
}

// Location is where an editor shows a span of a file.
func (r *Reader) Location(file *source.File, span source.Span) protocol.Location {
	absolute := r.project.Absolute(file.Path)
	if book := r.state.BookOf(absolute); book != nil {
		if location, ok := r.inCell(book, file, span); ok {
			return location
		}
	}
	u := URIOf(absolute)
	if doc := r.state.Document(u); doc != nil {
		u = doc.Shown
	} else {
		for _, doc := range r.state.docs { // what is on no disk
			if doc.Path == absolute && doc.Book == "" {
				u = doc.Shown
			}
		}
	}
	start, end := offsets(file, span)
	return protocol.Location{URI: u, Range: r.text(file).Range(start, end, r.state.Encoding)}
}

// Place is Location for a place.
func (r *Reader) Place(at source.Place) (protocol.Location, bool) {
	file := r.project.File(at.Path)
	if file == nil {
		return protocol.Location{}, false
	}
	return r.Location(file, at.Span), true
}

// Range is the range of a span in the document that shows it.
func (r *Reader) Range(file *source.File, span source.Span) protocol.Range {
	return r.Location(file, span).Range
}

// offsets are the ends of a span in the text that editors show.
func offsets(file *source.File, span source.Span) (start, end int) {
	if file.Latin1 {
		return int(span.Start), int(max(span.Start, span.End))
	}
	raw := file.RawSpan(span)
	return int(raw.Start), int(max(raw.Start, raw.End))
}

// text is the whole text that an editor shows of a file.
func (r *Reader) text(file *source.File) *Text {
	if text := r.texts[file.Path]; text != nil {
		return text
	}
	var text *Text
	if doc := r.state.docs[URIOf(r.project.Absolute(file.Path))]; doc != nil && doc.Text.String() == string(file.Raw) {
		text = doc.Text
	} else if file.Latin1 {
		text = NewText(string(file.Text))
	} else {
		text = NewText(string(file.Raw))
	}
	r.texts[file.Path] = text
	return text
}

// inCell is the place of a span in the document of the cell that it starts in.
func (r *Reader) inCell(book *Notebook, file *source.File, span source.Span) (protocol.Location, bool) {
	number, start, end := cellAt(file, span.Start)
	if number < 1 || number > len(book.Cells) {
		return protocol.Location{}, false
	}
	doc := r.state.docs[book.Cells[number-1].Document]
	if doc == nil {
		return protocol.Location{}, false
	}
	from, to := int(span.Start-start), int(min(max(span.End, span.Start), end)-start)
	return protocol.Location{URI: doc.Shown, Range: doc.Text.Range(from, to, r.state.Encoding)}, true
}

// cellAt is the number of the cell that holds an offset, from 1, and where its text starts and ends in the text of the file.
func cellAt(file *source.File, offset uint32) (number int, start, end uint32) {
	for _, segment := range file.Segments {
		if int(segment.Cell) != number {
			if number > 0 && offset < segment.Text.Start {
				return number, start, end
			}
			number, start = int(segment.Cell), segment.Text.Start
		}
		end = segment.Text.End
	}
	return number, start, end
}

// Find gives the file of the project that a document shows, and the offset in its text of a position; false where it cannot be read.
func (st *State) Find(u uri.URI, at protocol.Position) (p *Project, file *source.File, offset uint32, ok bool) {
	doc := st.Document(u)
	if doc == nil {
		return nil, nil, 0, false
	}
	p, name := st.ProjectOf(doc.Path)
	if p == nil {
		return nil, nil, 0, false
	}
	if file = p.File(name); file == nil {
		return nil, nil, 0, false
	}
	raw := uint32(doc.Text.Offset(at, st.Encoding))
	if doc.Book == "" {
		return p, file, textOffset(file, raw), true
	}
	book := st.books[doc.Book]
	if book == nil {
		return nil, nil, 0, false
	}
	for i, cell := range book.Cells {
		if cell.Document == doc.URI {
			for _, segment := range file.Segments {
				if int(segment.Cell) == i+1 {
					return p, file, segment.Text.Start + raw, true
				}
			}
		}
	}
	return nil, nil, 0, false
}

// textOffset is the offset in the text of what stands at an offset of the raw bytes; in a notebook, that of the next cell text.
func textOffset(file *source.File, raw uint32) uint32 {
	if len(file.Segments) == 0 {
		return raw
	}
	for _, segment := range file.Segments {
		if raw < segment.Raw.Start {
			return segment.Text.Start
		}
		if raw <= segment.Raw.End {
			if segment.Raw.Len() == segment.Text.Len() {
				return segment.Text.Start + raw - segment.Raw.Start
			}
			return segment.Text.Start
		}
	}
	return uint32(len(file.Text))
}
