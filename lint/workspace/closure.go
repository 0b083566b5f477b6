package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxClosure bounds the files of the project that are followed from one, by what they import or by who imports them.
const maxClosure = 200

// Closure lists the Python files that run when a file is imported: itself, and what it imports from the project, directly or
// not, nearest first.
func (v *View) Closure(name string) []string {
	return reach(name, v.DirectImports)
}

// DirectImports lists the files of the project that a Python file itself imports.
func (v *View) DirectImports(name string) (files []string) {
	for _, i := range v.importsOf(name) {
		files = append(files, v.importedFiles(name, i)...)
	}
	return files
}

// reach follows a relation between files breadth first, up to maxClosure files.
func reach(start string, next func(string) []string) []string {
	files := []string{start}
	for at := 0; at < len(files) && len(files) < maxClosure; at++ {
		for _, file := range next(files[at]) {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// importedFiles are the files of the project that one imported name makes run.
func (v *View) importedFiles(from string, i imported) []string {
	var files []string
	if file := v.locate(from, i.module, i.level); file != "" {
		files = append(files, file)
	}
	if i.member != "" {
		if file := v.locate(from, join(i.module, i.member), i.level); file != "" {
			files = append(files, file)
		}
	}
	return files
}

// importsOf lists what a file imports; nothing for what is no Python file.
func (v *View) importsOf(name string) []imported {
	v.record(ReadFacts, name)
	file, err := v.Snapshot.File(name)
	if err != nil || !file.Kind.IsPython() {
		return nil
	}
	return v.store.traitsOf(file).takes()
}

// Importers lists the Python files of the project that import a file, directly or not, nearest first; the file itself is not
// among them.
func (v *View) Importers(name string) []string { return reach(name, v.DirectImporters)[1:] }

// DirectImporters lists the Python files of the project that import a file themselves.
func (v *View) DirectImporters(name string) []string {
	files, known := v.kept.importers[name]
	if known {
		return files
	}
	for _, other := range v.mayImport(name) {
		if v.imports(other, name) {
			files = append(files, other)
		}
	}
	v.kept.makeRoom(len(files))
	v.kept.importers[name] = slices.Clip(files)
	return files
}

// ImportedOnlyBy reports whether some file of the project imports a file, and every one that does is as wanted. May says of the text of
// one whether it can be: files that cannot are looked at first, since one of them that does import it is the answer.
func (v *View) ImportedOnlyBy(name string, may func(text []byte) bool, wanted func(*pyscan.Module) bool) bool {
	var left []string
	for _, other := range v.mayImport(name) {
		text := v.Text(other)
		switch {
		case text == nil:
		case may(text.Text):
			left = append(left, other)
		case v.imports(other, name):
			return false
		}
	}
	found := false
	for _, other := range left {
		if v.imports(other, name) {
			if !wanted(v.Module(other)) {
				return false
			}
			found = true
		}
	}
	return found
}

// moduleOf is the last name of a file as a module: that of its folder for a package.
func moduleOf(name string) string {
	stem := strings.TrimSuffix(path.Base(name), ".py")
	if stem == "__init__" {
		return path.Base(source.Dir(name))
	}
	return stem
}

// mayImport lists the files that import something of the name of a file.
func (v *View) mayImport(name string) []string {
	return slices.DeleteFunc(v.around(name, importKeyword+moduleOf(name)), func(other string) bool { return other == name })
}

// imports reports whether a file imports another itself.
func (v *View) imports(file, other string) bool {
	key := [2]string{file, other}
	does, known := v.kept.imports[key]
	if !known {
		stem := moduleOf(other)
		does = slices.ContainsFunc(v.importsOf(file), func(i imported) bool {
			return (i.member == stem || i.member == "" || i.module == "" || strings.HasSuffix(i.module, stem)) && slices.Contains(v.importedFiles(file, i), other)
		})
		v.kept.makeRoom(0)
		v.kept.imports[key] = does
	}
	return does
}

// Importing reports whether any Python file of the project imports a module whose last name is this. It reads an index, so it
// is the cheap question to ask first.
func (v *View) Importing(from, lastName string) bool {
	return len(v.ImportersOf(from, lastName)) > 0
}

// ImportersOf lists the Python files of the project that import something of this last name, of whatever library.
func (v *View) ImportersOf(from, lastName string) []string {
	return v.around(from, importKeyword+lastName)
}

// around lists the Python files of the project that the index has under a key: as Mentioning, and also in the folders above.
func (v *View) around(name, key string) []string {
	var files []string
	for _, area := range v.areas(name) {
		root := area.folder
		if area.depth == besides {
			root = shallow + root
		}
		v.record(ReadMention, root+"\x00"+key)
		for _, file := range v.Snapshot.mentioning(root, key) {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// Keys of the index of a project besides the names that files call.
const (
	importKeyword = "import " // followed by the last name of a module, or an imported name
	guardedMain   = "if main" // files that run something when they are started as a script
)

// ImportOf finds an import of a library module, or of something in it, in a file: whole modules by their dotted name. Nil
// when there is none.
func ImportOf(m *pyscan.Module, modules ...string) *pyscan.Import {
	for _, i := range m.Imports {
		if (imported{i.Module, i.Member, i.Level}).of(modules) {
			return i
		}
	}
	return nil
}

// ImportedAnywhere reports whether a library module is imported by a file or by what it imports from the project.
func (v *View) ImportedAnywhere(name string, modules ...string) bool {
	return slices.ContainsFunc(v.Closure(name), func(file string) bool { return v.ImportsAny(file, modules...) })
}

// ImportsAny reports whether a file itself imports a library module, or something in it.
func (v *View) ImportsAny(file string, modules ...string) bool {
	known := v.knownFor(file)
	return slices.ContainsFunc(v.importsOf(file), func(i imported) bool {
		return i.of(modules) || len(known) > 0 && (imported{module: known[join(i.module, i.member)]}).of(modules)
	})
}

// Started says whether a file runs in a script that somebody starts: one that tests `__name__ == "__main__"` or that a launch
// script names. It is No where the project has such scripts and none of them imports the file, and Maybe where the project
// has none at all, so that any file may be the script.
func (v *View) Started(name string) pyscan.Truth {
	for _, file := range append([]string{name}, v.Importers(name)...) {
		if v.entry(file) {
			return pyscan.Yes
		}
	}
	if len(v.around(name, guardedMain)) > 0 {
		return pyscan.No
	}
	return pyscan.Maybe
}

// entry reports whether a file is a script by itself.
func (v *View) entry(name string) bool {
	if slices.Contains(v.around(name, guardedMain), name) {
		if m := v.Module(name); m != nil && testsMain(m) {
			return true
		}
	}
	return len(v.Launchers(name)) > 0
}

// testsMain reports whether a module has `if __name__ == "__main__":` at its top level.
func testsMain(m *pyscan.Module) bool {
	for _, stmt := range m.Tree.Body {
		if s, ok := stmt.(*syntax.If); ok {
			if c, ok := s.Test.(*syntax.Compare); ok && (isNamed(c.Left, "__name__") || len(c.Comparators) == 1 && isNamed(c.Comparators[0], "__name__")) {
				return true
			}
		}
	}
	return false
}

func isNamed(e syntax.Expr, id string) bool {
	name, ok := e.(*syntax.Name)
	return ok && name.ID == id
}

// Launchers are the launch scripts of the project that start a Python file.
func (v *View) Launchers(name string) []string {
	scripts, known := v.kept.launchers[name]
	if known {
		return scripts
	}
	for _, other := range v.naming(name) {
		script := v.Script(other)
		if script == nil {
			continue
		}
		for _, command := range script.Commands {
			if v.programOf(other, command) == name {
				scripts = append(scripts, other)
				break
			}
		}
	}
	v.kept.makeRoom(len(scripts))
	v.kept.launchers[name] = slices.Clip(scripts)
	return scripts
}

// IsTest reports whether a file belongs to tests by its name: what is wrong in one is often meant.
func IsTest(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "conftest.py" {
		return true
	}
	for folder := range strings.SplitSeq(source.Dir(name), "/") {
		if folder == "test" || folder == "tests" || folder == "testing" || folder == "unittests" {
			return true
		}
	}
	return false
}

// FilesOf are the files of the project that an imported name makes run.
func (v *View) FilesOf(m *pyscan.Module, i *pyscan.Import) []string {
	return v.importedFiles(m.File.Path, imported{i.Module, i.Member, i.Level})
}
