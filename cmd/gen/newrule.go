//go:build ignore

// Command newrule makes the three files of a new rule, which compile and have a running test at once, and lists the rule.
//
//	go run ./cmd/gen/newrule.go FAMILY/NAME
//
// With -check it writes nothing and fails when what it would write does not compile or does not pass.
package main

import (
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const goText = `package FAMILY

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed NAME.md
var docCAMEL string

// CAMEL reports calls of a function.
var CAMEL = &lint.Rule{
	Name:     "NAME",
	Family:   "FAMILY",
	Since:    "0.1",
	Doc:      docCAMEL,
	Severity: lint.Info,
	Mentions: []string{"replace_this_function"},
	Module:   findCAMEL,
}

func findCAMEL(pass *lint.Pass, module *pyscan.Module) {
	for node := range module.Tree.All() {
		if call, ok := node.(*syntax.Call); ok {
			if name, ok := call.Func.(*syntax.Name); ok && name.ID == "replace_this_function" {
				pass.Reportf(module.File.At(call.Span()), "replace_this_function is called, and this will happen")
			}
		}
	}
}
`

const mdText = "# NAME\n" + `
## What it does
Reports calls of a function.

## Why
Say what happens at run time, and what it costs.

## Example
` + "```python bad\nreplace_this_function()\n```" + `

## Use instead
` + "```python good\npass\n```" + `

## References
- Where the facts come from.
`

const caseText = `Cases of NAME.

-- case the call --
The simplest form.
-- train.py --
replace_this_function()  # want: NAME
-- look-alike another function --
It must be silent here.
-- train.py --
replace_this_function_too()
`

// families are what a rule can be about.
var families = []string{"checkpointing", "accumulation", "schedule", "memory", "ddp", "fsdp", "zero", "amp", "device", "distributed", "data", "optimizer", "config"}

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "only try whether a new rule compiles and passes")
	flag.Parse()
	_, self, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(self), "..", "..")
	if *check {
		try(root)
		return
	}
	match := regexp.MustCompile(`^([a-z]+)/([a-z][a-z0-9]*(?:-[a-z0-9]+)*)$`).FindStringSubmatch(flag.Arg(0))
	if match == nil || flag.NArg() != 1 {
		log.Fatal("usage: go run ./cmd/gen/newrule.go FAMILY/NAME, with a NAME in kebab-case that says the bad thing")
	}
	if !slices.Contains(families, match[1]) {
		log.Fatalf("there is no family %q; the families are %s", match[1], strings.Join(families, ", "))
	}
	if there, _ := filepath.Glob(filepath.Join(root, "rules", "*", match[2]+".*")); len(there) > 0 {
		log.Fatalf("a rule %s is there already: %s", match[2], there[0])
	}
	write(root, match[1], match[2])
	for _, generator := range []string{"list.go", "docs.go"} {
		command := exec.Command("go", "run", filepath.Join("cmd", "gen", generator))
		command.Dir, command.Stdout, command.Stderr = root, os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			log.Fatalf("%s: %v", generator, err)
		}
	}
	log.Printf("rules/%s.{go,md,txtar} are there; go test ./rules -run TestRules/%s runs the cases", match[0], match[0])
}

func write(root, family, name string) {
	camel := ""
	for word := range strings.SplitSeq(name, "-") {
		camel += strings.ToUpper(word[:1]) + word[1:]
	}
	folder := filepath.Join(root, "rules", family)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		log.Fatal(err)
	}
	fill := strings.NewReplacer("FAMILY", family, "NAME", name, "CAMEL", camel)
	for ending, text := range map[string]string{".go": goText, ".md": mdText, ".txtar": caseText} {
		target := filepath.Join(folder, name+ending)
		if _, err := os.Stat(target); err == nil {
			log.Fatalf("%s is there already", target)
		}
		if err := os.WriteFile(target, []byte(fill.Replace(text)), 0o666); err != nil {
			log.Fatal(err)
		}
	}
}

// try makes a rule in a copy of the module and runs its cases.
func try(root string) {
	copied, err := os.MkdirTemp("", "newrule")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(copied)
	for _, part := range []string{"cmd", "configs", "lint", "pyscan", "rules", "go.mod", "go.sum"} {
		source := filepath.Join(root, part)
		if info, err := os.Stat(source); err == nil && info.IsDir() {
			err = os.CopyFS(filepath.Join(copied, part), os.DirFS(source))
			if err != nil {
				log.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, part), text, 0o666); err != nil {
			log.Fatal(err)
		}
	}
	write(copied, "config", "scaffold-probe")
	for _, args := range [][]string{{"run", "cmd/gen/list.go"}, {"test", "./rules", "-run", "TestRules/config/scaffold-probe"}} {
		command := exec.Command("go", args...)
		command.Dir = copied
		if out, err := command.CombinedOutput(); err != nil {
			os.RemoveAll(copied)
			log.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
