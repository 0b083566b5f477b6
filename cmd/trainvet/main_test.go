package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/cli")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trainvet": main, "trainvet-announcing": announcing})
}

// TestScripts runs testdata/cli. Besides the usual commands there are
//
//	code N COMMAND...   run a command that must end with this exit code
//	bytes NAME TEXT     write a file; both are Go strings without their quotes
//	fifo NAME           make a FIFO
//	folderlink TO NAME  link NAME to the folder TO
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "cli"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM", "TRAINVET_STACK"} {
				env.Setenv(name, "")
			}
			// nothing of git may still run when the folder of a script is removed
			for name, value := range map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0", "GIT_CONFIG_KEY_1": "maintenance.auto", "GIT_CONFIG_VALUE_1": "false"} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       code,
			"bytes":      writeBytes,
			"fifo":       fifo,
			"folderlink": folderLink,
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "fifo":
				return canFIFO, nil
			case "root":
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition " + condition)
		},
	})
}

func code(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func writeBytes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: bytes NAME TEXT")
	}
	name, err := strconv.Unquote(`"` + args[0] + `"`)
	ts.Check(err)
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	path := ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o777))
	ts.Check(os.WriteFile(path, []byte(text), 0o666))
}

func fifo(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(makeFIFO(ts.MkAbs(name)))
	}
}

func folderLink(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.Symlink(args[0], ts.MkAbs(args[1])))
}
