package ddp

import (
	"fmt"
	"math"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
)

// judge compares a cap in MiB with a model of a number of parameters.
func judge(pass *lint.Pass, at source.Place, mib, parameters float64, model string) {
	if lint.OptionOf[string](pass, "table") == "guide" {
		judgeByGuide(pass, at, mib, parameters, model)
		return
	}
	gradients := parameters * gradientBytes / (1 << 20) // MiB
	buckets := math.Ceil(gradients / mib)
	better := math.Max(defaultCap, math.Round(gradients/usualBuckets/defaultCap)*defaultCap)
	sized := fmt.Sprintf("%s has %.1f billion parameters, so %.0f MiB of fp32 gradients", model, parameters/1e9, gradients)
	switch {
	case buckets == 1 && gradients > overlapMiB:
		pass.Reportf(at, "%s: one bucket holds them all, and no all-reduce overlaps with backward", sized).Help("leave it at the default of %d, or try %.0f", defaultCap, better)
	case buckets == 1 && gradients > worthSayingMiB:
		pass.Reportf(at, "%s: one bucket holds them all, and no all-reduce overlaps with backward", sized).As(lint.Info)
	case mib == defaultCap && parameters >= largeModel:
		pass.Reportf(at, "%s: DDP's maintainers call the default of %d MiB small for such models", sized, defaultCap).As(lint.Info).Help("try 50 to 200")
	case buckets > manyBuckets:
		pass.Reportf(at, "%s: %.0f all-reduces a step, each bound by latency", sized, buckets).Help("raise bucket_cap_mb to about %.0f", better)
	case mib < smallCap && parameters >= largeModel:
		pass.Reportf(at, "%s: %.0f all-reduces a step of only %g MiB", sized, buckets, mib).Help("raise bucket_cap_mb to about %.0f", better)
	case mib < smallCap/2 && parameters > smallModel && parameters < largeModel:
		pass.Reportf(at, "%s: %.0f all-reduces a step of only %g MiB", sized, buckets, mib).As(lint.Info).Help("the default is %d", defaultCap)
	case parameters > hugeModel:
		pass.Reportf(at, "%s: model states of this size do not fit one device under plain DDP", sized).As(lint.Info).Help("shard them: FSDP, or ZeRO")
	}
}

// judgeByGuide takes the bands of the common guide, as advice.
func judgeByGuide(pass *lint.Pass, at source.Place, mib, parameters float64, model string) {
	low, high := 15.0, 25.0
	switch {
	case parameters < guideSmallModel:
		low, high = 5, 10
	case parameters > guideLargeModel:
		low, high = 25, 50
	}
	if mib < low || mib > high {
		pass.Reportf(at, "%g MiB lies outside the guide's band for %s (%.1f billion parameters): %g to %g", mib, model, parameters/1e9, low, high).As(lint.Info)
	}
}
