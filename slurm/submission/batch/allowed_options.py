"""Which options of sbatch `resources.sbatch` may hold, and what to use instead of the others.

sbatch takes the beginning of a name for the name: `arr` is `array`. Only full names pass, from a list.
Variables that sbatch would read as options are not used: a run does not depend on the shell that submits it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm.config.resources import Resources
from toolkit.config.faults import nearest
from toolkit.errors import UserError

#: Fields that sbatch knows by the same name, with dashes.
SAME_NAME = (
    "gres",
    "gpus_per_node",
    "gpus_per_task",
    "cpus_per_task",
    "mem",
    "mem_per_cpu",
    "mem_per_gpu",
    "time",
    "partition",
    "account",
    "qos",
    "constraint",
    "nodelist",
    "exclude",
    "reservation",
    "dependency",
    "mail_user",
    "mail_type",
    "comment",
    "licenses",
    "exclusive",
)

#: Options that the promises of this project rest on, and what to use instead.
OURS = {
    "job-name": "a lost job is found again by its name; `name` is its first part",
    "chdir": "the job works in the run's folder; STK_EXPERIMENT_DIR chooses its place",
    "open-mode": "what an earlier attempt wrote must stay",
    "requeue": "an interrupted job must go back into the queue",
    "no-requeue": "an interrupted job must go back into the queue",
    "signal": "resources.signal_s sets the warning before the time limit",
    "array": "one run is one job, and `stk sweep` makes arrays of runs",
    "wrap": "the batch script is the plan's own",
    "nodes": "use resources.nodes",
    "ntasks": "use resources.nodes and resources.tasks_per_node",
    "ntasks-per-node": "use resources.tasks_per_node",
    "tasks-per-node": "use resources.tasks_per_node",
    "ntasks-per-gpu": "use resources.tasks_per_node",
    "resources": "use resources.nodes, resources.tasks_per_node, resources.gres and the like",
    "license": "use resources.licenses",
    "test-only": "`stk plan --test-only` asks Slurm whether it would take the job",
    "wait": "the submission does not wait for the job; `stk watch` shows when it ends",
    "clusters": "a run belongs to the cluster where it is submitted",
    "cluster-constraint": "a run belongs to the cluster where it is submitted",
    "parsable": "the job's id is read from sbatch's output",
    "quiet": "the job's id is read from sbatch's output",
    "help": "the job would not be submitted",
    "usage": "the job would not be submitted",
    "version": "the job would not be submitted; `stk doctor` shows the version",
    "export": "the ranks get the script's environment; resources.environment sets a variable",
    "export-file": "the ranks get the script's environment; resources.environment sets a variable",
    "output": "the logs lie in the run's folder, where `stk logs` finds them",
    "error": "the logs lie in the run's folder, where `stk logs` finds them",
    # Given twice, the job would get one value and the plan reckon with the other.
    **{name.replace("_", "-"): f"use resources.{name}" for name in SAME_NAME},
}

#: All others: of `sbatch --help` and the manual of 22.05, then those that came until 26.05, then those of the
#: plugin pyxis, which many clusters with GPUs have.
OTHERS = (
    "acctg-freq", "batch", "bb", "bbf", "begin", "container", "contiguous", "core-spec", "cores-per-socket",
    "cpu-freq", "cpus-per-gpu", "deadline", "delay-boot", "distribution", "extra-node-info", "get-user-env",
    "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-socket", "gres-flags", "hint", "hold", "ignore-pbs",
    "input", "kill-on-invalid-dep", "mcs-label", "mem-bind", "mincpus", "network", "nice", "no-kill",
    "nodefile", "ntasks-per-core", "ntasks-per-socket", "overcommit", "oversubscribe", "power", "prefer",
    "priority", "profile", "propagate", "reboot", "sockets-per-node", "spread-job", "switches",
    "thread-spec", "threads-per-core", "time-min", "tmp", "uid", "use-min-nodes", "verbose",
    "wait-all-nodes", "wckey", "consolidate-segments", "container-id", "container-type", "extra",
    "mem-update", "oom-kill-step", "resv-ports", "segment", "spread-segments", "stepmgr", "tres-bind",
    "tres-per-task", "container-entrypoint", "container-entrypoint-log", "container-env", "container-image",
    "container-mount-home", "container-mounts", "container-name", "container-readonly",
    "container-remap-root", "container-save", "container-workdir", "container-writable",
    "no-container-entrypoint", "no-container-entrypoint-log", "no-container-mount-home",
    "no-container-remap-root",
)  # fmt: skip
_VARIABLE_PREFIX = "SBATCH_"
#: Options whose variable has another name.
_OPTION_OF_VARIABLE = {"TIMELIMIT": "time", "MEM_PER_NODE": "mem", "CONSTRAINT": "constraint", "MEM": "mem"}


def check_options(resources: Resources) -> None:
    """Raise UserError for an option that sbatch does not have, or that would break what the job relies on."""
    for given in resources.sbatch:
        name = given.replace("_", "-")
        if name in OURS:
            raise UserError(f"resources.sbatch.{given} cannot be set here: {OURS[name]}.")
        if name not in OTHERS:
            raise UserError(f"resources.sbatch.{given}: sbatch has no such option. {_meant(name)}")


def _meant(name: str) -> str:
    """Return the names that an unknown name begins, or the nearest one."""
    known = (*OURS, *OTHERS)
    if full := [each for each in known if each.startswith(name)]:
        return f"Write the full name: {' or '.join(sorted(full))}."
    match = nearest(name, known)
    return f"Did you mean {match}?" if match else "`sbatch --help` lists them."


def unused_variables(resources: Resources, environ: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable SBATCH_… that sets what the experiment leaves open, with the key for it."""
    for variable in sorted(environ):
        name = variable.removeprefix(_VARIABLE_PREFIX)
        if name == variable or name in ("", "CLUSTERS"):
            continue
        key = _OPTION_OF_VARIABLE.get(name, name.lower())
        option = key.replace("_", "-")
        value = environ[variable]
        if key in SAME_NAME:
            if getattr(resources, key) in (None, False):
                yield f"{variable} is {value!r} and is not used: set resources.{key}"
        elif option in OTHERS:
            if not {key, option} & set(resources.sbatch):
                yield f"{variable} is {value!r} and is not used: set resources.sbatch.{option}"
        else:
            yield f"{variable} is {value!r} and is not used: the experiment and the run set that"
    for variable in environ.keys() & {"SBATCH_CLUSTERS", "SLURM_CLUSTERS"}:
        yield f"{variable} is {environ[variable]!r} and is not used: a run belongs to this host's own cluster"
