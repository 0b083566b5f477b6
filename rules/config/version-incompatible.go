package config

import (
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed version-incompatible.md
var docVersionIncompatible string

// VersionIncompatible finds releases that do not work together, or that lack what the code imports.
var VersionIncompatible = &lint.Rule{
	Name:     "version-incompatible",
	Family:   "config",
	Since:    "0.1",
	Doc:      docVersionIncompatible,
	Severity: lint.Warning,
	Mentions: versioned,
	Looks:    []string{"_six", "AdamW"}, // of what provisions say is removed
	Packages: checkVersions,
	Module:   checkImports,
}

// versioned are words of which a file must hold one.
var versioned = []string{"torch", "Torch", "transformers", "Transformers", "deepspeed", "DeepSpeed", "Deepspeed", "accelerate", "Accelerate"}

func checkVersions(pass *lint.Pass, file string) {
	text := pass.Text(file)
	if text == nil || !slices.ContainsFunc(versioned, func(word string) bool { return text.Has(word) }) {
		return
	}
	var names []string
	for _, one := range pass.AllRequirements(file) {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	v := &versions{pass: pass, file: file, names: names, pins: map[string]known{}, reported: map[string]bool{}, lacking: map[string]*lint.Diagnostic{}}
	for i := range demands {
		if d := &demands[i]; !slices.ContainsFunc(demands[:i], func(e demand) bool { return e.of == d.of && e.on == d.on }) {
			v.demand(d.of, d.on)
		}
	}
	for i := range matches {
		v.match(&matches[i])
	}
	v.toolkit()
	for i := range provisions {
		v.provision(&provisions[i])
	}
}

// versions is the look at one file that asks for packages.
type versions struct {
	pass     *lint.Pass
	file     string
	names    []string
	pins     map[string]known            // those that were asked for
	reported map[string]bool             // pairs, by their packages
	lacking  map[string]*lint.Diagnostic // what was said about names that a package lacks
}

// known is a pin, and whether it counts.
type known struct {
	pin workspace.Pin
	ok  bool
}

// pin is what is asked for of a package: by the file itself, or else by those around it.
func (v *versions) pin(name string) (workspace.Pin, bool) {
	one, asked := v.pins[name]
	if !asked {
		one.pin, one.ok = v.find(name)
		v.pins[name] = one
	}
	return one.pin, one.ok
}

func (v *versions) find(name string) (workspace.Pin, bool) {
	if slices.Contains(v.names, configs.PackageName(name)) {
		own, asks, certain := v.pass.PinOf(v.file, name)
		return own, asks && certain && own.Known() && len(own.From) > 0
	}
	pin := v.pass.Pin(v.file, name)
	if !pin.Known() || len(pin.From) == 0 || pin.Told {
		return pin, false
	}
	folder := path.Dir(v.file) // what stands above is for another environment
	beside := path.Dir(pin.From[0].Path)
	main := workspace.OfProject(v.file) || slices.ContainsFunc(pin.From, func(at source.Place) bool { return workspace.OfProject(at.Path) })
	return pin, main && (beside == folder || path.Dir(beside) == folder) // two images are two environments
}

// pair gives both pins, where the file itself makes at least one of them.
func (v *versions) pair(of, on string, refused bool) (a, b workspace.Pin, ok bool) {
	if !slices.Contains(v.names, of) && !slices.Contains(v.names, on) || v.reported[of+" "+on] {
		return a, b, false
	}
	ok = v.ask(of, &a, on, &b)
	if !ok || refused && (b.Preset || a.Preset) || v.apart(a, b) || v.apart(b, a) {
		return a, b, false
	}
	return a, b, a.From[0].Path == v.file || b.From[0].Path == v.file
}

// ask gives two pins, where both count. What the file itself asks for is looked at first: that needs no other file.
func (v *versions) ask(one string, to *workspace.Pin, other string, otherTo *workspace.Pin) (ok bool) {
	if !slices.Contains(v.names, one) {
		one, to, other, otherTo = other, otherTo, one, to
	}
	if *to, ok = v.pin(one); ok {
		*otherTo, ok = v.pin(other)
	}
	return ok
}

// apart reports whether a file that asks for the one package asks for another release of the other one as well: then it is for an
// environment of its own, in which these two never meet.
func (v *versions) apart(one, other workspace.Pin) bool {
	return slices.ContainsFunc(one.From, func(at source.Place) bool {
		own, known, certain := v.pass.PinOf(at.Path, other.Package)
		return known && certain && own.Known() && !own.Range.Overlaps(other.Range)
	})
}

// demand looks at all that releases of one package need of another: the range that is asked for may span several of them.
func (v *versions) demand(of, on string) {
	var first *demand
	var around pep440.Range
	for i := range demands {
		d := &demands[i]
		if d.of != of || d.on != on {
			continue
		}
		a, b, ok := v.pair(of, on, d.refused)
		when := specifiers()[d.when][0]
		if !ok || !a.Range.Overlaps(when) {
			continue
		}
		if slices.ContainsFunc(specifiers()[d.needs], b.Range.Overlaps) {
			return
		}
		if first == nil {
			first, around = d, when
		} else {
			around = around.Or(when)
		}
	}
	if first == nil {
		return
	}
	if a, b, _ := v.pair(of, on, first.refused); a.Range.Within(around) {
		v.report(a, b, first.what, first.needs, first.as)
	}
}

func (v *versions) match(m *match) {
	a, b, ok := v.pair(m.of, m.on, m.refused)
	if !ok || ofBranch(a) || ofBranch(b) {
		return
	}
	var around, need pep440.Range
	found := false
	for _, row := range m.rows {
		left, right := specifiers()[row[0]][0], specifiers()[row[1]][0]
		if !a.Range.Overlaps(left) {
			continue
		}
		if b.Range.Overlaps(right) {
			return
		}
		if !found {
			around, need, found = left, right, true
		} else {
			around, need = around.Or(left), need.Or(right)
		}
	}
	if found && a.Range.Within(around) { // else some of what is asked for is not in the table
		v.report(a, b, m.what, need.String(), m.as)
	}
}

// ofBranch reports whether a build of a development branch is asked for, as nightly ones are: those that fit carry one date, whatever
// their numbers, and the tables are of releases.
func ofBranch(p workspace.Pin) bool {
	version, exact := p.Range.Exact()
	return exact && version.Dev >= 0
}

// toolkit compares torch_npu with the CANN of an image.
func (v *versions) toolkit() {
	a, b, ok := v.pair("torch-npu", configs.Cann, false)
	if !ok {
		return
	}
	asked, exact := a.Range.Exact()
	have, known := b.Range.Exact()
	if !exact || !known {
		return
	}
	for _, row := range npuToolkits {
		if pep440.Must(row[0]).Compare(asked) == 0 && have.Compare(pep440.Must(row[1])) < 0 {
			v.report(a, b, "it calls what a later toolkit brings", ">="+row[1], lint.Warning)
		}
	}
}

// report stands at the pin of the package that makes the demand, or at the other one where only that is in this file.
func (v *versions) report(a, b workspace.Pin, what, needs string, as lint.Severity) {
	v.reported[a.Package+" "+b.Package] = true
	at, other, otherName := a.From[0], b.From[0], b
	if at.Path != v.file {
		at, other, otherName = other, at, a
	}
	d := v.pass.Reportf(at, "%s does not work with %s: %s", a, b, what).As(as).Note(other, "%s is asked for here", otherName)
	d.Help("%s needs %s%s", a, b.Package, strings.ReplaceAll(needs, "||", " or "))
}

// maxImporters bounds the files that are named as evidence of one import.
const maxImporters = 3

// provision reports a pin of releases that lack what code of its environment imports.
func (v *versions) provision(p *provided) {
	if !slices.Contains(v.names, p.of) {
		return
	}
	pin, known, certain := v.pass.PinOf(v.file, p.of)
	if !known || !certain || len(pin.From) == 0 || pin.From[0].Path != v.file || !pin.Known() || pin.Range.Overlaps(specifiers()[p.in][0]) {
		return
	}
	d := v.lacking[p.of]
	for _, name := range v.pass.Holding(path.Dir(v.file), pyscan.LastPart(p.name)) {
		if d != nil && len(d.Related) >= maxImporters {
			break
		}
		if !v.pass.ImportsAny(name, p.name) {
			continue
		}
		module := v.pass.Module(name)
		if module == nil {
			continue
		}
		at, found := importOf(module, p.name)
		if !found {
			continue
		}
		if here := v.pass.Pin(name, p.of); !slices.Contains(here.From, pin.From[0]) || here.Range.Overlaps(specifiers()[p.in][0]) {
			continue
		}
		if d == nil {
			d = v.pass.Reportf(pin.From[0], "%s has no %s, %s: %s stops at its import", pin, p.name, since(p), path.Base(name)).As(lint.Error)
			if p.instead != "" {
				d.Help("ask for %s%s, or %s", p.of, p.in, p.instead)
			} else {
				d.Help("ask for %s%s", p.of, p.in)
			}
			v.lacking[p.of] = d
		}
		d.Note(at, "%s is imported here", p.name)
	}
}

func since(p *provided) string {
	release := strings.TrimLeft(p.in, "<>=")
	if p.removed {
		return "which " + release + " removed"
	}
	return "which came with " + release
}

// checkImports reports imports of what later releases removed, where nothing says which release runs: an installer then takes the newest.
func checkImports(pass *lint.Pass, module *pyscan.Module) {
	for i := range provisions {
		p := &provisions[i]
		if !p.removed || !module.File.Has(pyscan.LastPart(p.name)) {
			continue
		}
		at, found := importOf(module, p.name)
		if !found {
			continue
		}
		if pin := pass.Pin(module.File.Path, p.of); len(pin.From) > 0 || pin.Direct || pass.Carries(module.File.Path, p.of) {
			continue
		}
		release := strings.TrimLeft(p.in, "<")
		d := pass.Reportf(at, "%s is gone from %s %s on, and no pin is found: with the newest release this import fails", p.name, p.of, release)
		d.Help("%s, or ask for %s%s", p.instead, p.of, p.in)
	}
}

// importOf is where a module imports a dotted name, or something below it, unconditionally: by a statement of the module itself.
func importOf(module *pyscan.Module, dotted string) (at source.Place, found bool) {
	for _, i := range module.Imports {
		name := i.Dotted()
		if i.Member == "" {
			name = i.Module
		}
		if i.Level > 0 || i.Scope == nil || i.Scope.Kind != pyscan.ModuleScope || name != dotted && !strings.HasPrefix(name, dotted+".") {
			continue
		}
		for _, stmt := range module.Tree.Body {
			if within(stmt, i.Node) && isImport(stmt) {
				return module.File.At(stmt.Span()), true
			}
		}
	}
	return at, false
}

func isImport(stmt syntax.Stmt) bool {
	switch stmt.(type) {
	case *syntax.Import, *syntax.ImportFrom:
		return true
	}
	return false
}

func within(stmt syntax.Stmt, node syntax.Node) bool {
	return stmt.Span().Contains(node.Span())
}

func splitSets(spec string) []string { return strings.Split(spec, "||") }
