package configs

import (
	"bytes"
	"path"
	"strings"

	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint/source"
)

// Installs is what the scripts and image files say about packages: the requirements of their `pip install` commands, and the files
// that those read.
type Installs struct {
	List     []Requirement
	Includes []Include
}

// maxInstalls bounds the requirements that are kept of one script.
const maxInstalls = 1024

// installer reports whether words start an installation, and gives the words behind `install`.
func installer(words []field) (rest []field, conda, ok bool) {
	name := func() string {
		if len(words) == 0 {
			return ""
		}
		return programName(words[0])
	}
	skip := func() { words = words[min(1, len(words)):] }
	for name() == "sudo" || name() == "env" || name() == "exec" || name() == "time" {
		skip()
	}
	switch {
	case name() == "uv":
		skip()
		if name() == "add" {
			skip()
			return words, false, true
		}
		if name() != "pip" {
			return nil, false, false
		}
		skip()
	case name() == "python":
		skip()
		if len(words) < 2 || words[0].text() != "-m" || words[1].text() != "pip" {
			return nil, false, false
		}
		words = words[2:]
	case strings.HasPrefix(name(), "pip") && strings.Trim(name()[3:], "0123456789.") == "":
		skip()
	case name() == "conda" || name() == "mamba" || name() == "micromamba":
		conda = true
		skip()
	default:
		return nil, false, false
	}
	for len(words) > 0 && strings.HasPrefix(words[0].text(), "-") {
		skip()
	}
	if name() != "install" && !(conda && name() == "create") {
		return nil, false, false
	}
	return words[1:], conda, true
}

// install records a command that installs packages.
func (r *shellReader) install(words []field) {
	words, conda, ok := installer(words)
	if !ok {
		return
	}
	out := &r.script.Installs
	for i := 0; i < len(words) && len(out.List) < maxInstalls; i++ {
		text := words[i].text()
		at, _ := r.place(words[i], false)
		option, value, joined := strings.Cut(text, "=")
		switch {
		case strings.HasPrefix(text, "-r") && text != "-r", strings.HasPrefix(text, "-c") && text != "-c" && !conda:
			option, value, joined = text[:2], text[2:], true
		}
		switch {
		case conda && strings.HasPrefix(text, "-"):
			if installValues[text] {
				i++
			}
		case option == "-r" || option == "--requirement" || option == "-c" || option == "--constraint":
			if !joined {
				if i++; i >= len(words) {
					return
				}
				value = words[i].text()
				at, _ = r.place(words[i], false)
			}
			if value != "" && !strings.Contains(value, "://") && !strings.Contains(value, "$") {
				out.Includes = append(out.Includes, Include{Path: value, At: at, Constraint: option[len(option)-1] == 'c' || option == "--constraint"})
			}
		case strings.HasPrefix(text, "-"):
			if !joined && installValues[text] {
				i++
			}
		default:
			one, ok := r.requirement(text, at, words[i].open(), conda)
			if ok {
				if r.guarded > 0 {
					one.When = max(one.When, Sometimes)
				}
				out.List = append(out.List, one)
			}
		}
	}
}

// installValues are options that take the next word.
var installValues = map[string]bool{"-i": true, "--index-url": true, "--extra-index-url": true, "-f": true, "--find-links": true, "-t": true, "--target": true, "--prefix": true, "--root": true,
	"--python": true, "--platform": true, "--python-version": true, "--trusted-host": true, "--timeout": true, "--retries": true, "--cache-dir": true, "--only-binary": true, "--no-binary": true,
	"--src": true, "-e": true, "--editable": true, "--index-strategy": true, "--torch-backend": true, "--config-settings": true, "--group": true, "-n": true, "--name": true, "-p": true,
	"-c": true, "--channel": true, "--file": true, "--log": true, "--proxy": true, "--global-option": true}

// requirement reads one word of an installation.
func (r *shellReader) requirement(text string, at source.Place, open, conda bool) (Requirement, bool) {
	at.Path = r.file.Path
	if n := at.Span.End; int(n) <= len(r.whole) && at.Span.Len() == len(text)+2 && r.source(source.Span{Start: at.Span.Start + 1, End: n - 1}) == text {
		at.Span.Start, at.Span.End = at.Span.Start+1, n-1 // without the quotes
	}
	var one Requirement
	var ok bool
	if conda {
		one, ok = CondaRequirement(text, at)
	} else if one, ok = ParseRequirement(r.file, text, 0); ok {
		one.At = at
	}
	if ok && open {
		one.Known = false
	}
	return one, ok
}

// CondaRequirement reads a match specification of conda, such as `pytorch=2.3`, `pytorch==2.3.0=py310_cuda12`, `numpy>=1.26,<2`.
func CondaRequirement(text string, at source.Place) (Requirement, bool) {
	text = strings.TrimSpace(text)
	if i := strings.LastIndex(text, "::"); i >= 0 {
		text = text[i+2:]
	}
	name := packageName().FindString(text)
	if name == "" || strings.ContainsAny(text, "[/") {
		return Requirement{}, false
	}
	one := Requirement{Name: condaNames(PackageName(name)), At: at, Spec: strings.TrimSpace(text[len(name):]), Known: true}
	spec := one.Spec
	switch {
	case spec == "" || spec == "*":
		return one, true
	case strings.HasPrefix(spec, "=="):
		spec, _, _ = strings.Cut(spec[2:], "=")
		one.Range, one.Known = pep440.ParseRange("==" + strings.TrimSpace(spec))
		return one, true
	case spec[0] == '=':
		spec, _, _ = strings.Cut(strings.TrimSpace(spec[1:]), "=")
		return one.series(strings.TrimSuffix(strings.TrimSuffix(spec, "*"), ".")), true
	case spec[0] >= '0' && spec[0] <= '9': // `pytorch 2.3 py310`
		spec = strings.Fields(spec)[0]
		if v, ok := pep440.Parse(strings.TrimSuffix(strings.TrimSuffix(spec, "*"), ".")); ok && strings.HasSuffix(spec, "*") {
			one.Range = pep440.Series(v)
		} else {
			one.Range, one.Known = pep440.Exactly(v), ok
		}
		return one, true
	}
	var sum pep440.Range
	for i, either := range strings.Split(spec, "|") {
		rg, ok := pep440.ParseRange(strings.TrimSpace(either))
		if !ok {
			one.Known = false
			return one, true
		}
		if i == 0 {
			sum = rg
		} else {
			sum = sum.Or(rg)
		}
	}
	one.Range = sum
	return one, true
}

// series: `=2.3` of conda stands for 2.3 and all that begin so.
func (q Requirement) series(spec string) Requirement {
	v, ok := pep440.Parse(spec)
	if q.Known = ok; ok {
		q.Range = pep440.Series(v)
	}
	return q
}

// condaNames gives a package of conda the name that it has elsewhere.
func condaNames(name string) string {
	if name == "pytorch" || name == "pytorch-gpu" {
		return "torch"
	}
	return name
}

var (
	instruction = source.Pattern(`(?i)^[ \t]*(from|run|cmd|label|maintainer|expose|env|add|copy|entrypoint|volume|user|workdir|arg|onbuild|stopsignal|healthcheck|shell)[ \t]+`)
	runFlag     = source.Pattern(`^(?:[ \t]|\\\r?\n)*--[a-z]+(?:=\S*)?`)
	hereWord    = source.Pattern(`<<-?["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)
	imageTag    = source.Pattern(`(?i)^[ \t]*from[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+as[ \t]+(\S+))?`)
)

// maxInstructions bounds the instructions of one image file that are followed.
const maxInstructions = 2048

// ParseDockerfile reads the file of a container image as the script that it runs: its RUN commands, what CMD and ENTRYPOINT start, and
// the variables of ENV and ARG. Places are those in the file. Each stage is read for itself; what a later one takes from an earlier
// one by name is not followed.
func ParseDockerfile(f *source.File) *Script {
	text := bytes.Clone(f.Text)
	var comments []source.Span
	var image []Requirement // what the last stage starts with
	stages := map[string][]Requirement{}
	args := map[string]string{}
	for start, count := 0, 0; start < len(text) && count < maxInstructions; count++ {
		end := instructionEnd(text, start)
		line := source.Span{Start: uint32(start), End: uint32(end)}
		start = end
		trimmed := bytes.TrimLeft(text[line.Start:line.End], " \t")
		if len(trimmed) > 0 && trimmed[0] == '#' {
			hash := line.End - uint32(len(trimmed))
			first := f.LineSpan(f.Line(hash))
			comments = append(comments, source.Span{Start: hash, End: first.End})
			fill(text, first, ' ')
			start = int(first.End)
			for start < len(text) && (text[start] == '\n' || text[start] == '\r') {
				start++
			}
			continue
		}
		m := instruction().FindSubmatchIndex(text[line.Start:line.End])
		if m == nil {
			fillText(text, line)
			continue
		}
		word := strings.ToLower(string(text[line.Start+uint32(m[2]) : line.Start+uint32(m[3])]))
		body := source.Span{Start: line.Start + uint32(m[1]), End: line.End}
		switch word {
		case "run", "cmd", "entrypoint":
			fillText(text, source.Span{Start: line.Start, End: body.Start})
			if flag := runFlag().FindIndex(text[body.Start:body.End]); flag != nil {
				for flag != nil && flag[1] > 0 {
					fillText(text, source.Span{Start: body.Start, End: body.Start + uint32(flag[1])})
					body.Start += uint32(flag[1])
					flag = runFlag().FindIndex(text[body.Start:body.End])
				}
			}
			blankRemarks(text, body)
			if inner := bytes.TrimSpace(text[body.Start:body.End]); len(inner) > 1 && inner[0] == '[' && inner[len(inner)-1] == ']' {
				first := body.Start + uint32(bytes.IndexByte(text[body.Start:body.End], '['))
				last := body.Start + uint32(bytes.LastIndexByte(text[body.Start:body.End], ']'))
				text[first], text[last] = ' ', ' '
				for i := first; i < last; i++ { // the form of a list
					if text[i] == ',' && (text[i-1] == '"' || text[i-1] == ' ') {
						text[i] = ' '
					}
				}
			} else if here := hereWord().FindSubmatchIndex(text[body.Start:body.End]); here != nil && word == "run" {
				start = hereCommands(text, body, string(text[body.Start+uint32(here[2]):body.Start+uint32(here[3])]))
			}
		case "env", "arg":
			fillText(text, source.Span{Start: line.Start, End: body.Start})
			blankRemarks(text, body)
			assignments(text, body, word == "arg", args)
		case "from":
			image = nil
			if m := imageTag().FindSubmatchIndex(text[line.Start:line.End]); m != nil {
				span := source.Span{Start: line.Start + uint32(m[2]), End: line.Start + uint32(m[3])}
				if earlier, known := stages[strings.ToLower(f.Slice(span))]; known {
					image = earlier
				} else {
					image = imagePackages(f, span, args)
				}
				if m[4] >= 0 {
					stages[strings.ToLower(string(text[line.Start+uint32(m[4]):line.Start+uint32(m[5])]))] = image
				}
			}
			fillText(text, line)
		default:
			fillText(text, line)
		}
	}
	script := ParseShell(&source.File{Path: f.Path, Kind: source.Shell, Text: text})
	script.comments = comments
	script.Installs.List = append(append([]Requirement(nil), image...), script.Installs.List...)
	script.Errors = boundsOnly(script.Errors)
	return script
}

// instructionEnd is the offset behind an instruction: lines that a backslash joins, and the blank lines and comments between them, which
// the builder leaves out.
func instructionEnd(text []byte, start int) int {
	joined := false
	for at := start; at < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		next := at + end + 1
		if end < 0 {
			end, next = len(text)-at, len(text)
		}
		line := bytes.TrimSpace(text[at : at+end])
		if !joined || len(line) > 0 && line[0] != '#' {
			if !bytes.HasSuffix(line, []byte("\\")) || len(line) > 0 && line[0] == '#' {
				return next
			}
			joined = true
		}
		at = next
	}
	return len(text)
}

// boundsOnly keeps what says that a part was not read. Image files have forms that this reading does not know; they are no mistakes.
func boundsOnly(errors []Error) []Error {
	var kept []Error
	for _, fault := range errors {
		if fault.Bound {
			kept = append(kept, fault)
		}
	}
	return kept
}

// fillText blanks a span except for its line ends.
func fillText(text []byte, span source.Span) {
	for i := span.Start; i < span.End; i++ {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
}

// blankRemarks takes out the comment lines in the middle of an instruction, which the builder leaves out.
func blankRemarks(text []byte, body source.Span) {
	for i := body.Start; i < body.End; {
		end := i
		for end < body.End && text[end] != '\n' {
			end++
		}
		if line := bytes.TrimLeft(text[i:end], " \t"); i > body.Start && len(line) > 0 && line[0] == '#' {
			fill(text, source.Span{Start: i, End: end}, ' ')
			if end > i {
				text[end-1] = '\\' // joined as before
			}
		}
		i = end + 1
	}
}

// hereCommands makes commands of the lines of a here-document, which RUN gives to the shell, and gives the offset behind it.
func hereCommands(text []byte, body source.Span, word string) int {
	first := bytes.IndexByte(text[body.Start:], '\n')
	if first < 0 {
		return len(text)
	}
	open := body.Start + uint32(first)
	for at := open + 1; int(at) < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - int(at)
		}
		if strings.TrimSpace(string(text[at:int(at)+end])) == word {
			head := bytes.TrimSpace(text[body.Start:open])
			if bytes.HasPrefix(head, []byte("<<")) { // not `RUN python3 <<EOF`
				fill(text, source.Span{Start: body.Start, End: open}, ' ')
				fill(text, source.Span{Start: at, End: at + uint32(end)}, ' ')
			}
			return min(len(text), int(at)+end+1)
		}
		at += uint32(end) + 1
	}
	return int(body.End)
}

var oldEnv = source.Pattern(`^([A-Za-z_][A-Za-z0-9_]*)([ \t]+)([^=\s][^\n]*|=[^\n]*)?`)

// assignments makes shell assignments of the body of ENV or ARG: `A=1 B=2`, or `A value` in the old form.
func assignments(text []byte, body source.Span, arg bool, args map[string]string) {
	content := text[body.Start:body.End]
	m := oldEnv().FindSubmatchIndex(content)
	switch {
	case m != nil && m[6] >= 0 && content[m[6]] != '=':
		if value := bytes.TrimSpace(content[m[6]:m[7]]); bytes.ContainsAny(value, " \t\\") && value[0] != '"' {
			fillText(text, body) // several words, which the shell would take apart
			return
		}
		name := append([]byte(nil), content[m[2]:m[3]]...)
		fill(text, source.Span{Start: body.Start, End: body.Start + uint32(m[6])}, ' ')
		copy(content[m[6]-1-len(name):], append(name, '=')) // the value keeps its place
	case arg && !bytes.ContainsRune(content, '='): // told when the image is built
		fillText(text, body)
		return
	}
	for _, word := range bytes.Fields(content) {
		if name, value, ok := strings.Cut(string(word), "="); ok && isName(name) {
			args[name] = strings.Trim(value, `"'`)
		}
	}
}

var (
	torchTag   = source.Pattern(`^v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)(?:-|$)`)
	dollarName = source.Pattern(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))`)
	cannTag    = source.Pattern(`(?i)^([0-9]+\.[0-9]+(?:\.[0-9]+)?)(?:\.?(rc[0-9]+|alpha[0-9]+|beta[0-9]+))?(?:\.(alpha|beta)[0-9]+)?(?:-|$)`)
)

// imagePackages are the packages that an image is known to hold by its tag: torch in pytorch/pytorch, CANN in images of Ascend.
func imagePackages(f *source.File, span source.Span, args map[string]string) []Requirement {
	text := dollarName().ReplaceAllStringFunc(f.Slice(span), func(name string) string {
		m := dollarName().FindStringSubmatch(name)
		if value := args[m[1]+m[3]]; value != "" {
			return value
		}
		return m[2]
	})
	image, tag, ok := strings.Cut(text[strings.LastIndexByte(text, '/')+1:], ":")
	if !ok {
		return nil
	}
	tag, _, _ = strings.Cut(tag, "@")
	folder := path.Base(path.Dir(text))
	name, version := "", ""
	switch {
	case image == "pytorch" && folder == "pytorch":
		if m := torchTag().FindStringSubmatch(tag); m != nil {
			name, version = "torch", m[1]
		}
	case image == "cann" || strings.HasPrefix(image, "ascend-cann"):
		if m := cannTag().FindStringSubmatch(tag); m != nil {
			name, version = Cann, m[1]+strings.ToLower(m[2])
		}
	}
	v, ok := pep440.Parse(version)
	if name == "" || !ok {
		return nil
	}
	return []Requirement{{Name: name, At: f.At(span), Range: pep440.Exactly(v), Known: true, Preset: true, Spec: "==" + version}}
}

// Cann is the name under which Ascend's toolkit stands among packages.
const Cann = "cann"
