"""The share of a step for reading batches of prepared samples in random order.

Batches of 32 are gathered from the memory-mapped arrays and padded, or picked from one padded tensor in
memory. The share is of forward, backward and update of two small models, with one thread on the CPU.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data.texts import encoder, tokenizer, write_zipf
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns

_BATCH = 32
_MEMORY = "one padded tensor in memory"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of the share of a step, and of microseconds."""
    model = (tokenizer if size.quick else encoder)(size, folder)
    rows = 1000 if size.quick else 200_000
    write_zipf(folder / "table.csv", model, rows, 30)
    works: dict[str, dict[str, Any]] = {"DocNN": {"kind": "docnn"}}
    if not size.quick:
        works[f"{model.name}, 2 layers"] = {"kind": "pretrained", "path": str(model), "layers": 2}
    cases = [
        Case(
            work=f"{rows:,} samples, {title}",
            candidate=candidate,
            measure=partial(
                call, "benchmarks.data.reading:read", experiment=_experiment(folder, model, net), way=way
            ),
        )
        for title, net in works.items()
        for candidate, way in ((_MEMORY, "memory"), ("prepared samples", "mapped"))
    ]
    found = in_turns(cases, size.rounds, say)
    share = Table(
        title="Reading batches at random, share of a step",
        goal="under 2 %",
        unit="%",
        better="less",
        baseline=_MEMORY,
        notes=(
            "Training's own thread reads each batch, so this time is part of the step. The arrays are in "
            "the page cache.",
        ),
    )
    batch = Table(
        title="Reading a batch of 32 at random",
        goal="none, it explains the share",
        unit="µs",
        better="less",
        baseline=_MEMORY,
        digits=1,
    )
    return [share.filled(found, "share"), batch.filled(found, "batch_us")]


def _experiment(folder: Path, tokenizer: Path, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "reading",
        "task": {"kind": "text_classification"},
        "model": model,
        "data": {
            "path": str(folder / "table.csv"),
            "tokenizer": "pretrained",
            "tokenizer_path": str(tokenizer),
            "max_tokens": 128,
            "prepared_dir": str(folder / "prepared"),
        },
    }


def read(experiment: dict[str, Any], way: str) -> dict[str, float]:
    """Return the microseconds of a batch, and its share of a step; runs in a separate process."""
    import numpy as np
    import torch

    from toolkit.config import load
    from toolkit.task import task_class

    file = Path(experiment["data"]["path"]).with_name("reading.json")
    file.write_text(json.dumps(experiment))
    wanted = load(file, [])
    torch.set_num_threads(1)
    task, device = task_class(wanted)(wanted), torch.device("cpu")
    split = task.splits["train"]
    order = np.random.default_rng(0).permutation(len(split))
    batches = np.array_split(order, len(order) // _BATCH)[:2000]
    collate = partial(task.collate, "train", device=device)
    take = collate if way == "mapped" else _from_memory(task, split)
    batch_s = _median_s(take, batches)
    step_s = _median_s(_step(task), [collate(indices) for indices in batches[:20]])
    return {"share": 100 * batch_s / step_s, "batch_us": 1e6 * batch_s}


def _from_memory(task: Any, split: Any) -> Callable[[Any], Any]:
    import numpy as np
    import torch

    from toolkit.workloads.text_classification.data.samples import pad_batch

    arrays = pad_batch(split, np.arange(len(split)))
    tokens, _, labels = (torch.from_numpy(array) for array in arrays)
    return lambda indices: (tokens[torch.from_numpy(indices)], labels[torch.from_numpy(indices)])


def _step(task: Any) -> Callable[[Any], None]:
    import torch

    model = task.model().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        task.loss(model, batch).total.backward()
        optimizer.step()

    return step


def _median_s(work: Callable[[Any], object], inputs: list[Any]) -> float:
    seconds = []
    for each in inputs:
        started = time.perf_counter()
        work(each)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
