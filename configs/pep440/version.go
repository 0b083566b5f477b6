// Package pep440 compares releases of Python packages and decides which of them a requirement allows, after the "Version
// specifiers" of the Python packaging user guide (PEP 440).
package pep440

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Version is one release: 2.3.0, 1.0rc1, 2.1.0.post3. The zero value is 0, the lowest final release.
type Version struct {
	Epoch   int
	Release []int  // 2.3.0 is {2, 3, 0}
	Pre     string // "a", "b" or "rc"; "" for none
	PreN    int
	Post    int    // .postN; -1 without
	Dev     int    // .devN; -1 without
	Local   string // +cu121; it takes no part in comparisons, as `==2.3` is met by 2.3+cu121
}

var form = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
		`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]*))?` +
		`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]*))?` +
		`(?:[-_.]?(dev)[-_.]?([0-9]*))?` +
		`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)
})

// maxText bounds the bytes of a version or of one clause that are looked at.
const maxText = 256

// Parse reads a version in any spelling that PEP 440 takes; false for what is none.
func Parse(text string) (Version, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > maxText {
		return Version{}, false
	}
	v, good := Version{Post: -1, Dev: -1}, true
	number := func(digits string) int {
		if digits == "" {
			return 0
		}
		n, err := strconv.Atoi(digits)
		good = good && err == nil
		return n
	}
	release := func(numbers string) {
		v.Release = make([]int, 0, 1+strings.Count(numbers, "."))
		for part := range strings.SplitSeq(numbers, ".") {
			v.Release = append(v.Release, number(part))
		}
	}
	if plain(text) { // as nearly all are
		release(text)
		return v, good
	}
	m := form().FindStringSubmatch(text)
	if m == nil {
		return Version{}, false
	}
	v.Local = strings.NewReplacer("-", ".", "_", ".").Replace(strings.Clone(m[10])) // kept longer than the text
	v.Epoch = number(m[1])
	release(m[2])
	if m[3] != "" {
		v.Pre, v.PreN = map[string]string{"alpha": "a", "a": "a", "beta": "b", "b": "b"}[m[3]], number(m[4])
		if v.Pre == "" {
			v.Pre = "rc"
		}
	}
	switch {
	case m[5] != "":
		v.Post = number(m[5])
	case m[6] != "":
		v.Post = number(m[7])
	}
	if m[8] != "" {
		v.Dev = number(m[9])
	}
	return v, good
}

// plain reports whether a version is a release and nothing else: numbers with dots between them.
func plain(text string) bool {
	dot := true
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			dot = false
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return !dot
}

// Must is Parse for versions in the source of trainvet.
func Must(text string) Version {
	v, ok := Parse(text)
	if !ok {
		panic("no version: " + text)
	}
	return v
}

// Compare orders two versions: -1, 0 or 1. Local parts are left out.
func (v Version) Compare(w Version) int {
	if c := cmp.Compare(v.Epoch, w.Epoch); c != 0 {
		return c
	}
	for i := range max(len(v.Release), len(w.Release)) {
		if c := cmp.Compare(v.part(i), w.part(i)); c != 0 {
			return c
		}
	}
	a, b := v.rank(), w.rank()
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// part is the i-th number of the release; 2.3 is 2.3.0.
func (v Version) part(i int) int {
	if i < len(v.Release) {
		return v.Release[i]
	}
	return 0
}

// largest stands for "no such part" where that comes last.
const largest = int(^uint(0) >> 1)

// rank orders the releases of one number: 1.dev0 < 1a1.dev0 < 1a1 < 1rc1 < 1 < 1.post0.dev0 < 1.post0.
func (v Version) rank() [4]int {
	stage := map[string]int{"a": 1, "b": 2, "rc": 3}[v.Pre]
	if v.Pre == "" {
		stage = 4
		if v.Post < 0 && v.Dev >= 0 {
			stage = 0
		}
	}
	dev := v.Dev
	if dev < 0 {
		dev = largest
	}
	return [4]int{stage, v.PreN, v.Post, dev}
}

// IsPre reports whether the version is a pre-release or one of development.
func (v Version) IsPre() bool { return v.Pre != "" || v.Dev >= 0 }

// String is the version in its normal spelling.
func (v Version) String() string {
	var b strings.Builder
	if v.Epoch != 0 {
		b.WriteString(strconv.Itoa(v.Epoch) + "!")
	}
	for i, n := range v.Release {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.Itoa(n))
	}
	if len(v.Release) == 0 {
		b.WriteByte('0')
	}
	if v.Pre != "" {
		b.WriteString(v.Pre + strconv.Itoa(v.PreN))
	}
	if v.Post >= 0 && len(v.Release) > 0 {
		b.WriteString(".post" + strconv.Itoa(v.Post))
	}
	if v.Dev >= 0 && len(v.Release) > 0 {
		b.WriteString(".dev" + strconv.Itoa(v.Dev))
	}
	if v.Local != "" {
		b.WriteString("+" + v.Local)
	}
	return b.String()
}

// first is the lowest version of a release and of all that begin with its numbers: 2.3.dev0.
func first(epoch int, release []int) Version {
	return Version{Epoch: epoch, Release: release, Post: -1, Dev: 0}
}

// next is the lowest version behind all that begin with these numbers: 2.4.dev0 for 2.3.
func next(epoch int, release []int) Version {
	release = append([]int(nil), release...)
	release[len(release)-1]++
	return first(epoch, release)
}
