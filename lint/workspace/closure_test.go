package workspace

import (
	"slices"
	"testing"

	"github.com/trainvet/trainvet/pyscan"
)

const closureProject = `
-- train.py --
import torch
from lib import helper
from lib.deep import (
    one,  # a comment
    two,
)

if __name__ == "__main__":
    helper.run()
-- lib/__init__.py --
-- lib/helper.py --
from . import patch
-- lib/deep.py --
one = two = 1
-- lib/patch.py --
from torch_npu.contrib import transfer_to_npu
-- lone.py --
import torch_npu
-- run.sh --
export TORCH_TRANSFER_TO_NPU=1
HCCL_BUFFSIZE=400 python started.py
-- started.py --
import torch_npu
`

func TestClosure(t *testing.T) {
	v, _ := open(t, closureProject)
	got := v.Closure("train.py")
	slices.Sort(got)
	if want := []string{"lib/__init__.py", "lib/deep.py", "lib/helper.py", "lib/patch.py", "train.py"}; !slices.Equal(got, want) {
		t.Errorf("train.py runs %v, want %v", got, want)
	}
	importers := v.Importers("lib/patch.py")
	slices.Sort(importers)
	if want := []string{"lib/helper.py", "train.py"}; !slices.Equal(importers, want) {
		t.Errorf("lib/patch.py is imported by %v, want %v", importers, want)
	}
	for file, want := range map[string]bool{"train.py": true, "lib/deep.py": true, "lone.py": false, "started.py": true} {
		if got := v.TransfersToNPU(file); got != want {
			t.Errorf("%s transfers: %v", file, got)
		}
	}
	for file, want := range map[string]pyscan.Truth{"train.py": pyscan.Yes, "lib/deep.py": pyscan.Yes, "lone.py": pyscan.No, "started.py": pyscan.Yes} {
		if got := v.Started(file); got != want {
			t.Errorf("%s is started: %v, want %v", file, got, want)
		}
	}
	if !v.ImportedAnywhere("train.py", "torch_npu") || v.ImportedAnywhere("lib/deep.py", "torch_npu") {
		t.Error("torch_npu is imported by lib/patch.py alone, which train.py imports")
	}
	alone, _ := open(t, "-- a.py --\nimport torch\n")
	if got := alone.Started("a.py"); got != pyscan.Maybe {
		t.Errorf("the only file is started: %v", got)
	}
}

const variablesProject = `
-- run.sh --
export HCCL_ALGO=Tree
A_B=$UNKNOWN HCCL_BUFFSIZE=200 python train.py
mpirun -x HCCL_IF_IP=1.2.3.4 python train.py
-- train.py --
import os
NAME = "HCCL_D"
os.environ["HCCL_A"] = "1"
os.environ.setdefault("HCCL_B", str(2))
os.environ.update(HCCL_C="3")
os.environ[NAME] = "4"
env = {"HCCL_E": "5", "other": 6}
env = dict(os.environ, HCCL_F="6")
child = os.environ.copy()
child["HCCL_G"] = "7"
other["HCCL_H"] = "8"
-- pod.yaml --
env:
  - name: HCCL_A
    value: "1"
  - HCCL_B=2
  - "HCCL_C=3"
environment:
  HCCL_D: 4
`

func TestVariables(t *testing.T) {
	v, _ := open(t, variablesProject)
	for file, want := range map[string][]string{
		"run.sh":   {"HCCL_ALGO=Tree", "A_B=?", "HCCL_BUFFSIZE=200", "HCCL_IF_IP=1.2.3.4"},
		"train.py": {"HCCL_A=1", "HCCL_B=2", "HCCL_C=3", "HCCL_D=4", "HCCL_E=5", "HCCL_F=6", "HCCL_G=7"},
		"pod.yaml": {"HCCL_A=1", "HCCL_B=2", "HCCL_C=3", "HCCL_D=4"},
	} {
		var got []string
		for _, variable := range v.Variables(file) {
			value := variable.Value
			if !variable.Known {
				value = "?"
			}
			got = append(got, variable.Name+"="+value)
			f, err := v.File(file)
			if err != nil {
				t.Fatal(err)
			}
			if text := f.Slice(variable.ValueAt.Span); variable.Known && text == "" {
				t.Errorf("%s: the value of %s stands nowhere", file, variable.Name)
			}
			_ = f.Slice(variable.NameAt.Span)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sets %v, want %v", file, got, want)
		}
	}
}
