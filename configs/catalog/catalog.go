package catalog

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/configs/plan"
)

//go:embed models.json
var modelsJSON []byte

//go:embed devices.json
var devicesJSON []byte

// maxName bounds a name that is looked up, in bytes; edit distances are quadratic.
const maxName = 256

// index finds entries by the compared forms of their names, tried in order.
type index[T any] struct {
	all   []*T
	forms []form[T]
	keys  []string // the first form of every name and alias, for the nearest one
	owner []string // canonical name of each
}

// form is one way to compare names. A nil entry is a name that is ambiguous in this form.
type form[T any] struct {
	key    func(string) string
	byName map[string]*T
}

func newIndex[T any](keys ...func(string) string) index[T] {
	var x index[T]
	for _, key := range keys {
		x.forms = append(x.forms, form[T]{key, map[string]*T{}})
	}
	return x
}

func (x *index[T]) add(entry *T, name string, aliases []string) {
	x.all = append(x.all, entry)
	for _, known := range append([]string{name}, aliases...) {
		for _, f := range x.forms {
			key := f.key(known)
			if other, taken := f.byName[key]; taken && other != entry {
				f.byName[key] = nil
			} else {
				f.byName[key] = entry
			}
		}
		x.keys, x.owner = append(x.keys, x.forms[0].key(known)), append(x.owner, name)
	}
}

func (x *index[T]) find(name string) *T {
	for _, f := range x.forms {
		if entry := f.byName[f.key(name)]; entry != nil {
			return entry
		}
	}
	return nil
}

// nearest is the canonical name of the entry with the name at the smallest edit distance, the first of equals.
func (x *index[T]) nearest(name string) string {
	key, best, found := x.forms[0].key(name), 1<<30, ""
	for i, known := range x.keys {
		if d := distance(key, known, best); d < best {
			best, found = d, x.owner[i]
		}
	}
	return found
}

type data struct {
	models  index[ModelSpec]
	devices index[DeviceSpec]
	assumed map[string]string // by compared form
}

// load reads the embedded tables once. They are constants of the program and a test reads them, so a fault in them panics.
var load = sync.OnceValue(func() *data {
	var models struct {
		Source string
		Models []json.RawMessage
	}
	var devices struct {
		Assumed map[string]string
		Devices []*DeviceSpec
	}
	d := &data{
		models:  newIndex[ModelSpec](separated, squeeze, dotless),
		devices: newIndex[DeviceSpec](deviceKey),
		assumed: map[string]string{},
	}
	must(json.Unmarshal(modelsJSON, &models))
	must(json.Unmarshal(devicesJSON, &devices))
	for _, raw := range models.Models {
		m := &ModelSpec{Gated: true, Norm: plan.RMSNorm, NormsPerLayer: 2, FinalNorm: true, QKNorm: plan.NoQKNorm, Source: models.Source}
		must(json.Unmarshal(raw, m))
		m.complete()
		names := m.Aliases
		for _, alias := range m.Aliases {
			names = append(names, lastPart(alias)) // a hub id without its owner
		}
		d.models.add(m, m.Name, names)
	}
	for _, device := range devices.Devices {
		d.devices.add(device, device.Name, device.Aliases)
	}
	for name, text := range devices.Assumed {
		d.assumed[deviceKey(name)] = text
	}
	return d
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Models are all models of the catalogue, in its order. Not to be changed.
func Models() []*ModelSpec { return load().models.all }

// Devices are all devices of the catalogue, in its order. Not to be changed.
func Devices() []*DeviceSpec { return load().devices.all }

// Device finds a device by name, alias or the string that nvidia-smi or npu-smi prints, or makes one of a size (56GB, 56GiB).
// Names are compared in lower case without spaces, '-' and '_' and without leading vendor words. A name that fits several
// devices gives one and says in its Assumption what was assumed. The error is an *UnknownError.
func Device(name string) (*DeviceSpec, error) {
	if custom, ok := customDevice(name); ok {
		return custom, nil
	}
	if len(name) >= maxName {
		return nil, &UnknownError{Kind: "device", Name: name[:maxName]}
	}
	d := load()
	found := d.devices.find(name)
	if found == nil {
		return nil, &UnknownError{"device", name}
	}
	device := *found
	device.Assumption = d.assumed[deviceKey(name)]
	return &device, nil
}

// Model finds a model by name, alias, hub id, local path of a hub checkout, torchtitan flavour (llama3-8B) or torchtune
// builder (torchtune.models.llama3.lora_llama3_8b). Names are compared as devices are; parts of a name that do not change the
// shape (instruct, chat, base, hf, a release number ...) are left out where the whole name is unknown. The error is an
// *UnknownError.
func Model(name string) (*ModelSpec, error) {
	if len(name) >= maxName {
		return nil, &UnknownError{Kind: "model", Name: name[:maxName]}
	}
	d := load()
	for _, candidate := range modelNames(name) {
		if m := d.models.find(candidate); m != nil {
			return m, nil
		}
	}
	return nil, &UnknownError{"model", name}
}

// KnownTo reports whether the entry goes by this exact name or alias.
func (m *ModelSpec) KnownTo(name string) bool {
	return strings.EqualFold(m.Name, name) || slices.ContainsFunc(m.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) })
}
