package configs

import (
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"A=b c", "torchrun", "--nproc_per_node", "8", "train.py", "--lr", "1e-5", "--text", "two words", "--x=", "--bf16"}, `command "A=b c torchrun --n… words --x= --bf16"
  launcher torchrun "torchrun"
     = mapping plain "--nproc_per_node 8"
    .--nproc_per_node = plain "8"
  program "train.py" "train.py"
     = mapping plain "--lr 1e-5 --text two words --x= --bf16"
    .--lr = plain "1e-5"
    .--text = plain "two words"
    .--x = plain ""
    .--bf16 = bare "--bf16"
  env
     = mapping plain "A=b c"
    .A = plain "b c"
`},
		{[]string{"srun", "-N2", "deepspeed", "train.py"}, `command "srun -N2 deepspeed train.py"
  launcher deepspeed "deepspeed"
     = mapping plain "deepspeed"
  launcher srun "srun"
     = mapping plain "-N2"
    .-N = plain "2"
  program "train.py" "train.py"
     = mapping plain "train.py"
`},
		{[]string{"bash", "-c", "A=1 python x.py --a 1; ls"}, `command "A=1 python x.py --a 1"
  launcher python "python"
     = mapping plain "python"
  program "x.py" "x.py"
     = mapping plain "--a 1"
    .--a = plain "1"
  env
     = mapping plain "A=1"
    .A = plain "1"
`},
		{[]string{"accelerate", "launch"}, ""},
		{[]string{"bash", "-c", "f() { ls; }; f"}, ""},
		{[]string{"ls", "-l"}, ""},
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"A=b"}, ""},
		{[]string{"env", "torchrun"}, ""},
	} {
		f := &source.File{Path: CommandPath}
		for i, word := range c.words {
			if i > 0 {
				f.Text = append(f.Text, ' ')
			}
			f.Text = append(f.Text, word...)
		}
		got := ""
		if command := ParseCommand(c.words); command != nil {
			got = showCommand(f, command)
		}
		if got != c.want {
			t.Errorf("%q:\n%s", c.words, lineDiff(c.want, got))
		}
	}
}
