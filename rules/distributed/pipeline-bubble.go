package distributed

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed pipeline-bubble.md
var docPipelineBubble string

// bubbleLimit is the share of a step that pipeline stages may wait before it is worth a word.
const bubbleLimit = 0.15

// PipelineBubble finds pipelines that wait for a large share of every step.
var PipelineBubble = &lint.Rule{
	Name:     "pipeline-bubble",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      docPipelineBubble,
	Severity: lint.Info,
	Run:      findPipelineBubble,
}

func findPipelineBubble(pass *lint.Pass, run *workspace.Run) {
	r := &run.Plan.Parallel
	stages, ok := r.Pipeline.Get()
	if !ok || stages < 2 || fillsBubble(run) {
		return
	}
	fact, accumulation := r.PipelineMicroBatches, run.Plan.Batch.Accumulation
	if !workspace.Stated(fact) && (accumulation.Known() || !fact.Known()) {
		fact = accumulation // where nobody gives them apart, the accumulation steps fill the pipeline
	}
	micro, ok := fact.Get()
	if !ok || micro < 1 || fact.How() == plan.IsDefault {
		return
	}
	chunks := max(r.VirtualPipeline.Or(1), 1)
	bubble := share(stages, micro, chunks)
	if bubble <= bubbleLimit {
		return
	}
	at, _, ok := run.Written(fact)
	if !ok || fact.How() == plan.IsDerived {
		if at, _, ok = run.Written(r.Pipeline); !ok {
			return
		}
	}
	interleaved := ""
	if chunks > 1 {
		interleaved = fmt.Sprintf(", interleaved %d times,", chunks)
	}
	report := pass.Reportf(at, "%d pipeline stages%s with %s a step wait %.0f %% of the time: (p-1)/(v*m+p-1)", stages, interleaved, count(micro), 100*bubble)
	for _, other := range []plan.Fact{r.Pipeline, fact} {
		for _, place := range other.From() {
			if place != at {
				report.Note(place, "stages or micro-batches of the pipeline follow from this")
			}
		}
	}
	needed := int64(math.Ceil(float64(stages-1) * (1 - bubbleLimit) / bubbleLimit / float64(chunks)))
	report.Help("%d micro-batches would bring it under %.0f %%: a smaller micro-batch or a larger global batch; so do interleaved stages or fewer stages", needed, 100*bubbleLimit)
}

func count(micro int64) string {
	if micro == 1 {
		return "1 micro-batch"
	}
	return fmt.Sprintf("%d micro-batches", micro)
}

// share is the part of a step in which a stage of an (interleaved) 1F1B schedule waits.
func share(stages, micro, chunks int64) float64 {
	return float64(stages-1) / (float64(chunks)*float64(micro) + float64(stages-1))
}

// fillsBubble reports whether a schedule is asked for that fills the bubble with other work.
func fillsBubble(run *workspace.Run) bool {
	for _, item := range run.Keys() {
		text := workspace.PlainKey(item.Key)
		if strings.Contains(text, "schedule") && item.Value != nil {
			text += " " + strings.ToLower(item.Value.Raw)
		}
		for _, word := range []string{"bubble", "dualpipe", "zbv", "zbh", "moe_fb_overlap"} {
			if strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}
