package accumulation

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed trainer-loss-ignores-num-items.md
var trainerLossIgnoresNumItemsDoc string

// TrainerLossIgnoresNumItems finds compute_loss methods that the Trainer's token count does not reach.
var TrainerLossIgnoresNumItems = &lint.Rule{
	Name:     "trainer-loss-ignores-num-items",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      trainerLossIgnoresNumItemsDoc,
	Severity: lint.Warning,
	Mentions: []string{"compute_loss"},
	Module:   findTrainerLoss,
}

// trainers are classes whose training_step calls compute_loss(model, inputs, num_items_in_batch=...).
var trainers = []string{"transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer"}

func findTrainerLoss(pass *lint.Pass, m *pyscan.Module) {
	m.Scopes(func(scope *pyscan.Scope) {
		class := scope.EnclosingClass()
		def := scope.Function()
		if scope.Name != "compute_loss" || class == nil || def == nil || scope.Parent != class {
			return
		}
		value := &pyscan.Class{Origin: pyscan.From(m, class.Node), Scope: class}
		if pass.Derives(value, trainers...) != pyscan.Yes {
			return
		}
		at, ok := nameOf(m.File, def)
		transformers := pass.Pin(m.File.Path, "transformers")
		if !ok || transformers.Since("4.46") == pyscan.No || pass.Carries(m.File.Path, "transformers") { // which divides the loss itself, or is the project's own
			return
		}
		if stepsItself(pass, value) {
			return
		}
		takes, keywords := "", ""
		for _, p := range scope.Params {
			switch {
			case p.Name == "num_items_in_batch":
				takes = p.Name
			case p.Kind == pyscan.VarKeywords:
				keywords = p.Name
			}
		}
		switch {
		case takes == "" && keywords == "":
			pass.Reportf(at, "the Trainer of transformers 4.46 and later calls compute_loss with num_items_in_batch, which this one does not take: TypeError in the first step").As(lint.Error).Pinned(transformers, "4.46").
				Help("add the parameter num_items_in_batch=None, and use it")
		case takes != "" && uses(scope, takes), takes == "" && uses(scope, keywords):
		case divisionKept(pass, value, 6), !meansAnything(scope), transformers.Since("4.48") != pyscan.No && takesNoLossArguments(pass, value):
		case transformers.Since("5.2") == pyscan.Yes && transformers.Since("5.6") == pyscan.No: // accelerator.backward divides
		case !readsLabels(scope) && transformers.Since("4.53") == pyscan.Yes: // without labels nothing is counted, and the Trainer divides
		default:
			d := pass.Reportf(at, "num_items_in_batch is not used: %s the Trainer does not divide by the accumulation itself, "+
				"so that gradients of several micro-batches add up", undivided(transformers))
			if !ofLanguageModel(scope) || !readsLabels(scope) || loadsRemoteCode(pass, m) {
				d.As(lint.Info)
			}
			d.Pinned(transformers, "4.46").Help("divide a summed loss by num_items_in_batch, pass it on to super().compute_loss, or set model_accepts_loss_kwargs = False on the trainer (since 5.19: loss_is_scaled_for_ga = False)")
		}
	})
}

// undivided says where the Trainer's training_step leaves the division to compute_loss. It never divided in 4.46 and 4.47, divides for models
// without loss arguments since 4.48, and also where it counted nothing since 4.53.
func undivided(transformers workspace.Pin) string {
	switch {
	case transformers.Since("4.48") == pyscan.No:
		return "in transformers below 4.48"
	case transformers.Since("4.53") == pyscan.No:
		return "for a model whose forward takes **kwargs"
	}
	return "for a model whose forward takes **kwargs, in batches with labels,"
}

// stepsItself reports whether the trainer has a training_step of its own that calls compute_loss without the token count: then the method
// is not called as the library's step would.
func stepsItself(pass *lint.Pass, class *pyscan.Class) bool {
	step := pass.Method(class, "training_step")
	if step == nil {
		return false
	}
	own := false
	for _, call := range step.Calls {
		attr, ok := call.Func.(*syntax.Attribute)
		switch {
		case !ok:
		case attr.Attr == "training_step":
			return false // the library's comes after all
		case attr.Attr == "compute_loss":
			if workspace.Argument(call, "num_items_in_batch", 3) != nil || slices.ContainsFunc(call.Keywords, func(k *syntax.Keyword) bool { return k.Arg == "" }) {
				return false
			}
			own = true
		}
	}
	return own
}

// ofLanguageModel reports whether the loss is that of a Hugging Face model or of its logits. Other models (of diffusers, one's
// own) mostly take no loss arguments, and the Trainer divides for them.
func ofLanguageModel(scope *pyscan.Scope) bool {
	text := strings.ReplaceAll(scope.Module.Code(scope.Node.Span()), "self.loss", "") // a loss module of the trainer's own
	for _, word := range []string{"super().compute_loss", ".loss", "\"loss\"", "'loss'", "logits"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// readsLabels reports whether the batches can hold "labels", the only key whose tokens the Trainer counts; where there is none it
// counts nothing and divides. A method that reads its inputs by other keys alone says that they are of another kind.
func readsLabels(scope *pyscan.Scope) bool {
	if len(scope.Params) < 3 {
		return true
	}
	inputs, mentions, byKey, labels := scope.Params[2].Name, 0, 0, false
	named := func(of, key syntax.Expr) {
		name, ok := of.(*syntax.Name)
		if text, constant := key.(*syntax.Constant); ok && name.ID == inputs && constant && text.Kind == syntax.StrConstant {
			byKey++
			labels = labels || text.Text == "labels"
		}
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Name:
				if n.ID == inputs {
					mentions++
				}
			case *syntax.Subscript:
				named(n.Value, n.Slice)
			case *syntax.Compare:
				if len(n.Ops) == 1 && (n.Ops[0] == syntax.In || n.Ops[0] == syntax.NotIn) {
					named(n.Comparators[0], n.Left)
				}
			case *syntax.Call:
				if method, ok := n.Func.(*syntax.Attribute); ok && (method.Attr == "get" || method.Attr == "pop") && len(n.Args) > 0 {
					named(method.Value, n.Args[0])
				}
			}
			return true
		})
	}
	return labels || byKey == 0 || mentions > byKey
}

// loadsRemoteCode reports whether the module loads its model with trust_remote_code=True: the forward may then be one of the
// model's repository, and those mostly take no **kwargs, for which the Trainer divides.
func loadsRemoteCode(pass *lint.Pass, m *pyscan.Module) bool {
	for _, site := range m.CallsOf("from_pretrained") {
		call, scope := site.Call, site.Scope
		if workspace.Argument(call, "trust_remote_code", -1) == nil {
			continue
		}
		name := pass.Library(scope, nil, call.Func)
		if strings.HasPrefix(name, "transformers.AutoModel") && strings.HasSuffix(name, ".from_pretrained") &&
			pass.Truthy(pass.Arg(scope, nil, call, "trust_remote_code", -1)) == pyscan.Yes {
			return true
		}
	}
	return false
}

// divisionKept reports whether the class, or one of the project that it derives from, says whether its model takes loss
// arguments: where that is settled by hand, so is the division.
func divisionKept(pass *lint.Pass, class *pyscan.Class, depth int) bool {
	text := class.Scope.Module.Code(class.Scope.Node.Span())
	if strings.Contains(text, "model_accepts_loss_kwargs") || strings.Contains(text, "loss_is_scaled_for_ga") ||
		strings.Contains(text, "def num_items_in_batch") {
		return true
	}
	for _, base := range pass.Bases(class) {
		for _, one := range workspace.Alternatives(base) {
			if inner, ok := one.(*pyscan.Class); ok && depth > 0 && divisionKept(pass, inner, depth-1) {
				return true
			}
		}
	}
	return false
}

// maxTrainers bounds the classes of a project that are looked at for the models that they are given.
const maxTrainers = 16

// takesNoLossArguments reports whether all that is known of the models that the class, and those of the project that derive from it, are
// given is that their forward takes no **kwargs: the Trainer divides for them.
func takesNoLossArguments(pass *lint.Pass, class *pyscan.Class) bool {
	classes := []*pyscan.Class{class}
	for i := 0; i < len(classes) && len(classes) < maxTrainers; i++ {
		base := classes[i].Scope
		files := append([]string{base.Module.File.Path}, pass.ImportersOf(base.Module.File.Path, base.Name)...)
		for _, file := range files {
			m := pass.Module(file)
			if m == nil {
				continue
			}
			m.Scopes(func(scope *pyscan.Scope) {
				def, ok := scope.Node.(*syntax.ClassDef)
				if !ok || !slices.ContainsFunc(def.Bases, func(e syntax.Expr) bool { return pyscan.LastName(e) == base.Name }) {
					return
				}
				if known := slices.ContainsFunc(classes, func(c *pyscan.Class) bool { return c.Scope == scope }); !known {
					classes = append(classes, &pyscan.Class{Origin: pyscan.From(m, def), Scope: scope})
				}
			})
		}
	}
	found := false
	for _, one := range classes {
		file := one.Scope.Module.File.Path
		for _, name := range pass.Mentioning(file, one.Scope.Name) {
			m := pass.Module(name)
			if m == nil {
				continue
			}
			for _, site := range m.CallsOf(one.Scope.Name) {
				if workspace.Argument(site.Call, "compute_loss_func", -1) != nil {
					return false // with it the Trainer divides for no model
				}
				for _, model := range workspace.Alternatives(pass.Expand(pass.Arg(site.Scope, nil, site.Call, "model", 0))) {
					inst, ok := model.(*pyscan.Instance)
					if !ok {
						continue
					}
					made, ok := inst.Of.(*pyscan.Class)
					if !ok {
						return false // of a library
					}
					if refusesLossArguments(made) {
						found = true
						continue
					}
					forward := pass.Method(made, "forward")
					if forward == nil || slices.ContainsFunc(forward.Params, func(p pyscan.Param) bool { return p.Kind == pyscan.VarKeywords }) {
						return false
					}
					found = true
				}
			}
		}
	}
	return found
}

// refusesLossArguments reports whether a model says accepts_loss_kwargs = False of itself, which the Trainer asks before it looks at forward.
func refusesLossArguments(model *pyscan.Class) bool {
	for _, def := range model.Scope.Defs("accepts_loss_kwargs") {
		if c, ok := def.Value.(*syntax.Constant); ok && c.Kind == syntax.FalseConstant {
			return true
		}
	}
	return false
}

// meansAnything reports whether the method makes a loss of its own: it calls the model and returns something.
func meansAnything(scope *pyscan.Scope) bool {
	returns := false
	for _, r := range scope.Returns() {
		returns = returns || r.Value != nil
	}
	if !returns {
		return false
	}
	for _, stmt := range scope.Body() {
		divided := false
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if attr, ok := n.(*syntax.Attribute); ok { // divided by the accumulation by hand
				divided = divided || attr.Attr == "gradient_accumulation_steps" || attr.Attr == "current_gradient_accumulation_steps"
			}
			return !divided
		})
		if divided {
			return false
		}
	}
	return true
}

// nameOf is the place of a method's name.
func nameOf(file *source.File, def *syntax.FunctionDef) (source.Place, bool) {
	text := file.Slice(def.Span())
	i := strings.Index(text, "def "+def.Name)
	if i < 0 {
		return source.Place{}, false
	}
	start := def.Span().Start + uint32(i) + 4
	return file.At(source.Span{Start: start, End: start + uint32(len(def.Name))}), true
}
