"""The typed experiment: what can stand in an experiment file, with defaults and limits.

Which parameters `task`, `data` and `model` take depends on `task.kind` and `model.kind`: the table in
`kinds/`. Units stand in the names; a field marked `identity=False` cannot change the result and is
no part of the run's identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolkit.config.options import option

#: What a run's name may hold, because it becomes a folder and a job name.
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

#: What may be told to a webhook.
NOTICES = ("end", "failure", "hold", "requeue")
#: An environment variable's name.
VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"

#: A range of hosts.
NODES_PATTERN = r"[1-9][0-9]*-[1-9][0-9]*"


def _settle(section: object, **defaults: int) -> None:
    """Give a section under construction values for the keys that are null."""
    for name, default in defaults.items():
        if getattr(section, name) is None:
            object.__setattr__(section, name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """How long and how to train."""

    epochs: int = option(10, minimum=1)
    """Passes over the training set."""
    batch_size: int | None = option(None, minimum=1)
    """Samples in one step, over all ranks together: resources never change it. null: 64, or as many as
    batch_max_length allows where that is given."""
    batch_max_length: int | None = option(None, minimum=1)
    """Tokens in one step, over all ranks together, in place of batch_size: long samples share a step with
    fewer others. null: batch_size counts."""
    bucket_span: int | None = option(None, minimum=1)
    """For batch_max_length: samples share a step if their lengths lie in the same span of so many tokens,
    and padding is counted; null: shuffled samples fill the steps, their padding not counted."""
    logical_ranks: int = option(8, minimum=1, maximum=65536)
    """Parts that a step's batch is cut into, whatever the number of processes, which is at most this."""
    accumulation: int = option(1, minimum=1)
    """Micro-batches that each logical rank adds up in one step: more means less memory."""
    bucket_batches: int | None = option(None, minimum=1)
    """For batch_size: batches whose samples are sorted by length together, which saves padding; 1 for pure
    shuffling. null: 50."""
    reduction: str = option("auto", choices=("auto", "exact", "fast"))
    """exact: one fixed tree, the same bytes on any power of two of processes; fast: DDP's all-reduce;
    auto: exact on the CPU, fast on CUDA."""
    precision: str = option("fp32", choices=("fp32", "bf16", "fp16"))
    """Native mixed precision; fp16 scales the loss."""
    device: str = option("auto", choices=("auto", "cpu", "cuda"))
    """auto: CUDA where it is visible."""
    threads: int = option(1, minimum=1)
    """Threads of one process for arithmetic on the CPU; sums depend on it, so it is not left to the host."""
    clip_norm: float | None = option(None, above=0)
    """Largest norm of the gradient; null for no clipping."""
    find_unused_parameters: bool = option(False)
    """For a model that leaves parameters out of some steps, with `reduction: fast`."""
    deterministic: bool = option(True)
    """Deterministic kernels on CUDA; slower, the same bytes each time."""
    start_from_checkpoint: str | None = option(None, path=True)
    """Weights that a new run begins with, all those of its model and no others: the folder of a finished run
    (its best ones), of a checkpoint, or a model.safetensors. They are read once; null: drawn from `seed`."""
    log_per_epoch: int = option(20, minimum=1)
    """Lines of training metrics in an epoch."""
    eval_per_epoch: int = option(1, minimum=1)
    """Evaluations on the validation set in an epoch, the last one at its end."""
    parallel: str = option("auto", choices=("auto", "ddp", "dp", "none"), identity=False)
    """ddp: a process for each GPU, as many as are started; dp: one process computes on all GPUs that it
    sees, which is slower; none: one process, one device; auto: as ddp."""
    rendezvous: str = option("auto", choices=("auto", "env", "file"), identity=False)
    """How the ranks find each other. env: at MASTER_ADDR and MASTER_PORT; file: through a file in the run's
    folder; auto: env where a launcher such as torchrun says so, else rank 0 publishes a free port."""
    rendezvous_timeout_s: float = option(60.0, above=0, identity=False)
    """Seconds until a rank that cannot reach the others gives up."""
    collective_timeout_s: float = option(600.0, above=0, identity=False)
    """Seconds until a rank gives up waiting for the others in a step."""
    hang_timeout_s: float = option(300.0, above=0, identity=False)
    """Seconds without any progress until the ranks name the one that hangs, write their stacks and leave."""
    check_ranks_every: int | None = option(500, minimum=1, identity=False)
    """Steps between two comparisons of the ranks' weights; null for never."""
    quarantine: int = option(0, minimum=0)
    """Most samples that may be left out because they failed at the same step twice."""

    def __post_init__(self) -> None:
        # Settled here, so that the resolved experiment says what a step is, and nothing that has no effect.
        if self.batch_max_length is None:
            _settle(self, batch_size=64, bucket_batches=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """How gradients become steps."""

    kind: str = option("adamw", choices=("adam", "adamw", "sgd"))
    lr: float = option(1e-3, above=0)
    """Peak learning rate."""
    weight_decay: float = option(0.01, minimum=0)
    no_decay: tuple[str, ...] = option(("bias", "norm"))
    """Parameters whose name contains one of these take no weight decay."""
    betas: tuple[float, float] = option((0.9, 0.999))
    eps: float = option(1e-8, above=0)
    momentum: float = option(0.0, minimum=0, maximum=1)
    """For sgd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrScheduler:
    """The learning rate as a pure function of the step."""

    kind: str = option("linear", choices=("constant", "linear", "cosine", "step"))
    """After warm-up: stays, falls linearly or by a half cosine to final_factor, or in steps."""
    warmup: float = option(0.0, minimum=0)
    """Up to 1: share of all steps; above: number of steps. The first step is already above zero."""
    final_factor: float = option(0.0, minimum=0, maximum=1)
    """Factor that linear and cosine reach when all steps are done: the last step still learns."""
    step_epochs: float = option(1.0, above=0)
    """Epochs between two reductions, for step."""
    step_at: tuple[float, ...] | None = option(None, above=0, maximum=1)
    """Shares of all steps at which step reduces, such as [0.75, 0.9], in place of every step_epochs."""
    gamma: float = option(0.5, above=0, maximum=1)
    """Factor of each reduction, for step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """When to save and what to keep."""

    every_steps: int | None = option(None, minimum=1, identity=False)
    """Steps between two saves, besides those with an evaluation and at the end; null for none."""
    every_minutes: float | None = option(None, above=0, identity=False)
    """Minutes between two saves; null: from what a save costs and how often the run was interrupted."""
    keep: int = option(2, minimum=2, identity=False)
    """Newest checkpoints kept besides the best one. Not 1: if the newest is damaged, one must be left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What counts as best."""

    metric: str = option("loss:min", pattern=r"[A-Za-z0-9_./-]+:(min|max)")
    """Metric of the validation set that picks the best checkpoint, and its direction; ties keep the old."""
    batch_size: int | None = option(None, minimum=1)
    """Samples scored at once; sums are rounded by it, so it is part of the identity. null: 256, or as many
    as batch_max_length allows where that is given."""
    batch_max_length: int | None = option(None, minimum=1)
    """Padded tokens scored at once, in place of batch_size; a longer sample is scored by itself."""
    patience: int | None = option(None, minimum=1)
    """Evaluations without improvement until training stops early; null for never."""
    test: bool = option(True)
    """Whether the best checkpoint is scored on the test set at the end."""

    def __post_init__(self) -> None:
        if self.batch_max_length is None:
            _settle(self, batch_size=256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal hosts within an uneven job."""

    nodes: int = option(minimum=1)
    gpus: int = option(minimum=0)
    """GPUs on each of these hosts, and tasks: one per GPU."""
    partition: str | None = option(None)
    constraint: str | None = option(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Where to run. Never what: changing anything here leaves the result as it is."""

    nodes: int | str = option(1, minimum=1, pattern=NODES_PATTERN)
    """Hosts; a range such as 1-4 lets Slurm start with what is free."""
    tasks_per_node: int = option(1, minimum=1)
    """Processes on each host, one rank each."""
    world_size: int | None = option(None, minimum=1)
    """Processes in all. With tasks_per_node it makes the nodes (40 with 8 each: 5), with nodes the tasks of
    each; alone it is the tasks of one host."""
    groups: tuple[Group, ...] = option(())
    """Uneven hosts, as one heterogeneous job; instead of nodes and tasks_per_node."""
    hosts: dict[str, int] = option(factory=dict, minimum=0, json_file=True)
    """GPUs by the name of the host, in order, or a JSON file with that; one process per GPU, one without
    any. Instead of groups, nodes and tasks_per_node."""
    gres: str | None = option(None)
    """Generic resources of each host, such as gpu:2 or gpu:a100:4."""
    gpus_per_node: str | None = option(None)
    gpus_per_task: str | None = option(None)
    cpus_per_task: int | None = option(None, minimum=1)
    mem: str | None = option(None)
    """Memory of each host, such as 16G."""
    mem_per_cpu: str | None = option(None)
    mem_per_gpu: str | None = option(None)
    time: str | None = option(None)
    """Time limit: minutes, or Slurm's forms M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    partition: str | None = option(None)
    account: str | None = option(None)
    qos: str | None = option(None)
    constraint: str | None = option(None)
    nodelist: str | None = option(None)
    exclude: str | None = option(None)
    reservation: str | None = option(None)
    dependency: str | None = option(None)
    mail_user: str | None = option(None)
    mail_type: str | None = option(None)
    webhook_env: str | None = option(None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable that holds the address of a webhook, such as STK_WEBHOOK_URL. The
    address itself, which is a secret, must stand nowhere here."""
    webhook_events: tuple[str, ...] = option(("end", "failure", "hold"), choices=NOTICES)
    """What the webhook is told of: end, failure, hold, requeue."""
    comment: str | None = option(None)
    licenses: str | None = option(None)
    exclusive: bool = option(False)
    max_parallel: int | None = option(None, minimum=1)
    """Array tasks that run at the same time (sweeps)."""
    signal_s: int = option(120, minimum=1, maximum=65535)
    """Seconds before the time limit at which the ranks are warned."""
    requeue: str = option("auto", choices=("auto", "same_job", "chain"))
    """How an interrupted run goes on: same_job goes back into the queue under its id, chain is a new job,
    which waits a second instead of two minutes; auto: chain before the time limit, same_job if preempted;
    after a crash the ranks start again in the job they had, which keeps its hosts and waits for nothing."""
    max_crashes: int = option(3, minimum=0)
    """How often the run goes on by itself after a crash."""
    max_timeouts: int = option(100, minimum=0)
    """How often it goes on after its time limit; after a preemption it always does."""
    setup: tuple[str, ...] = option(())
    """Shell lines that prepare the environment, such as `module load cuda`."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables for the ranks; any value. No secrets: the job has them from the shell that submits."""
    sbatch: dict[str, Any] = field(default_factory=dict)
    """Any other option of sbatch by its long name; true for a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: everything that is computed, and where."""

    name: str = option(pattern=NAME_PATTERN)
    """First part of the run's id; letters, digits, dot, dash, underscore."""
    task: Any = option()
    """What is learnt; `kind` picks it."""
    model: Any = option()
    """What learns; `kind` picks it."""
    data: Any = option()
    """What it learns from; the task says which fields there are."""
    seed: int = option(0, minimum=0, maximum=2**63 - 1)
    """Fixes every random choice."""
    train: Train = field(default_factory=Train)
    optimizer: Optimizer = field(default_factory=Optimizer)
    lr_scheduler: LrScheduler = field(default_factory=LrScheduler)
    checkpoint: Checkpoint = field(default_factory=Checkpoint, metadata={})
    evaluation: Evaluation = field(default_factory=Evaluation)
    resources: Resources = option(factory=Resources, identity=False)
