"""The place of this process in a job, from the environment: its rank, its hosts, how it was started."""

from __future__ import annotations

import os
from collections.abc import Mapping

from slurm.client.hostlist import expand, expand_counts
from slurm.client.stop_reason import restarts_before
from toolkit.errors import SchedulerError, UserError
from toolkit.system.world import World

#: A site's client configuration and a user's authentication: no Slurm command works without them.
_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_SACK_SOCKET"})
_SCRUBBED_PREFIXES = (
    "SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_", "PMI_", "PMI2_", "PMIX_",
    "TORCHELASTIC_", "OMPI_",
)  # fmt: skip
_SCRUBBED_NAMES = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    # Variables of torchrun, by name: others with these prefixes may be the user's.
    | {"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE"}
    | {"STK_RENDEZVOUS", "STK_LAUNCHER"}
    # What a command of a run gets: another run that it starts must not take itself for that one.
    | {"STK_RUN_DIR", "STK_NONCE", "STK_WATCHER", "STK_RESTARTER", "STK_ATTEMPT"}
    | {"STK_CHECKPOINT_DIR", "STK_LATEST_CHECKPOINT", "STK_STOP_FILE", "STK_PARAMS"}
)

#: Numbers of special steps that are not from `srun`: pending, batch, extern, interactive (the shell of salloc
#: with use_interactive_step); SLURM_STEP_ID has them as 32-bit numbers.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0


def is_rank(environ: Mapping[str, str]) -> bool:
    """Whether this process is a task of an `srun` step: the step's variables then describe its world.

    False outside of a job, and for a process that a user or a batch script started in one (salloc,
    `srun --pty bash`, a terminal of `srun jupyter lab`): the SLURM_* variables describe the shell.

    The variables alone do not distinguish an interactive shell from a step started in it, because srun
    and sbatch pass SLURM_PTY_PORT to their processes (measured, 22.05). Only what is typed into it has
    a controlling terminal: slurmstepd gives tasks without --pty none. A program such as unbuffer gives one,
    so a single task behind it counts as a shell.
    """
    if "SLURM_JOB_ID" not in environ or not _describes_a_step(environ):
        return False
    is_single, has_pty = environ.get("SLURM_STEP_NUM_TASKS") == "1", "SLURM_PTY_PORT" in environ
    if is_single and has_pty:
        # A single task has no use as a rank, but a shell may start several processes.
        return False
    if not is_single and not has_pty:
        return True
    # `srun -n 4 --pty stk run`: the task itself, not something typed into it.
    return environ.get("SLURM_TASK_PID") == str(os.getpid()) or not _has_terminal()


def world_from_step(environ: Mapping[str, str] = os.environ) -> World:
    """Return the place of this task among all tasks of its step, in all components of a heterogeneous job.

    Variables of the whole job are not used, because they may describe more than the step. The nonce
    is new for each step and each start of the job. Raises SchedulerError for missing or inconsistent
    variables.
    """
    if "SLURM_JOB_ID" not in environ or "SLURM_STEP_ID" not in environ:
        raise SchedulerError("SLURM_JOB_ID or SLURM_STEP_ID is not set: this is not a task of an srun step")
    nonce = step_nonce(environ)
    rank = _integer(environ, "SLURM_PROCID")
    local_rank = _integer(environ, "SLURM_LOCALID")
    try:
        world = World(
            rank=rank,
            size=_integer(environ, "SLURM_STEP_NUM_TASKS"),
            local_rank=local_rank,
            local_size=_local_size(environ, rank, local_rank),
            node=_integer(environ, "SLURM_NODEID"),
            nodes=_integer(environ, "SLURM_STEP_NUM_NODES"),
            nonce=nonce,
            job=environ["SLURM_JOB_ID"],
            restart=restarts_before(environ),
            gpus=_granted_gpus(environ),
            known_as=_names(environ),
        )
    except UserError as error:
        raise SchedulerError(f"the variables of step {nonce} contradict each other: {error}") from None
    if world.node >= world.nodes or world.local_size > world.size:
        raise SchedulerError(
            f"the variables of step {nonce} contradict each other: host {world.node} (SLURM_NODEID) of "
            f"{world.nodes} (SLURM_STEP_NUM_NODES), {world.local_size} tasks here of {world.size} "
            "(SLURM_STEP_NUM_TASKS)"
        )
    return world


def step_nonce(environ: Mapping[str, str]) -> str:
    """Return the name of this start of the step: equal in all its tasks, and unique among starts."""
    restarts = environ.get("SLURM_RESTART_COUNT") or "0"
    return f"{environ.get('SLURM_JOB_ID', '')}.{environ.get('SLURM_STEP_ID', '')}.{restarts}"


def _names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return this host, the first other host of the step, and the address of the launching host.

    One other host is enough to find the interface that leads to them: a name may take seconds to look up.
    """
    own = environ.get("SLURMD_NODENAME", "")
    try:
        hosts = expand(environ.get("SLURM_STEP_NODELIST", ""))
    except UserError:
        hosts = []
    other = next((host for host in hosts if host != own), "")
    return tuple(filter(None, (own, other, environ.get("SLURM_LAUNCH_NODE_IPADDR", ""))))


def _granted_gpus(environ: Mapping[str, str]) -> int:
    """Return the number of GPUs of this host that this task may use; 0 if it has none.

    SLURM_JOB_GPUS is not used: it describes the host of the batch script. With --gpu-bind=none,
    SLURM_STEP_GPUS is not set (measured, 22.05).
    """
    own = [part for part in environ.get("SLURM_STEP_GPUS", "").split(",") if part]
    on_host = environ.get("SLURM_GPUS_ON_NODE", "")
    return len(own) or (int(on_host) if on_host.isdecimal() else 0)


def scrub(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return a copy without variables of a job, a launcher or a step; a site's SLURM_CONF is kept.

    For submissions from inside a job, and for local processes in an interactive shell.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or not (name in _SCRUBBED_NAMES or name.startswith(_SCRUBBED_PREFIXES))
    }


def _describes_a_step(environ: Mapping[str, str]) -> bool:
    step = environ.get("SLURM_STEP_ID", "")
    if not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP or "SLURM_PROCID" not in environ:
        return False
    # A batch script submitted from within a step inherits that step's variables, but has its own
    # SLURM_NTASKS (measured, 22.05). In a step, the two differ only with `srun --preserve-env`.
    tasks = environ.get("SLURM_STEP_NUM_TASKS")
    if tasks is None or environ.get("SLURM_NTASKS", tasks) == tasks:
        return True
    return environ["SLURM_PROCID"] != "0" or "," in environ.get("SLURM_GTIDS", "")


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _local_size(environ: Mapping[str, str], rank: int, local_rank: int) -> int:
    """Return the number of tasks of the step on this host.

    SLURM_GTIDS lists the ranks of the host. Counting SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID would
    be wrong in a heterogeneous job: it is sorted by host name, SLURM_NODEID by component (measured).
    """
    if "SLURM_GTIDS" not in environ:
        return _tasks_of_host(environ)
    ranks = environ["SLURM_GTIDS"].split(",")
    if local_rank >= len(ranks) or ranks[local_rank] != str(rank):
        raise SchedulerError(
            f"SLURM_GTIDS is {environ['SLURM_GTIDS']!r}, expected rank {rank} (SLURM_PROCID) at "
            f"position {local_rank} (SLURM_LOCALID)"
        )
    return len(ranks)


def _tasks_of_host(environ: Mapping[str, str]) -> int:
    names = ("SLURMD_NODENAME", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")
    if missing := [name for name in names if not environ.get(name)]:
        raise SchedulerError(f"{', '.join(missing)} not set: cannot count the tasks of this host")
    host, hosts, counts = environ[names[0]], expand(environ[names[1]]), expand_counts(environ[names[2]])
    if host not in hosts or len(hosts) != len(counts):
        raise SchedulerError(
            f"{names[1]} is {environ[names[1]]!r} and {names[2]} is {environ[names[2]]!r}, expected one "
            f"count for each host, {host} ({names[0]}) among them"
        )
    return counts[hosts.index(host)]


def _integer(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name)
    if text is None:
        raise SchedulerError(f"{name} is not set: this is not a task of an srun step")
    if not text.isdecimal():
        raise SchedulerError(f"{name} is {text!r}, expected a whole number")
    return int(text)
