"""The figures with a goal, and the rows of tables that show whether it is reached.

Titles and candidates are those of the benchmarks' tables. A goal without its table is *not measured*.
"""

from __future__ import annotations

from benchmarks.figures.verdict import Check, Goal

_STEP, _LIGHTNING, _TRAINER = "Cost of the loop, per step", "Lightning", "HF Trainer"
_WAYS = ("fixed length", "longest in the batch", "HF group_by_length")
_TOKENS = "token budget, span 4 (ours)"
_MAP, _IDS = "HF datasets map, batched", "HF datasets map, batched, ids alone"
_BY_HAND = "hand-written DDP loop"

GOALS = (
    Goal(
        figure="time per step, DocNN and a BERT of two layers, 1 and 2 processes",
        goal="at most 0.65 ms over a hand-written DDP loop; faster than Lightning and HF Trainer",
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
        goal="at most 0.1 ms over our own task",
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
        figure="the same with 8 logical ranks, the default: DocNN, one process",
        goal="at most 2 times a hand-written step",
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
        figure="the same with 8 logical ranks, the default: BERT, one process",
        goal="at most 3 times a hand-written step",
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
        goal="under 5 % over a hand-written loop",
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
        figure="tokens per second on texts of mixed length, MiniLM of two layers, fp32 and bf16",
        goal="at least 1.3 times the best other way of batching, at equal tokens per update",
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
        figure="padding, useful work on 4 ranks, and planning",
        goal="under 3 % padding; at least 95 % useful; a plan of 10 million samples in under 5 s and 1 GB",
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
        figure="preparing samples of a CSV, 2 processes",
        goal="at least 1.2 times the best `map` of HF datasets; ten times row by row",
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
        figure="pause of training for a checkpoint of 803 MB",
        goal="at most 0.1 s; steps under 3 % slower during the write",
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
        goal="at most 1.15 times a step with DDP's all-reduce",
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
        figure="goodput with a kill every 30 s, on the test cluster",
        goal="higher than HF Trainer, Lightning and a submitit script",
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
                says="{} times the best other tool",
            ),
        ),
    ),
    Goal(
        figure="`stk submit` until the job id; `stk plan`",
        goal="at most 0.5 s of CPU over `sbatch`; faster than Hydra's launcher",
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
        figure="submitting a sweep of 1,000 runs",
        goal="one call of sbatch for each array; under 3 s",
        checks=(
            Check(table="A sweep to submitted, wall time", candidate="stk sweep", at_most=3.0, says="{} s"),
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
        figure="`stk status` of 1,000 and 10,000 runs",
        goal="linear; under 3 s for 10,000 runs",
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
        figure="from a preemption to the first new step, without Slurm's own wait",
        goal="less than submitit with `torch.save`, and Lightning",
        checks=(
            Check(
                table="From a preemption to the first new step, without Slurm's own wait",
                candidate="stk run",
                take="ratio",
                against=("submitit and torch.save", "Lightning"),
                at_most=1.0,
                says="{} times the better of submitit and Lightning",
            ),
        ),
    ),
    Goal(
        figure="speed-up over 1, 2 and 4 hosts of the test cluster",
        goal="at least 0.95 of that of a hand-written loop",
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
