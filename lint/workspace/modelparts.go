package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// What the parts of models are called by convention, and what they are given, is written here alone. A name says what a
// part is only where nothing else is known of it, and then beside other evidence.

// Names that mean one thing in Hugging Face models, whose classes are not read.
var (
	embeddingLeaves = map[string]bool{
		"embed_tokens": true, "wte": true, "word_embeddings": true, "tok_embeddings": true, "embed_in": true, "shared": true,
	}
	headLeaves = map[string]bool{
		"lm_head": true, "embed_out": true, "output_projection": true, "unembed": true, "unembedding": true,
		"to_logits": true, "vocab_head": true, "vocab_proj": true,
	}
)

// EmbeddingText is what a file says that does something with the embedding of a model by itself.
func EmbeddingText() []string {
	return []string{"get_input_embeddings", "embed_tokens", "word_embeddings", ".wte"}
}

// Words of the names of embedding tables: "token_embedding", "tok_emb", "embedding".
var (
	tableWords = map[string]bool{
		"embed": true, "embeds": true, "embedding": true, "embeddings": true, "emb": true, "embs": true, "embedder": true, "wte": true,
	}
	tokenWords = map[string]bool{"token": true, "tokens": true, "tok": true, "word": true, "words": true, "vocab": true, "wte": true}
	// featureWords are of what has no table: it is projected from features, or computed.
	featureWords = map[string]bool{
		"patch": true, "image": true, "img": true, "pixel": true, "visual": true, "vision": true, "audio": true, "mel": true,
		"time": true, "timestep": true, "noise": true, "rotary": true, "rope": true, "sin": true, "sinusoidal": true,
		"proj": true, "projection": true, "mlp": true, "norm": true, "dropout": true, "drop": true, "out": true,
	}
)

// idNames are names of integers that say which row of a table; tokenNames may be rows of features as well.
var (
	idNames    = map[string]bool{"ids": true, "idx": true, "idxs": true, "indices": true, "index": true, "input_tokens": true}
	tokenNames = map[string]bool{"tokens": true, "token": true}
)

// nameWords are the parts of a name in lower case: tok_emb2 is tok and emb, TokEmb too.
func nameWords(name string) []string {
	var list []string
	start := 0
	for i, r := range name {
		if i > start && r >= 'A' && r <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			list, start = append(list, name[start:i]), i
		}
	}
	list = append(list, name[start:])
	var words []string
	for _, part := range list {
		for word := range strings.SplitSeq(strings.ToLower(part), "_") {
			if word = strings.TrimRight(word, "0123456789"); word != "" {
				words = append(words, word)
			}
		}
	}
	return words
}

func anyWord(words []string, of map[string]bool) bool {
	return slices.ContainsFunc(words, func(word string) bool { return of[word] })
}

// CalledEmbedding reports whether a part of a model of which nothing is known is an embedding table by its name and by
// the argument that it is given.
func (v *View) CalledEmbedding(part pyscan.Value, leaf string, scope *pyscan.Scope, frame *pyscan.Frame, given syntax.Expr) bool {
	if given == nil || !v.unknownPart(part) {
		return false
	}
	words := nameWords(leaf)
	if !embeddingLeaves[leaf] && (!anyWord(words, tableWords) || anyWord(words, featureWords)) {
		return false
	}
	sure, likely := v.rowIDs(scope, frame, given, 6)
	return sure || likely && (embeddingLeaves[leaf] || anyWord(words, tokenWords))
}

// CalledHead reports whether a part of a model of which nothing is known is an output head by its name.
func (v *View) CalledHead(part pyscan.Value, leaf string) bool {
	return headLeaves[leaf] && v.unknownPart(part)
}

// unknownPart reports whether the class of a module is not known: an attribute that no class in sight assigns, a
// parameter, what a function gives that is not found.
func (v *View) unknownPart(part pyscan.Value) bool {
	switch part := v.Expand(part).(type) {
	case *pyscan.Unknown, *pyscan.ParamValue, *pyscan.Setting:
		return true
	case *pyscan.Member:
		return v.ExternalName(part) == ""
	case *pyscan.Element:
		return true
	case *pyscan.Result:
		return !strings.HasPrefix(v.ExternalName(part.Of), "torch.")
	case *pyscan.Union:
		return !slices.ContainsFunc(part.Alternatives, func(one pyscan.Value) bool { return !v.unknownPart(one) })
	}
	return false
}

// rowIDs reports whether an expression gives integers that say which rows of a table to take. likely goes by a name
// that features have as well.
func (v *View) rowIDs(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, depth int) (sure, likely bool) {
	if depth <= 0 || e == nil {
		return false, false
	}
	switch e := e.(type) {
	case *syntax.Subscript: // ids[:, :-1], batch["input_ids"]
		if key, ok := e.Slice.(*syntax.Constant); ok && key.Kind == syntax.StrConstant {
			return idName(key.Text), tokenNames[strings.ToLower(key.Text)]
		}
		return v.rowIDs(scope, frame, e.Value, depth-1)
	case *syntax.BinOp:
		if e.Op == syntax.Div {
			return false, false
		}
		return v.rowIDs(scope, frame, e.Left, depth-1)
	case *syntax.Call:
		return v.rowIDsOf(scope, frame, e, depth)
	case *syntax.Attribute:
		return idName(e.Attr), tokenNames[strings.ToLower(e.Attr)]
	case *syntax.Name:
		def := scope.Def(e)
		if def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
			sure, likely = v.rowIDs(scope, frame, def.Value, depth-1)
			if _, call := def.Value.(*syntax.Call); sure || call && v.makesFloats(scope, frame, def.Value) {
				return sure, likely
			}
		}
		if def != nil && def.Kind == pyscan.ParamDef && annotatedLong(scope, def) {
			return true, true
		}
		return idName(e.ID) || v.takenAsIDs(scope, frame, e.ID), likely || tokenNames[strings.ToLower(e.ID)]
	}
	return false, false
}

// makesFloats reports whether a call gives no integers: a module of features, .float().
func (v *View) makesFloats(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) bool {
	call := e.(*syntax.Call)
	if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "float" || attr.Attr == "half" || attr.Attr == "bfloat16") {
		return true
	}
	_, module := v.Expand(v.Eval(scope, frame, call.Func)).(*pyscan.Instance)
	return module
}

// keepsIntegers are methods of tensors that hand integers on.
var keepsIntegers = map[string]bool{"to": true, "cuda": true, "cpu": true, "view": true, "reshape": true, "contiguous": true, "flatten": true, "squeeze": true,
	"unsqueeze": true, "clone": true, "detach": true, "t": true, "transpose": true, "clamp": true, "expand": true, "repeat": true, "npu": true}

// rowIDsOf is rowIDs for what a call gives.
func (v *View) rowIDsOf(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, depth int) (sure, likely bool) {
	for _, e := range append(slices.Clone(call.Args), keyword(call, "dtype")) {
		if e != nil && integers(v.Library(scope, frame, e)) {
			return true, true
		}
	}
	if attr, ok := call.Func.(*syntax.Attribute); ok {
		switch {
		case attr.Attr == "long", attr.Attr == "argmax":
			return true, true
		case keepsIntegers[attr.Attr]:
			return v.rowIDs(scope, frame, attr.Value, depth-1)
		}
	}
	switch v.Library(scope, frame, call.Func) {
	case "torch.randint", "torch.argmax", "torch.LongTensor", "torch.multinomial", "torch.randperm":
		return true, true
	}
	return false, false
}

func keyword(call *syntax.Call, name string) syntax.Expr {
	for _, k := range call.Keywords {
		if k.Arg == name {
			return k.Value
		}
	}
	return nil
}

func integers(dtype string) bool {
	switch dtype {
	case "torch.long", "torch.int64", "torch.int32", "torch.int":
		return true
	}
	return false
}

func idName(name string) bool {
	name = strings.ToLower(name)
	return idNames[name] || strings.HasSuffix(name, "_ids") || strings.HasSuffix(name, "_idx")
}

// annotatedLong reports whether a parameter is declared to be a LongTensor.
func annotatedLong(scope *pyscan.Scope, def *pyscan.Def) bool {
	at := def.Param()
	if at < 0 || at >= len(scope.Params) || scope.Params[at].Arg == nil || scope.Params[at].Arg.Annotation == nil {
		return false
	}
	return NamesAny(scope.Params[at].Arg.Annotation, "longtensor")
}

// takenAsIDs reports whether a function gives a name to something that wants integers: a lookup, one_hot, the target
// of cross_entropy.
func (v *View) takenAsIDs(scope *pyscan.Scope, frame *pyscan.Frame, name string) bool {
	found := false
	is := func(list []syntax.Expr, at int) bool {
		if at >= len(list) {
			return false
		}
		given, ok := list[at].(*syntax.Name)
		return ok && given.ID == name
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			call, ok := n.(*syntax.Call)
			if !ok || found {
				return !found
			}
			switch v.Library(scope, frame, call.Func) {
			case "torch.nn.functional.embedding", "torch.nn.functional.one_hot":
				found = is(call.Args, 0)
			case "torch.nn.functional.cross_entropy":
				found = is(call.Args, 1)
			default:
				if is(call.Args, 0) {
					inst, ok := v.Expand(v.Eval(scope, frame, call.Func)).(*pyscan.Instance)
					found = ok && v.Derives(inst.Of, embeddingClasses...) == pyscan.Yes
				}
			}
			return !found
		})
	}
	return found
}

// outputs is how many features a linear layer gives, as written; nil where it is not.
func outputs(linear *pyscan.Instance) syntax.Expr {
	if linear.Call == nil {
		return nil
	}
	for _, name := range []string{"out_features", "output_size", "output_features"} {
		if e := Argument(linear.Call, name, 1); e != nil {
			return e
		}
	}
	return nil
}

// mentionsVocabulary reports whether an expression names the vocabulary size: `vocab_size`, `config.vocab_size`,
// `n_vocab`.
func mentionsVocabulary(e syntax.Expr) bool {
	return NamesAny(e, "vocab")
}

// HeadOfTable is the embedding of the class around a scope that has as many rows as a linear layer has outputs: the
// layer is then the head over the same vocabulary. A table that is as wide as it is long says nothing, nor one of
// positions.
func (v *View) HeadOfTable(scope *pyscan.Scope, linear pyscan.Value) (table *pyscan.Instance) {
	inst, ok := linear.(*pyscan.Instance)
	if !ok || v.Derives(inst.Of, linearClasses...) != pyscan.Yes {
		return nil
	}
	class := scope.EnclosingClass()
	out := outputs(inst)
	if class == nil || out == nil {
		return nil
	}
	made := v.scopeOfCall(inst)
	n := v.Eval(made, inst.Frame, out)
	if in := Argument(inst.Call, "in_features", 0); in != nil && v.equal(v.Eval(made, inst.Frame, in), n) {
		return nil
	}
	for _, one := range v.tables(class) {
		rows := Argument(one.Call, "num_embeddings", 0)
		width := Argument(one.Call, "embedding_dim", 1)
		if rows == nil || width == nil {
			continue
		}
		at := v.scopeOfCall(one.Instance)
		count := v.Eval(at, one.Frame, rows)
		if v.equal(count, v.Eval(at, one.Frame, width)) || v.countsPositions(class, one.name) {
			continue
		}
		if v.equal(count, n) || v.rowsOf(n, one.Instance) {
			return one.Instance
		}
	}
	return nil
}

// equal reports whether two values are the same, or the same number.
func (v *View) equal(a, b pyscan.Value) bool {
	if v.Same(a, b) || v.Same(v.Expand(a), v.Expand(b)) {
		return true
	}
	c, ok := v.Constant(v.Expand(a))
	d, ok2 := v.Constant(v.Expand(b))
	x, number := c.Int()
	y, number2 := d.Int()
	return ok && ok2 && number && number2 && x == y
}

// rowsOf reports whether a value is how many rows a table has: table.num_embeddings.
func (v *View) rowsOf(n pyscan.Value, table *pyscan.Instance) bool {
	member, ok := n.(*pyscan.Member)
	return ok && member.Name == "num_embeddings" && v.Same(v.Expand(member.Base), table)
}

// namedTable is an embedding with the attribute that it is.
type namedTable struct {
	*pyscan.Instance
	name string
}

// tables are the embeddings of a class and its bases, those in the containers that are its attributes included.
func (v *View) tables(class *pyscan.Scope) []namedTable {
	var list []namedTable
	value := &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}
	self := v.anyInstance(value)
	for _, base := range v.lineage(value) {
		for _, name := range v.attributes(base) {
			for _, one := range Alternatives(v.Expand(v.Attr(self, name, value.Origin))) {
				inst, ok := one.(*pyscan.Instance)
				if !ok {
					continue
				}
				for _, part := range append(v.elements(inst), inst) {
					if table, ok := part.(*pyscan.Instance); ok && table.Call != nil && v.Derives(table.Of, embeddingClasses...) == pyscan.Yes {
						list = append(list, namedTable{table, name})
					}
				}
			}
		}
	}
	return list
}

// countsPositions reports whether a class looks positions up in a table: it is given what torch.arange makes.
func (v *View) countsPositions(class *pyscan.Scope, table string) bool {
	found := false
	syntax.Inspect(class.Node, func(n syntax.Node) bool {
		call, ok := n.(*syntax.Call)
		if !ok || found || len(call.Args) == 0 || leafOf(call.Func) != table {
			return !found
		}
		scope := pyscan.ScopeAt(class.Module, call)
		e := call.Args[0]
		if name, ok := e.(*syntax.Name); ok {
			if def := scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil {
				e = def.Value
			}
		}
		syntax.Inspect(e, func(n syntax.Node) bool {
			if made, ok := n.(*syntax.Call); ok && pyscan.PathEnd(made.Func) == "arange" {
				found = true
			}
			return !found
		})
		return !found
	})
	return found
}
