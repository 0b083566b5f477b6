package configs

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/source"
)

// redirected records the files to which a statement sends its output.
func (r *shellReader) redirected(stmt *syntax.Stmt) {
	for _, redirect := range stmt.Redirs {
		switch redirect.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
			r.touch(r.expandOne(redirect.Word))
		}
	}
}

// touched records the arguments of a command that starts no training. Code in the command line of an interpreter may
// write any file.
func (r *shellReader) touched(words []field) {
	program := programName(words[0])
	switch {
	case program == "echo" || program == "printf" || program == "cd" || program == "pushd":
		return // what they do to files is in their redirects
	case program == "source" || program == ".":
		if len(words) > 1 && !words[1].open() {
			r.script.Touched = append(r.script.Touched, Touch{Name: words[1].text(), Read: true})
		}
		return
	case strings.HasSuffix(program, "sh") && len(words) > 1 || strings.HasSuffix(program, ".sh"):
		r.script.Touched = append(r.script.Touched, Touch{Open: true})
		return
	case strings.HasPrefix(program, "python") && len(words) > 1 && !strings.HasSuffix(words[1].text(), "version"):
		r.script.Touched = append(r.script.Touched, Touch{Open: true})
		return
	}
	for _, word := range words[1:] {
		if program == "tee" || !word.open() {
			r.touch(word)
		}
	}
}

// goesAway reports whether a command starts the rest of its words in a container or on another machine.
func goesAway(words []field) bool {
	for _, word := range words {
		if name := programName(word); away[name] {
			return true
		} else if starts(name) {
			return false
		}
	}
	return false
}

func (r *shellReader) touch(f field) {
	if len(r.script.Touched) >= maxShellSteps {
		return
	}
	one := Touch{Name: f.text(), Open: f.open()}
	if one.Open {
		one.Tail = one.Name
		if at := expansions().FindAllStringIndex(one.Name, -1); at != nil {
			one.Tail = one.Name[at[len(at)-1][1]:]
		}
	}
	if one.Open || one.Name != "" && one.Name != "/dev/null" {
		r.script.Touched = append(r.script.Touched, one)
	}
}

// expansions are the parts of a word that the shell fills in, as written.
var expansions = source.Pattern("\\$[A-Za-z_][A-Za-z0-9_]*|\\$[0-9@*#?!$-]|\\$\\{[^}]*\\}+|[$<>]\\(.*\\)|`[^`]*`|[*?]|\\{.*\\}")
