package device

import (
	"fmt"
	"strconv"
	"strings"
)

// hcclKind says how the value of a variable is written.
type hcclKind uint8

const (
	hcclText hcclKind = iota // nothing is known of its form
	hcclInteger
	hcclWord  // one of a few words
	hcclAlgos // level0:NA;level1:ring, also one list for each operator
)

// hcclVariable is what is known of one variable: the CANN reference (envref) and torch_npu's OptionsManager.
type hcclVariable struct {
	kind     hcclKind
	min, max int64
	unit     string
	words    []string
	reason   string // why a value beyond max is no use
}

var flagWords = []string{"0", "1"}

// hcclVariables are the variables that HCCL and torch_npu read.
var hcclVariables = map[string]hcclVariable{
	"HCCL_ALGO": {kind: hcclAlgos},
	// Above 64 GB the buffer is larger than any device; bytes written into the field of MB are.
	"HCCL_BUFFSIZE":                                {kind: hcclInteger, min: 1, max: 65535, unit: " MB", reason: "the unit is MB, and two buffers of that size are allocated for each communicator"},
	"P2P_HCCL_BUFFSIZE":                            {kind: hcclInteger, min: 0, max: 65535, unit: " MB", reason: "the unit is MB"},
	"HCCL_CONNECT_TIMEOUT":                         {kind: hcclInteger, min: 120, max: 7200, unit: " s"},
	"HCCL_EXEC_TIMEOUT":                            {kind: hcclInteger, min: 0, max: 1<<31 - 1, unit: " s"},
	"HCCL_EVENT_TIMEOUT":                           {kind: hcclInteger, min: 0, max: 1<<31 - 1, unit: " s"},
	"HCCL_IF_BASE_PORT":                            {kind: hcclInteger, min: 1024, max: 65520},
	"HCCL_RDMA_TC":                                 {kind: hcclInteger, min: 0, max: 255},
	"HCCL_RDMA_SL":                                 {kind: hcclInteger, min: 0, max: 7},
	"HCCL_RDMA_TIMEOUT":                            {kind: hcclInteger, min: 5, max: 24},
	"HCCL_RDMA_RETRY_CNT":                          {kind: hcclInteger, min: 1, max: 7},
	"HCCL_INTRA_PCIE_ENABLE":                       {kind: hcclWord, words: flagWords},
	"HCCL_INTRA_ROCE_ENABLE":                       {kind: hcclWord, words: flagWords},
	"HCCL_WHITELIST_DISABLE":                       {kind: hcclWord, words: flagWords},
	"HCCL_SOCKET_FAMILY":                           {kind: hcclWord, words: []string{"AF_INET", "AF_INET6"}},
	"HCCL_ALLTOALL_Z_COPY":                         {},
	"HCCL_ASYNC_ERROR_HANDLING":                    {},
	"HCCL_DEBUG_CONFIG":                            {},
	"HCCL_DESYNC_DEBUG":                            {},
	"HCCL_DETERMINISTIC":                           {},
	"HCCL_DFS_CONFIG":                              {},
	"HCCL_DIAGNOSE_ENABLE":                         {},
	"HCCL_ENTRY_LOG_ENABLE":                        {},
	"HCCL_HOST_RDMA_ENABLE":                        {},
	"HCCL_HOST_SOCKET_PORT_RANGE":                  {},
	"HCCL_IF_IP":                                   {},
	"HCCL_INTER_HCCS_DISABLE":                      {},
	"HCCL_LOGIC_SUPERPOD_ID":                       {},
	"HCCL_MULTI_QP_THRESHOLD":                      {},
	"HCCL_NPU_SOCKET_PORT_RANGE":                   {},
	"HCCL_OP_EXPANSION_MODE":                       {},
	"HCCL_OP_BASE_FFTS_MODE_ENABLE":                {},
	"HCCL_OP_RETRY_ENABLE":                         {},
	"HCCL_OP_RETRY_PARAMS":                         {},
	"HCCL_P2P_DISABLE":                             {},
	"HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT":          {},
	"HCCL_RDMA_QPS_PER_CONNECTION":                 {},
	"HCCL_RDMA_QP_PORT_CONFIG_PATH":                {},
	"HCCL_SOCKET_IFNAME":                           {},
	"HCCL_WHITELIST_FILE":                          {},
	"TORCH_HCCL_ASYNC_ERROR_HANDLING":              {},
	"TORCH_HCCL_BLOCKING_WAIT":                     {},
	"TORCH_HCCL_DESYNC_DEBUG":                      {},
	"TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC":             {},
	"TORCH_HCCL_STATUS_SAVE_ENABLE":                {},
	"TORCH_HCCL_STATUS_SAVE_PATH":                  {},
	"TORCH_HCCL_STATUS_SAVE_INTERVAL":              {},
	"TORCH_HCCL_ZERO_COPY":                         {},
	"TORCH_HCCL_DUMP_ON_TIMEOUT":                   {},
	"TORCH_HCCL_TRACE_BUFFER_SIZE":                 {},
	"TORCH_HCCL_ENABLE_MONITORING":                 {},
	"TORCH_HCCL_USE_TENSOR_REGISTER":               {},
	"TORCH_HCCL_TRACE_CPP_STACK":                   {},
	"TORCH_HCCL_WAIT_TIMEOUT_DUMP_MILSEC":          {},
	"TORCH_HCCL_COORD_CHECK_MILSEC":                {},
	"TORCH_HCCL_DEBUG_INFO_TEMP_FILE":              {},
	"TORCH_HCCL_DEBUG_INFO_PIPE_FILE":              {},
	"TORCH_HCCL_RETHROW_CUDA_ERRORS":               {},
	"TORCH_HCCL_PROPAGATE_ERROR":                   {},
	"TORCH_HCCL_HIGH_PRIORITY":                     {},
	"TORCH_HCCL_AVOID_RECORD_STREAMS":              {},
	"TORCH_HCCL_ENABLE_TIMING":                     {},
	"TORCH_HCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN": {},
}

// replacement is what the author of a name that is not read wants; without a name there is nothing to set.
type replacement struct {
	name string // one or more variables, with the unit where it differs
	nccl bool   // the name is NCCL's with another prefix
}

func (r replacement) meant() string {
	text := ""
	if r.nccl {
		text = "; the name is NCCL's"
	}
	if r.name != "" {
		text += " (did you mean " + r.name + "?)"
	}
	return text
}

// hcclInstead are names that nothing reads, and what their authors want.
var hcclInstead = map[string]replacement{
	"HCCL_BUFFER_SIZE":     {name: "HCCL_BUFFSIZE, in MB"},
	"HCCL_BUFF_SIZE":       {name: "HCCL_BUFFSIZE, in MB"},
	"HCCL_BUFFSIZE_MB":     {name: "HCCL_BUFFSIZE, in MB"},
	"HCCL_IB_HCA":          {nccl: true}, // HCCL finds the network ports of the NPUs itself
	"HCCL_IB_DISABLE":      {nccl: true},
	"HCCL_IB_GID_INDEX":    {nccl: true},
	"HCCL_IB_TIMEOUT":      {"HCCL_RDMA_TIMEOUT", true},
	"HCCL_IB_RETRY_CNT":    {"HCCL_RDMA_RETRY_CNT", true},
	"HCCL_IB_TC":           {"HCCL_RDMA_TC", true},
	"HCCL_IB_SL":           {"HCCL_RDMA_SL", true},
	"HCCL_DEBUG":           {"ASCEND_GLOBAL_LOG_LEVEL", true},
	"HCCL_DEBUG_SUBSYS":    {"ASCEND_MODULE_LOG_LEVEL", true},
	"HCCL_LOG_LEVEL":       {name: "ASCEND_GLOBAL_LOG_LEVEL"},
	"HCCL_TIMEOUT":         {name: "HCCL_CONNECT_TIMEOUT or HCCL_EXEC_TIMEOUT"},
	"HCCL_CHECK_INIT":      {},
	"HCCL_NET_GDR_LEVEL":   {nccl: true},
	"HCCL_SHM_DISABLE":     {nccl: true},
	"HCCL_PROTO":           {nccl: true},
	"HCCL_TOPO_FILE":       {"RANK_TABLE_FILE", true},
	"HCCL_MIN_NCHANNELS":   {nccl: true},
	"HCCL_MAX_NCHANNELS":   {nccl: true},
	"HCCL_BLOCKING_WAIT":   {name: "TORCH_HCCL_BLOCKING_WAIT"},
	"HCCL_SOCKET_NTHREADS": {nccl: true},
}

// badValue says what is wrong with a value; "" where nothing is known to be.
func (h hcclVariable) badValue(name, value string) string {
	switch h.kind {
	case hcclInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return fmt.Sprintf("%s takes a whole number%s, not `%s`", name, inUnit(h.unit), value)
		case n < h.min:
			return fmt.Sprintf("%s=%d is below its least value, %d%s", name, n, h.min, h.unit)
		case n > h.max && h.reason != "":
			return fmt.Sprintf("%s=%d cannot be allocated on any device: %s", name, n, h.reason)
		case n > h.max:
			return fmt.Sprintf("%s=%d is above its largest value, %d%s", name, n, h.max, h.unit)
		}
	case hcclWord:
		for _, word := range h.words {
			if word == value {
				return ""
			}
		}
		return fmt.Sprintf("%s takes %s, not `%s`", name, strings.Join(h.words, " or "), value)
	case hcclAlgos:
		if !algorithms(value) {
			return fmt.Sprintf("%s=%s is no HCCL algorithm list: it is written level0:NA;level1:<algorithm>", name, value)
		}
	}
	return ""
}

func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " of" + unit
}

// algorithms reports whether a text is a list of algorithms by level, for all operators or for each (allreduce=level0:NA;level1:NHR/allgather=...).
func algorithms(value string) bool {
	for part := range strings.SplitSeq(value, "/") {
		if _, list, named := strings.Cut(part, "="); named {
			part = list
		}
		for level := range strings.SplitSeq(strings.Trim(part, "; "), ";") {
			where, algorithm, ok := strings.Cut(level, ":")
			if where = strings.TrimSpace(where); !ok || len(where) != len("level0") || !strings.HasPrefix(where, "level") || strings.TrimSpace(algorithm) == "" {
				return false
			}
		}
	}
	return true
}
