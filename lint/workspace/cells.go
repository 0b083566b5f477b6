package workspace

import (
	"bytes"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// cellInstall is a package that a notebook installs itself.
type cellInstall struct {
	configs.Requirement
	upgrade     bool // the newest that the requirement allows, whatever was there before
	conditional bool // in a block
}

// cellInstalls are the packages that a notebook installs, in its order: `!pip install`, `%pip install`, a cell for a
// shell, and programs that its Python starts.
func (st *store) cellInstalls(file *source.File) (list []cellInstall) {
	if !file.HasCells() || file.Commands == nil && !file.Has("install") {
		return nil
	}
	commands := file.Commands
	if file.Has("install") && (file.Has("subprocess") || file.Has("system")) {
		commands = withCalls(file, st.parse(file).module(), commands)
	}
	for start := 0; start < len(commands); {
		end := start
		for { // with the lines that a backslash joins
			i := bytes.IndexByte(commands[end:], '\n')
			if i < 0 {
				end = len(commands)
				break
			}
			if end += i + 1; !bytes.HasSuffix(bytes.TrimRight(commands[start:end], " \t\r\n"), []byte{'\\'}) {
				break
			}
		}
		if line := commands[start:end]; bytes.Contains(line, []byte("install")) {
			list = append(list, lineInstalls(file, line, uint32(start))...)
		}
		start = end
	}
	return list
}

var (
	upgradeFlag = source.Pattern(`\s(?:-[a-zA-Z]*U[a-zA-Z]*|--upgrade|--force-reinstall)(?:\s|$)`)
	repository  = source.Pattern(`git\+[^\s"'#]*/([\w.-]+?)(?:\.git)?(?:@[^\s"'#]*)?(?:[\s"'#]|$)`)
)

// lineInstalls reads one command, which stands at an offset of the file.
func lineInstalls(file *source.File, line []byte, offset uint32) (list []cellInstall) {
	text := bytes.ReplaceAll(line, []byte("\r"), []byte(" "))
	script := configs.ParseShell(&source.File{Path: file.Path, Kind: source.Shell, Text: text})
	first := offset + uint32(len(line)-len(bytes.TrimLeft(line, " \t\r\n")))
	margin := file.Text[file.LineSpan(file.Line(first)).Start]
	one := cellInstall{upgrade: upgradeFlag().Match(line), conditional: margin == ' ' || margin == '\t'}
	for _, one.Requirement = range script.Installs.List {
		one.At.Span.Start, one.At.Span.End = one.At.Span.Start+offset, one.At.Span.End+offset
		list = append(list, one)
	}
	for _, m := range repository().FindAllSubmatch(line, -1) { // of some release, which is not said
		one.Requirement = configs.Requirement{Name: configs.PackageName(string(m[1])), Spec: "@ " + string(m[0])}
		list = append(list, one)
	}
	return list
}

// starters are the functions that start a program, or give a command to a shell.
var starters = []string{"run", "call", "check_call", "check_output", "Popen", "system", "getoutput"}

// withCalls adds, at their places, the commands that are written out in calls.
func withCalls(file *source.File, m *pyscan.Module, commands []byte) []byte {
	if m == nil {
		return commands
	}
	if commands == nil {
		commands = bytes.Repeat([]byte("\n"), len(file.Text))
	} else {
		commands = bytes.Clone(commands)
	}
	for _, name := range starters {
		for _, call := range m.CallsOf(name) {
			if len(call.Args) == 0 || !strings.Contains(file.Slice(call.Span()), "install") {
				continue
			}
			at := call.Span()
			line := bytes.Repeat([]byte(" "), at.Len())
			put := func(e syntax.Node, text string) { copy(line[e.Span().Start-at.Start:], text) }
			switch e := call.Args[0].(type) {
			case *syntax.List:
				for _, element := range e.Elts {
					if c, ok := element.(*syntax.Constant); ok && c.Kind == syntax.StrConstant {
						put(c, file.Slice(c.Span()))
					} else if pyscan.Path(element) == "sys.executable" {
						put(element, "python")
					} else {
						put(element, "$x")
					}
				}
			case *syntax.Constant:
				if text := file.Slice(e.Span()); e.Kind == syntax.StrConstant && len(text) > 2 && text[1] != text[0] {
					put(e, " "+strings.NewReplacer(`\"`, ` "`, `\'`, ` '`).Replace(text[1:len(text)-1]))
				}
			}
			line[0], line[len(line)-1] = '\n', '\n'
			copy(commands[at.Start:], line)
		}
	}
	return commands
}

// cellPin is the release of a package that a notebook installs itself. A later installation wins: it replaces an
// earlier one that it does not allow. Told is false where nothing there says which release; the pin is unknown where
// that cannot be told.
func (v *View) cellPin(name, library string) (pin Pin, told bool) {
	file := v.Text(name)
	if file == nil || !file.HasCells() {
		return pin, false
	}
	pin = Pin{Package: library}
	known := true
	for _, one := range v.store.traitsOf(file).installs() {
		if one.Name != library || one.When == configs.Never {
			continue
		}
		switch {
		case !one.Known:
			pin.Range, pin.From, known = one.Range, nil, false
		case one.Range.Any() && !one.upgrade: // what is there will do
			continue
		case one.conditional && known && pin.Known() && !one.upgrade:
			pin.Range, pin.From = pin.Range.Or(one.Range), append(pin.From, one.At)
		case !one.upgrade && known && pin.Range.Overlaps(one.Range):
			pin.Range, pin.From = pin.Range.And(one.Range), append(pin.From, one.At)
		default:
			pin.Range, pin.From, known = one.Range, []source.Place{one.At}, true
		}
		told = true
	}
	if !known || pin.Range.Empty() {
		return Pin{Package: library}, told
	}
	return pin, told
}
