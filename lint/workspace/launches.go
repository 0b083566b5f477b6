package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
)

// Launch is a command of a script that starts a Python file.
type Launch struct {
	Script  string
	Command *configs.Command
	script  *configs.Script
}

// maxLaunches bounds the commands that are looked at for one Python file.
const maxLaunches = 32

// Launches are the commands of the project's scripts that start a Python file.
func (v *View) Launches(file string) []Launch {
	var launches []Launch
	for _, name := range v.naming(file) {
		script := v.Script(name)
		if script == nil {
			continue
		}
		for _, c := range script.Commands {
			if len(launches) < maxLaunches && v.starts(name, c, file) {
				launches = append(launches, Launch{name, c, script})
			}
		}
	}
	return launches
}

// RunsOf are the runs whose launch commands start a Python file.
func (v *View) RunsOf(file string) []*Run {
	var runs []*Run
	for _, script := range v.Launchers(file) {
		for run := range v.start(script, func(l link) bool { return l.program == file }) {
			if runs = append(runs, run); len(runs) == maxRuns {
				return runs
			}
		}
	}
	return runs
}

// flag gives the values that launch commands of some files give for a flag of the program; given is false where none does.
func (v *View) flag(files []string, name string) (values []string, given bool) {
	name = strings.ReplaceAll(name, "-", "_")
	var launches []Launch
	for _, file := range files {
		launches = append(launches, v.Launches(file)...)
	}
	for _, launch := range launches {
		if launch.Command.Flags == nil || launch.Command.Flags.Root == nil {
			continue
		}
		for _, item := range launch.Command.Flags.Root.Items {
			if strings.ReplaceAll(strings.TrimLeft(item.Key, "-"), "-", "_") != name || item.Value == nil || item.Value.Kind != configs.Scalar || item.Value.Open {
				continue
			}
			given = true
			if !slices.Contains(values, item.Value.Raw) {
				values = append(values, item.Value.Raw)
			}
		}
	}
	return values, given
}

// nodeFlags are what launchers call the number of machines.
var nodeFlags = map[string]bool{"nnodes": true, "num_nodes": true, "num_machines": true, "nodes": true, "N": true}

// SeveralNodes is the place that says that a Python file runs on several machines: the number of nodes of a launch command,
// also of a file that calls into this one, or #SBATCH --nodes. A number that the shell fills in counts, since nobody passes it on for one machine.
func (v *View) SeveralNodes(m *pyscan.Module, scope *pyscan.Scope) (at source.Place, found bool) {
	for _, file := range v.starters(m, scope) {
		for _, launch := range v.Launches(file) {
			if at, found := launch.nodes(); found {
				return at, true
			}
		}
	}
	return at, false
}

// starters are the files that may be started to get to a function: its own, and those of its callers and their callers.
func (v *View) starters(m *pyscan.Module, scope *pyscan.Scope) []string {
	files := []string{m.File.Path}
	for s, depth := scope, 0; s != nil && depth < 3; depth++ {
		for s.Kind != pyscan.FuncScope && s.Parent != nil {
			s = s.Parent
		}
		callers := v.Callers(s)
		if s.Kind != pyscan.FuncScope || len(callers) == 0 {
			break
		}
		for _, site := range callers {
			if file := site.Scope.Module.File.Path; !slices.Contains(files, file) && len(files) < maxCallerFiles {
				files = append(files, file)
			}
		}
		s = callers[0].Scope
	}
	return files
}

// nodes is the place that says that a launch runs on several machines.
func (l Launch) nodes() (at source.Place, found bool) {
	trees := []*configs.Tree{l.script.Directives}
	for c := l.Command; c != nil; c = c.Outer {
		trees = append(trees, c.LauncherFlags)
	}
	for _, tree := range trees {
		if tree == nil || tree.Root == nil {
			continue
		}
		for _, item := range tree.Root.Items {
			if !nodeFlags[strings.ReplaceAll(strings.TrimLeft(item.Key, "-"), "-", "_")] || item.Value == nil {
				continue
			}
			lowest, _, _ := strings.Cut(item.Value.Raw, ":") // --nnodes 1:4
			_, highest, elastic := strings.Cut(item.Value.Raw, ":")
			if item.Value.Open || lowest != "1" && lowest != "" || elastic && highest != "1" {
				return item.Value.At, true
			}
		}
	}
	return at, false
}
