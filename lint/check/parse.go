package check

import (
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
)

// parse reads the file in the way of its kind. What fails here is ours to mend, not the user's.
func (s *subject) parse() {
	switch s.file.Kind {
	case source.Python, source.Notebook:
		if s.names {
			s.module = s.view.Module(s.file.Path)
		}
		s.tree = s.view.Syntax(s.file.Path)
	case source.Shell, source.Dockerfile:
		s.script = s.view.Script(s.file.Path)
	case source.Requirements:
	default:
		s.trees = s.view.Trees(s.file.Path)
	}
}

// bound tells which bound keeps the file from being read whole; "" when there is none. What a file holds beyond a bound is not known
// to be wrong, so it is no finding.
func (s *subject) bound() string {
	var faults []configs.Error
	if s.script != nil {
		faults = s.script.Errors
	}
	for _, tree := range s.trees {
		faults = append(faults[:len(faults):len(faults)], tree.Errors...)
	}
	for _, fault := range faults {
		if fault.Bound {
			return fault.Message
		}
	}
	return ""
}

// run lets one rule look at the file. Plausible says that the file is one for this rule by its words.
func (s *subject) run(pass *lint.Pass, plausible bool) {
	rule := pass.Rule
	if rule.Name == syntaxError && plausible {
		s.syntax(pass)
	}
	if s.module != nil && rule.Module != nil {
		rule.Module(pass, s.module)
	}
	if s.module != nil && rule.Loop != nil {
		s.loops(pass)
	}
	if rule.Packages != nil && len(s.view.AllRequirements(s.file.Path)) > 0 {
		rule.Packages(pass, s.file.Path)
	}
	if rule.Variables != nil {
		if variables := s.view.Variables(s.file.Path); len(variables) > 0 {
			rule.Variables(pass, variables)
		}
	}
	if rule.Tree != nil {
		s.eachTree(func(tree *configs.Tree) { rule.Tree(pass, tree) })
	}
	if rule.Part == nil && rule.Run == nil || s.module != nil && (rule.Module != nil || rule.Loop != nil) {
		s.fillKeys(pass) // who reads Python itself needs no settings of it
		return
	}
	parts := s.view.Parts(s.file.Path)
	if rule.Part != nil {
		for _, part := range parts {
			rule.Part(pass, part)
		}
	}
	if rule.Run != nil && len(parts) > 0 { // a run of which the file holds no part is none of its
		for _, run := range s.view.Runs(s.file.Path) {
			rule.Run(pass, run)
		}
	}
	s.fillKeys(pass)
}

// eachTree visits the documents of a config file, and what a launch script sets: flags of its commands and variables.
func (s *subject) eachTree(visit func(*configs.Tree)) {
	trees := s.trees
	if s.script != nil {
		trees = append(trees[:len(trees):len(trees)], s.script.Env)
		for _, command := range s.script.Commands {
			trees = append(trees, command.LauncherFlags, command.Flags)
		}
	}
	for _, tree := range trees {
		if tree != nil && tree.Root != nil {
			visit(tree)
		}
	}
}

// syntax reports what the parsers could not read. In Python that is for others to say in full; here it tells why a finding
// may be missing.
func (s *subject) syntax(pass *lint.Pass) {
	if s.file.Fault != "" {
		pass.Reportf(s.file.At(source.Span{}), "%s", s.file.Fault).As(lint.Info)
		return
	}
	if s.tree != nil {
		for _, fault := range s.tree.Errors[:min(1, len(s.tree.Errors))] {
			pass.Reportf(s.file.At(fault.At), "%s", fault.Message).As(lint.Info)
		}
		return
	}
	for _, tree := range s.trees {
		if tree.Template || tree.Lines && dialect.Of(tree) == nil {
			continue // it is filled in before anything loads it, or it holds data
		}
		for _, fault := range tree.Errors {
			d := pass.Reportf(fault.At, "%s", fault.Message)
			if fault.Fix != nil {
				d.Suggest(fault.Fix.Title, lint.Unsafe, lint.Edit{At: s.file.At(fault.Fix.Span), Text: fault.Fix.Text})
			}
		}
	}
}

// doc is what suppression comments of the file refer to.
func (s *subject) doc() source.Doc {
	switch {
	case s.tree != nil:
		return s.tree
	case s.script != nil:
		return s.script
	case s.file.Kind == source.Requirements:
		return s.view.Requirements(s.file.Path)
	case len(s.trees) == 1:
		return s.trees[0]
	case len(s.trees) > 1:
		return documents(s.trees)
	}
	return nil
}

// documents are the parts of a YAML file between its `---` lines, as one Doc.
type documents []*configs.Tree

// Comments implements source.Doc.
func (d documents) Comments() []source.Span {
	var all []source.Span
	for _, tree := range d {
		all = append(all, tree.Comments()...)
	}
	return all
}

// Extent implements source.Doc.
func (d documents) Extent(offset uint32) source.Span {
	next := source.Span{Start: offset, End: offset}
	for _, tree := range d {
		if span := tree.Extent(offset); span.Len() > 0 && (next.Len() == 0 || span.Start < next.Start) {
			next = span
		}
	}
	return next
}

// fillKeys gives the findings in a config the dotted path of the key they stand at.
func (s *subject) fillKeys(pass *lint.Pass) {
	pass.Each(func(d *lint.Diagnostic) {
		if d.Key != "" || d.At.Path != s.file.Path {
			return
		}
		for _, tree := range s.trees {
			if key := keyAt(tree.Root, d.At); key != "" {
				d.Key = key
				return
			}
		}
	})
}

// keyAt is the dotted path of the innermost entry whose key or value holds the place. Elements of sequences count from 0.
func keyAt(root *configs.Node, at source.Place) string {
	var path []string
	for node := root; node != nil; {
		var inner *configs.Node
		for i := range node.Items {
			item := &node.Items[i]
			if !holds(item.KeyAt, at) && (item.Value == nil || !holds(item.Value.At, at)) {
				continue
			}
			name := item.Key
			if node.Kind == configs.Sequence {
				name = strconv.Itoa(i)
			}
			path, inner = append(path, name), item.Value
			break
		}
		node = inner
	}
	return strings.Join(path, ".")
}

func holds(outer, inner source.Place) bool {
	return outer.Path == inner.Path && outer.Span.Contains(inner.Span)
}

// unverified are the runs with this file whose memory cannot be computed, for want of facts.
func (s *subject) unverified() (all []Unverified) {
	if len(s.view.Parts(s.file.Path)) == 0 {
		return nil
	}
	for _, run := range s.view.Runs(s.file.Path) {
		if missing := run.Unverified(); len(missing) > 0 {
			all = append(all, Unverified{run.Name, missing})
		}
	}
	return all
}
