package ddp

import (
	"fmt"
	"math"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
)

// impossible reports a cap that is no size.
func impossible(pass *lint.Pass, at source.Place, limit constant.Value) bool {
	mib, number := limit.Number()
	switch {
	case !number:
		pass.Reportf(at, "%s is text, not a number of MiB: DDP multiplies it by 1024 x 1024 and fails", limit).As(lint.Error)
	case mib <= 0:
		pass.Reportf(at, "a cap of %g MiB is no size: every parameter is all-reduced by itself, or the reducer fails", mib).As(lint.Error)
	default:
		return false
	}
	return true
}

// inBytes reports a cap of bytes; written is where the number stands alone, if it does.
func inBytes(pass *lint.Pass, at, written source.Place, mib float64) {
	d := pass.Reportf(at, "%.0f is a number of bytes, but bucket_cap_mb counts MiB: all gradients land in one bucket and nothing overlaps with backward", mib).
		As(lint.Error)
	if whole := mib / (1 << 20); whole == math.Trunc(whole) && whole >= 1 && written.Span.Len() > 0 {
		d.Suggest(fmt.Sprintf("write %g", whole), lint.Safe, lint.Edit{At: written, Text: fmt.Sprintf("%g", whole)})
	}
}

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
