"""The typed experiment: the keys of an experiment file, with defaults and limits.

The keys of `task`, `data` and `model` depend on `task.kind` and `model.kind`: installed workloads declare
them. Units are part of the names. A field marked `identity=False` cannot change the result and is not part
of the run's identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from toolkit.config.fields import option
from toolkit.config.library_arguments import NO_SCHEDULES, OPTIMIZERS, OWN, SCHEDULES
from toolkit.workload import Violation

#: The allowed names of runs, which become names of folders and jobs.
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

#: A year in seconds. Longer waits are typing errors, and more than 10^12 seconds overflow.
MOST_S = 31_536_000

#: Events that can be sent to a webhook.
NOTICES = ("end", "failure", "hold", "requeue")
#: An environment variable's name.
VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"

#: A metric, with or without its goal.
METRIC_PATTERN = r"[A-Za-z0-9_./-]+(:(min|max))?"


def _fill(section: object, **defaults: int) -> None:
    """Give the keys of a section that are null these values. For __post_init__, as sections are frozen."""
    for name, default in defaults.items():
        if getattr(section, name) is None:
            object.__setattr__(section, name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """Length and settings of training."""

    epochs: int | None = option(
        None, minimum=1, maximum=1_000_000, known_as="max_epochs num_epochs num_train_epochs"
    )
    """Passes over the training set. null: 10, or as `steps` needs."""
    steps: int | None = option(
        None,
        minimum=1,
        maximum=10**12,
        added=True,
        known_as="max_steps num_steps total_steps num_training_steps",
    )
    """Steps to train for, instead of epochs."""
    batch_size: int | None = option(None, minimum=1, known_as="per_device_train_batch_size train_batch_size")
    """Samples per step of all ranks together. null: 64, unless batch_max_length is given."""
    batch_max_length: int | None = option(None, minimum=1)
    """Maximum tokens per step of all ranks, instead of batch_size."""
    bucket_span: int | None = option(None, minimum=1)
    """For batch_max_length: width of a range of lengths, in tokens. A step then has samples of one range, and
    padding counts. null: any samples share a step, and padding does not count."""
    logical_ranks: int = option(8, minimum=1, maximum=65536)
    """Parts of each batch. More processes than parts change rounding and random numbers (dropout)."""
    workers: int = option(
        0, minimum=0, maximum=1024, added=True, identity=False, known_as="num_workers dataloader_num_workers"
    )
    """For a task of your own functions: processes of each rank that read samples ahead. They need CPUs."""
    accumulation: int = option(1, minimum=1, known_as="gradient_accumulation_steps accumulate_grad_batches")
    """Micro-batches per step and logical rank. More of them need less memory."""
    bucket_batches: int | None = option(None, minimum=1)
    """For batch_size: batches whose samples are sorted by length together, which saves padding. 1: only
    shuffled. null: 50."""
    reduction: str = option("auto", choices=("auto", "exact", "fast"))
    """How gradients are summed. exact: in a fixed tree, so that 1, 2, 4, … processes give the same bytes;
    fast: by DDP's all-reduce; auto: fast on CUDA; exact on the CPU, if logical_ranks and accumulation are
    powers of two."""
    precision: str = option(
        "auto",
        choices=("auto", "fp32", "tf32", "bf16", "fp16"),
        counts_as={"auto": "fp32"},
        instead={"16-mixed": "did you mean fp16?", "bf16-mixed": "did you mean bf16?"},
        known_as="fp16 bf16 amp mixed_precision",
    )
    """auto: bf16 if all ranks' GPUs have it, else fp32; tf32: fp32 with TF32 in matrix products and
    convolutions; bf16, fp16: mixed precision. auto and fp32 have the same identity: `name` gives each its
    own run."""
    compile: str = option("auto", choices=("auto", "on", "off"), added=True, known_as="torch_compile")
    """Whether to use torch.compile. It needs `reduction: fast` and `deterministic: false`. auto: if these
    hold on a GPU with Triton and a C compiler, and the model has no Conv1d, which would be compiled again for
    each length."""
    device: str = option(
        "auto", choices=("auto", "cpu", "cuda"), instead={"gpu": "did you mean cuda?"}, known_as="accelerator"
    )
    """auto: CUDA if a GPU is visible."""
    threads: int = option(1, minimum=1)
    """CPU threads of each process. Rounding depends on this number."""
    clip_norm: float | None = option(None, above=0, known_as="max_grad_norm gradient_clip_val grad_clip")
    """Largest norm of the gradient; null: no clipping."""
    find_unused_parameters: bool = option(False)
    """No effect any more: `reduction: fast` accepts parameters that a step does not use."""
    deterministic: bool = option(True)
    """Deterministic kernels on CUDA: slower, but the same bytes each time. An operation without one fails."""
    start_from_checkpoint: str | None = option(None, path=True, run=True)
    """Initial weights: the folder of a finished run (its best checkpoint), of a checkpoint, or a
    model.safetensors. null: random."""
    log_per_epoch: int = option(20, minimum=1, known_as="logging_steps log_every_n_steps")
    """Logs of training metrics per epoch."""
    eval_per_epoch: int = option(1, minimum=1, known_as="val_check_interval")
    """Evaluations per epoch."""
    eval_steps: int | None = option(None, minimum=1, added=True)
    """Steps between two evaluations, instead of eval_per_epoch."""
    eval_epochs: int | None = option(None, minimum=1, added=True, known_as="check_val_every_n_epoch")
    """Epochs between two evaluations, instead of eval_per_epoch."""
    parallel: str = option("auto", choices=("auto", "ddp", "dp", "none"), identity=False)
    """ddp: one process per GPU; dp: one process with all GPUs; none: one process on one device; auto: ddp."""
    rendezvous: str = option("auto", choices=("auto", "env", "file"), identity=False)
    """How the ranks find each other. auto: at a free port of rank 0, or at the address that a launcher has
    set; env: at MASTER_ADDR and MASTER_PORT; file: through a file in the run's folder."""
    rendezvous_timeout_s: float = option(60.0, above=0, maximum=MOST_S, identity=False)
    """Seconds that a rank tries to reach the others before it fails."""
    collective_timeout_s: float = option(600.0, above=0, maximum=MOST_S, identity=False)
    """Seconds that a rank waits for the others in a step before it fails."""
    hang_timeout_s: float = option(300.0, above=0, maximum=MOST_S, identity=False)
    """Seconds without progress until the ranks write their stacks and exit; at most three quarters of
    collective_timeout_s."""
    check_ranks_every: int | None = option(500, minimum=1, identity=False)
    """Steps between comparisons of the ranks' weights, beside the one at the end; null: never. There is none
    at a stop, and none at the end if a stop interrupted the last evaluation."""
    quarantine: int = option(0, minimum=0)
    """Number of samples that a run may leave out after it has failed on them twice at the same step."""

    def __post_init__(self) -> None:
        # Set here, so that the resolved experiment shows the values that apply, and none without effect.
        if self.batch_max_length is None:
            _fill(self, batch_size=64, bucket_batches=50)
        if self.steps is None:
            _fill(self, epochs=10)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step, over all ranks."""
        return self.logical_ranks * self.accumulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """The optimizer and its settings."""

    kind: str = option("adamw", choices=(*OPTIMIZERS, OWN), known_as="name type optim")
    """The class of torch.optim of this name. A function `optimizer` in the task's file sets own."""
    lr: float = option(1e-3, above=0, known_as="learning_rate")
    """Peak learning rate."""
    weight_decay: float = option(0.01, minimum=0)
    """sgd and adam add it to the gradient; adamw subtracts it from the weights."""
    no_decay: tuple[str, ...] = option(("bias", "norm"))
    """Parameters whose name contains one of these have no weight decay. An entry in lower case
    matches any case."""
    betas: tuple[float, float] = option((0.9, 0.999), known_as="adam_beta1 adam_beta2")
    """adam, adamw, adamax, nadam, radam: decay rates of the running averages, from 0 to below 1."""
    eps: float = option(1e-8, above=0, known_as="adam_epsilon")
    """Added to the denominator by the optimizers with betas, and by rmsprop."""
    momentum: float = option(0.0, minimum=0, maximum=1)
    """Momentum of sgd and rmsprop."""
    arguments: dict[str, Any] = option(factory=dict, added=True)
    """Further arguments of the class, such as {amsgrad: true}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrScheduler:
    """The learning rate as a pure function of the step."""

    kind: str = option(
        "linear",
        choices=("constant", "linear", "cosine", "step", *SCHEDULES, OWN),
        instead=NO_SCHEDULES,
        known_as="name type lr_scheduler_type",
    )
    """After warm-up: constant stays; linear and cosine fall to final_factor; step multiplies by gamma at
    certain steps; others: the schedules of transformers. A function `schedule` in the task's file sets
    own."""
    warmup: float = option(0.0, minimum=0, known_as="warmup_steps warmup_ratio num_warmup_steps")
    """Linear warm-up. A value up to 1 is a share of all steps, a greater one a number of steps."""
    final_factor: float = option(0.0, minimum=0, maximum=1)
    """Factor that linear and cosine reach after the last step."""
    step_epochs: float = option(1.0, above=0)
    """For step: epochs between two reductions."""
    step_at: tuple[float, ...] | None = option(None, above=0, maximum=1)
    """For step: shares of all steps at which it reduces, such as [0.75, 0.9], instead of step_epochs."""
    gamma: float = option(0.5, above=0, maximum=1)
    """For step: factor of each reduction."""
    arguments: dict[str, Any] = option(factory=dict, added=True, known_as="lr_scheduler_kwargs")
    """For schedules of transformers: their arguments, such as {num_cycles: 3}."""

    def warmup_steps(self, total_steps: int) -> int:
        """Return the number of steps of the warm-up."""
        return round(self.warmup * total_steps) if self.warmup <= 1 else int(self.warmup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """When to save and what to keep."""

    every_steps: int | None = option(None, minimum=1, identity=False, known_as="save_steps checkpoint_every")
    """Steps between two saves, beside those at evaluations, at the end and after every_minutes."""
    every_minutes: float | None = option(None, above=0, identity=False)
    """Minutes between two saves. null: chosen from their cost and the frequency of interruptions."""
    keep: int = option(2, minimum=2, identity=False, known_as="save_total_limit save_top_k")
    """How many of the newest checkpoints are kept. Also kept: the best one, and the newest one whose weights
    were compared between ranks, with its best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Evaluation of a run, and selection of the best checkpoint."""

    metric: str = option("loss:min", pattern=METRIC_PATTERN, known_as="metric_for_best_model monitor")
    """Validation metric that selects the best checkpoint; of equal values, that with the lower loss. The goal
    (min, max) may be left out if the task declares it."""
    batch_size: int | None = option(None, minimum=1, known_as="per_device_eval_batch_size eval_batch_size")
    """Samples per batch. It affects rounding. null: 256, unless batch_max_length is given."""
    batch_max_length: int | None = option(None, minimum=1)
    """Maximum tokens per batch, with padding, instead of batch_size."""
    patience: int | None = option(None, minimum=1, known_as="early_stopping early_stopping_patience")
    """Evaluations without improvement until training stops; null: never."""
    test: bool = option(True)
    """Score the best checkpoint on the test set at the end."""

    def __post_init__(self) -> None:
        if self.batch_max_length is None:
            _fill(self, batch_size=256)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """Restarts of a run, and its notifications. A scheduler's section `resources` is a subclass.

    If no package declares that section, `resources` may hold anything, and these defaults apply.
    """

    max_crashes: int = option(3, minimum=0)
    """Automatic restarts after crashes."""
    max_timeouts: int = option(100, minimum=0)
    """Automatic restarts after the time limit. Those after preemptions have no limit."""
    webhook_env: str | None = option(None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable with the address of a webhook, such as STK_WEBHOOK_URL."""
    webhook_events: tuple[str, ...] = option(("end", "failure", "hold"), choices=NOTICES)
    """Events that are sent to the webhook."""

    def cpus_of_rank(self, *, on_gpu: bool | None) -> int:
        """Return the number of CPU cores of each rank; on_gpu is None if the rank recorded no device."""
        return 1

    @property
    def waits_for_jobs(self) -> bool:
        """Whether the run waits for other jobs, which may not have finished yet."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: everything that is computed, and where."""

    name: str = option(pattern=NAME_PATTERN)
    """First part of the run's id."""
    task: Any = option()
    """The task; `kind` selects it."""
    model: Any = option()
    """The model; `kind` selects it."""
    data: Any = option()
    """The data; the keys depend on the task."""
    seed: int = option(0, minimum=0, maximum=2**63 - 1)
    """Seed of all random numbers."""
    train: Train = field(default_factory=Train)
    """How long and how to train."""
    optimizer: Optimizer = field(default_factory=Optimizer)
    """The optimizer and its settings."""
    lr_scheduler: LrScheduler = field(default_factory=LrScheduler)
    """The learning rate as a pure function of the step."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint, metadata={})
    """When to save and what to keep."""
    evaluation: Evaluation = field(default_factory=Evaluation)
    """How a run is evaluated, and which checkpoint is best."""
    resources: Any = option(factory=dict, identity=False)
    """Hosts, limits and restarts."""

    @property
    def each_rank_needs_a_gpu(self) -> bool:
        """Whether each rank needs its own GPU on a machine that has GPUs."""
        return self.train.device != "cpu"

    @property
    def warnings_of_several_ranks(self) -> Iterator[Violation]:
        """Warnings of keys with which several ranks might train separately."""
        return iter(())

    @property
    def policy(self) -> RunPolicy:
        """Restarts of the run, and its notifications."""
        return self.resources if isinstance(self.resources, RunPolicy) else RunPolicy()
