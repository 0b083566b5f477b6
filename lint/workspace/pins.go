package workspace

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Pin is what the files of a project say about the release of one package with which a file runs.
type Pin struct {
	Package string // in lower case with dashes
	Range   pep440.Range
	From    []source.Place // of the requirements that decide
	Told    bool           // a README tells to install it: the release to use, which need not be the one to build with
	Preset  bool           // the image of a container holds it; installing another package may replace it
	Direct  bool           // an archive, a folder or a revision of the source is asked for: one release, and nobody says which
}

// Known reports whether anything is said about the release.
func (p Pin) Known() bool { return !p.Range.Any() && !p.Range.Empty() }

// String is the package with its releases: "torch 2.3.0", "torch >=2.1,<2.4", "torch".
func (p Pin) String() string {
	if v, ok := p.Range.Exact(); ok {
		return p.Package + " " + v.String()
	}
	if !p.Known() {
		return p.Package
	}
	return p.Package + " " + p.Range.String()
}

// Since reports whether the release is the given one or later. Maybe: nothing is said, or both are allowed.
func (p Pin) Since(version string) pyscan.Truth {
	if !p.Known() {
		return pyscan.Maybe
	}
	v := pep440.Must(version)
	switch {
	case p.Range.Since(v):
		return pyscan.Yes
	case p.Range.Below(v):
		return pyscan.No
	}
	return pyscan.Maybe
}

// At is where the release is said; the zero Place where nowhere.
func (p Pin) At() source.Place {
	if len(p.From) == 0 {
		return source.Place{}
	}
	return p.From[0]
}

// Carries reports whether the project around a file holds the source of a package itself, as forks of a library do: what its release is then,
// and what that has, no requirement says.
func (v *View) Carries(from, name string) bool {
	root := v.projectRoot(from)
	for folder := path.Dir(from); ; folder = path.Dir(folder) {
		if v.Is(path.Join(folder, name, "__init__.py")) == RegularFile || v.Is(path.Join(folder, "src", name, "__init__.py")) == RegularFile {
			return true
		}
		if folder == root || folder == "." || folder == "/" || strings.HasSuffix(folder, "..") {
			return false
		}
	}
}

type pinKey struct{ of, name string }

// Pin gives what is known of the release of a package with which code or settings in a file run. The nearest folder in which a
// file asks for the package decides, where a notebook does not install it itself: requirements, pyproject.toml, setup.py, environments of conda, locks, image files and what
// scripts install. Files that cannot hold together leave it unknown.
func (v *View) Pin(file, name string) Pin {
	name = configs.PackageName(name)
	key := pinKey{file, name}
	if pin, known := v.settings.pins[key]; known {
		return pin
	}
	if v.settings.pins == nil {
		v.settings.pins = map[pinKey]Pin{}
	}
	pin, found := v.cellPin(file, name)
	if found {
		v.settings.pins[key] = pin
		return pin
	}
	pin, found = v.folderPin(file, name)
	if !found || v.kindOf(file) != source.Python {
		near, asks, unknown := v.nearPin(file, name)
		switch {
		case unknown:
			pin = Pin{Package: name}
		case asks && pin.Range.Overlaps(near.Range):
			near.Range, near.From = pin.Range.And(near.Range), distinctPlaces(append(near.From, pin.From...))
			pin = near
		case asks:
			pin = Pin{Package: name}
		}
	}
	v.settings.pins[key] = pin
	return pin
}

// nearPin is what a script itself installs; for a Python file that no folder speaks of, the scripts that launch it, wherever they are.
func (v *View) nearPin(file, name string) (pin Pin, found, unknown bool) {
	var scripts []string
	switch v.kindOf(file) {
	case source.Shell, source.Dockerfile:
		scripts = []string{file}
	case source.Python:
		for _, launch := range v.Launches(file) {
			if !slices.Contains(scripts, launch.Script) {
				scripts = append(scripts, launch.Script)
			}
		}
	}
	for _, script := range scripts {
		one, asks, certain := v.pinOf(script, name)
		switch {
		case !asks:
		case !certain:
			unknown = true
		case !found:
			pin, found = one, true
		default:
			pin.Range = pin.Range.Or(one.Range)
			pin.From = append(pin.From, one.From...)
		}
	}
	return pin, found, unknown
}

// folderPin is the pin of the nearest folder in which a file asks for the package.
func (v *View) folderPin(file, name string) (pin Pin, found bool) {
	for _, folder := range v.folders(file) {
		key := pinKey{folder, name}
		pin, known := v.kept.pins[key]
		if !known {
			pin = v.pinIn(folder, name)
			v.kept.makeRoom(len(pin.From))
			v.kept.pins[key] = pin
		}
		if pin.Package != "" {
			return pin, true
		}
	}
	return Pin{Package: name}, false
}

// folders are those from a file up to the top of its project.
func (v *View) folders(file string) (list []string) {
	top := v.settingsTop(file)
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		list = append(list, folder)
		if folder == top || folder == "." || folder == "/" || strings.HasSuffix(folder, "..") {
			return list
		}
	}
}

// besideFolders are folders in which files about the environment of the folder above stand.
var besideFolders = map[string]bool{"requirements": true, "docker": true, "dockerfiles": true, ".devcontainer": true, "environments": true, "envs": true, "conda": true}

// maxPinFiles bounds the files of one folder that are looked at.
const maxPinFiles = 48

// pinIn is the pin that the files of one folder give; without a name where none of them asks for the package.
func (v *View) pinIn(folder, name string) Pin {
	main, others, variants := Pin{Package: name}, Pin{Package: name}, Pin{Package: name}
	mainFound, othersFound, variantsFound, unknown, direct := false, false, false, false, false
	count := 0
	look := func(file string, isMain bool) {
		if count++; count > maxPinFiles {
			return
		}
		one, found, certain := v.pinOf(file, name)
		switch {
		case !found:
			return
		case !certain:
			unknown, direct = true, direct || one.Direct
			return
		}
		switch {
		case isMain && !mainFound:
			main, mainFound = one, true
		case isMain:
			main.Range = main.Range.And(one.Range)
			main.From = append(main.From, one.From...)
		case isVariant(file):
			if variantsFound {
				one.Range, one.From = one.Range.Or(variants.Range), append(variants.From, one.From...)
			}
			variants, variantsFound = one, true
		case !othersFound:
			others, othersFound = one, true
		default:
			others.Range = others.Range.Or(one.Range)
			others.From = append(others.From, one.From...)
		}
	}
	for _, one := range v.pinFiles(folder) {
		if one.role != noPins {
			look(one.name, one.role == mainPins)
		}
	}
	if variantsFound { // requirements-npu.txt: one way among others to install what the project asks for
		switch {
		case !mainFound && !othersFound:
			others, othersFound = variants, true
		case !mainFound:
			others.Range, others.From = others.Range.Or(variants.Range), append(others.From, variants.From...)
		case !main.Known():
			main.Range, main.From = variants.Range, variants.From
		case !main.Range.Overlaps(variants.Range):
			unknown = true
		}
	}
	switch {
	case !mainFound && !othersFound && !unknown:
		return v.toldIn(folder, name)
	case unknown:
		return Pin{Package: name, Direct: direct}
	case !mainFound:
		main = others
	case othersFound:
		main.Range = main.Range.And(others.Range)
		main.From = append(others.From, main.From...)
	}
	main.From = distinctPlaces(main.From)
	if main.Range.Empty() { // they are not for one environment
		return Pin{Package: name}
	}
	return main
}

// toldIn is the pin that a README of a folder gives, which counts where nothing else there asks for the package.
func (v *View) toldIn(folder, name string) Pin {
	for _, one := range v.pinFiles(folder) {
		if one.role == noPins && v.brief(one.name) {
			if pin, found, certain := v.pinOf(one.name, name); found && certain && pin.Known() {
				pin.Told = true
				return pin
			}
		}
	}
	return Pin{}
}

// pinFile is a file that may speak of the environment of its folder; without a role it is a README.
type pinFile struct {
	name string
	role role
}

// pinFiles are those of a folder, in the order of their names.
func (v *View) pinFiles(folder string) []pinFile {
	files, known := v.kept.pinned[folder]
	if known {
		return files
	}
	for _, entry := range v.Names(folder) {
		if sub, isFolder := strings.CutSuffix(entry, "/"); isFolder {
			if besideFolders[strings.ToLower(sub)] {
				for _, inner := range v.Names(path.Join(folder, sub)) {
					if name := path.Join(folder, sub, inner); pinRole(name) != noPins {
						files = append(files, pinFile{name, otherPins})
					}
				}
			}
			continue
		}
		name := path.Join(folder, entry)
		if role := pinRole(name); role != noPins || strings.EqualFold(entry, "readme.md") {
			files = append(files, pinFile{name, role})
		}
	}
	v.kept.makeRoom(len(files))
	v.kept.pinned[folder] = files
	return files
}

func distinctPlaces(places []source.Place) (list []source.Place) {
	for _, at := range places {
		if !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// isVariant holds for requirements besides the project's own, constraints left out: those hold for all of it.
func isVariant(name string) bool {
	return source.KindOf(name, nil) == source.Requirements && !strings.Contains(path.Base(name), "constraint")
}

type role uint8

const (
	noPins    role = iota
	mainPins       // what one installs to use the project
	otherPins      // an environment besides, such as an image
)

// pinRole tells by its name what a file is to the environment of a project. What is for tests, documents and development only is none.
func pinRole(name string) role {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "requirements.txt", "pyproject.toml", "setup.py", "setup.cfg", "pipfile", "uv.lock", "poetry.lock", "environment.yml", "environment.yaml":
		return mainPins
	}
	switch path.Ext(base) { // most files of a folder, told without a closer look
	case ".json", ".toml", ".py", ".ipynb", ".md":
		return noPins
	case ".yaml", ".yml":
		if !strings.Contains(base, "env") && !strings.HasPrefix(base, "conda") {
			return noPins
		}
	}
	for _, word := range strings.FieldsFunc(base, func(c rune) bool { return c == '-' || c == '_' || c == '.' || c == '/' }) {
		switch word {
		case "dev", "test", "tests", "doc", "docs", "lint", "ci", "readthedocs", "develop", "development", "build", "linting", "typing", "types", "mypy", "benchmark", "benchmarks":
			return noPins
		}
	}
	switch source.KindOf(name, nil) {
	case source.Requirements, source.Dockerfile:
		return otherPins
	case source.YAML:
		if strings.HasPrefix(base, "environment") || strings.HasPrefix(base, "conda") || strings.HasSuffix(base, "-environment.yml") || strings.HasSuffix(base, "_env.yml") {
			return otherPins
		}
	case source.Shell:
		return otherPins
	}
	return noPins
}

// PinOf is the pin that a file with all that it includes gives by itself. Certain is false where it asks for the package in a way that
// leaves the release open; known is false where it does not ask for it.
func (v *View) PinOf(file, name string) (pin Pin, known, certain bool) {
	return v.pinOf(file, configs.PackageName(name))
}

// OfProject reports by its name whether a file says what one installs to use the project of its folder; others, such as image files, each
// speak of an environment of their own.
func OfProject(name string) bool { return pinRole(name) == mainPins }

// pinOf is what one file says about a package. Certain is false where it asks for it in a way that leaves the release open, as a URL
// does, or only under conditions.
func (v *View) pinOf(file, name string) (pin Pin, found, certain bool) {
	pin = Pin{Package: name}
	var either pep440.Range
	sometimes := 0
	preset := true
	certain = true
	for _, one := range v.AllRequirements(file) {
		if one.Name != name || one.When == configs.Never || one.Optional {
			continue
		}
		if one.Preset != preset || !found {
			if found && one.Preset {
				continue
			}
			if found && preset { // an installation replaces what the image held
				pin, sometimes, either, certain = Pin{Package: name}, 0, pep440.Range{}, true
			}
			preset = one.Preset
		}
		found = true
		certain = certain && one.Known
		pin.Direct = pin.Direct || one.Direct()
		if !one.Range.Any() {
			pin.From = append(pin.From, one.At)
		}
		if one.When == configs.Sometimes || one.Locked { // a lock holds one release for each kind of machine
			if sometimes++; sometimes == 1 {
				either = one.Range
			} else {
				either = either.Or(one.Range)
			}
			if one.Locked {
				sometimes = max(sometimes, 2)
			}
		} else {
			pin.Range = pin.Range.And(one.Range)
		}
	}
	pin.Preset = found && preset
	switch {
	case sometimes == 1:
		certain = false
	case sometimes > 1:
		pin.Range = pin.Range.And(either)
	}
	return pin, found, certain && !pin.Range.Empty()
}

// pinsOf reads the requirements of a file of any kind; none of a file that holds none. They are kept when the tree of the file is let go:
// all files below a folder ask about those in it, and some of these are long.
func (st *store) pinsOf(file *source.File) *configs.Requirements {
	r := st.requirementsOf(file)
	if r == nil {
		return &configs.Requirements{}
	}
	for i := range r.List { // some are pieces of the text
		r.List[i].Name, r.List[i].Spec = strings.Clone(r.List[i].Name), strings.Clone(r.List[i].Spec)
	}
	if len(r.Includes) > 0 {
		r.Includes = slices.Clone(r.Includes) // a script may hold them
	}
	for i := range r.Includes {
		r.Includes[i].Path = strings.Clone(r.Includes[i].Path)
	}
	return r
}

func (st *store) requirementsOf(file *source.File) *configs.Requirements {
	base := strings.ToLower(path.Base(file.Path))
	trees := func() []*configs.Tree { return st.parse(file).trees() }
	switch {
	case base == "setup.cfg":
		return configs.SetupRequirements(file)
	case base == "uv.lock", base == "poetry.lock":
		return configs.LockRequirements(file)
	case base == "pyproject.toml":
		if trees := trees(); len(trees) > 0 {
			return configs.ProjectRequirements(file, trees[0])
		}
	case base == "pipfile":
		if trees := trees(); len(trees) > 0 {
			return configs.PipfileRequirements(trees[0])
		}
	case base == "setup.py":
		return setupCall(st.parse(file).module())
	case strings.HasSuffix(base, ".md"):
		if commands := commandsOf(file); commands != nil {
			return &configs.Requirements{List: configs.ParseShell(commands).Installs.List}
		}
	case file.Kind == source.Requirements:
		return configs.ParseRequirements(file)
	case file.Kind == source.Other: // included under a name of its own
		return configs.ParseRequirements(file)
	case file.Kind == source.YAML:
		return configs.CondaRequirements(file, trees())
	case file.Kind == source.Shell, file.Kind == source.Dockerfile:
		installs := st.parse(file).script().Installs
		r := &configs.Requirements{List: slices.Clone(installs.List)}
		if file.Kind == source.Shell { // paths in an image are its own
			r.Includes = installs.Includes
		}
		return r
	}
	return nil
}

// maxReadme bounds the text of a README that speaks of one environment, bytes: long ones are collections, in which each entry has its own.
const maxReadme = 64 << 10

func (v *View) brief(readme string) bool {
	file := v.Text(readme)
	return file != nil && len(file.Text) <= maxReadme
}

// commandsOf is a text for people with all but the lines blanked that tell to install something: `$ pip install torch==2.1`. It is nil
// where none does.
func commandsOf(file *source.File) *source.File {
	if !file.Has("install") {
		return nil
	}
	tells := false
	text := make([]byte, 0, len(file.Text))
	for line := range bytes.Lines(file.Text) {
		code := bytes.TrimLeft(line, " \t$>`")
		first, rest, _ := bytes.Cut(code, []byte(" "))
		switch {
		case !bytes.Contains(rest, []byte("install")):
			code = nil
		case bytes.HasPrefix(first, []byte("pip")), bytes.HasPrefix(first, []byte("python")), string(first) == "conda", string(first) == "mamba", string(first) == "uv", string(first) == "sudo", string(first) == "!pip":
		default:
			code = nil
		}
		tells = tells || code != nil
		if code == nil {
			code = line[len(bytes.TrimRight(line, "\r\n")):] // the end of the line stays
		}
		text = append(append(text, bytes.Repeat([]byte(" "), len(line)-len(code))...), code...)
	}
	if !tells {
		return nil
	}
	return &source.File{Path: file.Path, Kind: source.Shell, Text: bytes.ReplaceAll(text, []byte("`"), []byte(" ")), Segments: file.Segments, Raw: file.Raw}
}

// Requirements is what one file itself asks for; never nil, and empty for a file that asks for nothing.
func (v *View) Requirements(name string) *configs.Requirements {
	file := v.Text(name)
	if file == nil {
		return &configs.Requirements{}
	}
	return v.store.traitsOf(file).pins()
}

// AllRequirements are the requirements of a file and of the files that it includes.
func (v *View) AllRequirements(name string) []configs.Requirement {
	left := maxIncluded
	return v.requirements(name, 0, nil, &left)
}

// Bounds of files of requirements that include each other.
const (
	maxIncludes = 6   // one inside of the other
	maxIncluded = 128 // all of one file, each as often as it is included
)

func (v *View) requirements(name string, depth int, seen []string, left *int) []configs.Requirement {
	r := v.Requirements(name)
	if *left--; len(r.Includes) == 0 || depth >= maxIncludes || *left <= 0 {
		return r.List
	}
	seen = append(seen[:len(seen):len(seen)], name)
	list := slices.Clip(r.List)
	for _, include := range r.Includes {
		file := path.Join(path.Dir(name), include.Path)
		if strings.Contains(include.Path, "://") || path.IsAbs(include.Path) || slices.Contains(seen, file) || !inside(v.settingsTop(name), file) || v.Is(file) != RegularFile {
			continue
		}
		for _, one := range v.requirements(file, depth+1, seen, left) {
			one.Constraint = one.Constraint || include.Constraint
			list = append(list, one)
		}
	}
	return list
}

// setupCall reads the lists of requirements that a setup.py gives to setup() as they stand there, or under a name in it.
func setupCall(m *pyscan.Module) *configs.Requirements {
	r := &configs.Requirements{}
	if m == nil {
		return r
	}
	lists := map[string]*syntax.List{}
	for _, stmt := range m.Tree.Body {
		if assign, ok := stmt.(*syntax.Assign); ok && len(assign.Targets) == 1 {
			if name, ok := assign.Targets[0].(*syntax.Name); ok {
				if list, ok := assign.Value.(*syntax.List); ok && lists[name.ID] == nil {
					lists[name.ID] = list
				} else {
					delete(lists, name.ID)
				}
			}
		}
	}
	add := func(e syntax.Expr, optional bool) {
		if name, ok := e.(*syntax.Name); ok && lists[name.ID] != nil {
			e = lists[name.ID]
		}
		list, ok := e.(*syntax.List)
		if !ok {
			return
		}
		for _, element := range list.Elts {
			c, ok := element.(*syntax.Constant)
			if !ok || c.Kind != syntax.StrConstant {
				continue
			}
			span := c.Span()
			if one, ok := configs.ParseRequirement(m.File, c.Text, span.Start+1); ok {
				if inner := (source.Span{Start: span.Start + 1, End: span.End - 1}); m.File.Slice(inner) != c.Text {
					one.At = m.File.At(span)
				}
				one.Optional = one.Optional || optional
				r.List = append(r.List, one)
			}
		}
	}
	for _, call := range m.CallsOf("setup") {
		for _, keyword := range call.Keywords {
			switch keyword.Arg {
			case "install_requires":
				add(keyword.Value, false)
			case "extras_require":
				if dict, ok := keyword.Value.(*syntax.Dict); ok {
					for _, value := range dict.Values {
						add(value, true)
					}
				}
			}
		}
	}
	return r
}
