package workspace

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// command is one launch command of a script.
type command struct {
	parts []*Part  // what the launcher, the environment and the flags of the program say
	files []string // settings files of the project that it names
	flags *configs.Tree

	program string // the Python file of the project that it starts, or ""

	absent []AbsentFile // files that it names and that are not there

	laysOut bool // flags of no known dialect speak of parallel groups

	at position

	written map[string][]*Part // configs that the script writes itself, by base name
}

// Bounds of scripts that run scripts.
const (
	maxScripts    = 4   // one inside of the other
	maxScriptRuns = 128 // all of one script, each as often as it is run
	commandsOfRun = 32  // a script of more commands counts as several
)

// commandsOf are the launch commands of a script, or only what comes of the one of an index.
func (v *View) commandsOf(name string, outer []string, left *int, only int) []*command {
	script := v.Script(name)
	if *left--; script == nil || len(outer) >= maxScripts || *left < 0 || slices.Contains(outer, name) {
		return nil
	}
	if alone, known := v.settings.alone[name]; known && only < 0 {
		return alone
	}
	runsOthers := false
	outer = append(slices.Clip(outer), name)
	environment := environmentOf(name, script)
	var all []*command
	written := writtenDocuments(name, script)
	for i, c := range script.Commands {
		if only >= 0 && only != i {
			continue
		}
		at := position{index: i, left: max(*left, 0) + 1}
		command := &command{at: at, written: maps.Clone(written), flags: c.Flags, program: v.programOf(name, c)}
		if d := programDialect(c); d != nil && !v.ownFlags(d, name, c) {
			command.parts = append(command.parts, v.withModelOf(command.program, newPart(name, "", c.Flags, d)))
		} else if c.Flags != nil {
			command.laysOut = slices.ContainsFunc(c.Flags.Root.Items, func(item configs.Item) bool { return strings.Contains(item.Key, "parallel") })
		}
		command.parts = append(command.parts, launcherParts(name, script, c)...)
		for _, tree := range []*configs.Tree{c.Flags, c.LauncherFlags} {
			if tree != nil {
				v.filesNamed(name, tree.Root, command)
			}
		}
		for _, word := range c.Args {
			v.filesNamed(name, word, command)
		}
		if c.Program != "" && !c.Module {
			v.filesNamed(name, &configs.Node{Kind: configs.Scalar, Raw: c.Program}, command)
			v.programSettings(name, c, command)
		}
		if command.absent = v.absentFiles(name, script, c); len(command.absent) > 0 && len(command.parts) == 0 {
			command.parts = append(command.parts, launcherPart(name, c)...)
		}
		if nested := v.runsScript(name, c); nested != "" {
			runsOthers = true
			inner := v.commandsOf(nested, outer, left, -1)
			*left -= len(inner) / commandsOfRun
			if len(inner) > 0 {
				for _, of := range inner {
					all = append(all, of.within(command, environment))
				}
				continue
			}
		}
		if len(command.parts) > 0 || len(command.files) > 0 {
			own := c.Env != nil && len(c.Env.Root.Items) > 0 && dialect.Telling(c.Env) && anyKnown(newPart(name, "", c.Env, dialect.Environment))
			if own { // `A=1 torchrun ...` on top of what the script sets
				all := *c.Env
				root := *all.Root
				root.Items = append(slices.Clip(script.Env.Root.Items), root.Items...)
				all.Root = &root
				command.parts = append(command.parts, newPart(name, "", &all, dialect.Environment))
			} else if len(environment) > 0 {
				command.parts = append(command.parts, environment...)
			} else {
				command.parts = append(command.parts, v.environmentAround(name, c)...)
			}
			all = append(all, command)
		}
	}
	if only < 0 && !runsOthers {
		hold(&v.settings.alone, name, all)
	}
	return all
}

// withModelOf reads flags of HF's Trainer together with what the program itself says of the model that it trains.
func (v *View) withModelOf(program string, flags *Part) *Part {
	if text := v.Text(program); flags.Dialect != dialect.HFTrainingArguments || program == "" || text == nil || !text.Has("Trainer") {
		return flags
	}
	m := v.Module(program)
	if m == nil {
		return flags
	}
	return v.readWith(flags, v.modelOf(m, nil, flags.Tree.Root))
}

// shells are programs that run a script.
var shells = []string{"bash", "sh", "zsh", "sbatch", "qsub", "bsub"}

// runsScript is the script of the project that a command runs; "" where it starts a program.
func (v *View) runsScript(name string, c *configs.Command) string {
	if !slices.Contains(shells, c.Launcher) || c.Program == "" || c.ProgramOpen || c.Module {
		return ""
	}
	if file := v.resolve(name, c.Program); file != "" && v.Script(file) != nil {
		return file
	}
	return ""
}

// within is a command of a script that another one runs, with what that one says besides.
func (c *command) within(outer *command, environment []*Part) *command {
	joined := *c
	joined.at = outer.at
	joined.parts = slices.Concat(c.parts, outer.parts, environment)
	joined.files = slices.Clip(c.files)
	for _, file := range outer.files {
		if !slices.Contains(joined.files, file) {
			joined.files = append(joined.files, file)
		}
	}
	return &joined
}

// environmentAround is the environment that stands in other files, for a command whose script sets none that is known: what DeepSpeed's
// launcher hands to all nodes, else what the one image of the project sets.
func (v *View) environmentAround(name string, c *configs.Command) []*Part {
	for ; c != nil; c = c.Outer {
		if c.Launcher != "deepspeed" {
			continue
		}
		for _, folder := range v.folders(name) {
			if file := path.Join(folder, ".deepspeed_env"); v.Is(file) == RegularFile {
				return v.environmentOf(file)
			}
		}
	}
	if source.KindOf(name, nil) == source.Dockerfile {
		return nil
	}
	return held(&v.settings.images, path.Dir(name), func() []*Part { return v.imageAround(name) })
}

// imageAround is the environment of the one image in the folder of a file, or in the nearest folder above it that has some.
func (v *View) imageAround(name string) []*Part {
	for _, folder := range v.folders(name) {
		var images []string
		for _, entry := range v.Names(folder) {
			if source.KindOf(entry, nil) == source.Dockerfile {
				images = append(images, path.Join(folder, entry))
			}
		}
		if len(images) == 1 {
			return v.environmentOf(images[0])
		} else if len(images) > 1 { // which one is used is not known
			return nil
		}
	}
	return nil
}

func (v *View) environmentOf(name string) []*Part {
	if script := v.Script(name); script != nil {
		return environmentOf(name, script)
	}
	return nil
}

// environmentOf is what the variables of a script say of its runs.
func environmentOf(name string, script *configs.Script) []*Part {
	if len(script.Env.Root.Items) == 0 || !dialect.Telling(script.Env) {
		return nil
	}
	if part := newPart(name, "", script.Env, dialect.Environment); anyKnown(part) {
		return []*Part{part}
	}
	return nil
}

// programDialect is the dialect of the flags of the program.
func programDialect(c *configs.Command) *dialect.Dialect {
	if c.Flags == nil {
		return nil
	}
	return dialect.Of(c.Flags)
}

// strangeFlag reports whether a launcher is given a flag that it does not know: it is looked at even if it says nothing else.
func strangeFlag(tree *configs.Tree, d *dialect.Dialect) bool {
	table := dialect.Keys(d)
	return table != nil && tree.Root != nil && slices.ContainsFunc(tree.Root.Items, func(item configs.Item) bool {
		return table.Lookup(d.Spelled(tree, item.Key)) == nil
	})
}

// launcherParts are what the launcher says, and what starts it: `srun torchrun ...` has its nodes from either.
func launcherParts(name string, script *configs.Script, c *configs.Command) []*Part {
	var parts []*Part
	inner := programDialect(c) != dialect.VERL // whose program is started once, and has Ray start the ranks
	for ; c != nil; c = c.Outer {
		d := dialect.Launcher(c.Launcher)
		if slices.Contains(shells, c.Launcher) {
			inner = false // the script starts what it starts
		}
		if d == nil || c.LauncherFlags == nil {
			continue
		}
		trees := []*configs.Tree{c.LauncherFlags}
		if c.Launcher == "srun" {
			trees = append(trees, script.Directives)
		}
		for _, tree := range trees {
			part := newPart(name, "", tree, d)
			if !inner {
				// srun starts one launcher on each node; how many processes that starts is its own affair.
				part.Plan.Parallel.DevicesPerNode, part.Plan.Parallel.World = unknownCount, unknownCount
			}
			if anyKnown(part) || strangeFlag(tree, d) || len(d.References(tree)) > 0 {
				parts = append(parts, part)
			}
		}
		inner = false
	}
	return parts
}

// launcherPart is what the flags of the innermost known launcher say, be it nothing.
func launcherPart(name string, c *configs.Command) []*Part {
	for ; c != nil; c = c.Outer {
		if d := dialect.Launcher(c.Launcher); d != nil && c.LauncherFlags != nil {
			return []*Part{newPart(name, "", c.LauncherFlags, d)}
		}
	}
	return nil
}

// filesNamed collects the settings files of the project that stand among the words of a command.
func (v *View) filesNamed(name string, n *configs.Node, into *command) {
	if n == nil {
		return
	}
	if n.Kind == configs.Scalar && isSettingsName(n.Raw) && into.written[path.Base(n.Raw)] != nil {
		into.parts = append(into.parts, into.written[path.Base(n.Raw)]...)
		delete(into.written, path.Base(n.Raw))
	} else if n.Kind == configs.Scalar && !n.Open && isSettingsName(n.Raw) {
		if file := v.resolve(name, n.Raw); file != "" && !slices.Contains(into.files, file) && len(v.documentLinks(file)) > 0 {
			into.files = append(into.files, file)
		}
	}
	for _, item := range n.Items {
		v.filesNamed(name, item.Value, into)
	}
}

// programSettings adds the Python file that a command starts, where it states the settings of one run.
func (v *View) programSettings(name string, c *configs.Command, into *command) {
	if !strings.HasSuffix(c.Program, ".py") || c.ProgramOpen {
		return
	}
	if file := v.resolve(name, c.Program); file != "" && len(v.pythonParts(file)) == 1 {
		into.files = append(into.files, file)
	}
}

// writtenDocuments are the configs that the script writes from text in itself.
func writtenDocuments(name string, script *configs.Script) map[string][]*Part {
	var written map[string][]*Part
	for _, document := range script.Documents {
		var trees []*configs.Tree
		switch source.KindOf(document.Name, nil) {
		case source.JSON:
			trees = []*configs.Tree{configs.ParseJSON(document.File)}
		case source.YAML:
			trees = configs.ParseYAML(document.File)
		case source.TOML:
			trees = []*configs.Tree{configs.ParseTOML(document.File)}
		}
		for _, tree := range trees {
			if d := dialect.Of(tree); d != nil {
				if written == nil {
					written = map[string][]*Part{}
				}
				base := path.Base(document.Name)
				written[base] = append(written[base], newPart(name, "", tree, d))
			}
		}
	}
	return written
}

func isSettingsName(text string) bool {
	for _, end := range [...]string{".json", ".yaml", ".yml", ".toml"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

func anyKnown(part *Part) bool { return plan.AnyKnown(&part.Plan) }

var unknownCount plan.Value[int64]
