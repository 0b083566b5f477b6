package memory

import "testing"

func TestSupply(t *testing.T) {
	for _, test := range []struct {
		missing Missing
		want    string
	}{
		{Missing{MissingModel, MissingSeqLength, MissingDevice}, "set --model, --seq-len and --device (or [run] in trainvet.toml)"},
		{Missing{"model (model.vocab)"}, "set --model (or [run] in trainvet.toml)"},
		{Missing{MissingPrecision, MissingSharding}, "the files of the run do not say the precision and sharding"},
		{Missing{MissingMicro, MissingWorld}, "set --world-size (or [run] in trainvet.toml); the files of the run do not say the micro-batch"},
		{
			Missing{"how fsdp offload uses memory", MissingDevice, MissingMicro},
			"set --device (or [run] in trainvet.toml); the files of the run do not say the micro-batch; trainvet does not know how fsdp offload uses memory",
		},
	} {
		if got := test.missing.Supply(); got != test.want {
			t.Errorf("%v: %q, wanted %q", test.missing, got, test.want)
		}
	}
}
