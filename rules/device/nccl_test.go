package device

import (
	"strconv"
	"testing"
)

// TestIntegerAsStrtoll holds numbers that C's strtoll(text, &end, 0) was asked for.
func TestIntegerAsStrtoll(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int64
		rest string
	}{
		{"1", 1, ""}, {" 12 ", 12, " "}, {"-1", -1, ""}, {"+7", 7, ""}, {"0x400000", 4194304, ""}, {"0x1G", 1, "G"}, {"0xg", 0, "xg"},
		{"010", 8, ""}, {"08", 0, "8"}, {"4M", 4, "M"}, {"1e6", 1, "e6"}, {"1.5", 1, ".5"}, {"22,", 22, ","}, {"1 # on", 1, " # on"}, {"-0x10", -16, ""}, {"0", 0, ""},
	} {
		if n, digits, rest := integer(c.text); n != c.n || rest != c.rest || digits == "" {
			t.Errorf("integer(%q) = %d, %q, %q; want %d and %q left", c.text, n, digits, rest, c.n, c.rest)
		}
	}
	for _, text := range []string{"", "true", "--1", "x", "+", "- 1", "0x"} {
		if n, digits, _ := integer(text); text != "0x" && digits != "" || n != 0 {
			t.Errorf("integer(%q) = %d, %q; want no number", text, n, digits)
		}
	}
}

// TestNcclNearSparesKnown asks for every known name with a letter lost: it is found again, or stays unknown, but is never taken
// for something else without a slip.
func TestNcclNearSparesKnown(t *testing.T) {
	known := ncclVariables()
	if len(known) < 300 || known["NCCL_IB_DISABLE"].kind != "int" || known["NCCL_TREE_THRESHOLD"].removed != "2.5" {
		t.Fatalf("%d variables read", len(known))
	}
	found := 0
	for name, variable := range known {
		if variable.removed != "" {
			continue
		}
		slip := name[:len(name)-2] + name[len(name)-1:]
		if _, is := known[slip]; is {
			continue
		}
		if near, _ := ncclNear(slip); near == name {
			found++
		}
	}
	if found < len(known)*8/10 {
		t.Errorf("only %d of %d names are found again with a letter lost", found, len(known))
	}
	for _, name := range []string{"NCCL_HOME", "NCCL_VERSION", "NCCL_CONFIG", "NCCL_LIB", "NCCL_DIR", "NCCL_COMM", "NCCL_PORT", "NCCL_NETWORK", "NCCL_RANK", "NCCL_WORLD_SIZE", "NCCL_HOST", "NCCL_SO_PATH", "NCCL_LIB_PATH", "NCCL_SOCKET"} {
		if near, _ := ncclNear(name); near != "" {
			t.Errorf("%s is taken for %s", name, near)
		}
	}
}

// FuzzNcclFault asks for any value of any kind of variable: it never panics, and a whole number is read as it stands.
func FuzzNcclFault(f *testing.F) {
	for _, value := range []string{"true", "4M", "-1", "0x10", "^LL128;allreduce:LL", "level0:NA;level1:ring", "Ring, Tree", "nvl", "INIT,^NET", ";;:,", "\x00", "1e6"} {
		f.Add(value)
	}
	kinds := []string{"int", "torch-int", "torch-bool", "level", "family", "debug", "subsystems", "algorithms", "protocols", "text"}
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" {
			return
		}
		for _, kind := range kinds {
			fault, certain := ncclFault("NCCL_X", ncclVariable{kind: kind}, value)
			if fault == "" && certain {
				t.Errorf("%s: certain of nothing for %q", kind, value)
			}
		}
		n, digits, rest := integer(value)
		if digits == "" && n != 0 || len(digits)+len(rest) > len(value) {
			t.Errorf("integer(%q) = %d, %q, %q", value, n, digits, rest)
		}
		if m, err := strconv.ParseInt(value, 10, 64); err == nil && (value == "0" || value[0] >= '1' && value[0] <= '9') && m != n {
			t.Errorf("integer(%q) = %d", value, n)
		}
		ncclNear("NCCL_" + value)
	})
}
