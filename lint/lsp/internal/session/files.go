package session

import (
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"go.lsp.dev/uri"
)

// rooted is the file system as it looks from a folder: names that are not absolute are looked up from there, as `trainvet check`
// does it when it is started there.
type rooted struct {
	root  string
	files *workspace.Confined
}

func newRooted(root string) rooted { return rooted{root, workspace.NewConfined(root)} }

func (r rooted) at(name string) string {
	if isAbsolute(name) {
		return name
	}
	return path.Join(r.root, name)
}

// ReadFile implements workspace.FS.
func (r rooted) ReadFile(name string) ([]byte, error) { return r.files.ReadFile(r.at(name)) }

// ReadDir implements workspace.FS.
func (r rooted) ReadDir(name string) ([]fs.DirEntry, error) {
	if name = r.at(name); isDiskRoot(r.root) && name != r.root {
		return nil, nil // a document at the root of a disk does not make the whole disk its project
	}
	return r.files.ReadDir(name)
}

// Kind implements workspace.FS.
func (r rooted) Kind(name string) workspace.EntryKind { return r.files.Kind(r.at(name)) }

func isDiskRoot(folder string) bool {
	return path.Dir(folder) == folder || len(folder) == 3 && folder[1:] == ":/"
}

func isAbsolute(name string) bool {
	return source.IsAbsolute(name)
}

// PathOf is the absolute path of a file URI, with forward slashes; false for other schemes.
func PathOf(u uri.URI) (string, bool) {
	parsed, err := url.Parse(string(u))
	if err != nil || !strings.EqualFold(parsed.Scheme, "file") || parsed.Path == "" {
		return "", false
	}
	name := parsed.Path
	if parsed.Host != "" && parsed.Host != "localhost" {
		name = "//" + parsed.Host + name
	} else if len(name) > 2 && name[0] == '/' && name[2] == ':' {
		name = name[1:] // file:///c:/x
	}
	if len(name) > 1 && name[1] == ':' {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return path.Clean(name), true
}

// URIOf is the URI of an absolute path.
func URIOf(name string) uri.URI {
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	plain := (&url.URL{Scheme: "file", Path: name}).String()
	if canonical, err := uri.Parse(plain); err == nil { // as those of messages are, so that both are found under one key
		return canonical
	}
	return uri.URI(plain)
}

// below is name relative to a folder, and whether it lies in it. Both are clean and absolute.
func below(folder, name string) (string, bool) {
	if folder == "/" {
		return strings.TrimPrefix(name, "/"), true
	}
	relative, inside := strings.CutPrefix(name, folder+"/")
	return relative, inside && relative != ""
}

// kindOf is the kind of a document: by its name, or else by what the editor takes it for.
func kindOf(name, language, text string) source.Kind {
	if kind := source.KindOf(name, []byte(text[:min(len(text), 128)])); kind != source.Other {
		return kind
	}
	switch language {
	case "python":
		return source.Python
	case "json", "jsonc", "json5", "hjson":
		return source.JSON
	case "yaml":
		return source.YAML
	case "toml":
		return source.TOML
	case "shellscript", "sh", "bash", "zsh":
		return source.Shell
	}
	return source.Other
}

// fileOf is an editor's text as a file of that name. It is decoded already, so that a coding cookie means nothing. Nil: it cannot be
// read, as `trainvet check` could not read it either.
func fileOf(name string, kind source.Kind, text string) *source.File {
	raw := []byte(text)
	if kind == source.Python && len(text) <= source.MaxPython && !strings.HasPrefix(text, "\uFEFF") && strings.IndexByte(text, 0) < 0 {
		return &source.File{Path: name, Kind: kind, Text: raw, Raw: raw}
	}
	file, err := source.Decode(name, kind, raw)
	if err != nil {
		return nil
	}
	return file
}
