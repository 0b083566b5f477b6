package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

func at(path string, start uint32) source.Place {
	return source.Place{Path: path, Span: source.Span{Start: start, End: start + 1}}
}

// TestFieldsAreComplete holds the table against the struct: every Value is in it once, under one name.
func TestFieldsAreComplete(t *testing.T) {
	var p Plan
	inTable := map[any]string{}
	names := map[string]bool{}
	for _, f := range fields {
		s := f.at(&p)
		if other, ok := inTable[s]; ok {
			t.Errorf("%s and %s are the same value", f.name, other)
		}
		if names[f.name] {
			t.Errorf("%s stands twice", f.name)
		}
		inTable[s], names[f.name] = f.name, true
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			field, name := v.Field(i), path+v.Type().Field(i).Name
			if s, ok := field.Addr().Interface().(slot); ok {
				if _, ok := inTable[s]; !ok {
					t.Errorf("%s is not in the table of fields", name)
				}
				continue
			}
			if name == "Plan.Unmodelled" {
				continue // a list of things, not a value
			}
			walk(field, name+".")
		}
	}
	walk(reflect.ValueOf(&p).Elem(), "Plan.")
}

// TestEveryFieldParses sets each value from a plain Go value and reads it back.
func TestEveryFieldParses(t *testing.T) {
	for _, f := range fields {
		var p Plan
		var raws []any
		switch typ := reflect.TypeOf(f.at(&p)).Elem().Field(0).Type; {
		case typ.Kind() == reflect.Bool:
			raws = []any{true, false}
		case typ == reflect.TypeFor[Targets]():
			raws = []any{[]any{"q", "down"}, []string{"qkv"}}
		case typ.Kind() == reflect.Int64:
			raws = []any{int64(7), 5e8, 0}
		case typ.Kind() == reflect.Float64:
			raws = []any{0.5, 3}
		case typ.Kind() == reflect.String:
			if e, ok := reflect.Zero(typ).Interface().(enum); ok {
				for _, option := range e.options() {
					raws = append(raws, option)
				}
				if err := Set(&p, f.name, "no-such", IsWritten, ""); err == nil || !strings.Contains(err.Error(), e.options()[0]) {
					t.Errorf("%s: no-such gives %v", f.name, err)
				}
			} else {
				raws = []any{"text"}
			}
		}
		if len(raws) == 0 {
			t.Fatalf("%s: no sample", f.name)
		}
		for _, raw := range raws {
			if err := Set(&p, f.name, raw, IsWritten, "", at("f", 3)); err != nil {
				t.Errorf("%s = %v: %v", f.name, raw, err)
				continue
			}
			fact, ok := Lookup(&p, f.name)
			if v, known := fact.Any(); !ok || !known || v == nil || fact.How() != IsWritten || len(fact.From()) != 1 {
				t.Errorf("%s = %v reads back as %v", f.name, raw, fact)
			} else if _, err := json.Marshal(v); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		if err := Set(&p, f.name, struct{}{}, IsWritten, ""); err == nil {
			t.Errorf("%s takes anything", f.name)
		}
	}
	if err := Set(new(Plan), "batch.no", 1, IsWritten, ""); err == nil {
		t.Error("an unknown name is taken")
	}
}

func TestCounts(t *testing.T) {
	for raw, wanted := range map[any]bool{1: true, 5e8: true, 0: true, -1: false, 1.5: false, 1e300: false, "4": false, true: false} {
		if err := Set(new(Plan), "batch.micro", raw, IsWritten, ""); (err == nil) != wanted {
			t.Errorf("%v: %v", raw, err)
		}
	}
}

func TestValuesInOrder(t *testing.T) {
	var p Plan
	p.Batch.Micro = Written[int64](4, at("a", 1))
	var names []string
	for name, fact := range Values(&p) {
		names = append(names, name)
		if fact.Known() != (name == "batch.micro") {
			t.Errorf("%s: %v", name, fact)
		}
	}
	if !slices.Equal(names, Names()) || len(names) < 100 {
		t.Errorf("%d names", len(names))
	}
}

func TestTargets(t *testing.T) {
	set, err := ParseTargets("q", "down", "v")
	if err != nil || set.String() != "q v down" || !set.Has(TargetV) || set.Has(TargetK) {
		t.Errorf("%v %v", set, err)
	}
	if text, _ := json.Marshal(set); string(text) != `["q","v","down"]` {
		t.Errorf("%s", text)
	}
	if _, err := ParseTargets("q_proj"); err == nil {
		t.Error("q_proj is taken")
	}
}

func TestMerge(t *testing.T) {
	a, b, c := at("a", 1), at("b", 2), at("c", 3)
	for _, test := range []struct {
		name     string
		parts    []Value[int64]
		want     int64
		how      How
		from     []source.Place
		conflict int
	}{
		{"nothing", []Value[int64]{{}, {}}, 0, IsUnknown, nil, 0},
		{"one", []Value[int64]{{}, Written[int64](4, a)}, 4, IsWritten, []source.Place{a}, 0},
		{"written over default", []Value[int64]{Default[int64](8, "hf"), Written[int64](4, a)}, 4, IsWritten, []source.Place{a}, 0},
		{"derived over default", []Value[int64]{Default[int64](8, "hf"), Derived[int64](4, b)}, 4, IsDerived, []source.Place{b}, 0},
		{"written over derived", []Value[int64]{Derived[int64](8, b), Written[int64](4, a)}, 4, IsWritten, []source.Place{a}, 0},
		{"flag over written", []Value[int64]{Written[int64](4, a), Flag[int64](2)}, 2, IsFlag, nil, 0},
		{"agree", []Value[int64]{Written[int64](4, a), Written[int64](4, b)}, 4, IsWritten, []source.Place{a, b}, 0},
		{"conflict", []Value[int64]{Written[int64](4, a), Written[int64](8, b), Written[int64](4, c)}, 4, IsWritten, []source.Place{a, c}, 3},
		{"conflict under a flag", []Value[int64]{Written[int64](4, a), Written[int64](8, b), Flag[int64](2)}, 2, IsFlag, nil, 2},
		{"first default", []Value[int64]{Default[int64](8, "hf"), Default[int64](1, "axolotl")}, 8, IsDefault, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var parts []*Plan
			for _, v := range test.parts {
				parts = append(parts, &Plan{Batch: Batch{Micro: v}})
			}
			merged, conflicts := Merge(parts...)
			got := merged.Batch.Micro
			if got.v != test.want || got.how != test.how || !slices.Equal(got.From(), test.from) {
				t.Errorf("got %+v", got)
			}
			n := 0
			if len(conflicts) > 0 {
				n = len(conflicts[0].Values)
			}
			if n != test.conflict || len(conflicts) > 1 {
				t.Errorf("conflicts %+v", conflicts)
			}
		})
	}
}

// TestMergeKeepsParts: places are added to the merged plan, never into the array of a part.
func TestMergeKeepsParts(t *testing.T) {
	shared := make([]source.Place, 1, 4)
	shared[0] = at("a", 1)
	one, two := &Plan{Sharding: Written(ZeRO2, shared...)}, &Plan{Sharding: Written(ZeRO2, at("b", 2))}
	Merge(one, two)
	if shared[:2][1] != (source.Place{}) || len(one.Sharding.From()) != 1 {
		t.Error("Merge wrote into a part")
	}
}

func TestDerive(t *testing.T) {
	type raws map[string]any
	for _, test := range []struct {
		name      string
		given     raws
		want      raws
		unchanged []string // stay unknown
	}{
		{name: "global", given: raws{"batch.micro": 4, "batch.accumulation": 8, "parallel.data": 2}, want: raws{"batch.global": int64(64)}},
		{name: "accumulation", given: raws{"batch.micro": 4, "batch.global": 64, "parallel.data": 2}, want: raws{"batch.accumulation": int64(8)}},
		{name: "micro", given: raws{"batch.accumulation": 8, "batch.global": 64, "parallel.data": 2}, want: raws{"batch.micro": int64(4)}},
		{name: "not whole", given: raws{"batch.micro": 3, "batch.global": 64, "parallel.data": 2}, unchanged: []string{"batch.accumulation"}},
		{name: "64 devices, TP 4, PP 2 leave DP 8", given: raws{"parallel.nodes": 8, "parallel.devices_per_node": 8, "parallel.tensor": 4,
			"parallel.pipeline": 2, "parallel.context": 1, "batch.micro": 4, "batch.accumulation": 8},
			want: raws{"parallel.world": int64(64), "parallel.data": int64(8), "batch.global": int64(256), "parallel.pipeline_micro_batches": int64(8)}},
		{name: "unknown tensor parallelism", given: raws{"parallel.world": 8, "parallel.pipeline": 1, "parallel.context": 1}, unchanged: []string{"parallel.data"}},
		{name: "world does not divide", given: raws{"parallel.world": 6, "parallel.tensor": 4, "parallel.pipeline": 1, "parallel.context": 1},
			unchanged: []string{"parallel.data"}},
		{name: "tokens", given: raws{"batch.global_tokens": 4194304, "batch.seq_length": 4096, "batch.micro": 4, "parallel.data": 64},
			want: raws{"batch.global": int64(1024), "batch.accumulation": int64(4)}},
		{name: "pipeline fills instead of accumulation", given: raws{"parallel.pipeline": 4, "parallel.pipeline_micro_batches": 16, "batch.micro": 2,
			"parallel.data": 8}, want: raws{"batch.global": int64(256)}},
		{name: "overflow", given: raws{"batch.micro": int64(1 << 40), "batch.accumulation": int64(1 << 40), "parallel.data": 8}, unchanged: []string{"batch.global"}},
		{name: "zero", given: raws{"batch.micro": 0, "batch.global": 64, "parallel.data": 2}, unchanged: []string{"batch.accumulation"}},
		{name: "warm-up ratio rounds up", given: raws{"schedule.warmup_ratio": 0.03, "schedule.total_steps": 110},
			want: raws{"schedule.warmup": 4.0, "schedule.warmup_unit": OptimizerSteps}},
		{name: "deepspeed", given: raws{"dtype.compute": "bf16", "sharding": "zero2"}, want: raws{"precision": DeepSpeedMixed}},
		{name: "fsdp", given: raws{"dtype.compute": "bf16", "sharding": "fsdp1"}, want: raws{"precision": FSDPMixed}},
		{name: "pure", given: raws{"dtype.compute": "bf16", "dtype.params": "bf16", "sharding": "fsdp2"}, want: raws{"precision": Pure16}},
		{name: "autocast", given: raws{"dtype.compute": "fp16", "sharding": "ddp"}, want: raws{"precision": Autocast}},
		{name: "megatron", given: raws{"dtype.compute": "bf16", "sharding": "none", "stack": "megatron"}, want: raws{"precision": MegatronMixed}},
		{name: "fp32", given: raws{"dtype.compute": "fp32"}, want: raws{"precision": FP32}},
		{name: "sharding unknown", given: raws{"dtype.compute": "bf16"}, unchanged: []string{"precision"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p Plan
			i := uint32(0)
			for name, raw := range test.given {
				i++
				if err := Set(&p, name, raw, IsWritten, "", at(name, i)); err != nil {
					t.Fatal(err)
				}
			}
			Derive(&p)
			for name, want := range test.want {
				fact, _ := Lookup(&p, name)
				if v, _ := fact.Any(); v != want || fact.How() != IsDerived || len(fact.From()) == 0 || fact.From()[0].Path == name {
					t.Errorf("%s is %v, wanted %v", name, fact, want)
				}
			}
			for _, name := range test.unchanged {
				if fact, _ := Lookup(&p, name); fact.Known() {
					t.Errorf("%s is %v", name, fact)
				}
			}
		})
	}
}

// TestDeriveKeepsWhatIsKnown: a written value that disagrees stays, and a second Derive adds nothing.
func TestDeriveKeepsWhatIsKnown(t *testing.T) {
	p := Plan{Batch: Batch{Micro: Written[int64](4), Accumulation: Written[int64](2), Global: Written[int64](100)}, Parallel: Parallel{Data: Written[int64](8)}}
	Derive(&p)
	if v, _ := p.Batch.Global.Get(); v != 100 || p.Batch.Global.How() != IsWritten {
		t.Errorf("global %+v", p.Batch.Global)
	}
	before := known(&p)
	if Derive(&p); known(&p) != before {
		t.Error("a second Derive adds values")
	}
}

func TestNativeKeys(t *testing.T) {
	for _, keys := range [][]NativeKey{NativeKeys(), NativeModelKeys(), NativeLoRAKeys()} {
		seen := map[string]bool{}
		for _, k := range keys {
			if seen[k.Key] || k.Type == "" {
				t.Errorf("%s: twice, or without a type", k.Key)
			}
			seen[k.Key] = true
			var p Plan
			if k.Field != "" {
				if _, ok := Lookup(&p, k.Field); !ok {
					t.Errorf("%s sets %s, which is no value", k.Key, k.Field)
				}
			}
			if k.Default != nil {
				if err := k.Set(&p, k.Default); err != nil {
					t.Errorf("%s: its default %v: %v", k.Key, k.Default, err)
				}
			}
		}
	}
	key := func(name string) NativeKey {
		for _, k := range NativeKeys() {
			if k.Key == name {
				return k
			}
		}
		t.Fatal(name)
		return NativeKey{}
	}
	for _, test := range []struct {
		key string
		raw any
		ok  bool
	}{
		{"micro_batch_size", 4, true}, {"micro_batch_size", 0, false}, {"micro_batch_size", "4", false}, {"reduce_bucket_size", 0, true},
		{"reduce_bucket_size", 5e8, true}, {"attention_dropout", 0.1, true}, {"attention_dropout", 1.5, false}, {"sharding", "zero3", true},
		{"sharding", "zero4", false}, {"lora", map[string]any{}, false}, {"model", "llama-7b", true}, {"model", 7, false},
	} {
		var p Plan
		if err := key(test.key).Set(&p, test.raw, at("f", 1)); (err == nil) != test.ok {
			t.Errorf("%s: %v gives %v", test.key, test.raw, err)
		}
	}
	var p Plan
	p.Parallel.Tensor = Written[int64](4)
	SetDefaults(&p, NativeKeys())
	if !p.Parallel.Tensor.Is(4) || !p.Parallel.Data.Is(1) || p.Parallel.Data.How() != IsDefault || !p.Sharding.Is(NoSharding) || p.Precision.Known() ||
		p.LoRA.Dropout.Known() {
		t.Errorf("%+v", p)
	}
}

// TestUnmodelledMerges: what one part of a run cannot model, the run cannot, once for each thing.
func TestUnmodelledMerges(t *testing.T) {
	var config, script Plan
	config.CannotModel("GaLore", at("a.yaml", 3))
	config.CannotModel("GaLore", at("a.yaml", 9))
	script.CannotModel("GaLore", at("b.py", 1))
	script.CannotModel("a reference model", at("b.py", 2))
	merged, _ := Merge(&config, &script)
	want := []Unmodelled{{"GaLore", at("a.yaml", 3)}, {"a reference model", at("b.py", 2)}}
	if !slices.Equal(merged.Unmodelled, want) {
		t.Errorf("%v, wanted %v", merged.Unmodelled, want)
	}
}
