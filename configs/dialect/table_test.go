package dialect

import (
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
)

// TestTables sets every default of every table, so that reading need not check them.
func TestTables(t *testing.T) {
	names := map[string]bool{}
	for _, d := range All() {
		if names[d.Name] || d.Name == "" || d.Title == "" {
			t.Errorf("%q: the name is empty or not unique, or there is no title", d.Name)
		}
		names[d.Name] = true
		if Named(d.Name) != d {
			t.Errorf("Named(%q) is another dialect", d.Name)
		}
		for _, e := range append(append([]entry{}, d.table...), mptTable...) {
			p := &plan.Plan{}
			if _, ok := plan.Lookup(p, e.field); !ok {
				t.Errorf("%s: no value of a plan is called %s", d.Name, e.field)
			}
			if e.absent == nil {
				if len(e.keys) == 0 {
					t.Errorf("%s: %s has neither key nor default", d.Name, e.field)
				}
				continue
			}
			if err := plan.Set(p, e.field, e.absent, plan.IsDefault, d.Version); err != nil {
				t.Errorf("%s: default of %s: %v", d.Name, e.field, err)
			}
		}
		for path := range allPaths(d) {
			if path == "" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") {
				t.Errorf("%s: bad path %q", d.Name, path)
			}
		}
	}
}

func allPaths(d *Dialect) map[string]bool {
	paths := map[string]bool{}
	for _, e := range d.table {
		for _, path := range e.keys {
			paths[path] = true
		}
	}
	return paths
}

// FuzzRead reads trees whose keys and values are drawn from the tables and from odd text, in every dialect. No value may be
// internal nonsense, and none may be known without a place or a remark.
func FuzzRead(f *testing.F) {
	for i := range All() {
		f.Add(uint8(i), []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"))
	}
	f.Fuzz(func(t *testing.T, which uint8, choices []byte) {
		d := All()[int(which)%len(All())]
		tree := &configs.Tree{Format: configs.Format(len(choices) % 6), Root: grow(d, choices)}
		reading := d.Read(tree)
		for name, fact := range plan.Values(&reading.Plan) {
			if fact.Known() && len(fact.From()) == 0 && fact.Note() == "" {
				t.Errorf("%s: %s comes from nowhere", d.Name, name)
			}
		}
		for _, fault := range reading.Faults {
			if strings.HasPrefix(fault.Message, "internal") {
				t.Errorf("%s: %s", d.Name, fault.Message)
			}
		}
		Of(tree)
		d.Sections(tree)
		d.References(tree)
	})
}

var oddScalars = [...]string{"", "null", "auto", "true", "no", "1", "0", "-1", "8", "1e-5", "3.5", "999999999999999999999", "full", "full_shard offload",
	"selective", "bf16", "zero3", "lora", "deepspeed_stage_", "100ba", "ba", "${a.b}", "[x", "deepspeed_stage_3_offload", "adamw", "op", "nan", "inf"}

// grow builds a mapping that holds paths of the dialect with values picked by the bytes.
func grow(d *Dialect, choices []byte) *configs.Node {
	var known []string
	for _, e := range d.table {
		known = append(known, e.keys...)
	}
	known = append(known, "zero_optimization.stage", "fsdp", "fsdp_config", "deepspeed", "bf16.enabled", "fp16", "warmup_steps", "optimizer.params.betas",
		"attention_config", "datasets", "_component_", plan.NativeVersionKey, "parallelism_config.cp_size", "lr_warmup_steps")
	root := &configs.Node{Kind: configs.Mapping}
	for i := 0; i+1 < len(choices); i += 2 {
		path := strings.Split(known[int(choices[i])%len(known)], ".")
		n := root
		for _, key := range path[:len(path)-1] {
			item := n.Item(key)
			if item == nil {
				n.Items = append(n.Items, configs.Item{Key: key, Value: &configs.Node{Kind: configs.Mapping, Open: choices[i+1]%7 == 0}})
				item = &n.Items[len(n.Items)-1]
			}
			if n = item.Value; n == nil || n.Kind != configs.Mapping {
				break
			}
		}
		if n == nil || n.Kind != configs.Mapping {
			continue
		}
		value := &configs.Node{Kind: configs.Scalar, Raw: oddScalars[int(choices[i+1])%len(oddScalars)], Open: choices[i+1]%11 == 0}
		switch choices[i+1] % 13 {
		case 0:
			value = &configs.Node{Kind: configs.Sequence, Items: []configs.Item{{Value: value}, {Value: nil}}}
		case 1:
			value = &configs.Node{Kind: configs.Mapping, Items: []configs.Item{{Key: "x", Value: value}}}
		case 2:
			value = nil
		case 3:
			value.Style = configs.DoubleQuoted
		}
		n.Items = append(n.Items, configs.Item{Key: path[len(path)-1], Value: value})
	}
	return root
}
