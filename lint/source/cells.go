package source

import (
	"bytes"
	"strings"
)

// language is what the lines of a cell are.
type language uint8

const (
	pythonCell language = iota
	shellCell
	otherCell
)

// languageOf goes by the magic in the first line of a cell. Databricks has magics of one % for a whole cell, which
// notebooks made there hold as well; elsewhere they are of one line, which is not bare.
func languageOf(cell []byte, databricks bool) language {
	first, _, _ := bytes.Cut(bytes.TrimLeft(cell, " \t\r\n"), []byte("\n"))
	words := strings.Fields(string(first))
	if len(words) == 0 || !strings.HasPrefix(words[0], "%") {
		return pythonCell
	}
	if name, whole := strings.CutPrefix(words[0], "%%"); whole {
		if name == "script" && len(words) > 1 {
			name = words[1]
		}
		switch name {
		case "time", "timeit", "capture", "prun", "debug", "memit", "wandb":
			return pythonCell
		case "bash", "sh", "shell", "zsh":
			return shellCell
		}
		return otherCell
	}
	if !databricks && len(words) > 1 {
		return pythonCell
	}
	switch words[0][1:] {
	case "sh":
		return shellCell
	case "sql", "scala", "r", "md", "md-sandbox":
		return otherCell
	}
	return pythonCell
}

// isolate makes Python, of the same length, of a cell in any language, and copies its commands for a shell.
func isolate(cell, commands []byte, kind language) {
	if kind == pythonCell {
		escapes(cell, commands)
		return
	}
	e := escaper{text: cell}
	for start, first := 0, true; start < len(cell); {
		end := lineEnd(cell, start)
		at := start + len(cell[start:end]) - len(bytes.TrimLeft(cell[start:end], " \t\r"))
		switch _, rest, _ := strings.Cut(string(cell[at:end]), " "); {
		case at == end:
		case kind == shellCell && !first:
			copy(commands[start:], cell[start:end])
		case kind == shellCell && cell[at+1] != '%': // `%sh cmd`
			copy(commands[end-len(rest):], rest)
		}
		if at < end {
			first = false
			e.hide(at)
		}
		start = end + 1
	}
}

// blank is a text for commands: nothing but line ends.
func blank(text []byte) []byte {
	made := bytes.Repeat([]byte(" "), len(text))
	for i, c := range text {
		if c == '\n' {
			made[i] = '\n'
		}
	}
	return made
}

// settleCommands keeps the commands of a file where there are any. The interpreter at hand is a Python to a shell.
func (f *File) settleCommands(commands []byte) {
	if len(bytes.TrimSpace(commands)) == 0 {
		return
	}
	for _, name := range []string{"{sys.executable}", "$sys.executable"} {
		python := "python" + strings.Repeat(" ", len(name)-len("python"))
		commands = bytes.ReplaceAll(commands, []byte(name), []byte(python))
	}
	f.Commands = commands
}

var (
	databricksHead = []byte("# Databricks notebook source")
	databricksCell = []byte("# COMMAND ----------")
	databricksLine = []byte("# MAGIC")
)

// databricks reads a notebook in the source format of Databricks: cells between lines of their own, in which `#
// MAGIC` stands before what is no Python. Commands may also stand there as they are.
func (f *File) databricks() {
	text := bytes.Clone(f.Text)
	commands := blank(text)
	for start := 0; start < len(text); {
		end := len(text)
		if i := bytes.Index(text[start:], append([]byte("\n"), databricksCell...)); i >= 0 {
			end = start + i + 1
		}
		cell := text[start:end]
		body := bytes.TrimLeft(cell, "\r\n")
		if bytes.HasPrefix(body, databricksCell) || bytes.HasPrefix(body, databricksHead) {
			line := len(cell) - len(body)
			skip := min(lineEnd(cell, line)+1, len(cell))
			start, cell = start+skip, cell[skip:]
		}
		magicLines(cell, commands[start:end])
		isolate(cell, commands[start:end], languageOf(cell, true))
		start = end
	}
	f.Text = text
	f.settleCommands(commands)
}

// magicLines copies the commands for a shell that stand behind `# MAGIC`: those of a cell for it, and single ones.
func magicLines(cell, commands []byte) {
	kind, first, joined := pythonCell, true, false
	for start := 0; start < len(cell); {
		end := lineEnd(cell, start)
		line := cell[start:end]
		body, is := bytes.CutPrefix(line, databricksLine)
		body = bytes.TrimLeft(body, " ")
		from := end - len(body)
		start = end + 1
		if !is || len(body) == 0 {
			joined = false
			continue
		}
		if first {
			first, kind = false, languageOf(body, true)
			if rest := bytes.TrimPrefix(body, []byte("%sh")); kind == shellCell && body[1] != '%' {
				copy(commands[end-len(rest):], rest)
			}
			if kind == shellCell {
				continue
			}
		}
		shell := shellPart(body)
		switch {
		case kind == shellCell, kind == pythonCell && joined:
			copy(commands[from:], body)
		case kind == pythonCell && shell >= 0:
			copy(commands[from+shell:], body[shell:])
			joined = true
		}
		joined = joined && bytes.HasSuffix(bytes.TrimRight(body, " \t\r"), []byte{'\\'})
	}
}

// HasCells holds for a notebook, in JSON or in the source format of Databricks.
func (f *File) HasCells() bool {
	return f.Kind == Notebook || f.Kind == Python && bytes.HasPrefix(f.Text, databricksHead)
}
