package workspace

import (
	"path"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// AbsentFile is a file that a launch command names, and of which the project has none.
type AbsentFile struct {
	At     source.Place // of the value
	Flag   string       // as written
	File   string       // as written; a variable may stand in it
	Reader string       // who opens it: "accelerate launch", or "" for the program

	Set bool // a variable of the script says which file: a setting that a user may be meant to change

	// Certain: it is looked for in a folder of the project, no file of that name is anywhere in it, and nothing that
	// is seen writes one.
	Certain bool
}

// absentFiles are the settings files that a command names and that are not there.
func (v *View) absentFiles(name string, script *configs.Script, c *configs.Command) (absent []AbsentFile) {
	add := func(item configs.Item, reader string) {
		n := item.Value
		if n == nil || n.Kind != configs.Scalar || n.Bare || n.Raw == "" || v.resolve(name, n.Raw) != "" {
			return
		}
		for _, document := range script.Documents {
			if path.Base(document.Name) == path.Base(n.Raw) {
				return // the script writes it, and is read
			}
		}
		one := AbsentFile{At: n.At, Flag: item.Key, File: n.Raw, Reader: reader}
		one.Set = !n.Via.IsZero()
		one.Certain = !n.Open && !n.Spare && !script.Template && !c.Away && !v.mayMake(name, c, n.Raw) && v.absentForSure(name, n.Raw)
		absent = append(absent, one)
	}
	for outer := c; outer != nil; outer = outer.Outer {
		if outer.Launcher != "accelerate" || outer.LauncherFlags == nil {
			continue
		}
		for _, item := range outer.LauncherFlags.Root.Items {
			if key := flagName(item.Key); key == "config_file" || key == "deepspeed_config_file" {
				add(item, "accelerate launch")
			}
		}
	}
	if c.Flags != nil && c.Flags.Root != nil {
		for _, item := range c.Flags.Root.Items {
			key := flagName(item.Key)
			named := key == "deepspeed_config" || key == "deepspeed" && item.Value != nil && isSettingsName(item.Value.Raw)
			if named && strings.HasPrefix(item.Key, "--") {
				add(item, "")
			}
		}
	}
	return absent
}

// readingFlags name files that are read; another flag may name one that is written.
var readingFlags = map[string]bool{
	"config_file": true, "deepspeed_config_file": true, "deepspeed_config": true, "deepspeed": true,
}

func flagName(flag string) string { return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_") }

// absentForSure reports whether a path that is not found from the folders of a script is nowhere in the project, and
// whether nothing else that is seen may make the file: another mention of it, a change of folder, a download.
func (v *View) absentForSure(script, file string) bool {
	text := v.Text(script)
	if text == nil || text.Kind != source.Shell || path.IsAbs(file) || strings.ContainsAny(file, "~<>*$`:") {
		return false
	}
	if strings.HasPrefix(file, "../") || strings.Contains(file, "path/to") || dialect.Blank(file) {
		return false
	}
	base := path.Base(file)
	if v.another(script, base, "") || fetches().Match(text.Text) {
		return false
	}
	for _, match := range changesFolder().FindAllSubmatch(text.Text, -1) {
		to := strings.Trim(strings.TrimSpace(string(match[1])), `"'`)
		if _, known := scriptPath(to, script, maxNestedPaths); known {
			continue
		}
		if strings.ContainsAny(to, "$~`") || path.IsAbs(to) || v.Is(path.Join(path.Dir(script), to)) != Folder {
			return false // out of the project, for all that is known
		}
	}
	for _, name := range append(v.naming(file), script) {
		if !v.onlyPasses(name, base) {
			return false
		}
	}
	return true
}

// mayMake reports whether a script may make a file before or while it runs a launch command: something else that it
// runs has the file as an argument or writes to it, or is a program of which it is not known what it writes.
func (v *View) mayMake(name string, launch *configs.Command, file string) bool {
	script, base := v.Script(name), path.Base(file)
	for _, touch := range script.Touched {
		if touch.Read {
			if v.resolve(name, touch.Name) != "" {
				return true // its functions may
			}
			continue
		}
		if touch.Open && strings.HasSuffix(file, touch.Tail) || !touch.Open && path.Base(touch.Name) == base {
			return true
		}
	}
	for _, c := range script.Commands {
		if c == launch {
			return false
		}
		if (c.Launcher == "python" || strings.HasSuffix(c.Program, ".sh")) && c.Outer == nil && !names(c, base) {
			return true // it may be what makes the settings
		}
	}
	return false
}

// names reports whether a command names a file as settings that it reads.
func names(c *configs.Command, base string) bool {
	if c.Flags == nil || c.Flags.Root == nil {
		return false
	}
	for _, item := range c.Flags.Root.Items {
		if readingFlags[flagName(item.Key)] && item.Value != nil && path.Base(item.Value.Raw) == base {
			return true
		}
	}
	return false
}

// fetches finds commands after which other files may lie where the next command looks.
var fetches = source.Pattern(`(?m)(^|[;&|(]|\bthen|\bdo)\s*` +
	`(git\s+clone|git\s+checkout|wget|curl|tar|unzip|aws|gsutil|rsync|scp|cp|mv|ln|make|gdown|rclone|azcopy|accelerate\s+config|` +
	`[\w-]+\s+(?:[\w-]+\s+)?(?:download|pull|fetch|sync|clone|checkout))\s`)

var changesFolder = source.Pattern(`(?m)(?:^|[;&|(\s])(?:cd|pushd)\s+((?:"[^"\n]*"|[^\s;&|\n"])+)`)

// onlyPasses reports whether a file is a script that names a file nowhere but among the flags of launch commands.
func (v *View) onlyPasses(name, base string) bool {
	script, text := v.Script(name), v.Text(name)
	if script == nil || text == nil || text.Kind != source.Shell {
		return false
	}
	passed := map[source.Place]bool{}
	count := func(tree *configs.Tree) {
		if tree == nil || tree.Root == nil {
			return
		}
		for _, item := range tree.Root.Items {
			n := item.Value
			if readingFlags[flagName(item.Key)] && n != nil && n.Kind == configs.Scalar && path.Base(n.Raw) == base {
				passed[n.At] = true
			}
		}
	}
	for _, command := range script.Commands {
		for c := command; c != nil; c = c.Outer {
			count(c.LauncherFlags)
			count(c.Flags)
		}
	}
	return strings.Count(string(text.Text), base) <= len(passed)
}

// forgetDefaults takes back what was assumed since no file said otherwise, where the file of accelerate is not known:
// it says how weights are sharded, on how many ranks, and in which precision.
func (r *Run) forgetDefaults() {
	unknown := false
	for _, one := range r.Absent {
		if one.Reader != "" {
			unknown, r.unread = true, &one
		}
	}
	if !unknown {
		return
	}
	p := &r.Plan
	guessed := func(how plan.How) bool { return how == plan.IsDefault }
	if guessed(p.Sharding.How()) {
		p.Sharding = plan.Value[plan.Sharding]{}
	}
	ranks := &p.Parallel
	for _, count := range []*plan.Value[int64]{&ranks.World, &ranks.Nodes, &ranks.DevicesPerNode, &ranks.Data} {
		if guessed(count.How()) {
			*count = plan.Value[int64]{}
		}
	}
	if guessed(p.Checkpointing.Kind.How()) {
		p.Checkpointing.Kind = plan.Value[plan.Checkpointing]{}
	}
}
