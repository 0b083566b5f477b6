package device

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/nearest"
)

//go:embed nccl_variables.txt
var ncclTable string

// ncclVariable is what is known of one variable.
type ncclVariable struct {
	kind    string // how its value is read: a word of nccl_variables.txt
	removed string // the release of NCCL that stopped to read it; "" where it does
}

// ncclVariables are the variables that NCCL and PyTorch's NCCL backend read, by name.
var ncclVariables = sync.OnceValue(func() map[string]ncclVariable {
	all := map[string]ncclVariable{}
	for line := range strings.Lines(ncclTable) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" {
			variable := ncclVariable{kind: fields[1]}
			if len(fields) > 2 {
				variable.removed = fields[2]
			}
			all[fields[0]] = variable
		}
	}
	return all
})

// torchRenamed are the variables that PyTorch read without TORCH_ before 2.2. It still does, with a warning.
var torchRenamed = []string{"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING", "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"}

// ncclElsewhere are variables of plug-ins and of programs about NCCL, which are near to none of NCCL's by mistake.
var ncclElsewhere = []string{
	"NCCL_SHARP_", "NCCL_UCX_", "NCCL_IBEXT_", "NCCL_PLUGIN_", "NCCL_IB_IS_GLOBAL", // nccl-rdma-sharp-plugins
	"NCCL_FAST_SOCKET_", "NCCL_SOCK_", "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "NCCL_GPUVIZ_", "NCCL_TCPX", // Google's plug-ins
	"NCCL_TESTS_", "NCCL_EP_", "NCCL_RESHARD_", "NCCL_CHECKPOINT_", "NCCL_INSPECTOR_", "NCCL_PROFILE", // what comes with NCCL
	"NCCL_NCHANNELS_PER_PEER", "NCCL_RINGS_REMAP", // RCCL
}

// ncclInstead are names in use that nothing reads, and what their authors want.
var ncclInstead = map[string]string{
	"NCCL_BUFFER_SIZE":     "NCCL_BUFFSIZE, in bytes",
	"NCCL_BUFF_SIZE":       "NCCL_BUFFSIZE, in bytes",
	"NCCL_DEBUG_LEVEL":     "NCCL_DEBUG",
	"NCCL_LOG_LEVEL":       "NCCL_DEBUG",
	"NCCL_DEBUG_SUBSYSTEM": "NCCL_DEBUG_SUBSYS",
	"NCCL_IFNAME":          "NCCL_SOCKET_IFNAME",
	"NCCL_EXEC_TIMEOUT":    "the timeout of init_process_group (the name is HCCL's)",
	"NCCL_CONNECT_TIMEOUT": "the timeout of init_process_group (the name is HCCL's)",
}

// ncclIdle are names in use that neither NCCL nor PyTorch reads. The project's own code may.
var ncclIdle = map[string]string{
	"NCCL_TIMEOUT":          "the timeout of init_process_group, ddp_timeout of the HF Trainer",
	"NCCL_TIMEOUT_MS":       "the timeout of init_process_group, ddp_timeout of the HF Trainer",
	"NCCL_NUM_CHANNELS":     "NCCL_MIN_CTAS and NCCL_MAX_CTAS",
	"NCCL_IB_GPU_DIRECT":    "NCCL_NET_GDR_LEVEL",
	"NCCL_TREE_ENABLE":      "NCCL_ALGO",
	"NCCL_P2P_NET_DISABLE":  "NCCL_P2P_DISABLE or NCCL_NET",
	"NCCL_BLOCKING_TIMEOUT": "the timeout of init_process_group",
}

// ncclNear gives the known variable that an unknown name was meant to be, and whether it means the opposite (NCCL_IB_ENABLE,
// where there is NCCL_IB_DISABLE). "" where there is none that is certain: plug-ins have variables of their own.
func ncclNear(name string) (near string, opposite bool) {
	if slices.ContainsFunc(ncclElsewhere, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return "", false
	}
	known := ncclVariables()
	prefix, rest := "NCCL_", ""
	if torch, is := strings.CutPrefix(name, "TORCH_NCCL_"); is {
		if _, is := known["NCCL_"+torch]; is {
			return "NCCL_" + torch, false
		}
		prefix, rest = "TORCH_NCCL_", torch
	} else {
		rest = strings.TrimPrefix(name, prefix)
		if _, is := known["TORCH_"+name]; is {
			return "TORCH_" + name, false
		}
	}
	words := strings.Split(rest, "_")
	for i, word := range words {
		if word != "ENABLE" && word != "DISABLE" {
			continue
		}
		words := slices.Clone(words)
		words[i] = map[string]string{"ENABLE": "DISABLE", "DISABLE": "ENABLE"}[word]
		if other := prefix + strings.Join(words, "_"); known[other].kind != "" {
			return other, true
		}
	}
	var rests []string
	slices.Sort(words)
	for other, variable := range known {
		if rest, same := strings.CutPrefix(other, prefix); same && variable.removed == "" {
			rests = append(rests, rest)
			if inOrder := strings.Split(rest, "_"); len(inOrder) > 1 && slices.Equal(slices.Sorted(slices.Values(inOrder)), words) {
				return other, false
			}
		}
	}
	slices.Sort(rests)
	limit := 2
	if len(rest) < 8 {
		limit = 1 // NCCL_VER, NCCL_HOME
	}
	if near := nearest.Within(rest, rests, limit); near != "" && len(near) > 3 && digits(near) == digits(rest) {
		return prefix + near, false
	}
	return "", false
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// ncclRange are the numbers that a variable takes, and what happens to others.
type ncclRange struct {
	min, max int64
	why      string
}

// ncclRanges are from the user guide of NCCL 2.30 (Environment Variables) and the source.
var ncclRanges = map[string]ncclRange{
	"NCCL_IB_TIMEOUT":            {0, 31, "it is the exponent t of 4.096 µs * 2^t, of five bits"},
	"NCCL_IB_RETRY_CNT":          {0, 7, "the field of the queue pair has three bits"},
	"NCCL_IB_TC":                 {-1, 255, "a traffic class has eight bits"},
	"NCCL_IB_SL":                 {-1, 15, "a service level has four bits"},
	"NCCL_IB_QPS_PER_CONNECTION": {1, 128, "there are at most 128 queue pairs for a connection"},
	"NCCL_SOCKET_NTHREADS":       {-2, 16, "NCCL lowers it to 16"},
	"NCCL_CROSS_NIC":             {0, 2, "it is 0, 1 or 2"},
	"NCCL_NTHREADS":              {-2, 512, "NCCL lowers it to 512"},
	"NCCL_BUFFSIZE":              {4096, 1 << 40, "the unit is bytes; 4194304 is the default"},
	"NCCL_LL_BUFFSIZE":           {4096, 1 << 40, "the unit is bytes"},
	"NCCL_LL128_BUFFSIZE":        {4096, 1 << 40, "the unit is bytes"},
}

var (
	ncclLevels     = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}
	ncclFamilies   = []string{"AF_INET", "AF_INET6"}
	ncclDebugWords = []string{"VERSION", "WARN", "INFO", "ABORT", "TRACE"}
	ncclSubsystems = []string{"INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "ALLOC_HOST", "CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "DESTROY", "VERBS", "ALL"}
	ncclAlgorithms = []string{"Tree", "Ring", "CollNet", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT", "MSCCL", "MSCCLPP"}
	ncclProtocols  = []string{"LL", "LL128", "Simple"}
	ncclFunctions  = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

	yesWords = []string{"true", "yes", "on", "y", "t", "enable", "enabled"}
	noWords  = []string{"false", "no", "off", "n", "f", "disable", "disabled", "none", "null"}
)

func oneOfFold(word string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

// integer reads a text as strtoll does in base 0: the number that it starts with, and what follows that.
func integer(text string) (n int64, digits, rest string) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	end, signs := 0, strings.TrimLeft(text, "+-")
	if len(text)-len(signs) > 1 {
		return 0, "", text
	}
	end = len(text) - len(signs)
	alphabet := "0123456789"
	switch {
	case len(signs) > 2 && (signs[:2] == "0x" || signs[:2] == "0X") && strings.ContainsRune("0123456789abcdefABCDEF", rune(signs[2])):
		end, alphabet = end+2, "0123456789abcdefABCDEF"
	case strings.HasPrefix(signs, "0"):
		alphabet = "01234567"
	}
	for end < len(text) && strings.IndexByte(alphabet, text[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 0, 64)
	if err != nil {
		return 0, "", text
	}
	return n, text[:end], text[end:]
}

// ncclFault says what is wrong with a value, and whether the run is certain to differ from what was meant; "" where nothing is known
// to be wrong.
func ncclFault(name string, variable ncclVariable, value string) (fault string, certain bool) {
	switch variable.kind {
	case "int":
		return ncclIntegerFault(name, value)
	case "torch-int":
		if _, digits, _ := integer(value); digits == "" {
			return fmt.Sprintf("%s takes a whole number: `%s` raises \"Invalid value for environment variable\" in init_process_group", name, value), true
		}
	case "torch-bool":
		if !slices.Contains([]string{"y", "yes", "1", "t", "true", "n", "no", "0", "f", "false"}, strings.ToLower(value)) {
			return fmt.Sprintf("%s is 1 or 0: `%s` raises \"Invalid value for environment variable\" in init_process_group", name, value), true
		}
	case "level":
		if slices.Contains(ncclLevels, value) || value[0] >= '0' && value[0] <= '9' {
			return "", false
		}
		if upper := strings.ToUpper(value); slices.Contains(ncclLevels, upper) {
			return fmt.Sprintf("NCCL ignores %s=%s: it compares upper and lower case, and knows %s", name, value, upper), true
		}
		return fmt.Sprintf("NCCL ignores %s=%s: it is none of %s", name, value, strings.Join(ncclLevels, ", ")), true
	case "family":
		if !slices.Contains(ncclFamilies, value) {
			return fmt.Sprintf("NCCL ignores %s=%s: it is AF_INET or AF_INET6", name, value), true
		}
	case "debug":
		if !oneOfFold(strings.TrimSpace(value), ncclDebugWords) && !oneOfFold(value, noWords) && value != "0" && !strings.EqualFold(value, "ERROR") {
			return fmt.Sprintf("NCCL_DEBUG=%s is none of VERSION, WARN, INFO and TRACE: NCCL prints nothing, not even its warnings", value), false
		}
	case "subsystems":
		for word := range strings.SplitSeq(strings.TrimPrefix(value, "^"), ",") {
			if word = strings.TrimSpace(word); word != "" && !oneOfFold(strings.TrimPrefix(word, "^"), ncclSubsystems) {
				return fmt.Sprintf("NCCL_DEBUG_SUBSYS knows no %s, and leaves it out", word), false
			}
		}
	case "algorithms":
		return ncclListFault(name, value, ncclAlgorithms)
	case "protocols":
		return ncclListFault(name, value, ncclProtocols)
	}
	return "", false
}

func ncclIntegerFault(name, value string) (fault string, certain bool) {
	n, digits, rest := integer(value)
	word := strings.TrimSpace(value)
	switch {
	case digits == "" && oneOfFold(word, noWords):
		return "", false // 0, as was meant
	case digits == "" && oneOfFold(word, yesWords):
		means := "0, which leaves it off"
		if strings.Contains(name, "DISABLE") {
			means = "0, which disables nothing"
		}
		return fmt.Sprintf("NCCL reads %s=%s as %s: it takes a whole number", name, value, means), true
	case digits == "":
		return fmt.Sprintf("NCCL reads %s=%s as 0: it takes a whole number", name, value), true
	case rest != "" && letterOrPoint(rest[0]) && strings.Trim(rest, ".0") != "":
		return fmt.Sprintf("NCCL reads %s=%s as %d: it takes a whole number, and stops at `%s`", name, value, n, rest), true
	}
	if strings.HasSuffix(name, "NTHREADS") && !strings.Contains(name, "SOCKET") && n > 0 && n%32 != 0 {
		return fmt.Sprintf("%s=%d is no multiple of 32: NCCL takes its largest number of threads instead", name, n), false
	}
	if allowed, is := ncclRanges[name]; is && (n < allowed.min || n > allowed.max) && (n > 0 || allowed.min < 4096) {
		return fmt.Sprintf("%s=%d is not from %d to %d: %s", name, n, allowed.min, allowed.max, allowed.why), false
	}
	return "", false
}

func letterOrPoint(c byte) bool {
	return c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// ncclListFault looks at a list of algorithms or protocols: `Ring,Tree`, `^NVLS`, and for single functions `allreduce:Tree;broadcast:Ring`.
func ncclListFault(name, value string, known []string) (fault string, certain bool) {
	for i, entry := range strings.Split(value, ";") {
		function, list, named := strings.Cut(entry, ":")
		if !named {
			if function, list = "", function; i > 0 && list != "" {
				return fmt.Sprintf("%s=%s: every entry but the first names its function, `allreduce:%s`; NCCL fails in ncclCommInitRank", name, value, known[0]), true
			}
		} else if !oneOfFold(function, ncclFunctions) {
			return fmt.Sprintf("%s=%s: there is no function `%s`; NCCL since 2.24 fails in ncclCommInitRank, earlier ones leave the entry out", name, value, function), true
		}
		for element := range strings.SplitSeq(strings.TrimPrefix(list, "^"), ",") {
			if element != "" && !oneOfFold(element, known) {
				return fmt.Sprintf("%s=%s: `%s` is none of %s; NCCL since 2.24 fails in ncclCommInitRank, earlier ones leave it out", name, value, element, strings.Join(known[:min(len(known), 8)], ", ")), true
			}
		}
	}
	return "", false
}
