package loop

import (
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// interestingNames are the attribute and function names without which a function cannot hold an event that any rule asks
// for; it is the cheap test before a function is modelled.
var interestingNames = map[string]bool{"backward": true, "manual_backward": true, "step": true, "zero_grad": true, "empty_cache": true, "clip_grad_norm_": true,
	"clip_grad_value_": true, "clip_grad_norm": true, "unscale_": true, "no_sync": true, "set_epoch": true, "collect": true, "item": true, "require_backward_grad_sync": true,
	"set_requires_gradient_sync": true, "set_is_last_backward": true, "no_backward_sync": true, "accumulate": true, "all_reduce": true, "barrier": true,
	"release_memory": true, "clear_device_cache": true, "training_step": true, "compute_loss": true, "train_step": true, "set_requires_all_reduce": true,
	"optimizer_step": true, "ipc_collect": true, "torch_gc": true, "step_update": true}

func interesting(scope *pyscan.Scope) bool {
	if hooks[scope.Name] != nil && scope.EnclosingClass() != nil && scope.Name != "forward" {
		return true
	}
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case *syntax.For, *syntax.While: // a loop may call what is interesting
				found = true
			case *syntax.Attribute:
				found = found || acting.has(n.Attr)
			case *syntax.Name:
				found = found || acting.has(n.ID)
			}
			return !found
		})
	}
	return found
}

// hooks are methods that a framework runs once a micro-batch or once an optimizer step, by the library class they belong to.
var hooks = map[string]map[string]string{
	"training_step":            {"transformers.Trainer": "transformers.Trainer", "transformers.Seq2SeqTrainer": "transformers.Trainer", "trl.SFTTrainer": "transformers.Trainer", "pytorch_lightning.LightningModule": "Lightning"},
	"compute_loss":             {"transformers.Trainer": "transformers.Trainer", "transformers.Seq2SeqTrainer": "transformers.Trainer", "trl.SFTTrainer": "transformers.Trainer"},
	"on_step_begin":            {"transformers.TrainerCallback": "transformers.Trainer"},
	"on_step_end":              {"transformers.TrainerCallback": "transformers.Trainer"},
	"on_substep_end":           {"transformers.TrainerCallback": "transformers.Trainer"},
	"on_pre_optimizer_step":    {"transformers.TrainerCallback": "transformers.Trainer"},
	"on_optimizer_step":        {"transformers.TrainerCallback": "transformers.Trainer"},
	"on_train_batch_end":       {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"on_train_batch_start":     {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"on_before_zero_grad":      {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"on_before_backward":       {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"on_after_backward":        {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"on_before_optimizer_step": {"pytorch_lightning.Callback": "Lightning", "pytorch_lightning.LightningModule": "Lightning"},
	"forward":                  {"torch.nn.Module": "module", "pytorch_lightning.LightningModule": "module"},
}

// stepHooks are the hooks that run once an optimizer step, however many micro-batches it has: of TrainerCallback (transformers 5.24,
// trainer.py) all but on_substep_end, which runs after each other micro-batch of the window; of Lightning those around the optimizer,
// while its on_train_batch_start and _end run for each batch of the loader.
var stepHooks = map[string]bool{"on_step_begin": true, "on_step_end": true, "on_pre_optimizer_step": true, "on_optimizer_step": true,
	"on_before_zero_grad": true, "on_before_optimizer_step": true}

// framework names who runs a method once a micro-batch, or "".
func framework(scope *pyscan.Scope, link Linker) string {
	owners := hooks[scope.Name]
	class := scope.EnclosingClass()
	if owners == nil || class == nil {
		return ""
	}
	value := &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}
	for owner, runner := range owners {
		if link.Derives(value, owner) == pyscan.Yes {
			return runner
		}
	}
	return ""
}

var emptyCaches = map[string]bool{"torch.cuda.empty_cache": true, "torch.npu.empty_cache": true, "torch.xpu.empty_cache": true, "torch.mps.empty_cache": true,
	"torch.mlu.empty_cache": true, "torch.musa.empty_cache": true, "torch.accelerator.empty_cache": true, "accelerate.utils.release_memory": true,
	"accelerate.utils.memory.release_memory": true, "accelerate.utils.clear_device_cache": true, "accelerate.utils.memory.clear_device_cache": true, "torch.cuda.caching_allocator_delete": false}

var collectives = setOf(map[string]bool{"all_reduce": true, "all_gather": true, "all_gather_object": true, "all_gather_into_tensor": true, "broadcast": true, "broadcast_object_list": true,
	"barrier": true, "reduce": true, "reduce_scatter": true, "reduce_scatter_tensor": true, "gather": true, "gather_object": true, "scatter": true, "monitored_barrier": true})

// methodEvents are the names of the methods that method, recognise and isModel know as events.
var methodEvents = setOf(map[string]bool{"backward": true, "manual_backward": true, "step": true, "step_update": true, "optimizer_step": true, "zero_grad": true,
	"clip_grad_norm_": true, "clip_grad_value_": true, "clip_gradients": true, "clip_grad_norm": true, "unscale_": true, "unscale_gradients": true, "update": true,
	"empty_cache": true, "release_memory": true, "clear_device_cache": true, "collect": true, "item": true, "tolist": true, "no_sync": true, "no_backward_sync": true,
	"set_requires_gradient_sync": true, "set_is_last_backward": true, "set_requires_all_reduce": true, "set_epoch": true, "zero_gradients": true, "clear_grad": true,
	"clear_grads": true, "clear_gradients": true, "reset_grad": true, "reset_gradients": true, "zero_grads": true, "zero_grad_buffer": true, "zero_all_grads": true,
	"zero_": true, "fill_": true, "multiply_grads": true, "div_": true, "mul_": true, "eval": true, "generate": true, "wait_for_everyone": true,
	"_foreach_zero_": true, "_foreach_div_": true, "_foreach_mul_": true})

// library holds for the call of a method by a name that stands for no event and that nothing in the project has: no function of
// the project can run, and no model is called. Most calls of a training loop are such, and need not be read.
func library(link Linker, scope *pyscan.Scope, callee syntax.Expr) bool {
	if name, ok := callee.(*syntax.Name); ok {
		return plainFunctions.has(name.ID) && !link.Defined(scope.Module, name.ID)
	}
	attr, ok := callee.(*syntax.Attribute)
	if ok && inPlace.has(attr.Attr) { // an event on gradients alone
		path := pyscan.Path(attr.Value)
		return !strings.HasSuffix(path, ".grad") && !strings.HasSuffix(path, ".grad.data")
	}
	if !ok || methodEvents.has(attr.Attr) || collectives.has(attr.Attr) || ModelName(attr.Attr) {
		return false
	}
	return plainMethod(attr) || !link.HasName(scope.Module, attr.Attr)
}

// plainFunctions are builtins that run nothing of the project.
var plainFunctions = setOf(map[string]bool{"isinstance": true, "issubclass": true, "len": true, "print": true, "range": true, "int": true, "float": true, "str": true, "bool": true, "max": true,
	"min": true, "abs": true, "sum": true, "round": true, "zip": true, "enumerate": true, "reversed": true, "sorted": true, "list": true, "tuple": true, "dict": true, "set": true, "iter": true,
	"hasattr": true, "setattr": true, "type": true, "id": true, "any": true, "all": true, "open": true, "repr": true, "format": true, "divmod": true})

// inPlace are the operations that are events where a gradient is their receiver.
var inPlace = setOf(map[string]bool{"div_": true, "mul_": true, "zero_": true, "fill_": true})

// plainMethods are what containers, strings and tensors are asked for. A class of the project may have methods of these names too, but
// no training happens in them.
var plainMethods = setOf(map[string]bool{"append": true, "extend": true, "insert": true, "pop": true, "popleft": true, "remove": true, "sort": true, "index": true, "keys": true, "values": true,
	"items": true, "get": true, "setdefault": true, "copy": true, "add": true, "discard": true, "format": true, "join": true, "split": true, "strip": true, "replace": true, "startswith": true,
	"endswith": true, "lower": true, "upper": true, "encode": true, "decode": true, "write": true, "read": true, "close": true, "size": true, "dim": true, "numel": true, "view": true, "reshape": true,
	"permute": true, "transpose": true, "contiguous": true, "unsqueeze": true, "squeeze": true, "flatten": true, "expand": true, "chunk": true, "sum": true, "mean": true, "max": true, "min": true,
	"abs": true, "sqrt": true, "pow": true, "exp": true, "log": true, "clamp": true, "float": true, "long": true, "int": true, "bool": true, "type": true, "numpy": true, "cpu": true,
	"to": true, "cuda": true, "npu": true, "xpu": true, "half": true, "bfloat16": true, "copy_": true, "add_": true, "sub_": true, "wait": true, "info": true, "warning": true, "error": true, "debug": true, "detach": true, "clone": true, "masked_fill": true, "scatter_": true, "argmax": true, "softmax": true, "norm": true, "item": true, "tolist": true, "is_contiguous": true, "element_size": true,
	"data_ptr": true, "state_dict": true, "parameters": true, "named_parameters": true, "modules": true, "named_modules": true, "children": true, "named_children": true, "buffers": true})

// plainMethod reports whether an attribute is a plain method of something other than the object itself.
func plainMethod(attr *syntax.Attribute) bool {
	if !plainMethods.has(attr.Attr) {
		return false
	}
	name, ok := attr.Value.(*syntax.Name)
	return !ok || name.ID != "self" && name.ID != "cls"
}

// recognise says which event a call is; known is false for a call of no kind. The event is good until the next call is looked at.
func (b *builder) recognise(call *syntax.Call, callee pyscan.Value) (event *Event, known bool) {
	if attr, ok := call.Func.(*syntax.Attribute); ok && plainMethod(attr) && (attr.Attr == "item" || attr.Attr == "tolist") { // of what, nobody asks
		*b.scratch = Event{Kind: Sync, Node: call, Call: call, On: callee, Receiver: attr.Value}
		return b.scratch, len(call.Args) == 0
	}
	event = b.scratch
	*event = Event{Node: call, Call: call, On: callee}
	name := b.link.ExternalName(callee)
	attr, method := call.Func.(*syntax.Attribute)
	if method {
		event.Receiver = attr.Value
		event.On = b.link.Expand(b.link.Eval(b.scope, b.frame, attr.Value))
	}
	switch {
	case emptyCaches[name]:
		event.Kind = EmptyCache
		return event, true
	case name == "gc.collect":
		event.Kind = Collect
		return event, true
	case name == "torch.nn.utils.clip_grad_norm_", name == "torch.nn.utils.clip_grad_value_", name == "torch.nn.utils.clip_grad_norm":
		event.Kind = Clip
		return event, true
	case name == "torch.autograd.backward":
		event.Kind = Backward
		if len(call.Args) > 0 {
			event.Loss = call.Args[0]
		}
		return event, true
	case strings.HasPrefix(name, "torch.distributed.") && collectives.has(pyscan.LastPart(name)):
		event.Kind = Collective
		return event, true
	case name == "torch._foreach_zero_":
		event.Kind = ZeroGrad
		return event, true
	case name == "torch._foreach_div_", name == "torch._foreach_mul_":
		event.Kind = GradDivide
		return event, true
	}
	if method {
		if b.projectMethod(callee) {
			if (attr.Attr == "step" || attr.Attr == "zero_grad") && b.typed(event.On) == optimizer { // an optimizer class of the project
				event.Kind = map[string]Kind{"step": Step, "zero_grad": ZeroGrad}[attr.Attr]
				return event, true
			}
			return event, b.isModel(event, call.Func)
		}
		if kind := b.method(event, attr.Attr); kind != Other {
			event.Kind = kind
			return event, true
		}
	}
	if !method { // ctx() where ctx is model.no_sync, perhaps under a condition; getattr(model, "no_sync", nullcontext)()
		for _, one := range alternatives(callee) {
			if member, ok := one.(*pyscan.Member); ok && (member.Name == "no_sync" || member.Name == "no_backward_sync") {
				event.Kind, event.On = NoSync, b.link.Expand(member.Base)
				if attr, ok := member.Site().Node.(*syntax.Attribute); ok {
					event.Receiver = attr.Value
				}
				return event, true
			}
		}
	}
	return event, b.isModel(event, call.Func)
}

// projectMethod reports whether the callee is a function whose body can be read: then that body says what happens.
func (b *builder) projectMethod(callee pyscan.Value) bool {
	for _, one := range alternatives(callee) {
		if _, ok := one.(*pyscan.Func); !ok {
			return false
		}
	}
	return true
}

// ownMethod reports whether a method is one of the project's, or of an object that is no tensor and no GradScaler: then its
// name says nothing about what it does.
func ownMethod(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, attr *syntax.Attribute) bool {
	if name, ok := attr.Value.(*syntax.Name); ok && name.ID == "self" {
		return true
	}
	for _, one := range alternatives(link.Expand(link.Eval(scope, frame, attr))) {
		if link.Called(one) != nil {
			return true
		}
	}
	return false
}

// isModel marks calls of a model: an nn.Module of the project, a wrapper around one, or a value of unknown type that is
// called model or net.
func (b *builder) isModel(event *Event, f syntax.Expr) bool {
	value := b.link.Expand(b.link.Eval(b.scope, b.frame, f))
	for _, one := range alternatives(value) {
		if isModule(b.link, one) {
			event.Kind, event.On = Forward, value
			return true
		}
		switch one.(type) {
		case *pyscan.Func, *pyscan.Class, *pyscan.External, *pyscan.Partial:
			return false
		}
	}
	if ModelName(pyscan.LastName(f)) {
		event.Kind, event.On = Forward, value
		return true
	}
	return false
}

// isModule reports whether calling a value runs a model: an nn.Module, or a wrapper around one.
func isModule(link Linker, value pyscan.Value) bool {
	switch value := value.(type) {
	case *pyscan.Instance:
		return link.Derives(value.Of, "torch.nn.Module", "pytorch_lightning.LightningModule") == pyscan.Yes || isWrapper(link.ExternalName(pyscan.Made(value)))
	case *pyscan.Wrapped:
		return true
	}
	return false
}

// ModelName reports whether something is called as models are.
func ModelName(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "model", "net", "network", "engine", "model_engine", "ddp_model", "fsdp_model", "policy", "unet", "transformer", "generator", "discriminator", "student", "wrapped_model":
		return true
	}
	return strings.HasSuffix(name, "_model") || strings.HasSuffix(name, "_net") || strings.HasPrefix(name, "model_")
}

func isWrapper(name string) bool {
	switch name {
	case "torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel", "torch.distributed.fsdp.FullyShardedDataParallel", "deepspeed.DeepSpeedEngine",
		"fairscale.nn.FullyShardedDataParallel", "fairscale.nn.data_parallel.FullyShardedDataParallel":
		return true
	}
	return false
}

// unwrap gives the model inside wrappers, so that its forward can be followed.
func (b *builder) unwrap(value pyscan.Value) pyscan.Value { return unwrapped(b.link, value) }

func unwrapped(link Linker, value pyscan.Value) pyscan.Value {
	for range 4 {
		switch one := value.(type) {
		case *pyscan.Wrapped:
			value = link.Expand(one.Inner)
		case *pyscan.Instance:
			if !isWrapper(link.ExternalName(pyscan.Made(one))) || one.Call == nil || len(one.Call.Args) == 0 {
				return value
			}
			inner := pyscan.ScopeAt(one.At.Module, one.Call)
			value = link.Expand(link.Eval(inner, one.Frame, one.Call.Args[0]))
		default:
			return value
		}
	}
	return value
}

// typed is the well-known object that a value is by its type alone.
func (b *builder) typed(value pyscan.Value) object {
	for _, one := range alternatives(value) {
		if o := b.object(one); o != unknownObject && o != otherObject {
			return o
		}
	}
	return unknownObject
}

// what says which well-known object a value is, by its type where that is known, else by its name.
func (b *builder) what(value pyscan.Value, e syntax.Expr) object {
	best := unknownObject
	all := alternatives(value)
	for _, one := range all {
		if c, ok := one.(*pyscan.Const); ok && c.V.Kind() == constant.None && len(all) > 1 {
			continue // what it was before it was made: None has no methods
		}
		switch o := b.object(one); o {
		case unknownObject:
		case otherObject:
			if best == unknownObject {
				best = otherObject
			}
		default:
			return o
		}
	}
	if best == otherObject {
		return otherObject
	}
	return named(e)
}

type object uint8

const (
	unknownObject object = iota
	otherObject          // known, and none of these
	optimizer
	scheduler
	gradScaler
	accelerator
	fabric
	engine
	lightningModule
	tensor
	profiler
)

func (b *builder) object(value pyscan.Value) object {
	if wrapped, ok := value.(*pyscan.Wrapped); ok && wrapped.By != "deepspeed.initialize" && wrapped.By != "torch.distributed.fsdp.fully_shard" {
		value = b.unwrap(value)
	}
	switch value := value.(type) {
	case *pyscan.Wrapped:
		switch value.By {
		case "deepspeed.initialize":
			return engine
		case "torch.distributed.fsdp.fully_shard":
			return otherObject
		}
	case *pyscan.Instance:
		return b.instance(value)
	case *pyscan.Result:
		switch name := b.link.ExternalName(value.Of); {
		case strings.HasPrefix(name, "transformers.get_") && strings.Contains(name, "schedule"), name == "transformers.optimization.get_scheduler", strings.HasSuffix(name, ".get_scheduler"):
			return scheduler
		case name == "":
		case strings.HasPrefix(name, "torch.profiler"), strings.HasPrefix(name, "torch.autograd.profiler"):
			return profiler
		}
	case *pyscan.Op:
		return tensor
	case *pyscan.Const, *pyscan.Sequence, *pyscan.Mapping, *pyscan.Func, *pyscan.Class, *pyscan.ModuleValue, *pyscan.External:
		return otherObject
	}
	return unknownObject
}

func (b *builder) instance(value *pyscan.Instance) object {
	name := b.link.ExternalName(pyscan.Made(value))
	if name == "" {
		name = b.link.ExternalBase(pyscan.Made(value))
		if name == "" {
			if b.link.Derives(value.Of) == pyscan.No {
				return otherObject
			}
			return unknownObject
		}
	}
	last := pyscan.LastPart(name)
	switch {
	case strings.Contains(name, "lr_scheduler"), strings.HasSuffix(last, "Scheduler"), strings.HasSuffix(last, "LR"):
		return scheduler
	case strings.HasPrefix(name, "torch.optim."), strings.Contains(name, ".optim."), strings.HasPrefix(name, "apex.optimizers."), strings.HasPrefix(name, "deepspeed.ops."),
		strings.HasSuffix(last, "Optimizer"), strings.Contains(last, "Adam"), last == "Adafactor", last == "Lion", last == "Muon", last == "SGD", last == "LAMB", last == "FusedLAMB":
		return optimizer
	case strings.HasSuffix(last, "GradScaler"):
		return gradScaler
	case name == "accelerate.Accelerator":
		return accelerator
	case name == "lightning_fabric.Fabric":
		return fabric
	case strings.HasSuffix(name, "DeepSpeedEngine"), strings.HasSuffix(name, "PipelineEngine"):
		return engine
	case strings.HasSuffix(last, "LightningModule"):
		return lightningModule
	case strings.Contains(name, "profiler"):
		return profiler
	}
	return otherObject
}

// named guesses by the name alone what a value of unknown type is: names that mean one thing in training code.
func named(e syntax.Expr) object {
	name := strings.ToLower(pyscan.LastName(e))
	if sub, ok := e.(*syntax.Subscript); ok {
		name = strings.ToLower(pyscan.LastName(sub.Value))
		name = strings.TrimSuffix(name, "s")
	}
	switch {
	case strings.Contains(name, "sched"):
		return scheduler
	case strings.Contains(name, "scaler"):
		return gradScaler
	case strings.Contains(name, "optim"), name == "opt", strings.HasSuffix(name, "_opt"), strings.HasPrefix(name, "opt_"):
		return optimizer
	case strings.Contains(name, "accelerator"):
		return accelerator
	case strings.Contains(name, "fabric"):
		return fabric
	case strings.Contains(name, "engine"):
		return engine
	case strings.Contains(name, "loss"):
		return tensor
	case strings.Contains(name, "prof"):
		return profiler
	}
	return unknownObject
}

// method says which event a method call is; it fills who runs it.
func (b *builder) method(event *Event, name string) Kind {
	call := event.Call
	switch name {
	case "backward":
		return b.backward(event)
	case "manual_backward":
		event.By = Lightning
		if len(call.Args) > 0 {
			event.Loss = call.Args[0]
		}
		return Backward
	case "step":
		switch b.what(event.On, event.Receiver) {
		case optimizer:
			return Step
		case scheduler:
			return SchedulerStep
		case gradScaler:
			event.By = Scaler
			if len(call.Args) > 0 {
				return Step
			}
		case engine:
			event.By = Engine
			return Step
		case unknownObject:
			if ModelName(pyscan.LastName(event.Receiver)) && len(call.Args) == 0 { // model.step() is a DeepSpeed engine's
				event.By = Engine
				return Step
			}
		}
	case "step_update":
		return SchedulerStep
	case "optimizer_step":
		return Step
	case "zero_grad":
		if b.what(event.On, event.Receiver) == engine {
			event.By = Engine
		}
		return ZeroGrad
	case "clip_grad_norm_", "clip_grad_value_", "clip_gradients", "clip_grad_norm":
		return Clip
	case "unscale_", "unscale_gradients":
		return Unscale
	case "update":
		if b.what(event.On, event.Receiver) == gradScaler {
			return ScalerUpdate
		}
	case "empty_cache":
		if result, ok := event.On.(*pyscan.Result); ok && b.link.ExternalName(result.Of) == "deepspeed.accelerator.get_accelerator" {
			return EmptyCache
		}
	case "item", "tolist":
		if len(call.Args) == 0 {
			return Sync
		}
	case "no_sync", "no_backward_sync":
		return NoSync
	case "set_requires_gradient_sync", "set_is_last_backward", "set_requires_all_reduce":
		if len(call.Args) > 0 {
			event.Sync = b.conditions(call.Args[0], false, 0)
		}
		return NoSync
	case "set_epoch":
		return SetEpoch
	case "zero_gradients", "clear_grad", "clear_grads", "clear_gradients", "reset_grad", "reset_gradients", "zero_grads", "zero_grad_buffer", "zero_all_grads":
		return ZeroGrad
	case "zero_", "fill_": // p.grad.zero_(), p.grad.data.zero_()
		if path := pyscan.Path(event.Receiver); strings.HasSuffix(path, ".grad") || strings.HasSuffix(path, ".grad.data") {
			return ZeroGrad
		}
	case "multiply_grads":
		return GradDivide
	case "div_", "mul_":
		if path := pyscan.Path(event.Receiver); strings.HasSuffix(path, ".grad") || strings.HasSuffix(path, ".grad.data") {
			return GradDivide
		}
	case "eval", "generate":
		return Evaluate
	case "wait_for_everyone":
		return Collective
	}
	return Other
}

// backward reads who runs a backward, and of what.
func (b *builder) backward(event *Event) Kind {
	call, recv := event.Call, event.Receiver
	inner := recv
	for { // scaler.scale(loss).div(n).backward(), scaler.scale(loss).backward()
		c, ok := inner.(*syntax.Call)
		if !ok {
			break
		}
		attr, ok := c.Func.(*syntax.Attribute)
		if !ok {
			break
		}
		if attr.Attr == "scale" && len(c.Args) == 1 && !ownMethod(b.link, b.scope, b.frame, attr) {
			event.By, event.Loss = Scaler, recv
			return Backward
		}
		inner = attr.Value
	}
	switch b.what(event.On, recv) {
	case accelerator:
		event.By = Accelerate
	case fabric:
		event.By = Fabric
	case engine:
		event.By = Engine
	case lightningModule:
		event.By = Lightning
	case tensor:
		event.Loss = recv
		return Backward
	case optimizer, scheduler, gradScaler, profiler:
		event.By = Foreign
	default:
		if len(call.Args) == 0 {
			event.Loss = recv
			return Backward
		}
		event.By = Foreign
		if ModelName(pyscan.LastName(recv)) && len(call.Args) == 1 {
			event.By = Engine
		}
	}
	if len(call.Args) > 0 {
		event.Loss = call.Args[0]
	}
	return Backward
}

// store records assignments that are events: p.grad = None, model.require_backward_grad_sync = last.
func (b *builder) store(target, value syntax.Expr, stmt syntax.Stmt) {
	attr, ok := target.(*syntax.Attribute)
	if !ok {
		return
	}
	if attr.Attr != "grad" && attr.Attr != "require_backward_grad_sync" && attr.Attr != "require_forward_param_sync" {
		return
	}
	event := &Event{Node: stmt, Receiver: attr.Value}
	switch attr.Attr {
	case "grad":
		if c, ok := value.(*syntax.Constant); ok && c.Kind == syntax.NoneConstant {
			event.Kind = ZeroGrad
		} else {
			event.Kind = GradDivide
		}
	default:
		event.Kind, event.Sync = NoSync, b.conditions(value, false, 0)
	}
	event.On = b.link.Expand(b.link.Eval(b.scope, b.frame, attr.Value))
	b.emit(event)
}

// augment records p.grad /= n.
func (b *builder) augment(s *syntax.AugAssign) {
	if attr, ok := s.Target.(*syntax.Attribute); ok && attr.Attr == "grad" && (s.Op == syntax.Div || s.Op == syntax.Mult) {
		b.emit(&Event{Kind: GradDivide, Node: s, Receiver: attr.Value, On: b.link.Eval(b.scope, b.frame, attr.Value)})
	}
}
