package feature

import (
	"strconv"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"go.lsp.dev/protocol"
)

// maxSymbols bounds the entries that are listed of one config.
const maxSymbols = 5000

// Symbols are the keys of a config, each with those below it.
func Symbols(view *workspace.View, reader *session.Reader, file *source.File) []protocol.DocumentSymbol {
	switch file.Kind {
	case source.JSON, source.YAML, source.TOML:
	default:
		return []protocol.DocumentSymbol{}
	}
	s := symbols{reader, file, maxSymbols}
	list := []protocol.DocumentSymbol{}
	for _, tree := range view.Trees(file.Path) {
		list = append(list, s.below(tree.Root)...)
	}
	return list
}

type symbols struct {
	reader *session.Reader
	file   *source.File
	left   int
}

func (s *symbols) below(n *configs.Node) (list []protocol.DocumentSymbol) {
	if n == nil {
		return nil
	}
	for i := range n.Items {
		item := &n.Items[i]
		if item.Merge || item.Value == nil || s.left == 0 || !item.Value.Via.IsZero() && item.KeyAt.IsZero() {
			continue
		}
		s.left--
		name, at := item.Key, item.KeyAt.Span
		if n.Kind == configs.Sequence {
			name, at = strconv.Itoa(i), item.Value.At.Span
		}
		if name == "" {
			name = `""`
		}
		whole := at
		if item.Value.Via.IsZero() && item.Value.At.Path == s.file.Path && item.Value.At.Span.Start >= at.Start {
			whole = at.Cover(item.Value.At.Span)
		}
		symbol := protocol.DocumentSymbol{Name: name, Kind: symbolKind(item.Value), Range: s.reader.Range(s.file, whole), SelectionRange: s.reader.Range(s.file, at)}
		if item.Value.Kind == configs.Scalar {
			detail := shortened(item.Value.Raw)
			symbol.Detail = &detail
		} else if item.Value.Via.IsZero() { // what an alias stands for is listed where it is written
			symbol.Children = s.below(item.Value)
		}
		list = append(list, symbol)
	}
	return list
}

func symbolKind(n *configs.Node) protocol.SymbolKind {
	switch n.Kind {
	case configs.Mapping:
		return protocol.SymbolKindModule
	case configs.Sequence:
		return protocol.SymbolKindArray
	}
	if n.Style != configs.Plain {
		return protocol.SymbolKindString
	}
	switch n.Raw {
	case "true", "false", "True", "False":
		return protocol.SymbolKindBoolean
	case "null", "~", "", "None":
		return protocol.SymbolKindNull
	}
	if _, err := strconv.ParseFloat(n.Raw, 64); err == nil {
		return protocol.SymbolKindNumber
	}
	return protocol.SymbolKindString
}

// maxDetail bounds the text of a value that is shown beside its key, characters.
const maxDetail = 60

func shortened(text string) string {
	runes := []rune(text)
	if len(runes) > maxDetail {
		return string(runes[:maxDetail]) + "…"
	}
	return text
}

// Flat are symbols one after another, for clients that know no symbols within symbols.
func Flat(list []protocol.DocumentSymbol, container string, at protocol.Location) (flat protocol.SymbolInformationSlice) {
	for _, symbol := range list {
		at.Range = symbol.Range
		one := protocol.SymbolInformation{BaseSymbolInformation: protocol.BaseSymbolInformation{Name: symbol.Name, Kind: symbol.Kind}, Location: at}
		if container != "" {
			one.ContainerName = &container
		}
		flat = append(flat, one)
		flat = append(flat, Flat(symbol.Children, symbol.Name, at)...)
	}
	return flat
}
