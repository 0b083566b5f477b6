// Package session is what the language server knows: the texts that editors show, and the projects around them.
//
// A State is immutable: a request that took one is answered about that moment, whatever arrives meanwhile. Only notifications
// make the next one, one after another, in the order in which they arrive.
package session

import (
	"context"
	"path"
	"slices"
	"sync"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"go.lsp.dev/uri"
)

// Document is a text that an editor shows.
type Document struct {
	URI      uri.URI // its key
	Shown    uri.URI // as the editor spells it, who may know it by that alone
	Path     string  // absolute; of what is on no disk, one that only stands for it
	Version  int32
	Language string
	Text     *Text
	Book     uri.URI // the notebook of which it is a cell; "" for others

	edited int // the state that brought this text
}

// Edited grows with every change: of two documents, the one with the higher number was changed last.
func (d *Document) Edited() int { return d.edited }

// State is one moment of a session.
type State struct {
	Encoding Encoding
	Number   int // of the states so far

	rules    ruleSet
	docs     map[uri.URI]*Document
	books    map[uri.URI]*Notebook
	projects []*Project // the folders of the workspace, then those made for other documents
}

// Session holds the newest state.
type Session struct {
	mu    sync.Mutex
	state *State
}

// New is a session without folders and documents.
func New(rules []*lint.Rule, declare func(lint.Declared) (*lint.Rule, error), release string) *Session {
	return &Session{state: &State{rules: ruleSet{rules, declare, release}}}
}

// ruleSet are the rules, how those of the settings are made, and the release that they are of.
type ruleSet struct {
	all     []*lint.Rule
	declare func(lint.Declared) (*lint.Rule, error)
	release string
}

// State is the newest state.
func (s *Session) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// update makes the next state. Change gets a copy whose maps and lists are its own. Who calls it must wake the checker, which drops what
// it does for the state before.
func (s *Session) update(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.state
	next.Number++
	next.docs = make(map[uri.URI]*Document, len(s.state.docs)+1)
	for key, doc := range s.state.docs {
		next.docs[key] = doc
	}
	next.books = make(map[uri.URI]*Notebook, len(s.state.books))
	for key, book := range s.state.books {
		next.books[key] = book
	}
	next.projects = slices.Clone(s.state.projects)
	change(&next)
	s.state = &next
}

// Start sets the encoding and the folders of the workspace, by their absolute paths.
func (s *Session) Start(encoding Encoding, folders []string) {
	s.update(func(st *State) {
		st.Encoding = encoding
		st.addFolders(folders)
	})
}

// Folders adds and removes folders of the workspace.
func (s *Session) Folders(added, removed []string) {
	s.update(func(st *State) {
		st.projects = slices.DeleteFunc(st.projects, func(p *Project) bool { return p.Loose || slices.Contains(removed, p.Root) })
		st.addFolders(added)
		for _, doc := range st.Documents() {
			st.overlay(doc)
		}
	})
}

func (st *State) addFolders(folders []string) {
	for _, folder := range folders {
		if !slices.ContainsFunc(st.projects, func(p *Project) bool { return p.Root == folder }) {
			st.projects = append(st.projects, newProject(folder, st.rules))
		}
	}
}

// Open takes in a document. One that is open already is replaced.
func (s *Session) Open(u, shown uri.URI, language string, version int32, text string) {
	s.update(func(st *State) {
		doc := &Document{URI: u, Shown: shown, Path: pathFor(u, language, st), Version: version, Language: language, Text: NewText(text), edited: st.Number}
		st.docs[u] = doc
		st.overlay(doc)
	})
}

// pathFor is the path of a document. What is on no disk gets one in the first folder, with the extension of its language.
func pathFor(u uri.URI, language string, st *State) string {
	if name, ok := PathOf(u); ok {
		return name
	}
	root := "/"
	if len(st.projects) > 0 {
		root = st.projects[0].Root
	}
	extension := map[string]string{"python": ".py", "json": ".json", "jsonc": ".jsonc", "yaml": ".yaml", "toml": ".toml", "shellscript": ".sh"}[language]
	name := path.Base("/" + string(u))
	if path.Ext(name) == "" {
		name += extension
	}
	return path.Join(root, name)
}

// Change edits a document; false where none of that name is open.
func (s *Session) Change(u uri.URI, version int32, changes []Change) bool {
	known := false
	s.update(func(st *State) {
		old := st.docs[u]
		if known = old != nil; !known {
			return
		}
		doc := *old
		doc.Version, doc.Text, doc.edited = version, old.Text.Apply(changes, st.Encoding), st.Number
		st.docs[u] = &doc
		if doc.Book != "" {
			st.overlayBook(doc.Book)
		} else {
			st.overlay(&doc)
		}
	})
	return known
}

// Close drops a document: the text on disk holds again.
func (s *Session) Close(u uri.URI) (doc *Document) {
	s.update(func(st *State) {
		if doc = st.docs[u]; doc == nil {
			return
		}
		delete(st.docs, u)
		st.fromDisk(doc.Path)
		st.projects = slices.DeleteFunc(st.projects, func(p *Project) bool {
			return p.Loose && !slices.ContainsFunc(st.Documents(), func(d *Document) bool { _, in := p.Name(d.Path); return in })
		})
	})
	return doc
}

// Watched tells that files were changed, and which files and folders came or went.
func (s *Session) Watched(changed, moved []string) {
	s.update(func(st *State) {
		shown := map[string]bool{}
		for _, doc := range st.docs {
			shown[doc.Path] = true
		}
		for _, name := range changed {
			if !shown[name] {
				st.fromDisk(name)
			}
		}
		moved = slices.DeleteFunc(slices.Clone(moved), func(name string) bool { return shown[name] })
		if len(moved) == 0 {
			return
		}
		for i, p := range st.projects {
			var names []string
			for _, absolute := range moved {
				if name, in := p.Name(absolute); in {
					names = append(names, name)
				}
			}
			if len(names) == 0 {
				continue
			}
			p = p.forget(names)
			for _, absolute := range moved {
				if p.settings.Uses(absolute) {
					p = p.next().settled(absolute, nil)
				}
			}
			st.projects[i] = p
		}
		for _, doc := range st.Documents() { // a listing may have dropped what only the editor knows
			st.overlay(doc)
		}
	})
}

// fromDisk lets the text on disk hold for a file, or that there is none.
func (st *State) fromDisk(absolute string) {
	for i, p := range st.projects {
		name, in := p.Name(absolute)
		if !in {
			continue
		}
		raw, err := p.read(absolute)
		switch {
		case err != nil || decodes(name, raw) == nil:
			st.projects[i] = p.withoutText(absolute)
		case p.snapshot.Kind(name) == workspace.Absent: // new: folders look different too
			st.projects[i] = p.withoutText(absolute)
		default:
			st.projects[i] = p.withFile(absolute, decodes(name, raw))
		}
	}
}

func decodes(name string, raw []byte) *source.File {
	file, err := source.New(name, raw)
	if err != nil {
		return nil
	}
	return file
}

// overlay lets the text of a document hold in every project around it, and makes one where there is none.
func (st *State) overlay(doc *Document) {
	if doc.Book != "" {
		st.overlayBook(doc.Book)
		return
	}
	st.text(doc.Path, kindOf(doc.Path, doc.Language, doc.Text.String()), doc.Text.String())
}

func (st *State) text(absolute string, kind source.Kind, text string) {
	held := false
	for i, p := range st.projects {
		if _, in := p.Name(absolute); in {
			st.projects[i] = p.withText(absolute, kind, text, true)
			held = true
		}
	}
	if !held {
		p := newProject(looseRoot(absolute), st.rules)
		p.Loose = true
		st.projects = append(st.projects, p.withText(absolute, kind, text, true))
	}
}

// looseRoot is the folder from which a file outside of the workspace is checked: the top of its checkout, or the nearest one above
// it with settings, or its own.
func looseRoot(absolute string) string {
	own := path.Dir(absolute)
	for folder := own; ; folder = path.Dir(folder) {
		if (workspace.Disk{}).Kind(path.Join(folder, ".git")) != workspace.Absent {
			return folder
		}
		if path.Dir(folder) == folder {
			break
		}
	}
	for folder := own; ; folder = path.Dir(folder) {
		for _, name := range []string{"trainvet.toml", ".trainvet.toml"} {
			if (workspace.Disk{}).Kind(path.Join(folder, name)) == workspace.RegularFile {
				return folder
			}
		}
		if path.Dir(folder) == folder {
			return own
		}
	}
}

// Document is the open document of that name, or nil.
func (st *State) Document(u uri.URI) *Document {
	if doc := st.docs[u]; doc != nil {
		return doc
	}
	if name, ok := PathOf(u); ok { // spelled otherwise
		for _, doc := range st.docs {
			if doc.Path == name && doc.Book == "" {
				return doc
			}
		}
	}
	return nil
}

// Shown is the open document that the editor spells so, or nil.
func (st *State) Shown(u uri.URI) *Document {
	for _, doc := range st.docs {
		if doc.Shown == u {
			return doc
		}
	}
	return nil
}

// Documents are the open documents, cells of notebooks included; the one that was changed last comes first.
func (st *State) Documents() []*Document {
	docs := make([]*Document, 0, len(st.docs))
	for _, doc := range st.docs {
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b *Document) int {
		if a.edited != b.edited {
			return b.edited - a.edited
		}
		if a.URI < b.URI {
			return -1
		}
		return 1
	})
	return docs
}

// IsShown reports whether an open document shows a file.
func (st *State) IsShown(absolute string) bool {
	for _, doc := range st.docs {
		if doc.Path == absolute {
			return true
		}
	}
	return false
}

// ShownBy are the open documents that show a file: one, or all cells of a notebook.
func (st *State) ShownBy(absolute string) []*Document {
	var docs []*Document
	for _, doc := range st.Documents() {
		if doc.Path == absolute {
			docs = append(docs, doc)
		}
	}
	return docs
}

// Projects are the folders of the workspace, and those made for documents outside of them.
func (st *State) Projects() []*Project { return st.projects }

// ProjectOf is the innermost project that holds an absolute path, with the name of the file there; nil where none does.
func (st *State) ProjectOf(absolute string) (project *Project, name string) {
	for _, p := range st.projects {
		if relative, in := p.Name(absolute); in && (project == nil || len(p.Root) > len(project.Root)) {
			project, name = p, relative
		}
	}
	return project, name
}

// Findings are those of one document.
func (st *State) Findings(ctx context.Context, absolute string) (*Project, *source.File, []check.Finding, error) {
	p, name := st.ProjectOf(absolute)
	if p == nil {
		return nil, nil, nil, nil
	}
	report, err := p.Check(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	return p, p.File(name), report.Findings, nil
}
