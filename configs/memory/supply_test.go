package memory

import "testing"

func TestSupply(t *testing.T) {
	for _, test := range []struct {
		missing Missing
		want    string
	}{
		{Missing{MissingModel, MissingSeqLength, MissingDevice}, "set --model, --seq-len and --device (or [run] in trainvet.toml)"},
		{Missing{"model (model.vocab)"}, "set --model (or [run] in trainvet.toml)"},
		{Missing{MissingPrecision, MissingSharding}, "the files of the run do not state the precision and the sharding"},
		{Missing{MissingMicro, MissingWorld}, "set --world-size (or [run] in trainvet.toml); the files of the run do not state the micro-batch"},
		{Missing{"how GaLore uses memory", MissingSharding}, "the files of the run do not state the sharding; the estimate does not model GaLore"},
		{
			Missing{MissingModel, "how A uses memory", "how B uses memory", "how C uses memory", "how D uses memory", "how E uses memory"},
			"set --model (or [run] in trainvet.toml); the estimate does not model A, B, C and 2 more features",
		},
	} {
		if got := test.missing.Supply(); got != test.want {
			t.Errorf("%v: %q, wanted %q", test.missing, got, test.want)
		}
	}
}
