package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

// elastic is what a section elasticity asks for: a batch that splits over as many numbers of ranks as possible.
type elastic struct {
	micro      []int64 // sequences per rank and forward pass; one of them is chosen by the number of ranks
	most       int64   // the largest batch
	min, max   int64   // ranks
	perNode    int64   // ranks of a node: from version 0.2 on whole nodes are counted
	nodes      bool    // version 0.2
	preferMore bool    // of two batches with as many splits take the larger one
	overCap    bool    // DeepSpeed before 0.19.6 also tries the least common multiple of the micro-batches where it is larger than most
}

// Bounds of what is computed. Beyond them nothing is said.
const (
	maxElasticBatch = 1 << 26 // sequences
	maxElasticMicro = 32      // micro-batches
)

// highlyComposite are the numbers with more divisors than any smaller one up to 720,720, without two: DeepSpeed scales by them.
var highlyComposite = []int64{
	1, 2, 4, 6, 12, 24, 36, 48, 60, 120, 180, 240, 360, 720, 840, 1260, 1680, 2520, 5040, 7560, 10080, 15120, 20160, 25200, 27720, 45360, 50400, 55440, 83160, 110880,
	166320, 221760, 277200, 332640, 498960, 554400, 665280, 720720,
}

// split computes the batch and the numbers of ranks over which it splits (elasticity/elasticity.py of DeepSpeed 0.19.6). A batch of 0
// means that there is none.
func (e elastic) split(most, low, high int64) (batch int64, ranks []int64) {
	multiple := int64(1)
	bases := slices.Clone(e.micro)
	for _, micro := range e.micro {
		if multiple = multiple / gcd(multiple, micro) * micro; multiple > maxElasticBatch {
			break
		}
	}
	if multiple <= maxElasticBatch {
		bases = append(bases, multiple)
	}
	for _, base := range bases {
		switch {
		case base > most && !e.overCap:
			continue
		case base < most:
			scale := highlyComposite[0]
			for _, n := range highlyComposite {
				if n <= most/base {
					scale = n
				}
			}
			base *= scale
		}
		found := e.ranksOf(base, low, high)
		if len(found) > len(ranks) || len(found) == len(ranks) && len(found) > 0 && (e.preferMore && base > batch || !e.preferMore && base < batch) {
			batch, ranks = base, found
		}
	}
	return batch, ranks
}

// ranksOf are the numbers of ranks from low to high over which a batch splits with one of the micro-batches, in order.
func (e elastic) ranksOf(batch, low, high int64) []int64 {
	var ranks []int64
	for _, micro := range e.micro {
		if batch%micro != 0 {
			continue
		}
		n := batch / micro
		for d := int64(1); d*d <= n; d++ {
			if n%d == 0 {
				for _, r := range []int64{d, n / d} {
					if low <= r && r <= high {
						ranks = append(ranks, r)
					}
				}
			}
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// refuses says why DeepSpeed does not start with so many data-parallel ranks, and which key stands against them; "" where it does.
func (e elastic) refuses(world int64) (name, why string) {
	most, low, high, unit := e.most, max(e.min, 1), e.max, "ranks"
	if e.nodes {
		most, low, high = most/e.perNode, max(e.min/e.perNode, 1), e.max/e.perNode
		if e.perNode > 1 {
			unit = "nodes"
		}
		if high == 0 {
			high = most / slices.Min(e.micro)
		}
	}
	if largest := slices.Max(e.micro); largest > most {
		if e.nodes && e.perNode > 1 && largest <= e.most {
			return "max_train_batch_size", fmt.Sprintf("is %d, which is %d for each of the %d ranks of a node, less than the micro-batch %d", e.most, most, e.perNode, largest)
		}
		return "", "" // told at micro_batch_sizes
	}
	batch, ranks := e.split(most, low, high)
	smallest := slices.Min(e.micro)
	switch {
	case e.nodes && len(ranks) > 0 && world%e.perNode == 0 && slices.Contains(ranks, world/e.perNode), !e.nodes && slices.Contains(ranks, world):
		return "", ""
	case e.nodes && len(ranks) > 0: // a batch of its own, as large as fits
		size, which := smallest, "smallest"
		if !e.preferMore {
			size, which = slices.Max(e.micro), "largest"
		}
		if product := size * world; product > e.most {
			return "max_train_batch_size", fmt.Sprintf("is %d, less than the %s micro-batch on every rank (%d x %d = %d)", e.most, which, size, world, product)
		}
		return "", ""
	case e.min > world:
		return "min_gpus", fmt.Sprintf("is %d", e.min)
	case e.max < world:
		return "max_gpus", fmt.Sprintf("is %d", e.max)
	case len(ranks) == 0:
		return "micro_batch_sizes", fmt.Sprintf("leaves no batch up to %d that splits over %d to %d %s", e.most, low, high, unit)
	case smallest*world > e.most:
		return "max_train_batch_size", fmt.Sprintf("is %d, less than the smallest micro-batch on every rank (%d x %d = %d)", e.most, smallest, world, smallest*world)
	}
	return "max_train_batch_size", fmt.Sprintf("is %d, of which a batch of %d is made, which splits over %s ranks", e.most, batch, around(ranks, world))
}

// around lists numbers, those next to n where there are many: "1, 2, 4 or 8", "... 12, 16, 24 ...".
func around(numbers []int64, n int64) string {
	const shown = 8
	at, _ := slices.BinarySearch(numbers, n)
	from := max(0, min(at-shown/2, len(numbers)-shown))
	to := min(len(numbers), from+shown)
	var texts []string
	for _, number := range numbers[from:to] {
		texts = append(texts, fmt.Sprint(number))
	}
	text := oneOf(texts)
	if from > 0 {
		text = "... " + text
	}
	if to < len(numbers) {
		text = strings.Join(texts, ", ") + " ..."
		if from > 0 {
			text = "... " + text
		}
	}
	return text
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// elasticOf reads the section of a config. Not ok: something in it is not known, or wrong by itself.
func elasticOf(section *configs.Node, part *workspace.Part) (e elastic, ok bool) {
	if section.Open {
		return e, false
	}
	integer := func(name string, absent int64) int64 {
		if section.Get(name) == nil {
			return absent
		}
		n, known := numberAt(part, "elasticity", name)
		if !known || n != math.Trunc(n) || n < 1 || n > maxElasticBatch {
			return 0
		}
		return int64(n)
	}
	e = elastic{most: integer("max_train_batch_size", 0), min: integer("min_gpus", 1), max: integer("max_gpus", 10000), perNode: integer("num_gpus_per_node", 1), preferMore: true, nodes: true}
	if e.most == 0 || e.min == 0 || e.max < e.min || e.perNode == 0 || integer("model_parallel_size", 1) != 1 { // with model parallelism the ranks are counted in two ways
		return e, false
	}
	if section.Get("prefer_larger_batch") != nil {
		if e.preferMore, ok = switchAt(part, "elasticity", "prefer_larger_batch"); !ok {
			return e, false
		}
	}
	if section.Get("version") != nil {
		version, known := numberAt(part, "elasticity", "version")
		if !known || version != 0.1 && version != 0.2 {
			return e, false
		}
		e.nodes = version == 0.2
	}
	sizes := section.Get("micro_batch_sizes")
	if sizes == nil || sizes.Open || sizes.Kind != configs.Sequence || len(sizes.Items) == 0 || len(sizes.Items) > maxElasticMicro {
		return e, false
	}
	for i := range sizes.Items {
		v, known := value(part, sizes.Items[i].Value)
		n, isNumber := v.Number()
		if !known || !isNumber || n < 1 || n != math.Trunc(n) || n > maxElasticBatch {
			return e, false
		}
		e.micro = append(e.micro, int64(n))
	}
	return e, true
}

// elasticWorld: elastic training takes only numbers of ranks over which the batch splits that it computes.
func elasticWorld(pass *lint.Pass, run *workspace.Run, part *workspace.Part) {
	world, ok := run.Plan.Parallel.World.Get()
	if !isDeepSpeed(part) || !certainlyOn(part, "elasticity", "enabled") || !ok || world < 1 || run.Plan.Parallel.World.How() == plan.IsDefault || run.Spare(run.Plan.Parallel.World) {
		return
	}
	for _, size := range []plan.Value[int64]{run.Plan.Parallel.Tensor, run.Plan.Parallel.Pipeline, run.Plan.Parallel.Context} {
		if n, known := size.Get(); known && n > 1 {
			return
		}
	}
	section := part.Tree.Root.Get("elasticity")
	e, ok := elasticOf(section, part)
	if !ok {
		return
	}
	name, why := e.refuses(world)
	if name == "" {
		return
	}
	if pin := pass.Pin(part.Path, "deepspeed"); pin.Since("0.19.6") != pyscan.Yes {
		if e.overCap = true; pin.Since("0.19.6") == pyscan.No {
			if name, why = e.refuses(world); name == "" {
				return
			}
		} else if other, _ := e.refuses(world); other == "" {
			return // the release decides
		}
	}
	at := section.At
	if item := section.Item(name); item != nil {
		at = valueAt(item)
	}
	pass.Reportf(at, "elasticity.%s %s, and the run has %s: DeepSpeed refuses the number of ranks when it loads the config", name, why, count(world, "rank"))
}
