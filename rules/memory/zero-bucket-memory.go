package memory

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed zero-bucket-memory.md
var docZeroBucketMemory string

// What buckets may take before it is worth a warning: a share of the device, or where that is not known, elements. DeepSpeed's
// default is 5e8 elements.
const (
	bucketShare    = 0.10
	bucketElements = 2e9
)

// ZeroBucketMemory finds communication buckets of ZeRO that take much of the device.
var ZeroBucketMemory = &lint.Rule{
	Name:     "zero-bucket-memory",
	Family:   "memory",
	Since:    "0.1",
	Doc:      docZeroBucketMemory,
	Severity: lint.Warning,
	Mentions: []string{"bucket_size"},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		for _, part := range run.Parts {
			if part.Dialect != dialect.DeepSpeed && part.Dialect != dialect.GPTNeoX {
				continue
			}
			checkBucket(pass, run, part.Plan.Buckets.Reduce, part.Plan.Buckets.OverlapComm.Or(false), false)
			checkBucket(pass, run, part.Plan.Buckets.AllGather, false, true)
		}
	},
}

// checkBucket looks at one bucket. A gather is no larger than the weights; the buckets of gradients are allocated whole.
func checkBucket(pass *lint.Pass, run *workspace.Run, size plan.Value[int64], twice, gather bool) {
	n, ok := size.Get()
	at, key, written := run.Written(size)
	if !ok || !written || n < 1 || size.How() != plan.IsWritten {
		return
	}
	limited := n
	if gather {
		if shape, missing, err := catalog.Shape(&run.Plan); err == nil && len(missing) == 0 && shape != nil {
			limited = min(limited, shape.CountParameters().Total)
		}
	}
	bytes := min(limited, plan.MaxCount/4) * 2
	buffers := "a 16-bit buffer of " + gigabytes(bytes)
	if twice {
		buffers = fmt.Sprintf("two 16-bit buffers of %s each, since overlap_comm keeps one on the way", gigabytes(bytes))
		bytes *= 2
	}
	of := ""
	if name, known := run.Plan.Device.Get(); known {
		device, err := catalog.Device(name)
		if err != nil || float64(bytes) <= bucketShare*float64(device.UsableBytes) {
			return
		}
		of = fmt.Sprintf(" of the %s that %s has", gigabytes(device.UsableBytes), device.Name)
	} else if float64(limited) < bucketElements {
		return
	}
	pass.Reportf(at, "%s %d counts elements, not bytes: %s%s, beside weights, gradients and states", key, n, buffers, of).
		Help("5e8 elements, 1 GB, is the default; a smaller bucket only cuts the same communication into more pieces")
}
