package workspace

import (
	"path"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
)

// programOf is the Python file of the project that a command starts, or "". A path that begins with the folder of the
// script itself, as $(dirname "$0") gives it, is known.
func (v *View) programOf(script string, command *configs.Command) string {
	switch {
	case command.Program == "" || command.Module:
		return ""
	case !command.ProgramOpen:
		return v.resolve(script, command.Program)
	}
	file, known := scriptPath(command.Program, script, maxNestedPaths)
	if known && inside(v.settingsTop(script), file) && v.Is(file) == RegularFile {
		return file
	}
	return ""
}

// starts reports whether a command starts a Python file.
func (v *View) starts(script string, command *configs.Command, file string) bool {
	return path.Base(command.Program) == path.Base(file) && v.likelyProgram(script, command) == file
}

// likelyProgram is programOf, and for a path that begins with what is not known the file that its rest names from a
// folder of the script, where no other file of the project ends so.
func (v *View) likelyProgram(script string, command *configs.Command) string {
	found := v.programOf(script, command)
	if found != "" || command.Module || !command.ProgramOpen {
		return found
	}
	if _, known := scriptPath(command.Program, script, maxNestedPaths); known {
		return "" // the folder of the script does not have it
	}
	_, rest := splitExpansion(command.Program)
	if rest = strings.TrimPrefix(rest, "/"); rest == "" || strings.ContainsAny(rest, "$`") {
		return ""
	}
	if found = v.resolve(script, rest); found != "" && v.another(script, rest, found) {
		return ""
	}
	return found
}

// Bounds of the search for files whose path ends in the same way.
const (
	maxNestedPaths  = 8
	maxFoldersAsked = 400
)

// another reports whether the project has a file besides one whose path ends in rest, or is too large to tell.
func (v *View) another(from, rest, besides string) bool {
	left := maxFoldersAsked
	return v.endsIn(v.settingsTop(from), "/"+rest, besides, &left)
}

func (v *View) endsIn(folder, rest, besides string, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	for _, entry := range v.Names(folder) {
		name, isFolder := strings.CutSuffix(entry, "/")
		full := source.Join(folder, name)
		switch {
		case strings.HasPrefix(name, ".") || name == "node_modules":
		case isFolder:
			if v.endsIn(full, rest, besides, left) {
				return true
			}
		case full != besides && strings.HasSuffix("/"+full, rest):
			return true
		}
	}
	return false
}

// scriptPath is what a text of the shell names that is built on the path of the script itself: $0, ${BASH_SOURCE[0]},
// and dirname, realpath, readlink, `cd ... && pwd` of such, with a rest. known is false for all else.
func scriptPath(text, script string, depth int) (file string, known bool) {
	text = strings.TrimSpace(strings.NewReplacer(`"`, "", `'`, "").Replace(text))
	head, rest := splitExpansion(text)
	if head == "" || depth <= 0 || strings.ContainsAny(rest, "$`") || rest != "" && rest[0] != '/' {
		return "", false
	}
	switch head {
	case "$0", "${0}", "$BASH_SOURCE", "${BASH_SOURCE}", "${BASH_SOURCE[0]}", "${BASH_SOURCE:-$0}", "${BASH_SOURCE[0]:-$0}":
		file = script
	case "${0%/*}", "${BASH_SOURCE%/*}", "${BASH_SOURCE[0]%/*}":
		file = source.Dir(script)
	default:
		inner, is := strings.CutPrefix(head, "$(")
		if !is {
			return "", false
		}
		words := strings.Fields(strings.NewReplacer("&&", " && ", ";", " ; ").Replace(strings.TrimSuffix(inner, ")")))
		if len(words) < 2 {
			return "", false
		}
		at := 1
		for at < len(words)-1 && strings.HasPrefix(words[at], "-") {
			at++
		}
		argument := strings.Join(words[at:], " ")
		if words[0] == "cd" {
			argument, _, is = strings.Cut(argument, " && pwd")
			if !is {
				if argument, _, is = strings.Cut(argument, " ; pwd"); !is {
					return "", false
				}
			}
			argument, _, _ = strings.Cut(argument, " >")
			argument, _, _ = strings.Cut(argument, " &>")
		}
		if file, known = scriptPath(argument, script, depth-1); !known {
			return "", false
		}
		switch words[0] {
		case "dirname":
			file = source.Dir(file)
		case "realpath", "readlink", "cd":
		default:
			return "", false
		}
	}
	return path.Join(file, rest), true
}

// splitExpansion cuts a text of the shell behind the expansion that it begins with; head is "" where it begins with
// none.
func splitExpansion(text string) (head, rest string) {
	text = strings.TrimLeft(text, `"'`)
	switch {
	case strings.HasPrefix(text, "$(") || strings.HasPrefix(text, "${"):
		depth := 0
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '(', '{':
				depth++
			case ')', '}':
				if depth--; depth == 0 {
					return text[:i+1], text[i+1:]
				}
			}
		}
	case strings.HasPrefix(text, "$"):
		end := 1
		for end < len(text) && inIdentifier(text[end]) {
			end++
		}
		return text[:end], text[end:]
	}
	return "", text
}
