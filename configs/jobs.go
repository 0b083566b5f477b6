package configs

import (
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// Bounds of the reading of one file of jobs.
const (
	maxJobs  = 64 // containers
	maxNodes = 1 << 20
)

// ParseJobs reads the commands that a file of a container platform starts: services of docker-compose, and Kubernetes' jobs,
// those of Kubeflow among them (PyTorchJob, MPIJob, TrainJob). Each is a launch command as in a script, with the number of nodes
// and of processes that the job states among the flags of its launcher. It is nil for other files.
func ParseJobs(f *source.File, trees []*Tree) *Script {
	j := &jobReader{file: f, script: &Script{Job: true, Env: emptyTree(f, Env), Directives: emptyTree(f, Env)}}
	known := false
	for _, tree := range trees {
		root := tree.Root
		switch {
		case root == nil || root.Kind != Mapping || tree.Template:
		case root.Item("apiVersion") != nil && root.Item("kind") != nil:
			known = true
			j.kubernetes(root)
		case root.Item("services") != nil && root.Get("services").Kind == Mapping:
			known = true
			for _, service := range root.Get("services").Items {
				j.container(service.Value, "entrypoint", "command", layout{})
			}
		}
	}
	if !known || len(j.script.Commands) == 0 {
		return nil
	}
	return j.script
}

type jobReader struct {
	file   *source.File
	script *Script
	count  int
}

// layout is how many nodes a job has, and how many processes on each; 0 where it does not say.
type layout struct {
	nodes, perNode     int64
	nodesAt, perNodeAt source.Place
}

func (j *jobReader) kubernetes(root *Node) {
	spec := root.Get("spec")
	switch kind, _ := root.Get("kind").Str(LoaderYAML11); kind {
	case "PyTorchJob":
		l := layout{}
		l.perNode, l.perNodeAt = j.number(spec.Get("nprocPerNode"))
		roles := spec.Get("pytorchReplicaSpecs")
		for _, role := range []string{"Master", "Worker"} {
			if roles.Get(role) == nil {
				continue
			}
			n, at := j.number(roles.Get(role, "replicas"))
			if roles.Get(role, "replicas") == nil {
				n, at = 1, roles.Item(role).KeyAt
			}
			if n == 0 {
				l.nodes = 0
				break
			}
			l.nodes, l.nodesAt = l.nodes+n, at
		}
		for _, role := range []string{"Master", "Worker"} {
			if j.pod(roles.Get(role, "template", "spec"), l) {
				return // the others run the same
			}
		}
	case "MPIJob":
		l := layout{}
		l.perNode, l.perNodeAt = j.number(spec.Get("slotsPerWorker"))
		l.nodes, l.nodesAt = j.number(spec.Get("mpiReplicaSpecs", "Worker", "replicas"))
		j.pod(spec.Get("mpiReplicaSpecs", "Launcher", "template", "spec"), l)
	case "TrainJob":
		l := layout{}
		l.nodes, l.nodesAt = j.number(spec.Get("trainer", "numNodes"))
		l.perNode, l.perNodeAt = j.number(spec.Get("trainer", "numProcPerNode"))
		j.container(spec.Get("trainer"), "command", "args", l)
	case "Pod":
		j.pod(spec, layout{})
	case "Job", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		j.pod(spec.Get("template", "spec"), layout{})
	case "CronJob":
		j.pod(spec.Get("jobTemplate", "spec", "template", "spec"), layout{})
	}
}

func (j *jobReader) pod(spec *Node, l layout) bool {
	found := false
	if containers := spec.Get("containers"); containers != nil && containers.Kind == Sequence {
		for _, item := range containers.Items {
			found = j.container(item.Value, "command", "args", l) || found
		}
	}
	return found
}

func (j *jobReader) number(n *Node) (int64, source.Place) {
	if n == nil || n.Kind != Scalar || n.Open {
		return 0, source.Place{}
	}
	count, err := strconv.ParseInt(n.Raw, 10, 64)
	if err != nil || count < 1 || count > maxNodes {
		return 0, source.Place{}
	}
	return count, n.At
}

// container reads the words under two keys, which are one command.
func (j *jobReader) container(n *Node, first, second string, l layout) bool {
	if n == nil || n.Kind != Mapping || j.count >= maxJobs {
		return false
	}
	j.count++
	var words []*Node
	for _, key := range []string{first, second} {
		switch value := n.Get(key); {
		case value == nil:
		case value.Kind == Sequence:
			for _, item := range value.Items {
				if item.Value != nil && item.Value.Kind == Scalar {
					words = append(words, item.Value)
				}
			}
		case value.Kind == Scalar && value.Raw != "":
			words = append(words, value)
		}
	}
	for _, word := range words {
		if word.At.Path != j.file.Path || word.At.Span.Len() == 0 || int(word.At.Span.End) > len(j.file.Text) {
			return false // an alias of another file, or nothing
		}
	}
	var commands []*Command
	switch {
	case len(words) == 0:
		return false
	case len(words) == 1:
		commands = j.text(words[0])
	default:
		commands = j.words(words)
	}
	for _, c := range commands {
		l.tell(c)
	}
	j.script.Commands = append(j.script.Commands, commands...)
	return len(commands) > 0
}

// words reads a command that stands word by word.
func (j *jobReader) words(words []*Node) []*Command {
	for i, word := range words { // bash -c "..."
		if i > 0 && i+1 < len(words) && strings.HasPrefix(word.Raw, "-") && !strings.HasPrefix(word.Raw, "--") && strings.HasSuffix(word.Raw, "c") {
			if name := words[0].Raw[strings.LastIndexByte(words[0].Raw, '/')+1:]; name == "bash" || name == "sh" || name == "zsh" {
				return j.text(words[i+1])
			}
		}
	}
	r := newShellReader(j.file)
	var fields []field
	for _, word := range words {
		one := field{word: word.At.Span, style: word.Style}
		if word.Raw != "" {
			one.runs = []run{{text: word.Raw, at: word.At.Span, exact: j.file.Slice(word.At.Span) == word.Raw, open: strings.Contains(word.Raw, "$(")}}
		}
		fields = append(fields, one)
	}
	c := r.launch(fields, emptyTree(j.file, Env))
	if c == nil {
		return nil
	}
	c.At = j.file.At(source.Span{Start: words[0].At.Span.Start, End: words[len(words)-1].At.Span.End})
	return []*Command{c}
}

// text reads a scalar that is a script. The rest of the file is blanked, so that places stay as they are.
func (j *jobReader) text(n *Node) []*Command {
	span := n.At.Span
	body := j.file.Text[span.Start:span.End]
	literal := false
	switch {
	case len(body) > 1 && (body[0] == '|' || body[0] == '>'):
		literal = body[0] == '|'
		if line := strings.IndexByte(string(body), '\n'); line >= 0 {
			span.Start += uint32(line)
		}
	case len(body) > 1 && (body[0] == '"' || body[0] == '\'') && body[len(body)-1] == body[0]:
		span.Start++
		span.End--
	case n.Style == Block:
		literal = true
	}
	blanked := make([]byte, len(j.file.Text))
	for i := range blanked {
		blanked[i] = ' '
	}
	copy(blanked[span.Start:span.End], j.file.Text[span.Start:span.End])
	for i := span.Start; i < span.End && !literal; i++ {
		if blanked[i] == '\n' || blanked[i] == '\r' {
			blanked[i] = ' ' // folded into one line
		}
	}
	return ParseShell(&source.File{Path: j.file.Path, Kind: source.Shell, Text: blanked}).Commands
}

// tell adds what the job says of nodes and processes to the flags of the launcher, where those do not say it themselves.
func (l layout) tell(c *Command) {
	for c.Outer != nil {
		c = c.Outer
	}
	if c.LauncherFlags == nil {
		return
	}
	add := func(name string, n int64, at source.Place, others ...string) {
		for _, other := range append(others, name) {
			for i := range c.LauncherFlags.Root.Items {
				if strings.ReplaceAll(strings.TrimLeft(c.LauncherFlags.Root.Items[i].Key, "-"), "-", "_") == other {
					return
				}
			}
		}
		if n > 0 {
			c.LauncherFlags.Root.Items = append(c.LauncherFlags.Root.Items, Item{Key: "--" + name, KeyAt: at, Value: &Node{Kind: Scalar, Raw: strconv.FormatInt(n, 10), At: at}})
		}
	}
	switch c.Launcher {
	case "torchrun":
		add("nnodes", l.nodes, l.nodesAt)
		add("nproc_per_node", l.perNode, l.perNodeAt)
	case "mpirun":
		if l.nodes > 0 && l.perNode > 0 {
			add("np", l.nodes*l.perNode, l.nodesAt, "n", "c")
		}
	}
}
