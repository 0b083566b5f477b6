package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Identity tells a finding from others in a way that survives shifts: no line number enters. Of equal findings of a file each has
// its ordinal, so that one more is a new one.
type Identity struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Key     string `json:"key,omitempty"`  // dotted path, in configs
	Line    string `json:"line,omitempty"` // elsewhere, the text of the line without outer blanks
	Ordinal int    `json:"ordinal"`        // from 1
}

// Identities gives the identity of each finding of a report. Names are those of the report, or what rename makes of them.
func (r *Report) Identities(rename func(string) string) []Identity {
	all := make([]Identity, len(r.Findings))
	seen := map[Identity]int{}
	for i, finding := range r.Findings {
		id := Identity{Path: inJSON(rename(finding.At.Path)), Rule: finding.Rule.Name, Key: finding.Key}
		if id.Key == "" {
			if file := r.File(finding.At.Path); file != nil {
				id.Line = strings.TrimSpace(file.Slice(file.LineSpan(file.Line(finding.At.Span.Start))))
			}
		}
		seen[id]++
		id.Ordinal = seen[id]
		all[i] = id
	}
	return all
}

// invalidByte is what stands in names of an identity for a byte that is no UTF-8, which JSON cannot hold.
const invalidByte = `\x`

// inJSON is a name as JSON can hold it and gives it back.
func inJSON(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var text strings.Builder
	for i, r := range name {
		if r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)) {
			fmt.Fprintf(&text, invalidByte+"%02x", name[i])
		} else {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// Baseline is a record of findings that are known and hidden.
type Baseline map[Identity]bool

type baselineFile struct {
	Version  int        `json:"version"`
	Findings []Identity `json:"findings"`
}

// ReadBaseline reads what WriteBaseline wrote.
func ReadBaseline(text []byte) (Baseline, error) {
	var file baselineFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("is no baseline: %w", err)
	}
	if len(bytes.TrimSpace(text[decoder.InputOffset():])) > 0 {
		return nil, errors.New("is no baseline: more follows its end")
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("is a baseline of version %d; this trainvet reads version 1", file.Version)
	}
	known := Baseline{}
	for _, id := range file.Findings {
		known[id] = true
	}
	return known, nil
}

// WriteBaseline records the findings of a report, sorted, one a line. Names are relative to the folder of the baseline.
func WriteBaseline(out io.Writer, report *Report, settings *Resolver, file string) error {
	return writeIdentities(out, report.Identities(settings.relativeTo(path.Dir(settings.Absolute(file)))))
}

func writeIdentities(out io.Writer, all []Identity) error {
	slices.SortFunc(all, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	var text bytes.Buffer
	text.WriteString("{\"version\": 1, \"findings\": [")
	for i, id := range all {
		if i > 0 {
			text.WriteByte(',')
		}
		line, err := json.Marshal(id)
		if err != nil {
			return err
		}
		text.WriteByte('\n')
		for _, r := range string(line) {
			if unicode.Is(unicode.Cf, r) && r != '\u200d' || r == 0x7f || 0x80 <= r && r < 0xa0 { // would hide or turn around what a diff of the file shows
				for _, unit := range utf16.Encode([]rune{r}) {
					fmt.Fprintf(&text, "\\u%04x", unit)
				}
				continue
			}
			text.WriteRune(r)
		}
	}
	text.WriteString("\n]}\n")
	_, err := out.Write(text.Bytes())
	return err
}

// Gone are the entries of a baseline that nothing needs any more.
type Gone struct {
	File    string // of the baseline, absolute
	Before  Baseline
	Entries []Identity
}

// WriteRest writes the baseline without them.
func (g *Gone) WriteRest(out io.Writer) error {
	var rest []Identity
	for id := range g.Before {
		if !slices.Contains(g.Entries, id) {
			rest = append(rest, id)
		}
	}
	return writeIdentities(out, rest)
}

// findGone tells which entries hide nothing. Only a file that was checked with the rule of the entry can tell, or one that is not
// there any more.
func (c *checker) findGone(report *Report, file string, loaded Baseline, used map[Identity]bool, settings map[string]*Settings) {
	relative := c.options.Settings.relativeTo(path.Dir(file))
	checked := map[string]*Settings{}
	for name, s := range settings {
		if s.Baseline == file {
			checked[inJSON(relative(name))] = s
		}
	}
	gone := Gone{File: file, Before: loaded}
	for id := range loaded {
		s, was := checked[id.Path]
		rule := lint.Find(c.options.Rules, id.Rule)
		switch {
		case used[id], was && rule != nil && !s.selected[rule]:
		case !was && strings.Contains(id.Path, invalidByte): // the name on disk is another one
		case was, c.snapshot.Kind(path.Join(path.Dir(file), id.Path)) == workspace.Absent && !path.IsAbs(id.Path):
			gone.Entries = append(gone.Entries, id)
		}
	}
	if len(gone.Entries) > 0 {
		report.Gone = append(report.Gone, gone)
	}
}

// relativeTo names files as seen from a folder, where they lie below it.
func (r *Resolver) relativeTo(folder string) func(string) string {
	return func(name string) string {
		name = r.Absolute(name)
		if relative, inside := below(folder, name); inside {
			return relative
		}
		return name
	}
}

// loadBaselines reads the baselines of all settings, and that of the flag even where there is nothing to check: a baseline that
// cannot be read is told whether or not it would hide anything.
func (c *checker) loadBaselines(settings []*Settings) (map[string]Baseline, error) {
	loaded := map[string]Baseline{}
	load := func(file, at string) error {
		if _, known := loaded[file]; file == "" || known {
			return nil
		}
		known, err := c.loadBaseline(file)
		if err != nil {
			message := c.options.Settings.shown(file) + ": " + err.Error()
			if at != "" {
				message = at + ": baseline " + message
			}
			return SettingsError{message}
		}
		loaded[file] = known
		return nil
	}
	if flag := c.options.Settings.Flags.Baseline; flag != "" {
		if err := load(c.options.Settings.Absolute(flag), ""); err != nil {
			return nil, err
		}
	}
	if c.options.NoBaseline {
		return loaded, nil
	}
	for _, s := range settings {
		if err := load(s.Baseline, s.baselineAt); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// hideKnown takes out the findings that the baselines of their settings record.
func (c *checker) hideKnown(report *Report, settings map[string]*Settings, loaded map[string]Baseline) {
	ids := map[string][]Identity{}
	used := map[string]map[Identity]bool{}
	for file := range loaded {
		used[file] = map[Identity]bool{}
	}
	kept := report.Findings[:0:0]
	for i, finding := range report.Findings {
		file := settings[finding.At.Path].Baseline
		if file == "" {
			kept = append(kept, finding)
			continue
		}
		if ids[file] == nil {
			ids[file] = report.Identities(c.options.Settings.relativeTo(path.Dir(file)))
		}
		if loaded[file][ids[file][i]] {
			report.Summary.Suppressed++
			used[file][ids[file][i]] = true
		} else {
			kept = append(kept, finding)
		}
	}
	report.Findings = kept
	for _, file := range sortedKeys(loaded) {
		c.findGone(report, file, loaded[file], used[file], settings)
	}
}

func (c *checker) loadBaseline(name string) (Baseline, error) {
	file, err := c.snapshot.File(name)
	if err != nil {
		return nil, err
	}
	return ReadBaseline(file.Text)
}
