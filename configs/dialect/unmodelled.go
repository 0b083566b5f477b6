package dialect

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/configs"
)

// effectsText says of every known key of every framework what it does to device memory. Its lines are
//
//	[DIALECT < OTHER]         what follows is of this dialect, which has the keys of the other one too
//	unmodelled KEY: THING     the key switches on what no estimate knows
//	unmodelled KEY is V W: THING, and likewise `not V W`, `has V*` (one of a list) and `> N`
//	read KEY...               the plan has a value for it
//	none KEY...               it uses no device memory that an estimate could tell
//
// {} in the name of a thing is the value as written. A value that is filled in later counts for every test. Keys
// of `read` and `none` may end in *.
//
//go:embed effects.txt
var effectsText string

// effect is one way in which a key asks for what no estimate knows.
type effect struct {
	key    string
	test   string   // "", is, not, has or >
	values []string // of the test, in lower case; one of has may end in *
	thing  string
}

// decisions are what effects.txt says of one dialect.
type decisions struct {
	base       string
	unmodelled []effect
	read, none []string // lines, which only the tests take apart
}

var effects = sync.OnceValue(func() map[string]*decisions {
	all := map[string]*decisions{}
	var of *decisions
	for line := range strings.SplitSeq(effectsText, "\n") {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "unmodelled":
			of.unmodelled = append(of.unmodelled, effectOf(rest))
		case "read":
			of.read = append(of.read, rest)
		case "none":
			of.none = append(of.none, rest)
		default:
			if strings.HasPrefix(kind, "[") {
				words := strings.Fields(strings.Trim(line, "[] "))
				of = &decisions{base: words[len(words)-1]}
				if len(words) == 1 {
					of.base = ""
				}
				all[words[0]] = of
			}
		}
	}
	return all
})

func effectOf(line string) effect {
	condition, thing, _ := strings.Cut(line, ": ")
	words := strings.Fields(condition)
	e := effect{key: words[0], thing: thing}
	if len(words) > 1 {
		e.test, e.values = words[1], words[2:]
	}
	return e
}

// unmodelled notes what the file asks for that no estimate knows.
func (r *reader) unmodelled() {
	for name := r.dialect.Name; name != ""; {
		of := effects()[name]
		if of == nil {
			return
		}
		for i := range of.unmodelled {
			e := &of.unmodelled[i]
			if f := r.find(e.key); r.asks(e, f) {
				r.cannotModel(e.thing, f)
			}
		}
		name = of.base
	}
}

// asks reports whether a key switches an effect on, or may do so once it is filled in.
func (r *reader) asks(e *effect, f found) bool {
	if f.node == nil || f.state == absent {
		return false
	}
	if f.state == unknown {
		return f.node.Open
	}
	words, listed := r.words(f)
	if e.test == "has" && len(words) == 1 && !listed {
		words = strings.FieldsFunc(words[0], func(c rune) bool { return strings.ContainsRune(" ,[]'\"", c) })
	}
	matches := func(pattern string) bool {
		return slices.ContainsFunc(words, func(word string) bool { ok, _ := path.Match(pattern, word); return ok })
	}
	switch e.test {
	case "is", "not", "has":
		return len(words) > 0 && slices.ContainsFunc(e.values, matches) == (e.test != "not")
	case ">":
		least, _ := strconv.ParseFloat(e.values[0], 64)
		n, ok := r.number(f)
		return ok && n > least
	}
	return listed && len(words) > 0 || !listed && r.switchedOn(f)
}

// words are the value in lower case: one, or those of a list. listed is true for a list or a mapping.
func (r *reader) words(f found) (words []string, listed bool) {
	switch f.node.Kind {
	case configs.Mapping:
		for i := range f.node.Items {
			words = append(words, strings.ToLower(f.node.Items[i].Key))
		}
		return words, true
	case configs.Sequence:
		for _, item := range f.node.Items {
			if item.Value != nil && item.Value.Kind == configs.Scalar {
				words = append(words, strings.ToLower(item.Value.Raw))
			}
		}
		return words, true
	}
	if text := strings.ToLower(strings.TrimSpace(f.node.Raw)); text != "" && !isNull(f.node) {
		words = []string{text}
	}
	return words, false
}

// switchedOn reports whether a value stands for something: it is not false, 0, empty or a word for nothing.
func (r *reader) switchedOn(f found) bool {
	if on, known := r.truth(f); known {
		return on
	}
	if n, ok := r.number(f); ok {
		return n != 0
	}
	switch text := strings.ToLower(strings.TrimSpace(f.node.Raw)); text {
	case "", "none", "null", "off", "disabled":
		return false
	}
	return true
}

// cannotModel notes a thing whose use of memory is not known; {} in its name is the value at f.
func (r *reader) cannotModel(thing string, f found) {
	value := strings.TrimLeft(f.path, "-")
	if f.node != nil && f.node.Kind == configs.Scalar && !f.node.Open {
		value = f.node.Raw
	} else if f.node != nil && f.node.Kind != configs.Scalar {
		words, _ := r.words(f)
		value = strings.Join(words, ", ")
	}
	if !namable(value) {
		value = strings.TrimLeft(f.path[strings.LastIndexByte(f.path, '.')+1:], "-")
	}
	if !namable(value) {
		value = "of another kind"
	}
	r.plan.CannotModel(strings.ReplaceAll(thing, "{}", value), f.at)
}

// namable reports whether a value can stand in a sentence.
func namable(value string) bool {
	return value != "" && len(value) <= 60 && !strings.ContainsFunc(value, func(c rune) bool {
		return c < ' ' || c > '~'
	})
}

// cannotTell leaves a value unknown because of what is written at f, which is named: an estimate would take
// another value for it.
func (r *reader) cannotTell(field, thing string, f found) {
	r.forget(field)
	if f.node != nil && f.state != absent {
		r.cannotModel(thing, f)
	}
}
