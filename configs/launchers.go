package configs

import (
	"strings"
	"sync"
)

// flagTable says how many words the flags of a launcher take.
type flagTable struct {
	words    func() map[string]int // by name, without dashes, - for _
	attached bool                  // `-N8` is `-N 8`
}

func newFlagTable(attached bool, bare, one, two string) *flagTable {
	return &flagTable{attached: attached, words: sync.OnceValue(func() map[string]int {
		words := map[string]int{}
		for n, names := range []string{bare, one, two} {
			for _, name := range strings.Fields(names) {
				words[name] = n
			}
		}
		return words
	})}
}

// arity is how many words follow a flag, and whether the launcher knows it.
func (t *flagTable) arity(flag string) (int, bool) {
	n, ok := t.words()[strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")]
	return n, ok
}

const (
	torchrunBare  = "standalone no-python m module run-path use-env virtual-local-rank h help"
	torchrunValue = `nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method event-log-handler role
		log-dir r redirects t tee local-ranks-filter duplicate-stdout-filters duplicate-stderr-filters node-rank master-addr master-port local-addr
		logs-specs numa-binding signals-to-handle shutdown-timeout`

	slurmBare = `l label u unbuffered K kill-on-bad-exit k no-kill v verbose Q quiet exclusive overlap pty E preserve-env s oversubscribe H hold O
		overcommit X disable-status Z no-allocate spread-job contiguous requeue no-requeue reboot parsable container-writable container-readonly
		container-mount-home no-container-mount-home container-remap-root no-container-remap-root no-container-entrypoint no-shell interactive W wait-all-nodes`
	slurmValue = `N nodes n ntasks c cpus-per-task p partition A account t time J job-name o output e error i input w nodelist x exclude G gpus D chdir C
		constraint d dependency m distribution r relative q qos a array b begin M clusters L licenses R reservation S core-spec B extra-node-info
		gpus-per-node gpus-per-task gpus-per-socket gres gres-flags ntasks-per-node ntasks-per-core ntasks-per-gpu ntasks-per-socket mem mem-per-cpu
		mem-per-gpu mem-bind cpu-bind gpu-bind gpu-freq cpus-per-gpu mail-type mail-user export export-file signal comment open-mode reservation time-min
		deadline mpi network profile jobid het-group threads-per-core sockets-per-node cores-per-socket mincpus tmp priority nice wckey switches
		container-image container-mounts container-name container-workdir container-env wait multi-prog bcast uid gid task-prolog task-epilog prolog epilog`

	mpiBare = `allow-run-as-root v verbose oversubscribe nooversubscribe tag-output timestamp-output report-bindings q quiet l bynode byslot bysocket
		display-map display-allocation use-hwthread-cpus nolocal merge-stderr-to-stdout h help prepend-rank genvall envall version`
	mpiValue = `np n c host H hostfile machinefile f x bind-to map-by rank-by N npernode npersocket ppn perhost wdir wd output-filename path prefix env-file
		launcher bootstrap hosts iface rmk genvlist envlist am tune stdin rankfile rf xterm timeout max-restarts default-hostfile mxm ibv l pernode-slots`
	mpiPair = "mca gmca genv env"

	deepspeedBare = `no-ssh no-ssh-check module no-python no-local-rank save-pid force-multi bind-cores-to-rank elastic-training h help`
	// bind-core-list and the launcher arguments take one word each
	deepspeedValue = `H hostfile i include e exclude num-nodes min-elastic-nodes max-elastic-nodes num-gpus num-accelerators master-port master-addr
		node-rank launcher launcher-args autotuning bind-core-list ssh-port venv-script enable-each-rank-log comment`

	accelerateBare = `q quiet cpu multi-gpu tpu ipex mps use-mps-device use-deepspeed use-fsdp use-megatron-lm use-parallelism-config use-xpu m module
		no-python same-network enable-cpu-affinity dynamo-use-fullgraph dynamo-use-dynamic dynamo-use-regional-compilation tpu-cluster no-tpu-cluster
		tpu-use-sudo downcast-bf16 debug h help standalone fp8-override-linear-precision`
	accelerateValue = `config-file num-processes num-machines num-cpu-threads-per-process machine-rank main-process-ip main-process-port mixed-precision
		dynamo-backend dynamo-mode gpu-ids rdzv-backend rdzv-conf rdzv-endpoint max-restarts monitor-interval role log-dir t tee main-training-function
		num-workers vm env tpu-name tpu-zone deepspeed-config-file zero-stage offload-optimizer-device offload-param-device gradient-accumulation-steps
		gradient-clipping zero3-init-flag zero3-save-16bit-model deepspeed-hostfile deepspeed-exclusion-filter deepspeed-inclusion-filter
		deepspeed-multinode-launcher fsdp-version fsdp-sharding-strategy fsdp-auto-wrap-policy fsdp-min-num-params fsdp-offload-params fsdp-state-dict-type
		fsdp-transformer-layer-cls-to-wrap fsdp-backward-prefetch fsdp-forward-prefetch fsdp-use-orig-params fsdp-cpu-ram-efficient-loading
		fsdp-sync-module-states fsdp-activation-checkpointing fsdp-reshard-after-forward megatron-lm-tp-degree megatron-lm-pp-degree
		megatron-lm-num-micro-batches megatron-lm-sequence-parallelism megatron-lm-recompute-activations megatron-lm-use-distributed-optimizer
		megatron-lm-gradient-clipping fp8-backend aws-access-key-id aws-secret-access-key mpirun-hostfile mpirun-ccl deepspeed-moe-layer-cls-names`
)

// launchers are the programs that start a training program, with their flags.
var launchers = map[string]*flagTable{
	"torchrun":   newFlagTable(false, torchrunBare, torchrunValue, ""),
	"deepspeed":  newFlagTable(false, deepspeedBare, deepspeedValue, ""),
	"accelerate": newFlagTable(false, accelerateBare, accelerateValue, ""),
	"srun":       newFlagTable(true, slurmBare, slurmValue, ""),
	"sbatch":     newFlagTable(true, slurmBare, slurmValue, ""),
	"mpirun":     newFlagTable(false, mpiBare, mpiValue, mpiPair),
	"horovodrun": newFlagTable(false, "v verbose gloo mpi autotune", "np H hosts hostfile p ssh-port network-interface start-timeout min-np max-np", ""),
	"python":     newFlagTable(true, "u O OO B E I s S v x q d i b P h V bb help version", "X W m c check-hash-based-pycs", ""),
	"composer":   newFlagTable(false, "m module_mode c command_mode v verbose", "n nproc world-size base-rank node-rank master-addr master-port run-directory stdout stderr", ""),
	"msrun":      newFlagTable(false, "h help", "worker-num local-worker-num master-addr master-port node-rank log-dir join cluster-time-out bind-core", ""),
	"bash":       newFlagTable(false, "x e u v l i", "o O c rcfile", ""),
	"sh":         newFlagTable(false, "x e u v l i", "o c", ""),

	"accelerate-launch":        newFlagTable(false, accelerateBare, accelerateValue, ""),
	"torch.distributed.launch": newFlagTable(false, torchrunBare, torchrunValue, ""),
}

// slurmFlags are those of #SBATCH lines.
var slurmFlags = launchers["sbatch"]

// clusters are the launchers that start one process for each task, which may be a launcher of its own.
var clusters = map[string]bool{"srun": true, "mpirun": true, "horovodrun": true}

// launcherModules are launchers that `python -m` starts.
var launcherModules = map[string]string{
	"torch.distributed.run": "torchrun", "torch.distributed.launch": "torch.distributed.launch", "torch.distributed.elastic": "torchrun",
	"deepspeed": "deepspeed", "deepspeed.launcher.runner": "deepspeed", "deepspeed.launcher.launch": "deepspeed",
	"accelerate": "accelerate", "accelerate.commands.launch": "accelerate", "accelerate.commands.accelerate_cli": "accelerate",
}

// tools are programs with commands of their own: "train" when the next word is the command, "run" when the word `run`
// comes and then flags like torchrun's and a program.
var tools = map[string]string{
	"llamafactory-cli": "train", "lmf": "train", "axolotl": "train", "litgpt": "train", "trl": "train", "swift": "train", "megatron": "train", "xtuner": "train",
	"oumi": "train", "tune": "run", "colossalai": "run", "lightning": "run", "fabric": "run", "olmo-core": "train", "ns-train": "train",
}

// wrappers run the command that follows their own flags.
var wrappers = map[string]bool{
	"env": true, "nohup": true, "exec": true, "time": true, "command": true, "sudo": true, "stdbuf": true, "timeout": true, "nice": true, "ionice": true,
	"numactl": true, "taskset": true, "setsid": true, "unbuffer": true, "builtin": true, "xvfb-run": true, "conda": true, "mamba": true, "micromamba": true,
	"poetry": true, "uv": true, "pipenv": true, "pixi": true, "singularity": true, "apptainer": true, "docker": true, "podman": true, "enroot": true,
	"ssh": true, "pdsh": true, "kubectl": true, "nsys": true, "ncu": true, "dlprof": true, "catchsegv": true, "tini": true, "dumb-init": true,
	"systemd-run": true, "screen": true, "parallel": true, "xargs": true, "coverage": true, "py-spy": true, "memray": true, "watch": true, "ts": true,
}

// away are those of them that start a command where other files are.
var away = map[string]bool{"docker": true, "podman": true, "enroot": true, "ssh": true, "pdsh": true, "kubectl": true}

// slurmVariables are the variables that SLURM sets from a flag of the job.
var slurmVariables = map[string][]string{
	"--nodes": {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, "-N": {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"},
	"--ntasks": {"SLURM_NTASKS", "SLURM_NPROCS"}, "-n": {"SLURM_NTASKS", "SLURM_NPROCS"},
	"--ntasks-per-node": {"SLURM_NTASKS_PER_NODE"}, "--cpus-per-task": {"SLURM_CPUS_PER_TASK"}, "-c": {"SLURM_CPUS_PER_TASK"},
	"--gpus-per-node": {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}, "--gpus": {"SLURM_GPUS"}, "-G": {"SLURM_GPUS"},
	"--partition": {"SLURM_JOB_PARTITION"}, "--job-name": {"SLURM_JOB_NAME"}, "-J": {"SLURM_JOB_NAME"}, "--account": {"SLURM_JOB_ACCOUNT"},
}
