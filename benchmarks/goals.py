"""The figures that were asked for: what each is measured beside, its goal, and the rows that tell of it.

Titles and candidates are those of the benchmarks' tables: a goal whose table is not there is *not measured*.
"""

from __future__ import annotations

from benchmarks.verdict import Check, Goal

_STEP, _LIGHTNING, _TRAINER = "Cost of the loop, per step", "Lightning", "HF Trainer"
_WAYS = ("fixed length", "longest in the batch", "HF group_by_length")
_TOKENS = "token budget, span 4 (ours)"
_MAP, _IDS = "HF datasets map, batched", "HF datasets map, batched, ids alone"
_BY_HAND = "hand-written DDP loop"

GOALS = (
    Goal(
        figure="cost of the loop per step, DocNN and a BERT of two layers, 1 and 2 processes",
        beside="hand-written DDP loop, accelerate, HF Trainer, Lightning",
        goal="at most 0.65 ms over hand-written, control vector included; ahead of Lightning and HF Trainer",
        checks=(
            Check(
                table=_STEP,
                candidate="stk run",
                take="difference",
                at_most=0.65,
                says="{} ms over hand-written",
            ),
            Check(
                table=_STEP,
                candidate="stk run",
                take="difference",
                against=(_LIGHTNING, _TRAINER),
                at_most=0.0,
                says="{} ms to the better of Lightning and HF Trainer",
            ),
        ),
    ),
    Goal(
        figure="a task of three functions, DocNN, 1 and 2 processes",
        beside="stk run, our own task",
        goal="no more than ours: at most 0.1 ms over",
        checks=(
            Check(
                table=_STEP,
                candidate="stk run, three functions",
                take="difference",
                against=("stk run",),
                works=("DocNN, 1 process", "DocNN, 2 processes"),
                at_most=0.1,
                says="{} ms over our own task",
            ),
        ),
    ),
    Goal(
        figure="the default, 8 logical ranks, in one process, DocNN",
        beside="hand-written DDP loop",
        goal="at most 2 times a step of hand-written",
        checks=(
            Check(
                table=_STEP,
                candidate="stk run, 8 logical ranks",
                take="ratio",
                works=("DocNN, 1 process",),
                at_most=2.0,
                says="{} times hand-written",
            ),
        ),
    ),
    Goal(
        figure="the default, 8 logical ranks, in one process, BERT, 2 layers",
        beside="hand-written DDP loop",
        goal="at most 3 times a step of hand-written",
        checks=(
            Check(
                table=_STEP,
                candidate="stk run, 8 logical ranks",
                take="ratio",
                works=("BERT, 2 layers, 1 process",),
                at_most=3.0,
                says="{} times hand-written",
            ),
        ),
    ),
    Goal(
        figure="memory of the worker",
        beside="the same",
        goal="under 5 % over hand-written",
        checks=(
            Check(
                table="Memory of the largest process while it trains",
                candidate="stk run",
                take="ratio",
                at_most=1.05,
                says="{} times hand-written",
            ),
        ),
    ),
    Goal(
        figure="tokens a second on real text of mixed length, MiniLM of two layers, fp32 and bf16",
        beside="fixed length, longest in a batch, HF `group_by_length`",
        goal="at least 1.3 times the best of them at equal tokens an update",
        checks=(
            Check(
                table="Real tokens a second on texts of mixed length",
                candidate="stk run, token budget",
                take="ratio",
                against=_WAYS,
                at_least=1.3,
                says="{} times the best",
            ),
            Check(
                table="Real tokens a second on texts of mixed length",
                candidate="stk run, token budget, first token",
                take="ratio",
                against=_WAYS,
                at_least=1.3,
                says="{} times with `model.last_layer: first_token`",
            ),
        ),
    ),
    Goal(
        figure="padding, and useful work on 4 ranks, SST-2 and longer texts",
        beside="the same",
        goal="under 3 %; at least 95 %; a plan for 10 million lengths in under 5 s and 1 GB",
        checks=(
            Check(
                table="Padding, share of the computed tokens",
                candidate=_TOKENS,
                at_most=3.0,
                says="{} % padding",
            ),
            Check(table="Useful work on 4 ranks", candidate=_TOKENS, at_least=95.0, says="{} % useful"),
            Check(table="Planning an epoch, CPU", candidate=_TOKENS, at_most=5.0, says="plan {} s"),
            Check(
                table="Planning an epoch, memory beside the lengths",
                candidate=_TOKENS,
                at_most=1000.0,
                digits=0,
                says="{} MB",
            ),
        ),
    ),
    Goal(
        figure="a CSV to prepared samples, 2 processes",
        beside="HF datasets `map`, batched; row by row",
        goal="at least 1.2 times `map`'s best mode; ten times row by row",
        checks=(
            Check(
                table="A CSV to prepared samples",
                candidate="ours",
                take="ratio",
                against=(_MAP, _IDS, f"{_IDS}, of 10,000", f"{_IDS}, 2 processes"),
                at_least=1.2,
                says="{} times `map`",
            ),
            Check(
                table="A CSV to prepared samples",
                candidate="ours",
                take="ratio",
                against=("row by row, as bert_train_parallel: tokenizer in Python",),
                at_least=10.0,
                digits=1,
                says="{} times row by row",
            ),
        ),
    ),
    Goal(
        figure="reading prepared samples at random",
        beside="tensors in memory",
        goal="under 2 % of a step",
        checks=(
            Check(
                table="Reading batches at random, share of a step",
                candidate="prepared samples",
                at_most=2.0,
                says="{} %",
            ),
        ),
    ),
    Goal(
        figure="stop of training for a checkpoint of 803 MB",
        beside="`torch.save` with fsync, `dcp.async_save`",
        goal="at most 0.1 s; steps under 3 % slower while it is written",
        checks=(
            Check(
                table="Training stands still for a checkpoint",
                candidate="ours",
                works=("803 MB",),
                at_most=0.1,
                digits=3,
                says="{} s",
            ),
            Check(
                table="A step while a checkpoint is being written",
                candidate="ours, writing",
                take="ratio",
                at_most=1.03,
                digits=3,
                says="steps {} times as long",
            ),
        ),
    ),
    Goal(
        figure="exact reduction, 2 and 4 processes, DocNN and MiniLM",
        beside="DDP's all-reduce",
        goal="at most 1.15 times the step",
        checks=(
            Check(
                table="A step with the exact reduction",
                candidate="stk run, exact",
                take="ratio",
                at_most=1.15,
                says="{} times",
            ),
        ),
    ),
    Goal(
        figure="goodput under a kill every 30 s on the test cluster",
        beside="HF Trainer, Lightning, submitit scripts",
        goal="the highest, with a closed sum of where the time went",
        checks=(
            Check(
                table="Goodput under kills",
                candidate="stk run",
                take="ratio",
                against=(
                    "submitit script",
                    "Lightning, SLURMEnvironment",
                    "Lightning, torchrun restarts",
                    "HF Trainer, torchrun restarts",
                ),
                at_least=1.0,
                says="{} times the best of them",
            ),
        ),
    ),
    Goal(
        figure="`stk submit` to job id; `stk plan`",
        beside="`sbatch` alone, submitit, Hydra's launcher",
        goal="CPU time within 0.5 s; faster than Hydra's",
        checks=(
            Check(
                table="Handing one run to Slurm, CPU time",
                candidate="stk submit",
                take="difference",
                at_most=0.5,
                says="submit {} s CPU over `sbatch`",
            ),
            Check(
                table="Handing one run to Slurm, CPU time",
                candidate="stk plan",
                take="difference",
                at_most=0.5,
                says="plan {} s",
            ),
            Check(
                table="Handing one run to Slurm, wall time",
                candidate="stk submit",
                take="ratio",
                at_most=1.0,
                against=("Hydra's submitit launcher",),
                says="submit {} times Hydra's wall time",
            ),
        ),
    ),
    Goal(
        figure="a sweep of 1,000 to submitted",
        beside="a loop of submits, submitit `map_array`",
        goal="one sbatch call for each array; under 3 s",
        checks=(
            Check(
                table="A sweep to submitted, wall time",
                candidate="stk sweep",
                at_most=3.0,
                says="{} s",
            ),
            Check(
                table="A sweep to submitted, calls of sbatch",
                candidate="stk sweep",
                at_most=1.0,
                digits=0,
                says="{} call of sbatch",
            ),
        ),
    ),
    Goal(
        figure="`stk status` on 1,000 and 10,000 runs",
        beside="1,000 runs",
        goal="linear; under 3 s for 10,000",
        checks=(
            Check(
                table="stk status, wall time",
                candidate="stk status of 10,000 runs",
                at_most=3.0,
                says="{} s for 10,000",
            ),
            Check(
                table="stk status, wall time",
                candidate="stk status of 10,000 runs",
                take="ratio",
                at_most=10.0,
                digits=1,
                says="{} times 1,000",
            ),
        ),
    ),
    Goal(
        figure="preempted to the first new step, without Slurm's own wait",
        beside="submitit with `torch.save`, Lightning",
        goal="the least, with its parts",
        checks=(
            Check(
                table="From a preemption to the first new step, without Slurm's own wait",
                candidate="stk run",
                take="ratio",
                against=("submitit and torch.save", "Lightning"),
                at_most=1.0,
                says="{} times the better of them",
            ),
        ),
    ),
    Goal(
        figure="training over 1, 2 and 4 hosts of the test cluster",
        beside="hand-written DDP loop",
        goal="the same curve: at least 0.95 of its speed-up",
        checks=tuple(
            Check(
                table="Scaling over hosts, samples a second over those of one host",
                candidate=f"stk run, {reduction}",
                take="ratio",
                against=(_BY_HAND,),
                at_least=0.95,
                says="{} of its speed-up, " + reduction,
            )
            for reduction in ("fast", "exact")
        ),
    ),
)
