// Package plan is the neutral training plan: what a run does, whatever files said it.
//
// A plan is honest. Each of its values is written, a default, derived from others or given by a flag, and says from
// where; or it is unknown, and then what depends on it is unknown too. Everything here is pure.
package plan

import (
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// How says how a value came into the plan.
type How uint8

// The ways, from the weakest claim to the strongest. When plans are merged the strongest wins.
const (
	IsUnknown How = iota
	IsDefault     // nobody wrote it: what the framework does when the key is absent
	IsDerived     // follows from other values
	IsWritten     // stands in a file
	IsFlag        // given on trainvet's own command line or in its settings; overrides the files
)

var howNames = [...]string{"unknown", "default", "derived", "written", "flag"}

func (h How) String() string { return howNames[h] }

// Value is one fact about a run, or the absence of one. The zero Value is unknown.
type Value[T comparable] struct {
	v   T
	how How
	why *reasons // nil: neither places nor a note; a plan has many values, and few of them are known
}

// reasons are where a value came from and what to say about it. They are never changed, for values are copied.
type reasons struct {
	from []source.Place
	note string
}

func because(from []source.Place, note string) *reasons {
	if len(from) == 0 && note == "" {
		return nil
	}
	return &reasons{from, note}
}

// Written is a value that stands in a file at places.
func Written[T comparable](v T, places ...source.Place) Value[T] {
	return Value[T]{v: v, how: IsWritten, why: because(places, "")}
}

// Default is what holds when nothing is written; note says whose default it is, and of which version.
func Default[T comparable](v T, note string) Value[T] {
	return Value[T]{v: v, how: IsDefault, why: because(nil, note)}
}

// Derived is a value that follows from others, which stand at from.
func Derived[T comparable](v T, from ...source.Place) Value[T] {
	return Value[T]{v: v, how: IsDerived, why: because(from, "")}
}

// Flag is a value that the user gave to trainvet itself.
func Flag[T comparable](v T) Value[T] { return Value[T]{v: v, how: IsFlag} }

// WithNote is the same value with a remark for people, such as the rule by which it was derived.
func (x Value[T]) WithNote(note string) Value[T] {
	x.why = because(x.From(), note)
	return x
}

// Get is the value, and whether it is known.
func (x Value[T]) Get() (T, bool) { return x.v, x.how != IsUnknown }

// Or is the value, or fallback where it is unknown. Use it only where fallback is what the framework does.
func (x Value[T]) Or(fallback T) T {
	if x.how == IsUnknown {
		return fallback
	}
	return x.v
}

// Is reports whether the value is known and equal to v.
func (x Value[T]) Is(v T) bool { return x.how != IsUnknown && x.v == v }

// Known reports whether there is a value.
func (x Value[T]) Known() bool { return x.how != IsUnknown }

// How says how the value came.
func (x Value[T]) How() How { return x.how }

// From are the places that the value came from. Not to be changed.
func (x Value[T]) From() []source.Place {
	if x.why == nil {
		return nil
	}
	return x.why.from
}

// Note is a remark for people: whose default, which rule of derivation, which assumption.
func (x Value[T]) Note() string {
	if x.why == nil {
		return ""
	}
	return x.why.note
}

// Any is the value without its type; nil and false where it is unknown.
func (x Value[T]) Any() (any, bool) {
	if x.how == IsUnknown {
		return nil, false
	}
	return x.v, true
}

// Fact is a Value of whatever type.
type Fact interface {
	Any() (any, bool)
	Known() bool
	How() How
	From() []source.Place
	Note() string
}

// slot is a settable Value of whatever type, as the table of fields needs it.
type slot interface {
	Fact
	fact() Fact
	take(other slot)
	differs(other slot) bool
	addFrom(other slot)
	parse(raw any, how How, note string, places []source.Place) error
}

func (x *Value[T]) fact() Fact { return *x }

func (x *Value[T]) take(other slot) { *x = *other.(*Value[T]) }

func (x *Value[T]) differs(other slot) bool {
	y := other.(*Value[T])
	return x.how != IsUnknown && y.how != IsUnknown && x.v != y.v
}

// addFrom adds the places of other, which says the same.
func (x *Value[T]) addFrom(other slot) {
	from := x.From()
	for _, place := range other.From() {
		if !slices.Contains(from, place) {
			from = append(slices.Clip(from), place)
		}
	}
	x.why = because(from, x.Note())
}

func (x *Value[T]) parse(raw any, how How, note string, places []source.Place) error {
	var v T
	if err := parse(&v, raw); err != nil {
		return err
	}
	*x = Value[T]{v: v, how: how, why: because(places, note)}
	return nil
}
