package workspace

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	hbm "github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// Run is one training run: the settings of all files that say parts of it.
type Run struct {
	Name      string  // the file that it starts from: a config, or a launch script
	Parts     []*Part // the config that it starts from, what that names, then launch commands
	Scripts   []string
	Program   string    // the Python file of the project that its launch command starts; "" where none does or it is not known
	Plan      plan.Plan // merged, with what the user said besides, and with what follows from it
	Conflicts []plan.Conflict

	Absent []AbsentFile // files that its launch command names and that are not there

	flags  *configs.Tree // of the program that a command launches
	unread *AbsentFile   // the one that could say how the run is sharded

	report *hbm.Report
	fault  error
}

// Memory is what the run needs of its device, and whether it fits. The error is of a model or device that the catalogue does
// not know; the report then says unknown.
func (r *Run) Memory() (hbm.Report, error) {
	if r.report == nil {
		report, err := hbm.Check(&r.Plan)
		for i, name := range report.Missing {
			if name == hbm.MissingSharding && r.unread != nil {
				report.Missing[i] = fmt.Sprintf("%s (%s of %s was not found)", name, r.unread.File, r.unread.Flag)
			}
		}
		r.report, r.fault = &report, err
	}
	return *r.report, r.fault
}

// Trains reports whether any part says what the run trains.
func (r *Run) Trains() bool { return slices.ContainsFunc(r.Parts, (*Part).Trains) }

// Unverified are the names of the facts for want of which the memory of the run cannot be checked; none where it can, and none
// where no part of the run says what it trains.
func (r *Run) Unverified() []string {
	if !r.Trains() {
		return nil
	}
	report, err := r.Memory()
	switch {
	case err != nil:
		return []string{hbm.MissingModel}
	case report.Verdict == hbm.Unknown:
		return report.Missing
	}
	return nil
}

// bounds of the search for the files of a run.
const (
	maxNaming = 4  // files that name files that name files
	maxParts  = 32 // of one run
	maxRuns   = 16 // of which one file is a part
)

// Runs are the runs of which the named file is a part: those of the configs and launch scripts that name it, or where none
// does, its own.
func (v *View) Runs(name string) []*Run {
	if runs, known := v.settings.runs[name]; known {
		return runs
	}
	var runs []*Run
	var origins []string
	if !v.kindOf(name).IsPython() || len(v.pythonParts(name)) > 0 { // else it is a part of none
		origins = v.origins(name, nil)
	}
	for _, origin := range origins {
		for run := range v.start(origin, func(l link) bool { return origin == name || v.reaches(l, name) }) {
			if slices.ContainsFunc(run.Parts, func(p *Part) bool { return p.Path == name }) {
				runs = append(runs, run)
			}
			if len(runs) == maxRuns {
				break
			}
		}
		if len(runs) == maxRuns {
			break
		}
	}
	if v.settings.runs == nil {
		v.settings.runs = map[string][]*Run{}
	}
	v.settings.runs[name] = runs
	return runs
}

// origins are the files from which runs start that reach the named file.
func (v *View) origins(name string, below []string) []string {
	if slices.Contains(below, name) || len(below) >= maxNaming {
		return nil
	}
	below = append(slices.Clip(below), name)
	var found []string
	for _, other := range v.naming(name) {
		if other == name || !v.names(other, name) {
			continue
		}
		for _, origin := range v.origins(other, below) {
			if !slices.Contains(found, origin) {
				found = append(found, origin)
			}
		}
	}
	if len(found) == 0 {
		if trainer, _, ok := v.pair(name); ok {
			return []string{trainer}
		}
		return []string{name}
	}
	return found
}

// references are the files that parts name, as far as the project holds them.
func (v *View) references(parts []*Part) []string {
	var files []string
	for _, part := range parts {
		for _, reference := range part.Dialect.References(part.Tree) {
			if file := v.resolve(part.Path, reference.File); file != "" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// resolve finds a file of the project by the way another one names it: beside that file, or from one of the folders above,
// up to the top of the project.
func (v *View) resolve(from, reference string) string {
	if reference == "" || strings.ContainsAny(reference, "${}*\n") || path.IsAbs(reference) || strings.Contains(reference, "://") {
		return ""
	}
	top := v.settingsTop(from)
	for folder := path.Dir(from); ; folder = path.Dir(folder) {
		file := path.Join(folder, reference)
		if inside(top, file) && v.Is(file) == RegularFile {
			return file
		}
		if folder == top || folder == "." || folder == "/" || strings.HasSuffix(folder, "..") {
			return ""
		}
	}
}

// Named is the file of the project that another one means by a name; "" where there is none.
func (v *View) Named(from, reference string) string { return v.resolve(from, reference) }

// inside reports whether a file lies in a folder or below it.
func inside(folder, file string) bool {
	if folder == "." {
		return !strings.HasPrefix(file, "..") && !path.IsAbs(file)
	}
	rest, in := strings.CutPrefix(file, strings.TrimSuffix(folder, "/")+"/")
	return in && rest != ".." && !strings.HasPrefix(rest, "../") // ../../x is not below ..
}

// start assembles the runs that begin at a file: one for each document of a config, one for each command of a script. Those are left
// out whose link is not likely to be asked for.
func (v *View) start(origin string, likely func(link) bool) iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		if links := v.documentLinks(origin); len(links) > 0 {
			_, launched, _ := v.pair(origin)
			for _, l := range links {
				if launched != "" {
					l.files = append(slices.Clip(l.files), launched)
				}
				if !likely(l) {
					continue
				}
				document := v.document(origin, l)
				if document != nil && !yield(v.assemble(origin, document, nil, l.files)) {
					return
				}
			}
		}
		for _, l := range v.commandLinks(origin) {
			if !likely(l) {
				continue
			}
			command := v.command(origin, l)
			if command != nil && !yield(v.assemble(origin, nil, command, l.files)) {
				return
			}
		}
	}
}

// assemble collects the parts of one run and merges them: those of a document or command, and those of the files that it names. What a launch command says stands last, so that of two claims of
// equal weight that of the config counts.
func (v *View) assemble(origin string, parts []*Part, command *command, files []string) *Run {
	run := &Run{Name: origin}
	add := func(more []*Part) {
		for _, part := range more {
			if len(run.Parts) < maxParts {
				run.Parts = append(run.Parts, part)
			}
		}
	}
	seen := map[string]bool{origin: true}
	queue := slices.Clone(files)
	add(parts)
	if command != nil {
		run.Scripts = append(run.Scripts, origin)
		run.flags, run.Program, run.Absent = command.flags, command.program, command.absent
	}
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		if seen[file] {
			continue
		}
		seen[file] = true
		for _, l := range v.documentLinks(file) {
			if len(run.Parts) < maxParts {
				add(v.document(file, l))
				queue = append(queue, l.files...)
			}
		}
	}
	if command != nil {
		add(command.parts)
	}
	v.merge(run)
	if command != nil && command.laysOut {
		forgetLayout(&run.Plan)
	}
	run.forgetDefaults()
	settle(&run.Plan)
	if slices.ContainsFunc(run.Parts, engineOf16Bit) {
		engineKeepsMasters(&run.Plan)
	}
	plan.Derive(&run.Plan)
	shardOverContext(&run.Plan)
	return run
}

// shardOverContext: ranks that share a sequence hold the same weights, so that whoever shards does so over them too (FSDP,
// ZeRO with Ulysses, Megatron's distributed optimizer).
func shardOverContext(p *plan.Plan) {
	data, ok := p.Parallel.Data.Get()
	context, ok2 := p.Parallel.Context.Get()
	if sharding, known := p.Sharding.Get(); ok && ok2 && known && context > 1 && data <= plan.MaxCount/context && sharding.States() && !p.Parallel.ShardGroup.Known() {
		p.Parallel.ShardGroup = plan.Derived(data*context, append(slices.Clip(p.Parallel.Data.From()), p.Parallel.Context.From()...)...).
			WithNote("data * context parallel")
	}
}

// merge makes one plan of the parts. Of what they write differently the first counts, except that the flags of
// `accelerate launch` override its file; that is no conflict.
func (v *View) merge(run *Run) {
	var first, rest []*plan.Plan
	if v.facts != nil {
		first = append(first, v.facts(run.Name))
	}
	overrides := map[source.Place]bool{}
	for _, part := range run.Parts {
		v.Placed(part.Path)
		if part.Dialect != dialect.Launcher("accelerate") {
			rest = append(rest, &part.Plan)
			continue
		}
		first = append(first, &part.Plan)
		for _, fact := range plan.Values(&part.Plan) {
			for _, place := range fact.From() {
				overrides[place] = true
			}
		}
	}
	run.Plan, run.Conflicts = plan.Merge(append(first, rest...)...)
	run.Conflicts = slices.DeleteFunc(run.Conflicts, func(c plan.Conflict) bool {
		from := c.Values[0].From()
		return len(from) > 0 && overrides[from[0]]
	})
}

// forgetLayout takes back the default of parallel groups: a program whose flags are of no known dialect lays the ranks out.
func forgetLayout(p *plan.Plan) {
	for _, group := range []*plan.Value[int64]{&p.Parallel.Tensor, &p.Parallel.Pipeline, &p.Parallel.Context} {
		if group.How() == plan.IsDefault {
			*group = plan.Value[int64]{}
		}
	}
}

// settle takes back defaults that do not hold beside what other parts say, before anything is derived.
func settle(p *plan.Plan) {
	world, hasWorld := p.Parallel.World.Get()
	if hasWorld && p.Parallel.Data.How() == plan.IsDefault {
		p.Parallel.Data = plan.Value[int64]{}
	}
	if hasWorld && world == 1 && p.Sharding.How() == plan.IsDefault && p.Sharding.Is(plan.DDP) {
		p.Sharding = plan.Default(plan.NoSharding, "one rank")
	}
	if p.Parallel.Nodes.How() == plan.IsDefault && p.Parallel.DevicesPerNode.Known() && hasWorld {
		p.Parallel.Nodes = plan.Value[int64]{}
	}
	compute, _ := p.DType.Compute.Get()
	sharding, _ := p.Sharding.Get()
	rank, adapter := p.LoRA.Rank.Get()
	if compute.Is16() && sharding.FSDP() && p.Stack.Is(plan.HF) && !p.Precision.Known() && !(adapter && rank > 0) {
		p.Precision = plan.Derived(plan.FSDPMixed, append(slices.Clip(p.DType.Compute.From()), p.Sharding.From()...)...).
			WithNote("accelerate keeps the sharded weights in fp32")
	}
}

// engineOf16Bit reports whether a part is a DeepSpeed config that has not settled on fp32: its fp16 or bf16 section is on, or
// filled in by HF's integration.
func engineOf16Bit(p *Part) bool {
	return p.Dialect == dialect.DeepSpeed && !p.Plan.DType.Compute.Is(plan.Float32)
}

// engineKeepsMasters: under DeepSpeed's engine weights are 16-bit with fp32 masters, also without ZeRO.
func engineKeepsMasters(p *plan.Plan) {
	if compute, ok := p.DType.Compute.Get(); ok && compute.Is16() && !p.Precision.Known() {
		p.Precision = plan.Derived(plan.DeepSpeedMixed, p.DType.Compute.From()...).WithNote("DeepSpeed's engine keeps fp32 masters of 16-bit weights")
	}
}

// WithFacts is the snapshot in which what no file of a run holds (number of ranks, device, model ...) is told by of, for a run
// that starts from the named file. What it says overrides the files.
func (s *Snapshot) WithFacts(of func(name string) *plan.Plan) *Snapshot {
	next := s.With()
	next.facts = of
	return next
}

// Facts are what the user said about the run of which a file is a part (device, number of ranks ...), beside all files; nil
// when nothing was said.
func (v *View) Facts(name string) *plan.Plan {
	if v.facts == nil {
		return nil
	}
	return v.facts(name)
}
