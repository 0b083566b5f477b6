package lsp

import (
	"context"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/lsp/internal/feature"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"github.com/trainvet/trainvet/lint/source"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// document is a file that a request is about; false where the client shows none of that name, or where it cannot be read.
type document struct {
	state   *session.State
	project *session.Project
	reader  *session.Reader
	file    *source.File
	doc     *session.Document
}

func (s *server) document(ctx context.Context, u uri.URI) (d document, ok bool) {
	st := s.state(ctx)
	doc := st.Document(u)
	if doc == nil {
		return d, false
	}
	p, name := st.ProjectOf(doc.Path)
	if p == nil {
		return d, false
	}
	file := p.File(name)
	return document{st, p, st.Reader(p), file, doc}, file != nil
}

// findings are those of the file.
func (d *document) findings(ctx context.Context) ([]check.Finding, error) {
	_, _, findings, err := d.state.Findings(ctx, d.doc.Path)
	return findings, err
}

// shows reports whether a span lies in the document: of a notebook, each cell is one.
func (d *document) shows(span source.Span) bool {
	return d.reader.Location(d.file, span).URI == d.doc.Shown
}

// Hover says what a key means, and what the findings at a place are about.
func (s *server) Hover(ctx context.Context, params *protocol.HoverParams) (*protocol.Hover, error) {
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return nil, nil
	}
	_, _, offset, ok := d.state.Find(params.TextDocument.URI, params.Position)
	if !ok {
		return nil, nil
	}
	findings, err := d.findings(ctx)
	if err != nil {
		return nil, err
	}
	text, about := feature.Hover(d.project.View(ctx), d.file, offset, findings)
	if text == "" {
		return nil, ctx.Err()
	}
	at := d.reader.Range(d.file, about)
	content := &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: text}
	if !s.caps.markdown {
		content = &protocol.MarkupContent{Kind: protocol.MarkupKindPlainText, Value: feature.Plain(text)}
	}
	return &protocol.Hover{Contents: content, Range: &at}, ctx.Err()
}

// Completion proposes keys and values of a config.
func (s *server) Completion(ctx context.Context, params *protocol.CompletionParams) (protocol.CompletionResult, error) {
	list := &protocol.CompletionList{Items: []protocol.CompletionItem{}}
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return list, nil
	}
	_, _, offset, ok := d.state.Find(params.TextDocument.URI, params.Position)
	if !ok {
		return list, nil
	}
	proposals, replaced := feature.Complete(d.project.View(ctx), d.file, offset)
	at := d.reader.Range(d.file, replaced)
	for _, p := range proposals {
		item := protocol.CompletionItem{Label: p.Label, Kind: protocol.CompletionItemKindProperty, TextEdit: &protocol.TextEdit{Range: at, NewText: p.Insert}}
		if p.Value {
			item.Kind = protocol.CompletionItemKindEnumMember
		}
		if p.Detail != "" {
			item.Detail = protocol.NewOptional(p.Detail)
		}
		if p.More != "" {
			if s.caps.markdown {
				item.Documentation = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: p.More}
			} else {
				item.Documentation = protocol.String(feature.Plain(p.More))
			}
		}
		if p.Deprecated {
			item.Tags = []protocol.CompletionItemTag{protocol.CompletionItemTagDeprecated}
		}
		list.Items = append(list.Items, item)
	}
	return list, ctx.Err()
}

// InlayHint remarks on values of a config.
func (s *server) InlayHint(ctx context.Context, params *protocol.InlayHintParams) ([]protocol.InlayHint, error) {
	hints := []protocol.InlayHint{}
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return hints, nil
	}
	pad := true
	for _, hint := range feature.Hints(d.project.View(ctx), d.file) {
		span := source.Span{Start: hint.At, End: hint.At}
		at := d.reader.Range(d.file, span).Start
		if !within(params.Range, at) || !d.shows(span) {
			continue
		}
		next := protocol.InlayHint{Position: at, Label: protocol.String(hint.Label), PaddingLeft: &pad}
		if hint.More != "" {
			next.Tooltip = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: hint.More}
		}
		hints = append(hints, next)
	}
	return hints, ctx.Err()
}

// InlayHintResolve has nothing to add.
func (s *server) InlayHintResolve(_ context.Context, hint *protocol.InlayHint) (*protocol.InlayHint, error) {
	return hint, nil
}

func before(a, b protocol.Position) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Character < b.Character
}

func within(r protocol.Range, at protocol.Position) bool {
	return !before(at, r.Start) && !before(r.End, at)
}

// DocumentLink links the files that a config or script names, and the rules that suppressions name.
func (s *server) DocumentLink(ctx context.Context, params *protocol.DocumentLinkParams) ([]protocol.DocumentLink, error) {
	links := []protocol.DocumentLink{}
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return links, nil
	}
	for _, link := range feature.Links(d.project.View(ctx), d.file, s.options.Rules) {
		if !d.shows(link.At) {
			continue
		}
		target := uri.URI(link.URL)
		if link.File != "" {
			target = session.URIOf(d.project.Absolute(link.File))
		}
		links = append(links, protocol.DocumentLink{Range: d.reader.Range(d.file, link.At), Target: &target})
	}
	return links, ctx.Err()
}

// DocumentLinkResolve has nothing to add.
func (s *server) DocumentLinkResolve(_ context.Context, link *protocol.DocumentLink) (*protocol.DocumentLink, error) {
	return link, nil
}

// DocumentSymbol lists the keys of a config.
func (s *server) DocumentSymbol(ctx context.Context, params *protocol.DocumentSymbolParams) (protocol.DocumentSymbolResult, error) {
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return protocol.DocumentSymbolSlice{}, nil
	}
	list := feature.Symbols(d.project.View(ctx), d.reader, d.file)
	if !s.caps.hierarchy {
		return feature.Flat(list, "", protocol.Location{URI: d.doc.Shown}), ctx.Err()
	}
	return protocol.DocumentSymbolSlice(list), ctx.Err()
}

// CodeLens says above a config whether its runs fit.
func (s *server) CodeLens(ctx context.Context, params *protocol.CodeLensParams) ([]protocol.CodeLens, error) {
	lenses := []protocol.CodeLens{}
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return lenses, nil
	}
	argument, err := protocol.Marshal(protocol.String(d.doc.Shown))
	if err != nil {
		return nil, err
	}
	command := commandFit
	if s.caps.showMemory {
		command = commandMemory
	}
	for _, lens := range feature.Lenses(d.project.View(ctx), d.file) {
		lenses = append(lenses, protocol.CodeLens{Range: d.reader.Range(d.file, lens.At),
			Command: protocol.Command{Title: lens.Title, Command: command, Arguments: []protocol.LSPAny{argument}}})
	}
	return lenses, ctx.Err()
}

// CodeLensResolve has nothing to add.
func (s *server) CodeLensResolve(_ context.Context, lens *protocol.CodeLens) (*protocol.CodeLens, error) {
	return lens, nil
}

// wants reports whether a client that asks for some kinds of actions asks for this one. Kinds are hierarchical.
func wants(only []protocol.CodeActionKind, kind protocol.CodeActionKind) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(asked protocol.CodeActionKind) bool {
		return asked == "" || asked == kind || strings.HasPrefix(string(kind), string(asked)+".")
	})
}

// CodeAction offers what can be done about the findings of a range, which are found anew.
func (s *server) CodeAction(ctx context.Context, params *protocol.CodeActionParams) ([]protocol.CommandOrCodeAction, error) {
	offered := []protocol.CommandOrCodeAction{}
	d, ok := s.document(ctx, params.TextDocument.URI)
	if !ok {
		return offered, nil
	}
	findings, err := d.findings(ctx)
	if err != nil {
		return nil, err
	}
	a := feature.Actions{Context: ctx, State: d.state, Project: d.project, Reader: d.reader, File: d.file, Create: s.caps.create}
	add := func(title string, kind protocol.CodeActionKind, edits feature.Edits, preferred bool, about ...protocol.Diagnostic) {
		action := &protocol.CodeAction{Title: title, Kind: &kind, Edit: s.workspaceEdit(d.state, edits), Diagnostics: about}
		if preferred {
			action.IsPreferred = &preferred
		}
		offered = append(offered, action)
	}
	for _, finding := range findings {
		u, shown := feature.Diagnostic(d.reader, d.file, finding)
		if u != d.doc.Shown || before(shown.Range.End, params.Range.Start) || before(params.Range.End, shown.Range.Start) || !wants(params.Context.Only, protocol.CodeActionKindQuickFix) {
			continue
		}
		preferred := true // the first safe one of each finding
		for _, fix := range finding.Fixes {
			if edits, ok := a.Fix(fix); ok {
				title := fix.Title
				if fix.Safety == lint.Unsafe {
					title += " (unsafe)"
				}
				add(title, protocol.CodeActionKindQuickFix, edits, preferred && fix.Safety == lint.Safe, shown)
				preferred = preferred && fix.Safety != lint.Safe
			}
		}
		if edits, ok := a.IgnoreHere(finding); ok {
			add("Ignore "+finding.Rule.Name+" on this line", protocol.CodeActionKindQuickFix, edits, false, shown)
		}
		if edits, title, ok := a.IgnoreInSettings(finding); ok {
			add(title, protocol.CodeActionKindQuickFix, edits, false, shown)
		}
	}
	if wants(params.Context.Only, fixAll) {
		edits, any, err := a.FixAll()
		if err != nil {
			return nil, err
		}
		if any {
			add("Apply all safe fixes of trainvet", fixAll, edits, false)
		}
	}
	return offered, ctx.Err()
}

// CodeActionResolve has nothing to add.
func (s *server) CodeActionResolve(_ context.Context, action *protocol.CodeAction) (*protocol.CodeAction, error) {
	return action, nil
}

// workspaceEdit carries the versions of documents where the client can take that.
func (s *server) workspaceEdit(st *session.State, edits feature.Edits) *protocol.WorkspaceEdit {
	if !s.caps.documentChanges {
		return &protocol.WorkspaceEdit{Changes: edits.Texts}
	}
	var changes []protocol.DocumentChange
	for _, u := range edits.Made {
		ignore := true
		changes = append(changes, &protocol.CreateFile{Kind: "create", URI: u, Options: &protocol.CreateFileOptions{IgnoreIfExists: &ignore}})
	}
	for _, u := range edits.Order {
		change := &protocol.TextDocumentEdit{TextDocument: protocol.OptionalVersionedTextDocumentIdentifier{TextDocumentIdentifier: protocol.TextDocumentIdentifier{URI: u}}}
		if doc := st.Shown(u); doc != nil {
			change.TextDocument.Version = &doc.Version
		}
		for i := range edits.Texts[u] {
			change.Edits = append(change.Edits, &edits.Texts[u][i])
		}
		changes = append(changes, change)
	}
	return &protocol.WorkspaceEdit{DocumentChanges: changes}
}
