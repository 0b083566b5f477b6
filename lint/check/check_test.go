package check_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/linttest"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// finder is a rule that reports every call of a function.
func finder(name, family, function string, severity lint.Severity) *lint.Rule {
	return &lint.Rule{Name: name, Family: family, Since: "0.1", Severity: severity, Mentions: []string{function},
		Options: []lint.Option{{Name: "word", Default: "is called", Choices: []string{"is called", "is invoked"}}, {Name: "limit", Default: int64(3)}, {Name: "ratio", Default: 0.5}},
		Module: func(pass *lint.Pass, module *pyscan.Module) {
			for node := range module.Tree.All() {
				if call, ok := node.(*syntax.Call); ok {
					if name, ok := call.Func.(*syntax.Name); ok && name.ID == function {
						pass.Reportf(module.File.At(call.Span()), "%s %s", function, lint.OptionOf[string](pass, "word"))
					}
				}
			}
		}}
}

// engine are the rules that the engine itself reports.
func engine() []*lint.Rule {
	return []*lint.Rule{
		{Name: "syntax-error", Family: "config", Since: "0.1", Severity: lint.Error, Mentions: []string{"torch", "batch_size"}},
		{Name: "unknown-suppression", Family: "config", Since: "0.1", Severity: lint.Warning, Mentions: []string{"trainvet"}},
		{Name: "unused-suppression", Family: "config", Since: "0.1", Severity: lint.Warning, Mentions: []string{"trainvet"}},
	}
}

func world() []*lint.Rule {
	strict := finder("call-of-delta", "other", "delta", lint.Info)
	strict.Strict = true
	young := finder("call-of-epsilon", "other", "epsilon", lint.Warning)
	young.Since = "0.10"
	return append(engine(),
		finder("call-of-alpha", "calls", "alpha", lint.Error),
		finder("call-of-beta", "calls", "beta", lint.Warning),
		finder("call-of-gamma", "other", "gamma", lint.Info),
		strict, young)
}

// try checks files and gives the report; all files of a known kind are targets.
func try(t *testing.T, files map[string]string, rules []*lint.Rule, flags check.Flags) (*check.Report, error) {
	t.Helper()
	snapshot := workspace.NewSnapshot(linttest.FS(files))
	resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules, Flags: flags}
	var targets []check.Target
	for name, text := range files {
		if source.KindOf(name, []byte(text)) != source.Other && !check.IsSettingsFile(name) {
			targets = append(targets, check.Target{Path: name})
		}
	}
	slices.SortFunc(targets, func(a, b check.Target) int { return strings.Compare(a.Path, b.Path) })
	return check.Run(context.Background(), snapshot, targets, check.Options{Rules: rules, Settings: resolver})
}

// found writes the findings as path:line severity rule.
func found(report *check.Report) string {
	var all []string
	for _, finding := range report.Findings {
		all = append(all, fmt.Sprintf("%s:%d %s %s", finding.At.Path, report.File(finding.At.Path).Line(finding.At.Span.Start)+1, finding.Severity, finding.Rule.Name))
	}
	return strings.Join(all, "\n")
}

const calls = "alpha()\nbeta()\ngamma()\ndelta()\nepsilon()\n"

func TestSelection(t *testing.T) {
	every := "a.py:1 error call-of-alpha\na.py:2 warning call-of-beta\na.py:3 info call-of-gamma\na.py:4 info call-of-delta\na.py:5 warning call-of-epsilon"
	pick := func(numbers ...int) string {
		var lines []string
		for _, n := range numbers {
			lines = append(lines, strings.Split(every, "\n")[n-1])
		}
		return strings.Join(lines, "\n")
	}
	for _, test := range []struct {
		settings string
		flags    check.Flags
		want     string
	}{
		{"", check.Flags{}, pick(1, 2, 3, 5)},
		{`select = ["all"]`, check.Flags{}, every},
		{`select = ["strict"]`, check.Flags{}, pick(4)},
		{`select = ["calls"]`, check.Flags{}, pick(1, 2)},
		{`select = ["calls", "call-of-gamma"]`, check.Flags{}, pick(1, 2, 3)},
		{`extend-select = ["strict"]`, check.Flags{}, every},
		{`ignore = ["calls"]`, check.Flags{}, pick(3, 5)},
		{"select = [\"calls\"]\nignore = [\"call-of-alpha\"]", check.Flags{}, pick(2)},
		{`ignore = ["calls"]`, check.Flags{Select: []string{"calls"}}, pick(1, 2)},
		{`ignore = ["calls"]`, check.Flags{ExtendSelect: []string{"call-of-alpha"}}, pick(1, 3, 5)},
		{`select = ["calls"]`, check.Flags{Ignore: []string{"call-of-beta"}}, pick(1)},
		{`select = ["calls"]`, check.Flags{Isolated: true}, pick(1, 2, 3, 5)},
		{`select = []`, check.Flags{}, ""},
		{`rules-version = "0.9"`, check.Flags{}, pick(1, 2, 3)},
		{`rules-version = "0.10"`, check.Flags{}, pick(1, 2, 3, 5)},
		{"rules-version = \"0.9\"\nextend-select = [\"call-of-epsilon\"]", check.Flags{}, pick(1, 2, 3, 5)},
		{"[severity]\ncall-of-alpha = \"info\"", check.Flags{}, strings.Replace(pick(1, 2, 3, 5), "error", "info", 1)},
		{"[per-file-ignores]\n\"a.py\" = [\"calls\"]", check.Flags{}, pick(3, 5)},
		{"[per-file-ignores]\n\"b.py\" = [\"calls\"]", check.Flags{}, pick(1, 2, 3, 5)},
	} {
		report, err := try(t, map[string]string{"a.py": calls, "trainvet.toml": test.settings}, world(), test.flags)
		if err != nil {
			t.Errorf("%s: %v", test.settings, err)
			continue
		}
		if got := found(report); got != test.want {
			t.Errorf("%s, flags %v %v %v:\n%s\nwant:\n%s", test.settings, test.flags.Select, test.flags.ExtendSelect, test.flags.Ignore, got, test.want)
		}
	}
}

// TestNearestSettings holds that the nearest file above holds alone, and that a flag names another.
func TestNearestSettings(t *testing.T) {
	files := map[string]string{
		"a.py": "alpha()\n", "x/a.py": "alpha()\n", "x/y/a.py": "alpha()\n", "z/a.py": "alpha()\n", "p/a.py": "alpha()\n", "e/a.py": "alpha()\n", "q/a.py": "alpha()\n",
		"trainvet.toml":    "[severity]\ncall-of-alpha = \"info\"\n",
		"x/.trainvet.toml": "fail-on = \"never\"\n",
		"p/pyproject.toml": "[project]\nname = \"p\"\n[tool.trainvet.severity]\ncall-of-alpha = \"warning\"\n",
		"q/pyproject.toml": "[project]\nname = \"q\"\n",
		"e/trainvet.toml":  "extend = \"../p/pyproject.toml\"\nfail-on = \"error\"\n",
		"other.toml":       "ignore = [\"calls\"]\n",
	}
	report, err := try(t, files, world(), check.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, finding := range report.Findings {
		got = append(got, fmt.Sprintf("%s %s %v", finding.At.Path, finding.Severity, finding.Fails))
	}
	want := "a.py info false|e/a.py warning false|p/a.py warning true|q/a.py info false|x/a.py error false|x/y/a.py error false|z/a.py info false"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "|"), want)
	}
	report, err = try(t, files, world(), check.Flags{Config: "other.toml"})
	if err != nil || len(report.Findings) != 0 {
		t.Errorf("with --config: %v %v", found(report), err)
	}
}

func TestSettingsErrors(t *testing.T) {
	for settings, want := range map[string]string{
		"a = 1\n\nselct = []":                               `trainvet.toml:3:1: unknown key "selct"; did you mean "select"?`,
		"select = [\"call-of-alhpa\"]":                      `trainvet.toml:1:11: unknown rule "call-of-alhpa"; did you mean "call-of-alpha"?`,
		"select = \"calls\"":                                `trainvet.toml:1:10: must be a list of texts`,
		"fail-on = \"errors\"":                              `trainvet.toml:1:11: fail-on must be error, warning, info or never, not "errors"`,
		"require-reason = 1":                                `trainvet.toml:1:18: must be true or false`,
		"[severity]\ncall-of-alpha = \"fatal\"":             `trainvet.toml:2:17: a severity must be error, warning or info, not "fatal"`,
		"[severity]\nnonsense-name = \"error\"":             `trainvet.toml:2:1: unknown rule "nonsense-name"`,
		"[run]\nworld-size = \"8\"":                         `trainvet.toml:2:14: must be a whole number`,
		"[run]\nworldsize = 8":                              `trainvet.toml:2:1: unknown key "worldsize"; did you mean "world-size"?`,
		"[run]\ndevice = \"h1oo\"":                          `trainvet.toml:2:10: device: unknown device "h1oo"`,
		"[run]\nwarmup-unit = \"steps\"":                    `trainvet.toml:2:15: warmup-unit: `,
		"[rules.call-of-alpha]\nwrd = \"x\"":                `trainvet.toml:2:1: unknown key "wrd"; did you mean "word"?`,
		"[rules.call-of-alpha]\nword = \"x\"":               `trainvet.toml:2:8: word must be one of is called, is invoked, not "x"`,
		"[rules.call-of-alpha]\nlimit = 1.5":                `trainvet.toml:2:9: must be a whole number`,
		"[rules.call-of-zeta]\nword = \"x\"":                `trainvet.toml:1:8: unknown rule "call-of-zeta"; did you mean "call-of-beta"?`,
		"rules-version = \"next\"":                          `trainvet.toml:1:17: rules-version must be a release such as "1.4", not "next"`,
		"rules-version = \"..\"":                            `trainvet.toml:1:17: rules-version must be a release such as "1.4", not ".."`,
		"rules-version = \"0.0.9\"":                         `trainvet.toml:1:17: rules-version is 0.0.9, and the first release with rules was 0.1`,
		"ignore = [\"calls\", \"all\"]":                     `trainvet.toml:1:20: "all" is a group, and only rules and families can be named here; choose groups with select`,
		"[run]\nseq-len = 0":                                `trainvet.toml:2:11: seq-len: wanted a whole number from 1 to 4294967296, not 0`,
		"[[run]]\nseq-len = -1":                             `trainvet.toml:2:11: seq-len: wanted a whole number from 1 to 4294967296, not -1`,
		"baseline = \"\"":                                   `trainvet.toml:1:12: baseline: an empty name`,
		"require-reason = true\nbaseline = \"absent.json\"": `trainvet.toml:2:12: baseline absent.json: file does not exist`,
		"baseline = \"trainvet.toml\"":                      `trainvet.toml:1:12: baseline trainvet.toml: is no baseline`,
		"extend = \"trainvet.toml\"":                        `trainvet.toml:1:10: trainvet.toml extends itself`,
		"extend = \"absent.toml\"":                          `trainvet.toml:1:10: absent.toml: no such file`,
		"[known]\n\"acme.f\" = \"scales-los\"":              `trainvet.toml:2:12: a meaning is the dotted name of a library's function or class, or scales-loss, not "scales-los"; did you mean "scales-loss"?`,
		"select = [":                                        `trainvet.toml:1:`,
	} {
		_, err := try(t, map[string]string{"a.py": calls, "trainvet.toml": settings}, world(), check.Flags{})
		var wrong check.SettingsError
		if !errors.As(err, &wrong) || !slices.ContainsFunc(wrong, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("%q:\n%v\nwant %s", settings, err, want)
		}
	}
	_, err := try(t, map[string]string{"a.py": calls}, world(), check.Flags{Select: []string{"call-of-alhpa"}, Ignore: []string{"recommended"}})
	if err == nil || err.Error() != "--select: unknown rule \"call-of-alhpa\"; did you mean \"call-of-alpha\"?\n--ignore: \"recommended\" is a group, and only rules and families can be named here; choose groups with select" {
		t.Errorf("flags: %v", err)
	}
}

func TestOptions(t *testing.T) {
	report, err := try(t, map[string]string{"a.py": "alpha()\nbeta()\n", "trainvet.toml": "[rules.call-of-alpha]\nword = \"is invoked\"\n"}, world(), check.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Findings[0].Message + ", " + report.Findings[1].Message; got != "alpha is invoked, beta is called" {
		t.Error(got)
	}
}

// TestPanic holds that a fault of ours in one rule or file leaves the others alone and is told with rule and file.
func TestPanic(t *testing.T) {
	rules := append(world(), &lint.Rule{Name: "broken-rule", Family: "other", Severity: lint.Error, Mentions: []string{"beta"}, Module: func(*lint.Pass, *pyscan.Module) {
		panic("out of luck")
	}})
	report, err := try(t, map[string]string{"a.py": "alpha()\n", "b.py": "beta()\nalpha()\n"}, rules, check.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if got := found(report); got != "a.py:1 error call-of-alpha\nb.py:1 warning call-of-beta\nb.py:2 error call-of-alpha" {
		t.Errorf("found:\n%s", got)
	}
	if len(report.Faults) != 1 || report.Faults[0].Path != "b.py" || report.Faults[0].Rule != "broken-rule" || report.Faults[0].Reason != "out of luck" || report.Faults[0].Stack == "" {
		t.Errorf("faults: %+v", report.Faults)
	}
}

func TestCascade(t *testing.T) {
	place := func(at, end uint32) source.Place {
		return source.Place{Path: "a.py", Span: source.Span{Start: at, End: end}}
	}
	say := func(name string, hides []string, at, cause source.Place) *lint.Rule {
		return &lint.Rule{Name: name, Family: "other", Severity: lint.Error, Hides: hides, Module: func(pass *lint.Pass, _ *pyscan.Module) { pass.Reportf(at, "here").From(cause) }}
	}
	none := source.Place{}
	for name, test := range map[string]struct {
		rules []*lint.Rule
		want  string
	}{
		"overlap":         {[]*lint.Rule{say("over", []string{"under"}, place(0, 5), none), say("under", nil, place(3, 7), none)}, "over"},
		"apart":           {[]*lint.Rule{say("over", []string{"under"}, place(0, 3), none), say("under", nil, place(3, 7), none)}, "over under"},
		"one cause":       {[]*lint.Rule{say("over", []string{"under"}, place(0, 3), place(8, 9)), say("under", nil, place(3, 7), place(8, 9))}, "over under"},
		"cause and place": {[]*lint.Rule{say("over", []string{"under"}, place(0, 3), place(3, 7)), say("under", nil, place(3, 7), none)}, "over"},
		"not named":       {[]*lint.Rule{say("over", nil, place(0, 5), none), say("under", nil, place(3, 7), none)}, "over under"},
		"chain":           {[]*lint.Rule{say("a", []string{"b"}, place(0, 5), none), say("b", []string{"c"}, place(0, 5), none), say("c", nil, place(0, 5), none)}, "a"},
	} {
		if name == "one cause" {
			test.want = "over"
		}
		report, err := try(t, map[string]string{"a.py": "alpha()\nbeta()\n"}, append(engine(), test.rules...), check.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, finding := range report.Findings {
			got = append(got, finding.Rule.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

func TestSuppression(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		suppressed int
	}{
		"its line":           {"alpha()  # trainvet: ignore[call-of-alpha] why\nalpha()\n", "2 error call-of-alpha", 1},
		"family":             {"alpha(), beta()  # trainvet: ignore[calls]\n", "", 2},
		"two names":          {"alpha(), beta()  # trainvet: ignore[call-of-alpha, call-of-beta] why\n", "", 2},
		"no blanks":          {"alpha()#trainvet:ignore[call-of-alpha]\n", "", 1},
		"many blanks":        {"alpha()  #   trainvet :  ignore  [ call-of-alpha ]  why\n", "", 1},
		"next statement":     {"# trainvet: ignore[call-of-alpha] why\nalpha()\nalpha()\n", "3 error call-of-alpha", 1},
		"next block":         {"# trainvet: ignore[call-of-alpha] why\nfor x in y:\n    alpha()\n    if z:\n        alpha()\nalpha()\n", "6 error call-of-alpha", 2},
		"over blank lines":   {"# trainvet: ignore[call-of-alpha] why\n\n# more\nalpha()\n", "", 1},
		"inside a call":      {"x = [\n    1,\n    # trainvet: ignore[call-of-alpha] why\n    alpha(),\n    alpha(),\n]\nalpha()\n", "5 error call-of-alpha\n7 error call-of-alpha", 1},
		"several lines":      {"x = (1 +  # trainvet: ignore[call-of-alpha] no\n     alpha())\n", "1 warning unused-suppression\n2 error call-of-alpha", 0},
		"file":               {"alpha()\nalpha()\n# trainvet: file-ignore[call-of-alpha] why\n", "", 2},
		"indented":           {"def f():\n    # trainvet: ignore[call-of-alpha] why\n    alpha()\n    alpha()\n", "4 error call-of-alpha", 1},
		"behind noqa":        {"alpha()  # noqa: E501  # trainvet: ignore[call-of-alpha] why\n", "", 1},
		"before noqa":        {"alpha()  # trainvet: ignore[call-of-alpha] why # noqa\n", "", 1},
		"two in one":         {"alpha(), beta()  # trainvet: ignore[call-of-alpha] # trainvet: ignore[call-of-beta]\n", "", 2},
		"other rule":         {"alpha()  # trainvet: ignore[call-of-beta]\n", "1 error call-of-alpha\n1 warning unused-suppression", 0},
		"unknown":            {"alpha()  # trainvet: ignore[call-of-alhpa]\n", "1 error call-of-alpha\n1 warning unknown-suppression", 0},
		"no brackets":        {"alpha()  # trainvet: ignore\n", "1 error call-of-alpha\n1 warning unknown-suppression", 0},
		"a string":           {"x = '# trainvet: ignore[call-of-alpha]'; alpha()\n", "1 error call-of-alpha", 0},
		"off":                {"delta()  # trainvet: ignore[call-of-delta]\n", "", 0},
		"itself":             {"x = 1  # trainvet: ignore[call-of-alpha, unused-suppression] kept for later\n", "", 1},
		"crlf":               {"alpha()  # trainvet: ignore[call-of-alpha] why\r\nalpha()\r\n", "2 error call-of-alpha", 1},
		"at the end of file": {"alpha()  # trainvet: ignore[call-of-alpha] why", "", 1},
		"nothing follows":    {"alpha()\n# trainvet: ignore[call-of-alpha] why\n", "1 error call-of-alpha\n2 warning unused-suppression", 0},
	} {
		report, err := try(t, map[string]string{"a.py": test.text}, world(), check.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(found(report), "a.py:", ""); got != test.want || report.Summary.Suppressed != test.suppressed {
			t.Errorf("%s: %d suppressed, found:\n%s\nwant %d:\n%s", name, report.Summary.Suppressed, got, test.suppressed, test.want)
		}
	}
}

// TestSuppressionAmongTests holds that of a file in which rules were not run no suppression counts as useless.
func TestSuppressionAmongTests(t *testing.T) {
	snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"tests/a.py": "alpha()  # trainvet: ignore[call-of-alpha]\n"}))
	rules := world()
	for _, tests := range []bool{false, true} {
		resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules, Flags: check.Flags{Tests: tests}}
		report, err := check.Run(context.Background(), snapshot, []check.Target{{Path: "tests/a.py", Test: true}}, check.Options{Rules: rules, Settings: resolver})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) > 0 || tests != (report.Summary.Suppressed == 1) {
			t.Errorf("with tests %v: %s, %+v", tests, found(report), report.Summary)
		}
	}
}

// TestSuppressionInConfigs goes through the formats with comments, with a rule that reports every key of settings.
func TestSuppressionInConfigs(t *testing.T) {
	var report func(pass *lint.Pass, node *configs.Node)
	report = func(pass *lint.Pass, node *configs.Node) {
		if node == nil {
			return
		}
		for _, item := range node.Items {
			if !item.KeyAt.IsZero() {
				pass.Reportf(item.KeyAt, "key %s", item.Key)
			}
			report(pass, item.Value)
		}
	}
	every := &lint.Rule{Name: "every-key", Family: "keys", Severity: lint.Info, Part: func(pass *lint.Pass, part *workspace.Part) { report(pass, part.Tree.Root) }}
	for name, test := range map[string]struct{ text, want string }{
		"line.json":  {"{\n\"train_micro_batch_size_per_gpu\": 8, // trainvet: ignore[every-key] why\n\"zero_optimization\": {}}\n", "zero_optimization"},
		"block.json": {"{\n/* trainvet: ignore[every-key] why */\n\"zero_optimization\": {\n\"stage\": 2\n}, \"train_batch_size\": 2}\n", "train_batch_size"},
		"hash.json":  {"{\n# trainvet: ignore[keys] why\n\"train_micro_batch_size_per_gpu\": 8,\n\"zero_optimization\": {}}\n", "zero_optimization"},
		"file.json":  {"{\n\"train_micro_batch_size_per_gpu\": 8,\n\"zero_optimization\": {}} // trainvet: file-ignore[every-key] why\n", ""},
		"a.yaml": {"# trainvet: ignore[every-key] why\nmodel:\n  hidden_size: 8\n  num_hidden_layers: 2\ntraining:\n  batch_size_per_gpu: 4  # trainvet: ignore[every-key] why\n" +
			"  # trainvet: ignore[every-key] why\n\n  warmup_steps: 5\n  seed: 2\nparallel:\n  data_parallel: 2\n", "training seed parallel data_parallel"},
		"two.yaml": {"a: 1\n---\n# trainvet: ignore[every-key] why\nmodel:\n  hidden_size: 8\n  num_hidden_layers: 2\ntraining:\n  batch_size_per_gpu: 4\n" +
			"parallel:\n  data_parallel: 2 # trainvet: ignore[every-key]\n", "training batch_size_per_gpu parallel"},
		"a.toml": {"[model]\nflavor = \"8B\"  # trainvet: ignore[every-key] why\n[training]\n# trainvet: ignore[every-key] why\nseq_len = 8\nsteps = 5\n# trainvet: ignore[every-key] why\n[parallelism]\n" +
			"tensor_parallel_degree = 1\n", "model training steps"},
		"a.sh": {"# trainvet: ignore[every-key] why\ntorchrun --nproc_per_node 8 \\\n  --nnodes 2 train.py\ntorchrun --nproc_per_node 4 b.py # trainvet: ignore[keys] why\ntorchrun --nnodes 3 c.py\n", "--nnodes"},
	} {
		rules := append(engine(), every)
		result, err := try(t, map[string]string{name: test.text}, rules, check.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, finding := range result.Findings {
			if finding.Rule == every {
				finding.Message = strings.TrimPrefix(finding.Message, "key ")
			}
			got = append(got, finding.Message)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: left:\n%s\nwant: %s", name, strings.Join(got, "\n"), test.want)
		}
	}
}

// TestCache holds that a result is kept only while what was read for it stays the same, also the one of a file in which nothing
// was looked for.
func TestCache(t *testing.T) {
	snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"a.py": "nothing()\n"}))
	rules := world()
	resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules}
	options := check.Options{Rules: rules, Settings: resolver, Cache: check.NewCache()}
	for _, step := range []struct{ text, want string }{{"nothing()\n", ""}, {"alpha()\n", "a.py:1 error call-of-alpha"}, {"\nalpha()\n", "a.py:2 error call-of-alpha"}, {"nothing()\n", ""}} {
		file, err := source.Decode("a.py", source.Python, []byte(step.text))
		if err != nil {
			t.Fatal(err)
		}
		report, err := check.Run(context.Background(), snapshot.With(file), []check.Target{{Path: "a.py"}}, options)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(report); got != step.want {
			t.Errorf("%q: %s, want %s", step.text, got, step.want)
		}
	}
}

func TestCancel(t *testing.T) {
	snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"a.py": calls}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: world()}
	if _, err := check.Run(ctx, snapshot, []check.Target{{Path: "a.py"}}, check.Options{Rules: world(), Settings: resolver}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFix(t *testing.T) {
	rename := func(name, from, to string, safety lint.Safety) *lint.Rule {
		rule := finder(name, "calls", from, lint.Warning)
		inner := rule.Module
		rule.Module = func(pass *lint.Pass, module *pyscan.Module) {
			inner(pass, module)
			pass.Each(func(d *lint.Diagnostic) {
				at := d.At
				at.Span.End = at.Span.Start + uint32(len(from))
				d.Suggest("call "+to, safety, lint.Edit{At: at, Text: to})
			})
		}
		return rule
	}
	run := func(text string, unsafe bool, rules ...*lint.Rule) *check.Fixed {
		t.Helper()
		rules = append(engine(), rules...)
		snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"a.py": text}))
		resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules}
		fixed, err := check.Fix(context.Background(), snapshot, []check.Target{{Path: "a.py"}}, check.Options{Rules: rules, Settings: resolver}, unsafe)
		if err != nil {
			t.Fatal(err)
		}
		return fixed
	}
	for name, test := range map[string]struct {
		text   string
		unsafe bool
		rules  []*lint.Rule
		want   string
		left   string
	}{
		"safe":              {"alpha()\nx = alpha(alpha())\n", false, []*lint.Rule{rename("r-a", "alpha", "fine", lint.Safe)}, "fine()\nx = fine(fine())\n", ""},
		"unsafe is left":    {"alpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "fine", lint.Unsafe)}, "", "a.py:1 warning r-a"},
		"unsafe":            {"alpha()\n", true, []*lint.Rule{rename("r-a", "alpha", "fine", lint.Unsafe)}, "fine()\n", ""},
		"rounds":            {"alpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "beta", lint.Safe), rename("r-b", "beta", "gamma", lint.Safe)}, "gamma()\n", ""},
		"for ever":          {"alpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "beta", lint.Safe), rename("r-b", "beta", "alpha", lint.Safe)}, "alpha()\n", "a.py:1 warning r-a"},
		"line ends":         {"alpha()\r\nb = 1\r\n", false, []*lint.Rule{rename("r-a", "alpha", "x = 1\nfine", lint.Safe)}, "x = 1\r\nfine()\r\nb = 1\r\n", ""},
		"byte order mark":   {"\xEF\xBB\xBFalpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "fine", lint.Safe)}, "\xEF\xBB\xBFfine()\n", ""},
		"latin-1":           {"# coding: latin-1\nx = '\xe9'; alpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "'é'.fine", lint.Safe)}, "# coding: latin-1\nx = '\xe9'; '\xe9'.fine()\n", ""},
		"pairs of bytes":    {"# coding: gbk\nx = '\xb0\x5c'; alpha()  # \xd6\xd0\n", false, []*lint.Rule{rename("r-a", "alpha", "fine", lint.Safe)}, "# coding: gbk\nx = '\xb0\x5c'; fine()  # \xd6\xd0\n", ""},
		"breaks the file":   {"alpha()\n", false, []*lint.Rule{rename("r-a", "alpha", "if (", lint.Safe)}, "", "a.py:1 warning r-a"},
		"one of two breaks": {"alpha()\nbeta()\n", false, []*lint.Rule{rename("r-a", "alpha", "if (", lint.Safe), rename("r-b", "beta", "fine", lint.Safe)}, "alpha()\nfine()\n", "a.py:1 warning r-a"},
	} {
		fixed := run(test.text, test.unsafe, test.rules...)
		got := ""
		if len(fixed.Files) > 0 {
			got = string(fixed.Files[0].Raw)
		}
		if got != test.want || found(fixed.Report) != test.left {
			t.Errorf("%s: %q, left %q\nwant %q, left %q", name, got, found(fixed.Report), test.want, test.left)
		}
		if breaks := strings.Contains(name, "breaks"); breaks != (len(fixed.Refused) == 1) {
			t.Errorf("%s: refused %+v", name, fixed.Refused)
		}
	}
}

// TestBoundIsUnreadable: a file beyond a bound of its parser is one message and no finding. Met on a walk, it is data
// unless it trains.
func TestBoundIsUnreadable(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for name, c := range map[string]struct{ text, reason string }{
		"ds.json": {`{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}, "x": ` + deep + "}", "nested deeper than 256 levels"},
		"a.json":  {`{"batch_size": ` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", "nested deeper than 256 levels"},
		"a.toml":  {"batch_size = 1\n" + strings.Repeat("a.", 1000) + "a = 1\n", "a key of more than 64 parts"},
		"a.yaml":  {"batch_size: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\n", "nested deeper than 256 levels"},
		"a.sh":    {"torchrun train.py\n" + strings.Repeat("$(", 2000) + strings.Repeat(")", 2000) + "\n", "nested deeper than 1000 levels"},
	} {
		report, err := try(t, map[string]string{name: c.text}, world(), check.Flags{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		trains := name == "a.sh" || name == "ds.json"
		reason := ""
		for _, one := range report.Skipped {
			reason += one.Reason
		}
		if trains && len(report.Unreadable) == 1 {
			reason = report.Unreadable[0].Reason
		}
		if len(report.Findings) > 0 || trains == (report.Summary.Skipped == 1) || report.Summary.Files != 0 || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s, unreadable %v, skipped %v, %d files", name, found(report), report.Unreadable, report.Skipped, report.Summary.Files)
		}
	}
}

// TestDataIsNoSettings: a walk leaves files of settings that are too large to hold any; who names one has it checked.
func TestDataIsNoSettings(t *testing.T) {
	const broken = `{"batch_size": [1}`
	text := broken[:len(broken)-1] + `, "y": "` + strings.Repeat("x", workspace.MaxSettings) + `"}`
	snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"big.json": text, "small.json": broken}))
	rules := world()
	for _, named := range []bool{false, true} {
		resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules}
		report, err := check.Run(context.Background(), snapshot, []check.Target{{Path: "big.json", Named: named}, {Path: "small.json", Named: named}}, check.Options{Rules: rules, Settings: resolver})
		if err != nil {
			t.Fatal(err)
		}
		if big := strings.Contains(found(report), "big.json"); big != named || !strings.Contains(found(report), "small.json") {
			t.Errorf("named %v: %s", named, found(report))
		}
	}
}
