package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

func TestParseJobs(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"a string of compose", `
services:
  train:
    command: deepspeed --num_gpus 8 train.py --deepspeed_config ds.json
`, "deepspeed --num_gpus=8 train.py --deepspeed_config=ds.json"},
		{"words of compose", `
services:
  train:
    entrypoint: ["torchrun"]
    command: [--nproc_per_node, "4", train.py, "--lr=1e-4"]
`, "torchrun --nproc_per_node=4 train.py --lr=1e-4"},
		{"a folded script", `
services:
  train:
    command: >
      torchrun --nproc_per_node 4
      train.py --lr 1e-4
`, "torchrun --nproc_per_node=4 train.py --lr=1e-4"},
		{"PyTorchJob", `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  nprocPerNode: "8"
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {spec: {containers: [{name: a, command: [torchrun, train.py], args: ["--bf16"]}]}}
    Worker:
      replicas: 3
      template: {spec: {containers: [{name: a, command: [torchrun, train.py], args: ["--bf16"]}]}}
`, "torchrun --nnodes=4 --nproc_per_node=8 train.py --bf16="},
		{"the flags of the command itself count", `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - command:
            - bash
            - -c
            - |
              cd /workspace
              torchrun --nnodes=2 --nproc-per-node 8 train.py
`, "torchrun --nnodes=2 --nproc-per-node=8 train.py"},
		{"MPIJob", `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
spec:
  slotsPerWorker: 8
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{command: [mpirun, python, train.py]}]}}}
    Worker: {replicas: 2}
`, "mpirun --np=16 train.py"},
		{"TrainJob", `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  trainer: {numNodes: 2, numProcPerNode: 4, command: [torchrun, train.py]}
`, "torchrun --nnodes=2 --nproc_per_node=4 train.py"},
		{"no training", `
services:
  web: {command: nginx -g off}
`, ""},
		{"another file", "train: {command: torchrun train.py}\n", ""},
	} {
		f := &source.File{Path: "job.yaml", Kind: source.YAML, Text: []byte(test.text)}
		script := ParseJobs(f, ParseYAML(f))
		var got []string
		if script != nil {
			for _, c := range script.Commands {
				words := []string{c.Launcher}
				words = append(words, flagsOf(c.LauncherFlags)...)
				words = append(words, c.Program)
				words = append(words, flagsOf(c.Flags)...)
				got = append(got, strings.Join(words, " "))
				if text := f.Slice(c.At.Span); !strings.Contains(text, "train.py") {
					t.Errorf("%s: the command is at %q", test.name, text)
				}
			}
		}
		if got := strings.Join(got, "; "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func flagsOf(tree *Tree) []string {
	var words []string
	if tree != nil {
		for _, item := range tree.Root.Items {
			words = append(words, fmt.Sprintf("%s=%s", item.Key, item.Value.Raw))
		}
	}
	return words
}

func FuzzJobs(f *testing.F) {
	f.Add("services: {a: {command: torchrun train.py}}\n")
	f.Add("apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [bash, -c, \"torchrun \\\"a\\\" train.py\"]}]}\n")
	f.Add("apiVersion: v1\nkind: MPIJob\nspec:\n  slotsPerWorker: 9\n  mpiReplicaSpecs: {Launcher: &a {template: {spec: {containers: [{args: >-\n mpirun x.py}]}}}, Worker: *a}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := &source.File{Path: "job.yaml", Kind: source.YAML, Text: []byte(text)}
		script := ParseJobs(file, ParseYAML(file))
		if script == nil {
			return
		}
		for _, c := range script.Commands {
			if int(c.At.Span.End) > len(text) || c.At.Span.Start > c.At.Span.End {
				t.Errorf("a command is at %v of %d bytes", c.At.Span, len(text))
			}
		}
	})
}
