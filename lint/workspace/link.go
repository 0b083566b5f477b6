package workspace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs/dialect"
)

// link is what one document of a config, or one launch command, leads to, and where it stands.
type link struct {
	files   []string         // settings files of the project that it names
	paths   []string         // files in which its parts stand
	program string           // the Python file of the project that it starts, or ""
	dialect *dialect.Dialect // of the first part of a document
	at      position
}

// position tells how one document or command is made again without the others of its file.
type position struct {
	index int // of the tree in the file, or of the command in the script
	inner int // of a script that this command runs, the number of the command
	left  int // scripts that could be run still when it was come to
}

// kept are answers that a View holds also over a Reset: names of files, and little else. What a script of hundreds of commands names is
// asked for with each of the hundreds of configs that it names, and that of a file of hundreds of documents with each that one of them
// names; where a module lies is asked for by all its neighbours, and the release of a package by all the files below a folder.
type kept struct {
	documents, commands map[string][]link
	located             map[importKey]string
	packages            map[packageKey]bool // whether a folder holds one
	tops, projects      map[string]string   // settingsTop and projectRoot, by folder
	importers           map[string][]string // DirectImporters
	launchers           map[string][]string
	imports             map[[2]string]bool // whether the first file imports the second
	pins                map[pinKey]Pin     // by folder
	pinned              map[string][]pinFile
	count               int // of answers, and of the links, files and places in them
}

// maxKept bounds what is held; with more, all is let go and worked out again when asked for.
const maxKept = 1 << 16

// makeRoom counts an answer that is to be kept, with so many links or files in it.
func (k *kept) makeRoom(more int) {
	if k.count += 1 + more; k.count > maxKept || k.documents == nil {
		*k = kept{documents: map[string][]link{}, commands: map[string][]link{}, located: map[importKey]string{}, packages: map[packageKey]bool{}, tops: map[string]string{}, projects: map[string]string{},
			importers: map[string][]string{}, launchers: map[string][]string{}, imports: map[[2]string]bool{}, pins: map[pinKey]Pin{}, pinned: map[string][]pinFile{}, count: 1 + more}
	}
}

// maxHeld bounds the files whose documents or commands a View holds: a script may name hundreds of configs, each with its tree.
const maxHeld = 128

// hold remembers what was made of a file, in place of all the others where those are many.
func hold[T any](all *map[string][]T, name string, made []T) {
	if *all == nil || len(*all) >= maxHeld {
		*all = map[string][]T{}
	}
	(*all)[name] = made
}

// held is what was made of a file, made and held when it is asked for first.
func held[T any](all *map[string][]T, name string, make func() []T) []T {
	made, known := (*all)[name]
	if !known {
		made = make()
		hold(all, name, made)
	}
	return made
}

// commands are the launch commands of a script, with the configs that the script itself writes. A script of the project that it
// runs counts with its own commands.
func (v *View) commands(name string) []*command {
	return held(&v.settings.commands, name, func() []*command {
		left := maxScriptRuns
		return v.commandsOf(name, nil, &left, -1)
	})
}

// command is the one of a script that a link is of; nil where the script has changed since.
func (v *View) command(name string, l link) *command {
	commands, known := v.settings.commands[name]
	if !known {
		one := name + "\x00" + strconv.Itoa(l.at.index)
		if commands, known = v.settings.nested[one]; !known {
			left := l.at.left
			if commands = v.commandsOf(name, nil, &left, l.at.index); len(commands) > 1 {
				hold(&v.settings.nested, one, commands)
			}
		}
	}
	inner := 0
	for _, c := range commands {
		if c.at.index != l.at.index {
			continue
		}
		if inner == l.at.inner {
			return c
		}
		inner++
	}
	return nil
}

// document are the parts of the document that a link is of; none where the file has changed since.
func (v *View) document(name string, l link) []*Part {
	documents, known := v.settings.documents[name]
	if !known {
		documents = v.documentsOf(name, l.at.index)
	}
	for _, document := range documents {
		if document.index == l.at.index {
			return document.parts
		}
	}
	return nil
}

// documents are those of a config file that are of a known dialect.
func (v *View) documents(name string) []document {
	return held(&v.settings.documents, name, func() []document { return v.documentsOf(name, -1) })
}

// documentLinks are the links of the documents of a config, in their order.
func (v *View) documentLinks(name string) []link {
	links, known := v.kept.documents[name]
	if known {
		return links
	}
	for _, document := range v.documents(name) {
		links = append(links, link{files: v.references(document.parts), paths: pathsOf(document.parts), dialect: document.parts[0].Dialect, at: position{index: document.index}})
	}
	if !v.kindOf(name).IsPython() { // whose parts belong to a module, which a Reset lets go
		v.kept.makeRoom(len(links))
		v.kept.documents[name] = links
	}
	return links
}

// commandLinks are the links of the launch commands of a script, in their order.
func (v *View) commandLinks(name string) []link {
	links, known := v.kept.commands[name]
	if known {
		return links
	}
	for _, command := range v.commands(name) {
		l := link{files: command.files, paths: pathsOf(command.parts), program: command.program, at: command.at}
		if n := len(links); n > 0 && links[n-1].at.index == l.at.index {
			l.at.inner = links[n-1].at.inner + 1
		}
		links = append(links, l)
	}
	v.kept.makeRoom(len(links))
	v.kept.commands[name] = links
	return links
}

func pathsOf(parts []*Part) (paths []string) {
	for _, part := range parts {
		if !slices.Contains(paths, part.Path) {
			paths = append(paths, part.Path)
		}
	}
	return paths
}

// names reports whether a file names a settings file.
func (v *View) names(name, settings string) bool {
	has := func(l link) bool { return slices.Contains(l.files, settings) }
	return slices.ContainsFunc(v.documentLinks(name), has) || v.commandsMayName(settings) && slices.ContainsFunc(v.commandLinks(name), has)
}

// commandsMayName is the cheap question before scripts are read: launch commands name settings files, and programs that state one run.
func (v *View) commandsMayName(file string) bool {
	return isSettingsName(file) || strings.HasSuffix(file, ".py") && len(v.pythonParts(file)) == 1
}

// reaches reports whether a run that begins with a link may have parts of the named file: a run is dear to assemble.
func (v *View) reaches(from link, name string) bool {
	if slices.Contains(from.paths, name) || slices.Contains(from.files, name) {
		return true
	}
	var seen map[string]bool
	for queue := from.files; len(queue) > 0; queue = queue[1:] {
		links := v.documentLinks(queue[0])
		if len(links) == 0 || seen[queue[0]] {
			continue
		}
		if seen == nil {
			seen, queue = map[string]bool{}, slices.Clip(queue)
		}
		seen[queue[0]] = true
		for _, l := range links {
			if slices.Contains(l.paths, name) || slices.Contains(l.files, name) {
				return true
			}
			queue = append(queue, l.files...)
		}
	}
	return false
}
