package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
)

// Bounds of configs that include configs.
const (
	maxComposed      = 6   // one inside of the other
	maxComposedFiles = 128 // all of one config, each as often as it is included
)

// composed is what Hydra makes of a config with a defaults list: the files that it lists, as far as the project holds them, with
// the config itself where _self_ stands. Values keep the places where they are written. A tree without a list is given back as it is.
func (v *View) composed(name string, tree *configs.Tree) *configs.Tree {
	if defaultsOf(tree) == nil {
		return tree
	}
	c := composer{View: v, top: path.Dir(name)}
	root := c.compose(name, tree, nil)
	if root == nil {
		return tree
	}
	if c.missing { // what stands there may be anything: the list stays, and says so to who reads the config
		root.Items = append(root.Items, *tree.Root.Item("defaults"))
	}
	whole := *tree
	whole.Root = root
	return &whole
}

// maxBeside bounds the configs above a file that are asked whether their defaults list its group.
const maxBeside = 32

// ofGroup reports whether a YAML file is an option of a group of Hydra's: it says where it is packed, or stands in a folder that the defaults
// list of a config above it names.
func (v *View) ofGroup(name string, tree *configs.Tree) bool {
	if tree.Format != configs.YAML {
		return false
	}
	if text := v.Text(name); text != nil && text.Has("# @package ") {
		return true
	}
	folder := path.Dir(name)
	above, group := path.Dir(folder), path.Base(folder)
	return folder != above && (v.listsGroup(above, group) || v.listsGroup(path.Dir(above), path.Base(above)+"/"+group))
}

// listsGroup reports whether the defaults list of a config in a folder names a group.
func (v *View) listsGroup(folder, group string) bool {
	left := maxBeside
	for _, entry := range v.Names(folder) {
		if source.KindOf(entry, nil) != source.YAML || strings.HasSuffix(entry, "/") {
			continue
		}
		if left--; left < 0 {
			return false
		}
		for _, tree := range v.Trees(path.Join(folder, entry)) {
			list := defaultsOf(tree)
			if list == nil {
				continue
			}
			for i := range list.Items {
				if item := list.Items[i].Value; item != nil && item.Kind == configs.Mapping && slices.ContainsFunc(item.Items, func(one configs.Item) bool { return groupOf(one.Key) == group }) {
					return true
				}
			}
		}
	}
	return false
}

// groupOf is the group that a key of a defaults list chooses from: train of `optional train@model`.
func groupOf(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "override "), "optional ")
	group, _, _ := strings.Cut(key, "@")
	return strings.TrimPrefix(group, "/")
}

// composer collects the files of one config.
type composer struct {
	*View
	top     string // the folder of the config, below which groups are
	missing bool   // a file of the list is not here, or not known
	files   int    // included so far
}

// defaultsOf is the defaults list of a config; nil where it has none.
func defaultsOf(tree *configs.Tree) *configs.Node {
	if tree.Root == nil || tree.Root.Kind != configs.Mapping || tree.Format != configs.YAML || tree.Template {
		return nil
	}
	if list := tree.Root.Get("defaults"); list != nil && list.Kind == configs.Sequence {
		return list
	}
	return nil
}

// compose is the root of one config with its defaults.
func (c *composer) compose(name string, tree *configs.Tree, above []string) *configs.Node {
	if len(above) >= maxComposed || slices.Contains(above, name) {
		return nil
	}
	above = append(slices.Clip(above), name)
	own := *tree.Root
	own.Items = slices.DeleteFunc(slices.Clone(tree.Root.Items), func(item configs.Item) bool { return item.Key == "defaults" })
	whole := &configs.Node{Kind: configs.Mapping, Style: tree.Root.Style, At: tree.Root.At, Open: tree.Root.Open}
	list := defaultsOf(tree)
	placed := false
	if list != nil {
		for i := range list.Items {
			switch entry := list.Items[i].Value; {
			case entry == nil:
			case entry.Kind == configs.Scalar && entry.Raw == "_self_":
				placed = true
				overlayNode(whole, &own, false)
			case entry.Kind == configs.Scalar:
				c.include(whole, name, "", "", entry, above)
			case entry.Kind == configs.Mapping:
				for j := range entry.Items {
					group, chosen := entry.Items[j].Key, entry.Items[j].Value
					if strings.HasPrefix(group, "override ") {
						if !strings.Contains(group, "hydra/") {
							c.missing = true // it takes back a choice made elsewhere
						}
						continue
					}
					group = strings.TrimPrefix(group, "optional ")
					group, pkg, _ := strings.Cut(group, "@")
					options := []*configs.Node{chosen}
					if chosen != nil && chosen.Kind == configs.Sequence {
						options = nil
						for k := range chosen.Items {
							options = append(options, chosen.Items[k].Value)
						}
					}
					for _, option := range options {
						c.include(whole, name, group, pkg, option, above)
					}
				}
			}
		}
	}
	if !placed {
		overlayNode(whole, &own, list != nil) // which of two counts depends on the release of Hydra
	}
	return whole
}

// include merges one file of the list into what is composed.
func (c *composer) include(whole *configs.Node, name, group, pkg string, chosen *configs.Node, above []string) {
	switch {
	case chosen == nil || chosen.Kind == configs.Scalar && (chosen.Raw == "null" || chosen.Raw == "" || chosen.Raw == "~"):
		return
	case chosen.Kind != configs.Scalar || chosen.Open || chosen.Raw == "???" || strings.ContainsAny(chosen.Raw, "${}"):
		c.missing = true
		return
	}
	folder := path.Dir(name)
	if strings.HasPrefix(group, "/") || strings.HasPrefix(chosen.Raw, "/") {
		folder = c.top
	}
	option := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(chosen.Raw, "/"), ".yaml"), ".yml")
	file := path.Join(folder, strings.TrimPrefix(group, "/"), option+".yaml")
	if c.files++; c.files > maxComposedFiles || !inside(c.settingsTop(name), file) || c.Is(file) != RegularFile {
		c.missing = true
		return
	}
	trees := c.Trees(file)
	if len(trees) != 1 || trees[0].Root == nil || trees[0].Root.Kind != configs.Mapping {
		c.missing = true
		return
	}
	root := c.compose(file, trees[0], above)
	if root == nil {
		c.missing = true
		return
	}
	target := pkg
	if pkg == "" {
		target = strings.ReplaceAll(strings.Trim(path.Join(strings.TrimPrefix(group, "/"), path.Dir(option)), "/."), "/", ".")
		if written, ok := packageOf(c.Text(file)); ok {
			target = written
		}
	}
	switch target {
	case "_global_", "_here_":
		target = ""
	case "_group_":
		target = strings.ReplaceAll(strings.TrimPrefix(group, "/"), "/", ".")
	}
	for _, key := range slices.Backward(strings.FieldsFunc(target, func(r rune) bool { return r == '.' })) {
		root = &configs.Node{Kind: configs.Mapping, At: root.At, Items: []configs.Item{{Key: key, KeyAt: root.At, Value: root}}}
	}
	overlayNode(whole, root, false)
}

// packageOf is the package that a comment in the first lines of a config states: `# @package _global_`.
func packageOf(file *source.File) (string, bool) {
	if file == nil {
		return "", false
	}
	for n := 1; n <= 5; n++ {
		line := strings.TrimSpace(file.Slice(file.LineSpan(n)))
		if rest, ok := strings.CutPrefix(line, "# @package "); ok {
			return strings.TrimSpace(rest), true
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			break
		}
	}
	return "", false
}

// overlayNode merges the entries of a mapping into another one: mappings are merged, other values replaced. Doubtful: where both
// write a value, neither is known.
func overlayNode(into, from *configs.Node, doubtful bool) {
	into.Open = into.Open || from.Open
	first := make(map[string]int, len(into.Items))
	for i := range into.Items {
		if _, known := first[into.Items[i].Key]; !known {
			first[into.Items[i].Key] = i
		}
	}
	for i := range from.Items {
		item := from.Items[i]
		at, known := first[item.Key]
		switch {
		case !known:
			first[item.Key] = len(into.Items)
			into.Items = append(into.Items, item)
		case item.Value != nil && item.Value.Kind == configs.Mapping && into.Items[at].Value != nil && into.Items[at].Value.Kind == configs.Mapping:
			merged := *into.Items[at].Value
			merged.Items = slices.Clone(merged.Items)
			overlayNode(&merged, item.Value, doubtful)
			into.Items[at].Value = &merged
		case doubtful && item.Value != nil:
			unsure := *item.Value
			unsure.Open = true
			item.Value = &unsure
			into.Items[at] = item
		default:
			into.Items[at] = item
		}
	}
}

// hydraDialect is the dialect of a config with a defaults list: what its own text says it is, or what it is composed to.
func hydraDialect(own, whole *configs.Tree) *dialect.Dialect {
	if d := dialect.Of(own); d != nil || own == whole {
		return d
	}
	return dialect.Of(whole)
}
