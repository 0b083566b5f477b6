package workspace

import (
	"path"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// maxLoaded bounds the files that a run is seen to load.
const maxLoaded = 2000

// Loaded lists the files of the project that are loaded when some files are run, those files included, nearest first:
// what they import, the packages that these are in, the settings that they name, and the programs that scripts start.
func (v *View) Loaded(files []string) []string {
	list := slices.Clone(files)
	known := map[string]bool{}
	for _, file := range files {
		known[file] = true
	}
	for at := 0; at < len(list) && len(list) < maxLoaded; at++ {
		for _, next := range v.loadedBy(list[at]) {
			if next != "" && !known[next] {
				known[next] = true
				list = append(list, next)
			}
		}
	}
	return list
}

// loadedBy are the files that a file itself makes load.
func (v *View) loadedBy(name string) (files []string) {
	for _, link := range v.documentLinks(name) {
		files = append(files, link.files...)
	}
	if v.kindOf(name).IsPython() {
		for _, imported := range v.DirectImports(name) {
			files = append(files, append(v.packages(imported), imported)...)
		}
		return files
	}
	for _, link := range v.commandLinks(name) {
		files = append(files, link.files...)
	}
	if script := v.Script(name); script != nil {
		for _, command := range script.Commands {
			if command.Module && !command.ProgramOpen {
				program := v.locate(name, command.Program, 0)
				files = append(files, append(v.packages(program), program, v.mainOf(program))...)
			} else {
				files = append(files, v.programOf(name, command), v.runsScript(name, command))
			}
		}
	}
	return files
}

// packages are the packages that a module is in, innermost first: importing it runs them. A folder between two of them
// may do without a file.
func (v *View) packages(module string) (files []string) {
	missing := 0
	for folder := source.Dir(module); module != "" && missing < 2; folder = source.Dir(folder) {
		if whole := path.Join(folder, "__init__.py"); v.Is(whole) == RegularFile {
			files = append(files, whole)
		} else {
			missing++
		}
		if folder == "." || folder == "/" {
			break
		}
	}
	return files
}

// mainOf is the file that `python -m` starts of a package; "" for other modules.
func (v *View) mainOf(module string) string {
	main := path.Join(source.Dir(module), "__main__.py")
	if path.Base(module) == "__init__.py" && v.Is(main) == RegularFile {
		return main
	}
	return ""
}
