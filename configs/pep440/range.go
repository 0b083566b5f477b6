package pep440

import "strings"

// Range is the set of releases that a requirement allows: those between two bounds, without single ones. The zero value
// allows all.
//
// Where a requirement allows a set of another shape, as `^1.2 || ^3.0` does, the Range around it is meant: what holds for all of a
// Range then holds for what is allowed.
type Range struct {
	low, high         *Version
	withLow, withHigh bool // the bound itself is allowed
	holes             []hole
	exact             bool // one release was named: ==2.3.0
	empty             bool
}

type hole struct{ from, to Version } // from <= v < to, or the one version where they are equal

// maxClauses bounds the comparisons of one specifier.
const maxClauses = 64

// ParseRange reads a version specifier such as `>=2.1,<2.5,!=2.3.1`, `~=2.1`, `==2.3.*`; false for what is none.
func ParseRange(spec string) (Range, bool) {
	var r Range
	clauses := strings.Split(spec, ",")
	if len(clauses) > maxClauses {
		return Range{}, false
	}
	for _, clause := range clauses {
		clause = strings.TrimSpace(clause)
		if clause == "" && len(clauses) > 1 {
			continue // a comma at the end
		}
		one, ok := parseClause(clause)
		if !ok {
			return Range{}, false
		}
		r = r.And(one)
	}
	return r, true
}

func parseClause(clause string) (Range, bool) {
	for _, op := range [...]string{"===", "==", "~=", "!=", "<=", ">=", "<", ">"} {
		rest, ok := strings.CutPrefix(clause, op)
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if prefix, wild := strings.CutSuffix(rest, ".*"); wild && (op == "==" || op == "!=") {
			v, ok := Parse(prefix)
			if !ok || v.IsPre() || v.Post >= 0 || v.Local != "" {
				return Range{}, false
			}
			from, to := first(v.Epoch, v.Release), next(v.Epoch, v.Release)
			if op == "!=" {
				return Range{holes: []hole{{from, to}}}, true
			}
			return Between(from, to), true
		}
		v, ok := Parse(rest)
		if !ok {
			return Range{}, false
		}
		switch op {
		case "===", "==":
			return Exactly(v), true
		case "!=":
			return Range{holes: []hole{{v, v}}}, true
		case "~=":
			if len(v.Release) < 2 {
				return Range{}, false
			}
			to := next(v.Epoch, v.Release[:len(v.Release)-1])
			return Range{low: &v, withLow: true, high: &to}, true
		case "<=":
			return Range{high: &v, withHigh: true}, true
		case ">=":
			return Range{low: &v, withLow: true}, true
		case ">":
			return Range{low: &v}, true
		case "<":
			if !v.IsPre() { // <2.4 leaves out 2.4rc1 too
				v = Version{Epoch: v.Epoch, Release: v.Release, Post: v.Post, Dev: 0}
			}
			return Range{high: &v}, true
		}
	}
	return Range{}, false
}

// Exactly allows one release, with any local part.
func Exactly(v Version) Range {
	return Range{low: &v, high: &v, withLow: true, withHigh: true, exact: true}
}

// Between allows from <= v < to.
func Between(from, to Version) Range { return Range{low: &from, withLow: true, high: &to} }

// From allows a release and what came after it.
func From(v Version) Range { return Range{low: &v, withLow: true} }

// Before allows what came before a release, without its own pre-releases.
func Before(v Version) Range {
	v = Version{Epoch: v.Epoch, Release: v.Release, Post: -1, Dev: 0}
	return Range{high: &v}
}

// Series allows all releases that begin with the numbers of v: 2.3.0, 2.3.1 ... for 2.3.
func Series(v Version) Range { return Between(first(v.Epoch, v.Release), next(v.Epoch, v.Release)) }

// Caret is `^1.2` of poetry: up to the next change of the first number that is not 0.
func Caret(v Version) Range {
	i := 0
	for i < len(v.Release)-1 && v.Release[i] == 0 {
		i++
	}
	return Range{low: &v, withLow: true, high: ptr(next(v.Epoch, v.Release[:i+1]))}
}

// Tilde is `~1.2` of poetry: up to the next change of the second number, or of the only one.
func Tilde(v Version) Range {
	return Range{low: &v, withLow: true, high: ptr(next(v.Epoch, v.Release[:min(2, len(v.Release))]))}
}

func ptr(v Version) *Version { return &v }

// And allows what both allow.
func (r Range) And(s Range) Range {
	r.holes = append(r.holes[:len(r.holes):len(r.holes)], s.holes...)
	if s.low != nil {
		if c := -1; r.low != nil {
			c = r.low.Compare(*s.low)
			r.withLow = c > 0 && r.withLow || c < 0 && s.withLow || c == 0 && r.withLow && s.withLow
			if c < 0 {
				r.low = s.low
			}
		} else {
			r.low, r.withLow = s.low, s.withLow
		}
	}
	if s.high != nil {
		if r.high != nil {
			c := r.high.Compare(*s.high)
			r.withHigh = c < 0 && r.withHigh || c > 0 && s.withHigh || c == 0 && r.withHigh && s.withHigh
			if c > 0 {
				r.high = s.high
			}
		} else {
			r.high, r.withHigh = s.high, s.withHigh
		}
	}
	r.exact = r.exact || s.exact
	r.empty = r.empty || s.empty || r.isEmpty()
	return r
}

// isEmpty decides by the bounds and by what is cut out around a single release.
func (r Range) isEmpty() bool {
	if r.low == nil || r.high == nil {
		return false
	}
	c := r.low.Compare(*r.high)
	if c > 0 || c == 0 && !(r.withLow && r.withHigh) {
		return true
	}
	for _, h := range r.holes {
		if h.from.Compare(h.to) == 0 {
			if c == 0 && h.from.Compare(*r.low) == 0 {
				return true
			}
		} else if end := r.high.Compare(h.to); h.from.Compare(*r.low) <= 0 && (end < 0 || end == 0 && !r.withHigh) {
			return true
		}
	}
	return false
}

// Or is the smallest range around both: more may be allowed by it than by either.
func (r Range) Or(s Range) Range {
	switch {
	case r.empty:
		return s
	case s.empty:
		return r
	}
	var u Range
	if r.low != nil && s.low != nil {
		c := r.low.Compare(*s.low)
		u.low, u.withLow = r.low, r.withLow || c == 0 && s.withLow
		if c > 0 {
			u.low, u.withLow = s.low, s.withLow
		}
	}
	if r.high != nil && s.high != nil {
		c := r.high.Compare(*s.high)
		u.high, u.withHigh = r.high, r.withHigh || c == 0 && s.withHigh
		if c < 0 {
			u.high, u.withHigh = s.high, s.withHigh
		}
	}
	u.exact = r.exact && s.exact && u.low != nil && u.high != nil && u.low.Compare(*u.high) == 0
	return u
}

// Empty reports whether no release is allowed.
func (r Range) Empty() bool { return r.empty }

// Any reports whether every release is allowed.
func (r Range) Any() bool { return !r.empty && r.low == nil && r.high == nil && len(r.holes) == 0 }

// Overlaps reports whether some release may be allowed by both.
func (r Range) Overlaps(s Range) bool { return !r.And(s).empty }

// Has reports whether a release is allowed.
func (r Range) Has(v Version) bool { return !r.And(Exactly(v)).empty }

// Exact is the one release that is allowed; false where there are more.
func (r Range) Exact() (Version, bool) {
	if r.empty || r.low == nil || r.high == nil || r.low.Compare(*r.high) != 0 {
		return Version{}, false
	}
	return *r.low, true
}

// Since reports whether all allowed releases are the given one or later.
func (r Range) Since(v Version) bool {
	return !r.empty && r.low != nil && r.low.Compare(v) >= 0
}

// Below reports whether all allowed releases came before the given one. Its pre-releases count as that release: what changed in 2.6 is in
// 2.6.0rc1 too.
func (r Range) Below(v Version) bool {
	return !r.empty && r.high != nil && !r.Overlaps(From(Version{Epoch: v.Epoch, Release: v.Release, Post: -1, Dev: 0}))
}

// String is a specifier of the range: `>=2.1,<2.4`, `==2.3.0`; "any" and "none" for the two ends.
func (r Range) String() string {
	switch {
	case r.empty:
		return "none"
	case r.Any():
		return "any"
	}
	if v, ok := r.Exact(); ok {
		return "==" + v.String()
	}
	var parts []string
	add := func(op string, v Version) {
		if v.Dev == 0 && v.Pre == "" { // the first of a series
			v.Dev = -1
		}
		parts = append(parts, op+v.String())
	}
	if r.low != nil {
		add(map[bool]string{true: ">=", false: ">"}[r.withLow], *r.low)
	}
	if r.high != nil {
		add(map[bool]string{true: "<=", false: "<"}[r.withHigh], *r.high)
	}
	for _, h := range r.holes {
		if h.from.Compare(h.to) == 0 {
			add("!=", h.from)
		} else {
			v := h.from
			v.Dev = -1
			parts = append(parts, "!="+v.String()+".*")
		}
	}
	return strings.Join(parts, ",")
}

// Within reports whether all allowed releases lie between the bounds of s. Holes in s count as allowed.
func (r Range) Within(s Range) bool {
	if s.low != nil {
		if r.low == nil {
			return false
		}
		if c := r.low.Compare(*s.low); c < 0 || c == 0 && r.withLow && !s.withLow {
			return false
		}
	}
	if s.high != nil {
		if r.high == nil {
			return false
		}
		if c := r.high.Compare(*s.high); c > 0 || c == 0 && r.withHigh && !s.withHigh {
			return false
		}
	}
	return !r.empty
}
