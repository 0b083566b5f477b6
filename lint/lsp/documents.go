package lsp

import (
	"context"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// DidOpen takes in a document.
func (s *server) DidOpen(ctx context.Context, params *protocol.DidOpenTextDocumentParams) error {
	d := params.TextDocument
	s.session.Open(clone(d.URI), spelled(ctx)(d.URI), strings.Clone(string(d.LanguageID)), d.Version, strings.Clone(d.Text))
	s.check()
	return nil
}

// rawKey is the key under which a context holds the parameters of a message that opens documents.
type rawKey struct{}

// spelled gives the URIs of documents that a message opens as the client wrote them: package protocol brings all into one form, but
// clients may know documents by their own spelling alone.
func spelled(ctx context.Context) func(uri.URI) uri.URI {
	type item struct {
		URI string `json:"uri"`
	}
	var message struct {
		One    item   `json:"textDocument"`
		Cells  []item `json:"cellTextDocuments"`
		Change struct {
			Cells struct {
				Structure struct {
					Opened []item `json:"didOpen"`
				} `json:"structure"`
			} `json:"cells"`
		} `json:"change"`
	}
	written := map[uri.URI]uri.URI{}
	if raw, ok := ctx.Value(rawKey{}).([]byte); ok && protocol.Unmarshal(raw, &message) == nil {
		for _, one := range append(append(message.Cells, message.Change.Cells.Structure.Opened...), message.One) {
			if canonical, err := uri.Parse(one.URI); err == nil {
				written[canonical] = clone(uri.URI(one.URI))
			}
		}
	}
	return func(u uri.URI) uri.URI {
		if shown, ok := written[u]; ok {
			return shown
		}
		return clone(u)
	}
}

// clone is a URI that keeps no message alive.
func clone(u uri.URI) uri.URI { return uri.URI(strings.Clone(string(u))) }

// DidChange edits a document.
func (s *server) DidChange(_ context.Context, params *protocol.DidChangeTextDocumentParams) error {
	d := params.TextDocument
	if !s.session.Change(d.URI, d.Version, changes(params.ContentChanges)) {
		s.logf("didChange: %s is not open", d.URI)
	}
	s.check()
	return nil
}

func changes(events []protocol.TextDocumentContentChangeEvent) []session.Change {
	made := make([]session.Change, 0, len(events))
	for _, event := range events {
		switch event := event.(type) {
		case *protocol.TextDocumentContentChangePartial:
			made = append(made, session.Change{Range: &event.Range, Text: event.Text})
		case *protocol.TextDocumentContentChangeWholeDocument:
			made = append(made, session.Change{Text: strings.Clone(event.Text)})
		}
	}
	return made
}

// DidSave needs nothing: the text is known.
func (s *server) DidSave(context.Context, *protocol.DidSaveTextDocumentParams) error { return nil }

// DidClose lets the text on disk hold again.
func (s *server) DidClose(_ context.Context, params *protocol.DidCloseTextDocumentParams) error {
	s.session.Close(params.TextDocument.URI)
	s.check()
	return nil
}

// DidOpenNotebookDocument takes in a notebook with its cells.
func (s *server) DidOpenNotebookDocument(ctx context.Context, params *protocol.DidOpenNotebookDocumentParams) error {
	n := params.NotebookDocument
	s.session.OpenBook(clone(n.URI), n.Version, cells(n.Cells), cellTexts(ctx, params.CellTextDocuments))
	s.check()
	return nil
}

func cells(list []protocol.NotebookCell) []session.Cell {
	made := make([]session.Cell, len(list))
	for i, cell := range list {
		made[i] = session.Cell{Document: clone(cell.Document), Code: cell.Kind == protocol.NotebookCellKindCode}
	}
	return made
}

func cellTexts(ctx context.Context, list []protocol.TextDocumentItem) []*session.Document {
	shown := spelled(ctx)
	made := make([]*session.Document, len(list))
	for i, d := range list {
		made[i] = &session.Document{URI: clone(d.URI), Shown: shown(d.URI), Version: d.Version, Language: strings.Clone(string(d.LanguageID)), Text: session.NewText(strings.Clone(d.Text))}
	}
	return made
}

// DidChangeNotebookDocument edits a notebook.
func (s *server) DidChangeNotebookDocument(ctx context.Context, params *protocol.DidChangeNotebookDocumentParams) error {
	change := session.BookChange{Start: -1, Code: map[uri.URI]bool{}}
	if c := params.Change.Cells; c != nil {
		if list := c.Structure; list != nil {
			change.Start, change.Delete = int(list.Array.Start), int(list.Array.DeleteCount)
			change.Insert, change.Opened = cells(list.Array.Cells), cellTexts(ctx, list.DidOpen)
			for _, closed := range list.DidClose {
				change.Closed = append(change.Closed, clone(closed.URI))
			}
		}
		for _, cell := range c.Data {
			change.Code[clone(cell.Document)] = cell.Kind == protocol.NotebookCellKindCode
		}
		for _, edit := range c.TextContent {
			change.Edits = append(change.Edits, session.CellEdit{Document: clone(edit.Document.URI), Version: edit.Document.Version, Changes: changes(edit.Changes)})
		}
	}
	if !s.session.ChangeBook(params.NotebookDocument.URI, params.NotebookDocument.Version, change) {
		s.logf("notebookDocument/didChange: %s is not open", params.NotebookDocument.URI)
	}
	s.check()
	return nil
}

// DidSaveNotebookDocument needs nothing: the text is known.
func (s *server) DidSaveNotebookDocument(context.Context, *protocol.DidSaveNotebookDocumentParams) error {
	return nil
}

// DidCloseNotebookDocument lets the file on disk hold again.
func (s *server) DidCloseNotebookDocument(_ context.Context, params *protocol.DidCloseNotebookDocumentParams) error {
	s.session.CloseBook(params.NotebookDocument.URI)
	s.check()
	return nil
}

// DidChangeWatchedFiles takes in what changed on disk.
func (s *server) DidChangeWatchedFiles(ctx context.Context, params *protocol.DidChangeWatchedFilesParams) error {
	var changed, moved []string
	for _, event := range params.Changes {
		name, ok := session.PathOf(event.URI)
		switch {
		case !ok || slices.Contains(changed, name) && event.Type == protocol.FileChangeTypeChanged:
		case event.Type == protocol.FileChangeTypeChanged:
			changed = append(changed, name)
		default:
			moved = append(moved, name)
		}
	}
	s.session.Watched(changed, moved)
	s.check()
	s.refresh(ctx)
	return nil
}

// DidChangeWorkspaceFolders adds and removes folders.
func (s *server) DidChangeWorkspaceFolders(ctx context.Context, params *protocol.DidChangeWorkspaceFoldersParams) error {
	paths := func(list []protocol.WorkspaceFolder) (names []string) {
		for _, folder := range list {
			if name, ok := session.PathOf(folder.URI); ok {
				names = append(names, name)
			}
		}
		return names
	}
	s.session.Folders(paths(params.Event.Added), paths(params.Event.Removed))
	s.check()
	s.refresh(ctx)
	return nil
}

// DidChangeConfiguration needs nothing: settings are in files.
func (s *server) DidChangeConfiguration(context.Context, *protocol.DidChangeConfigurationParams) error {
	return nil
}

// refresh tells the client to ask again about what it shows.
func (s *server) refresh(ctx context.Context) {
	if s.caps.pull && s.caps.refresh {
		s.ask(ctx, s.client.DiagnosticRefresh)
	}
	if s.caps.refreshHints {
		s.ask(ctx, s.client.InlayHintRefresh)
	}
	if s.caps.refreshLenses {
		s.ask(ctx, s.client.CodeLensRefresh)
	}
}
