package catalog

import (
	"fmt"
	"github.com/trainvet/trainvet/lint/source"
	"strconv"
	"strings"
)

// DeviceSpec is an accelerator as a process sees it. Rates are of dense arithmetic; 0: not known or not offered.
type DeviceSpec struct {
	Name         string   `json:"name"`
	Vendor       string   `json:"vendor"`
	Aliases      []string `json:"aliases"`
	MarketingGB  float64  `json:"marketing_gb"`
	UsableBytes  int64    `json:"usable_bytes"`  // what the driver reports as the total
	ContextBytes int64    `json:"context_bytes"` // what a process pays before its first tensor
	BF16         bool     `json:"bf16"`
	FP8          bool     `json:"fp8"`
	BF16TFLOPS   float64  `json:"bf16_tflops"`
	FP16TFLOPS   float64  `json:"fp16_tflops"`
	HBMGBs       float64  `json:"hbm_gb_s"`
	LinkGBs      float64  `json:"link_gb_s"` // to other devices of the node, one direction
	Link         string   `json:"link"`
	Arch         string   `json:"arch"`
	Confidence   string   `json:"confidence"`
	Note         string   `json:"note"`
	Sources      []string `json:"sources"`

	// Assumption says what was assumed where the name that was asked for fits several devices; "" where it fits one.
	Assumption string `json:"-"`
}

// Hopper reports whether it is NVIDIA's Hopper or later.
func (d *DeviceSpec) Hopper() bool {
	digits, ok := strings.CutPrefix(d.Arch, "sm_")
	generation, err := strconv.Atoi(digits)
	return ok && err == nil && generation >= 90
}

// Ascend reports whether HCCL and CANN run it.
func (d *DeviceSpec) Ascend() bool { return d.Vendor == "Huawei" }

// DefaultContextBytes is what a process pays on a device of which nothing else is known: 0.7 GiB, between the 0.4 and
// 0.75 GiB seen on A100 and H100 with cuBLAS workspaces.
const DefaultContextBytes = 7 << 30 / 10

// maxCustomGB bounds a device given by its size.
const maxCustomGB = 1 << 20

var customSize = source.Pattern(`^([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*([gG][iI]?[bB]?|[tT][iI]?[bB]|[mM][iI]?[bB])$`)

// customDevice reads a size such as 56GB or 56GiB as a device of so many usable bytes.
func customDevice(name string) (*DeviceSpec, bool) {
	match := customSize().FindStringSubmatch(strings.TrimSpace(name))
	if match == nil {
		return nil, false
	}
	size, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return nil, false
	}
	unit := strings.ToLower(match[2])
	scale := map[byte]float64{'m': 1e6, 'g': 1e9, 't': 1e12}[unit[0]]
	if strings.Contains(unit, "i") {
		scale = map[byte]float64{'m': 1 << 20, 'g': 1 << 30, 't': 1 << 40}[unit[0]]
	}
	bytes := size * scale
	if bytes < 1 || bytes > maxCustomGB*1e9 {
		return nil, false
	}
	return &DeviceSpec{Name: strings.TrimSpace(name), MarketingGB: bytes / 1e9, UsableBytes: int64(bytes), ContextBytes: DefaultContextBytes,
		BF16: true, Confidence: "given"}, true
}

// UnknownError says that the catalogue has no such model or device.
type UnknownError struct{ Kind, Name string }

func (e *UnknownError) Error() string {
	if near := e.Nearest(); near != "" {
		return fmt.Sprintf("unknown %s %q; the nearest known one is %s", e.Kind, e.Name, near)
	}
	return fmt.Sprintf("unknown %s %q", e.Kind, e.Name)
}

// Nearest is the known name that is most like the unknown one; "" for a name so long that it is none. It is searched for only
// when somebody asks: most callers just go on without the model.
func (e *UnknownError) Nearest() string {
	switch {
	case len(e.Name) >= maxName:
		return ""
	case e.Kind == "device":
		return load().devices.nearest(e.Name)
	}
	return load().models.nearest(lastPart(e.Name))
}
