"""The share of padding in a step, and its distribution over the ranks.

    python -m benchmarks.data.padding --tokenizer FOLDER TABLE... [--budget 12288] [--span 4 1]
                                     [--max-tokens 512]
    python -m benchmarks.data.padding --plan 10000000

The first prints a Markdown table for the first column of each table's texts (.csv with a header, or .tsv
without), tokenized by FOLDER/tokenizer.json: batches of as many samples as the budget holds on average, in
random order and sorted as `train.bucket_batches` does by default, beside `train.batch_max_length` without and
with `train.bucket_span`.

padding      share of the computed tokens that are padding; each micro-batch is padded to its longest sample
useful work  real tokens over four times the computed tokens of the slowest of four processes, step by step
largest      computed tokens of the largest step over those of the mean: what the memory must hold (for one
             logical rank)

The second shows the seconds of CPU for counting the steps and for planning an epoch over that number of
made-up lengths, and the peak memory.
"""

from __future__ import annotations

import argparse
import csv
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.config.schema import Train
from toolkit.data.order.batches import epoch_plan, epoch_steps
from toolkit.data.order.sample_order import EpochPlan

Lengths = npt.NDArray[np.int32]

PROCESSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The tokens of an epoch; useful_work is None if the logical ranks are fewer than the processes."""

    steps: int
    padding: float
    useful_work: float | None
    largest: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path, nargs="*", metavar="TABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER")
    parser.add_argument("--budget", type=int, default=12288, help="tokens of a step")
    parser.add_argument("--span", type=int, nargs="+", default=[4], help="widths of buckets to try")
    parser.add_argument("--max-tokens", type=int, default=512, help="longer texts are cut")
    parser.add_argument("--plan", type=int, metavar="SAMPLES", help="time the planning of made-up samples")
    arguments = parser.parse_args()
    if arguments.plan:
        return _time_plans(arguments.plan, arguments.budget, arguments.span)
    if not arguments.tables or not arguments.tokenizer:
        parser.error("give --tokenizer and a TABLE, or --plan")
    ranks = "with 1, 4, 8 logical ranks"
    print(f"| texts | steps of | number | padding {ranks} | useful work with 4, 8 | largest |")
    print("| --- | --- | --- | --- | --- | --- |")
    for table in arguments.tables:
        lengths = lengths_of(table, arguments.tokenizer, arguments.max_tokens)
        mean, longest = lengths.mean(), lengths.max()
        print(f"<!-- {table.stem}: {len(lengths):,} texts of {mean:.1f} tokens, {longest} at most -->")
        for name, train in ways(arguments.budget, lengths, arguments.span):
            costs = [cost_of(plan_of(train, lengths, ranks), lengths) for ranks in (1, 4, 8)]
            padding = ", ".join(f"{cost.padding:.1%}" for cost in costs)
            useful = ", ".join(f"{cost.useful_work:.1%}" for cost in costs if cost.useful_work)
            first = costs[0]
            print(f"| {table.stem} | {name} | {first.steps} | {padding} | {useful} | {first.largest:.2f} |")
    return None


def lengths_of(table: Path, folder: Path, max_tokens: int) -> Lengths:
    """Return the number of tokens of each text, with special tokens: [n]."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    with open(table, encoding="utf-8", newline="") as stream:
        is_csv = table.suffix == ".csv"
        rows = csv.reader(stream) if is_csv else (line.split("\t") for line in stream)
        texts = [row[0] for row in rows][int(is_csv) :]
    return np.array([len(each.ids) for each in tokenizer.encode_batch(texts)], dtype=np.int32)


def ways(budget: int, lengths: Lengths, spans: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    samples = max(round(budget / float(lengths.mean())), 1)
    yield f"{samples} samples, shuffled", {"batch_size": samples, "bucket_batches": 1}
    yield f"{samples} samples, sorted", {"batch_size": samples}
    yield f"{budget:,} tokens, shuffled", {"batch_max_length": budget}
    for span in spans:
        yield f"{budget:,} tokens, span {span}", {"batch_max_length": budget, "bucket_span": span}


def plan_of(train: dict[str, Any], lengths: Lengths, logical_ranks: int, seed: int = 0) -> EpochPlan:
    """Return the plan of an epoch with these keys of `train`."""
    wanted = Train(logical_ranks=logical_ranks, **train)
    return epoch_plan(wanted, lengths, seed=seed, epoch=0, fingerprint="benchmark")


def cost_of(plan: EpochPlan, lengths: Lengths) -> Cost:
    """Return the cost of the steps of a plan."""
    sizes = np.diff(plan.offsets)
    places = np.repeat(np.arange(len(sizes)), sizes)
    longest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(longest, places, lengths[plan.order])
    computed = (sizes * longest).reshape(plan.steps, plan.micro_batches)
    tokens, useful = int(lengths.sum()), None
    if plan.micro_batches % PROCESSES == 0:
        slowest = computed.reshape(plan.steps, PROCESSES, -1).sum(axis=2).max(axis=1)
        useful = tokens / (PROCESSES * int(slowest.sum()))
    steps = computed.sum(axis=1)
    return Cost(
        steps=plan.steps,
        padding=1 - tokens / int(steps.sum()),
        useful_work=useful,
        largest=float(steps.max() / steps.mean()),
    )


def made_up_lengths(samples: int) -> Lengths:
    """Return numbers of tokens of made-up texts: 3 to 512, about 100 on average."""
    draws = np.random.default_rng(0).lognormal(4.4, 0.7, samples)
    return np.clip(draws, 3, 512, out=draws).astype(np.int32)


def _time_plans(samples: int, budget: int, spans: Sequence[int]) -> None:
    lengths = made_up_lengths(samples)
    print("| steps of | to count them | to plan | memory | a sample |")
    print("| --- | --- | --- | --- | --- |")
    for name, train in ways(budget, lengths, spans):
        started = time.process_time()
        epoch_steps(Train(**train), lengths)
        counted = time.process_time()
        plan_of(train, lengths, 8)
        planned = time.process_time()
        tracemalloc.start()
        plan_of(train, lengths, 8)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"| {name} | {counted - started:.2f} s | {planned - counted:.1f} s | {memory / 1e6:.0f} MB | "
            f"{memory / samples:.0f} bytes |"
        )


if __name__ == "__main__":
    main()
