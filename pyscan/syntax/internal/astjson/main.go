// Command astjson prints the trees of Python files in the form of `trainvet ast --format json`.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

func main() {
	args := os.Args[1:]
	for len(args) > 0 && (args[0] == "ast" || args[0] == "--format" || args[0] == "json") {
		args = args[1:]
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	for _, path := range args {
		raw, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		file, err := source.Decode(path, source.Python, raw)
		if err != nil {
			fmt.Fprintf(out, "{\"path\":%q,\"error\":%q}\n", path, err.Error())
			continue
		}
		out.Write(syntax.AppendDump(nil, path, syntax.Parse(file)))
	}
}
