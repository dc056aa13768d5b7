"""The options of sbatch that `resources.sbatch` may have, and what to use instead of the others.

sbatch accepts abbreviated names: `arr` is `array`. Here only full names from a list are allowed. Variables
that sbatch would read as options are not used: a run does not depend on the shell that submits it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slurm.config.resources import Resources
from toolkit.system.output.nearest import nearest
from toolkit.workload import Violation

#: Keys of `resources` that are options of sbatch with the same name, with dashes.
SAME_NAME = (
    "gres", "gpus_per_node", "gpus_per_task", "cpus_per_task", "mem", "mem_per_cpu", "mem_per_gpu", "time",
    "partition", "account", "qos", "constraint", "nodelist", "exclude", "reservation", "dependency",
    "mail_user", "mail_type", "comment", "licenses", "exclusive",
)  # fmt: skip

#: Options of Slurm's own containers, and of the plugin pyxis, which many clusters with GPUs have.
_CONTAINERS = (
    "container", "container-id",
    "container-entrypoint", "container-entrypoint-log", "container-env", "container-image",
    "container-mount-home", "container-mounts", "container-name", "container-readonly",
    "container-remap-root", "container-save", "container-workdir", "container-writable",
    "no-container-entrypoint", "no-container-entrypoint-log", "no-container-mount-home",
    "no-container-remap-root",
)  # fmt: skip
_NO_CONTAINER = (
    "the batch script would run in the container, which has no srun. Start the container in a command of "
    "your own: `stk submit -- apptainer exec IMAGE python train.py`"
)

#: Options that are refused, mostly because this project sets them, with the reason or what to use instead.
OURS = {
    "job-name": "a lost job is found again by its name; `name` is its first part",
    "chdir": "the job works in the run's folder; STK_EXPERIMENT_DIR chooses its place",
    "open-mode": "the output of earlier attempts must be kept",
    "requeue": "an interrupted job must be requeued",
    "no-requeue": "an interrupted job must be requeued",
    "signal": "resources.signal_s sets the warning before the time limit",
    "array": "one run is one job, and `stk sweep` makes arrays of runs",
    "wrap": "the batch script comes from the plan",
    "nodes": "use resources.nodes",
    "ntasks": "use resources.nodes and resources.tasks_per_node",
    "ntasks-per-node": "use resources.tasks_per_node",
    "tasks-per-node": "use resources.tasks_per_node",
    "ntasks-per-gpu": "use resources.tasks_per_node",
    "resources": "use keys such as resources.nodes, resources.tasks_per_node and resources.gres",
    "license": "use resources.licenses",
    "test-only": "`stk plan --test-only` asks Slurm whether it would accept the job",
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
    "output": "the logs are in the run's folder, where `stk logs` finds them",
    "error": "the logs are in the run's folder, where `stk logs` finds them",
    **dict.fromkeys(_CONTAINERS, _NO_CONTAINER),
    # If an option were given twice, the plan might use another value than the job.
    **{name.replace("_", "-"): f"use resources.{name}" for name in SAME_NAME},
}

#: All other options: of `sbatch --help` and the manual of 22.05, and new ones until 26.05.
OTHERS = (
    "acctg-freq", "batch", "bb", "bbf", "begin", "contiguous", "core-spec", "cores-per-socket",
    "cpu-freq", "cpus-per-gpu", "deadline", "delay-boot", "distribution", "extra-node-info", "get-user-env",
    "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-socket", "gres-flags", "hint", "hold", "ignore-pbs",
    "input", "kill-on-invalid-dep", "mcs-label", "mem-bind", "mincpus", "network", "nice", "no-kill",
    "nodefile", "ntasks-per-core", "ntasks-per-socket", "overcommit", "oversubscribe", "power", "prefer",
    "priority", "profile", "propagate", "reboot", "sockets-per-node", "spread-job", "switches",
    "thread-spec", "threads-per-core", "time-min", "tmp", "uid", "use-min-nodes", "verbose",
    "wait-all-nodes", "wckey", "consolidate-segments", "container-type", "extra",
    "mem-update", "oom-kill-step", "resv-ports", "segment", "spread-segments", "stepmgr", "tres-bind",
    "tres-per-task",
)  # fmt: skip
_VARIABLE_PREFIX = "SBATCH_"
#: Variables with another name than their option.
_OPTION_OF_VARIABLE = {"TIMELIMIT": "time", "MEM_PER_NODE": "mem", "CONSTRAINT": "constraint", "MEM": "mem"}


def refused_options(given: Mapping[str, Any]) -> Iterator[Violation]:
    """Find unknown options of sbatch in `resources.sbatch`, and those that this project sets itself."""
    for spelt, value in given.items():
        key, name = ("resources", "sbatch", spelt), spelt.replace("_", "-")
        # resources.exclusive is only true or false; sbatch's option may also be user, mcs or topo.
        if name == "exclusive" and isinstance(value, str) and value:
            continue
        if name in OURS:
            yield Violation(key=key, problem="cannot be set here", hint=OURS[name])
        elif name not in OTHERS:
            yield Violation(key=key, problem="sbatch has no such option", hint=_suggestion(name))


def _suggestion(name: str) -> str:
    """Return a hint: the names that begin with an unknown name, or the nearest one."""
    known = (*OURS, *OTHERS)
    match = nearest(name, known)
    meant = sorted(each for each in known if each.startswith(name)) or ([match] if match else [])
    refused = f" It cannot be set here: {OURS[meant[0]]}" if len(meant) == 1 and meant[0] in OURS else ""
    return f"did you mean {' or '.join(meant)}?{refused}" if meant else "`sbatch --help` lists them"


def unused_variables(resources: Resources, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each variable SBATCH_… that is not used, with the key to set instead."""
    for variable in sorted(environ):
        name = variable.removeprefix(_VARIABLE_PREFIX)
        if name == variable or name in ("", "CLUSTERS"):
            continue
        key = _OPTION_OF_VARIABLE.get(name, name.lower())
        option = key.replace("_", "-")
        value = environ[variable]
        if key in SAME_NAME:
            if getattr(resources, key) in (None, False) and option not in resources.sbatch:
                yield f"{variable} is {value!r} and is not used: set resources.{key}"
        elif option in OTHERS:
            if not {key, option} & set(resources.sbatch):
                yield f"{variable} is {value!r} and is not used: set resources.sbatch.{option}"
        elif option in _CONTAINERS:
            yield f"{variable} is {value!r} and is not used: {_NO_CONTAINER}"
        else:
            yield f"{variable} is {value!r} and is not used: the experiment and the run set that"
    for variable in environ.keys() & {"SBATCH_CLUSTERS", "SLURM_CLUSTERS"}:
        yield f"{variable} is {environ[variable]!r} and is not used: a run belongs to this host's own cluster"
