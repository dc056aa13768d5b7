"""Real tokens a second on texts of mixed length, with equal tokens for each update, in one process.

A hand-written loop with the usual ways of making batches is compared with `stk run` with a token budget; all
have the same encoder of two layers (MiniLM if installed), samples and optimizer. A real token is a token that
is not padding. Without a GPU, one thread computes.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data.padding_shares import MAX_TOKENS
from benchmarks.data.texts import encoder, tables
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Process, Size, call, in_turns
from benchmarks.stepping.start import metrics_of

_GROUPED = "HF group_by_length"
_WAYS = {"fixed length": "fixed", "longest in the batch": "longest", _GROUPED: "grouped"}
#: Number of timed steps for each way, chosen at random from an epoch; steps of fixed length are all alike.
_TIMED = {"fixed": 6, "longest": 12, "grouped": 24}
_WARM_UP = 2

_TOKENS = 1024
#: Number of texts: enough for about 50 batches.
_TEXTS = {"SST-2": 2000, "Wikipedia leads": 550}
#: Batches that HF sorts together: a quarter of all, and at most 50.
_MEGABATCH = {"SST-2": 37, "Wikipedia leads": 50}


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the table of tokens a second."""
    model = encoder(size, folder)
    cases = [
        case
        for name, path in tables(size, folder, _TEXTS).items()
        for precision in (("fp32",) if size.quick else ("fp32", "bf16"))
        for case in _cases(name, _experiment(path, model, precision, size), folder, size)
    ]
    table = Table(
        title="Real tokens a second on texts of mixed length",
        goal="at least 1.3 times the best of the other ways",
        unit="tokens/s",
        better="more",
        baseline=_GROUPED,
        digits=0,
        notes=(
            "*First token*: the last layer computes the first token alone, which is all that the head reads "
            "(`model.last_layer`); the other rows differ in their batches alone.",
        ),
    )
    return [table.filled(in_turns(cases, size.rounds, say), "tokens_per_s")]


def _experiment(table: Path, model: Path, precision: str, size: Size) -> dict[str, Any]:
    """Return an experiment of one epoch; all ways have `batch_max_length` tokens for an update."""
    return {
        "name": f"mixed-{precision}",
        "task": {"kind": "text_classification"},
        "model": {"kind": "pretrained", "path": str(model), "layers": 2},
        "data": {
            "path": str(table),
            "tokenizer": "pretrained",
            "tokenizer_path": str(model),
            "max_tokens": MAX_TOKENS,
            "splits": {"train": 0.95, "validation": 0.05},
            "prepared_dir": str(table.parent / "prepared"),
        },
        "train": {
            "epochs": 1,
            "batch_max_length": 512 if size.quick else _TOKENS,
            "bucket_span": 1,
            "logical_ranks": 1,
            "precision": precision,
            "log_per_epoch": 5,
        },
        "optimizer": {"kind": "adamw", "lr": 1e-4},
    }


def _cases(name: str, experiment: dict[str, Any], folder: Path, size: Size) -> Iterator[Case]:
    work = f"{name}, {experiment['train']['precision']}"
    for candidate, way in _WAYS.items():
        if size.quick and way != "grouped":
            continue
        train = partial(call, "benchmarks.training.throughput:by_hand", experiment=experiment, way=way)
        yield Case(work=work, candidate=candidate, measure=partial(train, megabatch=_MEGABATCH.get(name)))
    ours = "stk run, token budget"
    yield Case(work=work, candidate=ours, measure=partial(_ours, experiment, folder))
    if size.quick:
        return
    first = {**experiment, "model": {**experiment["model"], "last_layer": "first_token"}}
    yield Case(work=work, candidate=f"{ours}, first token", measure=partial(_ours, first, folder))


def _ours(experiment: dict[str, Any], folder: Path) -> dict[str, float]:
    number = len([*folder.glob("round-*")])
    own = folder / f"round-{number}"
    own.mkdir()
    (own / "experiment.json").write_text(json.dumps(experiment))
    command = [sys.executable, "-m", "slurm", "run", str(own / "experiment.json"), "--procs", "1"]
    Process(command, {"STK_EXPERIMENT_DIR": str(own / "experiments")}).finish()
    lines = metrics_of(own / "experiments")
    seconds = [later["time"] - earlier["time"] for earlier, later in itertools.pairwise(lines)]
    tokens = [line["tokens_per_s"] * part for line, part in zip(lines[1:], seconds, strict=True)]
    return {"tokens_per_s": sum(tokens) / sum(seconds)}


def by_hand(experiment: dict[str, Any], way: str, megabatch: int | None) -> dict[str, float]:
    """Train some steps with one way of making batches, in a separate process; return tokens a second."""
    import numpy as np
    import torch

    from toolkit.config import load
    from toolkit.task import task_class

    file = Path(experiment["data"]["path"]).with_suffix(f".{way}.json")
    file.write_text(json.dumps(experiment))
    wanted = load(file, [])
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    task = task_class(wanted)(wanted)
    model = task.model().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    lengths = np.asarray(task.splits["train"].lengths)
    samples = max(round(experiment["train"]["batch_max_length"] / float(lengths.mean())), 1)
    width = int(lengths.max()) if way == "fixed" else 0

    def step(indices: Any) -> int:
        batch: Any = task.collate("train", indices, device)
        # The padding of MiniLM and of the small BERT is token 0.
        tokens = torch.nn.functional.pad(batch.tokens, (0, max(width - batch.tokens.shape[1], 0)))
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=wanted.train.precision == "bf16"):
            scores = model(tokens)
        torch.nn.functional.cross_entropy(scores.float(), batch.labels).backward()
        optimizer.step()
        return int(batch.real_tokens)

    batches = _batches(lengths, samples, way, megabatch)[: _WARM_UP + _TIMED[way]]
    for indices in batches[:_WARM_UP]:
        step(indices)
    return {"tokens_per_s": _speed(step, batches[_WARM_UP:], device.type)}


def _speed(step: Callable[[Any], int], batches: list[Any], device: str) -> float:
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    tokens = sum(step(indices) for indices in batches)
    wait()
    return tokens / (time.perf_counter() - started)


def _batches(lengths: Any, samples: int, way: str, megabatch: int | None) -> list[Any]:
    """Return the sample numbers of each batch, in random order."""
    import numpy as np
    import torch
    from transformers.trainer_pt_utils import get_length_grouped_indices

    rng = np.random.default_rng(0)
    if way == "grouped":
        generator = torch.Generator().manual_seed(0)
        order = np.array(get_length_grouped_indices(lengths.tolist(), samples, megabatch, generator))
    else:
        order = rng.permutation(len(lengths))
    batches = [order[start : start + samples] for start in range(0, len(order), samples)]
    rng.shuffle(batches)
    return batches
