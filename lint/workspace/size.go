package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/pyscan"
)

// ModelSize is the number of parameters of a model value, and how it is known ("Llama-2-7b-hf", "--model"). ok is false
// when nothing says it. The model's own name in from_pretrained wins over what flags and settings say of the run.
func (v *View) ModelSize(model pyscan.Value, file string) (parameters int64, how string, ok bool) {
	for _, one := range Alternatives(v.Expand(model)) {
		result, is := one.(*pyscan.Result)
		if !is || result.Call == nil {
			continue
		}
		name := v.ExternalName(result.Of)
		if !strings.HasSuffix(name, ".from_pretrained") && !strings.HasSuffix(name, ".from_config") {
			continue
		}
		scope := v.scopeOfCall(result)
		if arg := v.arg(scope, result.Frame, result.Call, "pretrained_model_name_or_path", 0); arg != nil {
			if c, is := v.Constant(arg); is {
				if text, is := c.Str(); is {
					if spec, err := catalog.Model(text); err == nil {
						return spec.CountParameters().Total, spec.Name, true
					}
				}
			}
		}
	}
	if v.facts == nil {
		return 0, "", false
	}
	if facts := v.facts(file); facts != nil {
		if spec, missing, err := catalog.Shape(facts); err == nil && len(missing) == 0 && spec != nil {
			return spec.CountParameters().Total, spec.Name, true
		}
	}
	return 0, "", false
}

// Parameters is the number of parameters of the model of a run, and its name; ok is false where the settings do not say it.
func (r *Run) Parameters() (parameters int64, name string, ok bool) {
	spec, missing, err := catalog.Shape(&r.Plan)
	if err != nil || len(missing) > 0 || spec == nil {
		return 0, "", false
	}
	return spec.CountParameters().Total, spec.Name, true
}
