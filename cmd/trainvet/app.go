package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/rules"
)

// The exit codes.
const (
	exitClean    = 0
	exitFindings = 1 // findings at or above --fail-on; a run that does not fit; a file with syntax errors, for ast
	exitTrouble  = 2 // usage, settings, an input that cannot be read, or a fault of our own
)

// app is one invocation: its streams, and the exit code that its commands set.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	dir            string // current folder, absolute, with forward slashes
	rules          []*lint.Rule
	replace        func(name string, before, after []byte) error // gives a file on disk new content
	color          string
	code           int
}

// Main runs the command line and gives back the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	return run(&app{stdin: stdin, stdout: stdout, stderr: stderr, env: os.Getenv, rules: rules.All(), replace: check.Replace}, args)
}

func run(a *app, args []string) (code int) {
	defer func() {
		if reason := recover(); reason != nil {
			a.complain("internal error: %v; this is a fault of trainvet, please report it\n%s", reason, debug.Stack())
			code = exitTrouble
		}
	}()
	dir, err := os.Getwd()
	if err != nil {
		a.complain("%v", err)
		return exitTrouble
	}
	a.dir = filepath.ToSlash(dir)
	stdout := &watched{to: a.stdout}
	a.stdout = stdout
	root := a.root()
	root.SetArgs(args)
	if err = root.Execute(); err == nil {
		err = stdout.err
	}
	if err != nil {
		a.trouble("%s", output.Escape(err.Error()))
		var usage *usageError
		if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown") {
			fmt.Fprintln(a.stderr, "Run `trainvet --help` for what there is.")
		}
	}
	return a.code
}

// watched is a stream that remembers its first error: half an answer must not pass for a whole one, whoever wrote it.
type watched struct {
	to  io.Writer
	err error
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// Unwrap is the stream itself.
func (w *watched) Unwrap() io.Writer { return w.to }

// usageError is a mistake on the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// flagError says what is wrong with the value of a flag, in words of ours where the flag wants a number or a truth value.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &invalid) || !errors.As(err, &number) {
		return &usageError{err.Error()}
	}
	wanted := "a whole number"
	switch {
	case strings.Contains(number.Func, "Bool"):
		wanted = "true or false"
	case errors.Is(err, strconv.ErrRange):
		wanted = "a smaller number"
	}
	return usagef("--%s: wanted %s, not %q", invalid.GetFlag().Name, wanted, invalid.GetValue())
}

// emptyFlag is the name of a flag that is given with no value: a variable that is not set, more often than not. Only of stdin may the name
// be unknown, which editors pass on as they have it.
func emptyFlag(flags *pflag.FlagSet) (name string) {
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Name == "stdin-filename" {
			return
		}
		empty := flag.Value.Type() == "string" && flag.Value.String() == ""
		if list, is := flag.Value.(pflag.SliceValue); is {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && name == "" {
			name = flag.Name
		}
	})
	return name
}

// help is `trainvet help`, for which a command that there is not is a mistake.
func (a *app) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, names []string) error {
			about, rest, err := root.Find(names)
			if err != nil || len(rest) > 0 {
				return usagef("no command is called %q", strings.Join(names, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// complain writes a line to stderr, in the form that all our messages have.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintf(a.stderr, "trainvet: "+format+"\n", args...)
}

// trouble complains and makes the exit code say so.
func (a *app) trouble(format string, args ...any) {
	a.complain(format, args...)
	a.code = exitTrouble
}

// unreadable reports an input that could not be read.
func (a *app) unreadable(name, reason string) {
	a.trouble("%s: %s", output.Escape(name), output.Escape(reason))
}

// relative is a name as seen from the current folder, where it lies below that.
func (a *app) relative(name string) string {
	if below, inside := strings.CutPrefix(name, strings.TrimSuffix(a.dir, "/")+"/"); inside {
		return below
	}
	return name
}

// raise makes the exit code at least code.
func (a *app) raise(code int) { a.code = max(a.code, code) }

// paint is the paint for one of our streams.
func (a *app) paint(stream io.Writer) output.Paint {
	return output.NewPaint(output.Colored(output.ColorChoice(a.color), a.env, output.IsTerminal(stream)))
}

// root is the command `trainvet`, which stands for `trainvet check`.
func (a *app) root() *cobra.Command {
	root := a.check()
	root.Use = "trainvet [check] [flags] [PATH...]"
	root.Short = "go vet for training runs"
	root.Long = "trainvet reads the files of a training run (PyTorch source, DeepSpeed JSON, YAML, TOML, launch scripts) and says what is\n" +
		"wrong, where, what will happen at run time and how to fix it. It never runs the code it reads.\n\n" +
		"Exit codes: 0 clean, 1 findings at or above --fail-on, 2 usage, settings, unreadable input, no file to check (see --allow-empty) or\n" +
		"a fault of trainvet's own. Data files that a walk meets and cannot read are counted on stderr and change no code."
	root.Version = versionText()
	root.SetVersionTemplate("trainvet {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour the output: auto, always or never")
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		if name := emptyFlag(command.Flags()); name != "" {
			return usagef("--%s: an empty value", name)
		}
		switch output.ColorChoice(a.color) {
		case output.ColorAuto, output.ColorAlways, output.ColorNever:
			return nil
		}
		return usagef("--color must be auto, always or never, not %q", a.color)
	}
	root.SetHelpCommand(a.help(root))
	root.AddCommand(a.check(), a.fit(), a.plan(), a.rule(), a.ast(), a.config(), a.diff(), a.review(), a.summary(), a.init(), a.lsp(), a.man(), a.version())
	a.complete(root)
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			command.Args, command.RunE = cobra.ArbitraryArgs, func(command *cobra.Command, shells []string) error {
				if len(shells) > 0 {
					return usagef("no completion is there for the shell %q", shells[0])
				}
				return command.Help()
			}
		}
	}
	return root
}
