"""Scaling of training over hosts: one process on each of 1, 2 and 4 hosts of the test cluster.

Each process has 32 samples a step: of 64 tokens for a DocNN of the usual size, of 32 for a BERT of two layers
as large as MiniLM's. The loop written by hand and `stk run` are both tasks of one srun. The hosts are network
namespaces of one machine and share its cores: with more hosts than cores, no candidate scales linearly, and
only the comparison of the curves counts.

    ./scripts/cluster up
    export SLURM_CONF=…     as it says
    python -m benchmarks scaling
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cluster.on_cluster import absent, missing
from benchmarks.figures.tables import Found, Table
from benchmarks.measuring.rounds import Case, Process, Size, call, in_turns
from benchmarks.stepping import start
from benchmarks.stepping.cost import BASELINE
from benchmarks.stepping.work import Work, write_tokenizer

#: The port is free: every host has its own network namespace.
_PORT = "29500"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A model on a number of hosts."""

    model: str
    hosts: int
    work: Work

    @property
    def title(self) -> str:
        return f"{self.model}, {self.hosts} {'host' if self.hosts == 1 else 'hosts'}"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of samples a second and of the speed-up."""
    reason = absent()
    points = [*points_of(size, folder)]
    reductions = ("exact",) if size.quick else ("fast", "exact")
    cases = [case for point in points for case in _cases(point, reductions, reason is None)]
    found: Found
    if reason is None or size.quick:
        for point in points:
            call("benchmarks.cluster.scaling:prepare", work=point.work.as_json())
        found = in_turns(cases, size.rounds, say)
    else:
        found = missing(cases, reason)
    return _tables(
        points, found, () if reason is None else ("Without a cluster: processes of this machine.",)
    )


def _tables(points: list[Point], found: Found, notes: tuple[str, ...]) -> list[Table]:
    cores = os.cpu_count() or 1
    notes = (*notes, f"One process on each host; all hosts share the {cores} cores of one machine.")
    speed = Table(
        title="Samples a second over hosts",
        goal="none, it explains the curve",
        unit="samples/s",
        better="more",
        baseline=BASELINE,
        digits=1,
        notes=notes,
    )
    curve = Table(
        title="Scaling over hosts, samples a second over those of one host",
        goal="the curve of a hand-written loop: a ratio of about 1",
        unit="times one host",
        better="more",
        baseline=BASELINE,
        notes=notes,
    )
    return [speed.filled(found, "samples_per_s"), curve.filled(speed_ups(points, found), "speed_up")]


def speed_ups(points: list[Point], found: Found) -> dict[tuple[str, str], list[dict[str, float]] | str]:
    """Return for every point with several hosts its throughput over that of one host, in the same round."""
    alone = {point.model: point.title for point in points if point.hosts == 1}
    models = {point.title: point.model for point in points if point.hosts > 1}
    rows: dict[tuple[str, str], list[dict[str, float]] | str] = {}
    for (work, candidate), rounds in found.items():
        if work not in models:
            continue
        one = found[alone[models[work]], candidate]
        if isinstance(rounds, str) or isinstance(one, str):
            rows[work, candidate] = rounds if isinstance(rounds, str) else str(one)
            continue
        pairs = zip(rounds, one, strict=True)
        rows[work, candidate] = [
            {"speed_up": more["samples_per_s"] / less["samples_per_s"]} for more, less in pairs
        ]
    return rows


def points_of(size: Size, folder: Path) -> Iterator[Point]:
    """Yield the models on 1, 2 and 4 hosts; at toy size one model on 1 and 2."""
    models = {"DocNN": _docnn(size)}
    if not size.quick:
        models["2-layer MiniLM"] = _minilm(folder)
    for model, work in models.items():
        for hosts in (1, 2) if size.quick else (1, 2, 4):
            own = replace(
                work, folder=str(folder / f"{work.model}-{hosts}"), processes=hosts, batch=32 * hosts
            )
            yield Point(model=model, hosts=hosts, work=own)


def _docnn(size: Size) -> Work:
    steps, window = (30, 10) if size.quick else (120, 20)
    network = {"kind": "docnn"}
    return Work(folder="", model="docnn", network=network, processes=1, steps=steps, window=window, length=64)


def _minilm(folder: Path) -> Work:
    network = {"kind": "pretrained", "path": str(folder / "bert"), "layers": 2}
    return Work(folder="", model="bert", network=network, processes=1, steps=12, window=2, length=32)


def _cases(point: Point, reductions: Sequence[str], cluster: bool) -> Iterator[Case]:
    by_hand = partial(_by_hand if cluster else partial(start.peer, "by_hand"), point.work)
    yield Case(work=point.title, candidate=BASELINE, measure=partial(_speed, point.work, by_hand))
    for reduction in reductions:
        ours = partial(_ours if cluster else start.ours, point.work, {"reduction": reduction})
        measure = partial(_speed, point.work, ours)
        yield Case(work=point.title, candidate=f"stk run, {reduction}", measure=measure)


def _speed(work: Work, train: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    return {"samples_per_s": 1000 * work.batch / train()["step_ms"]}


def prepare(work: dict[str, Any]) -> None:
    """Make the files of one point, in a separate process."""
    from benchmarks.stepping.work import make

    job = Work(**work)
    write_tokenizer(str(Path(job.folder) / "bert"))
    if job.model == "bert" and not Path(job.network["path"]).exists():
        _write_minilm(job.network["path"])
    make(job)


def _write_minilm(folder: str) -> None:
    """Write a BERT of two layers as large as MiniLM's, with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=2, num_attention_heads=12, intermediate_size=1536
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)


def _srun(work: Work) -> list[str]:
    return ["srun", f"--nodes={work.processes}", f"--ntasks={work.processes}", "--ntasks-per-node=1"]


def _by_hand(work: Work) -> dict[str, float]:
    arguments = json.dumps({"work": work.as_json()})
    script = (
        'exec "$0" -m benchmarks.measuring.child benchmarks.cluster.scaling:rank "$1" "$2/$SLURM_PROCID.json"'
    )
    with tempfile.TemporaryDirectory() as answers:
        Process([*_srun(work), "sh", "-c", script, sys.executable, arguments, answers], {}).finish()
        times = json.loads(Path(answers, "0.json").read_text())
    return {"step_ms": start.step_ms(times, work)}


def rank(work: dict[str, Any]) -> list[float]:
    """Train with the loop written by hand, as one task of srun; return the times of the clock."""
    from benchmarks.stepping import by_hand

    command = ["scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]]
    hosts = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"])
    os.environ.update(MASTER_ADDR=hosts[0], MASTER_PORT=_PORT)
    return by_hand.train(work)


def _ours(work: Work, train: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.json"
        file.write_text(json.dumps(work.experiment(**train)))
        command = [*_srun(work), sys.executable, "-m", "slurm", "run", str(file)]
        hosts = f"resources.nodes={work.processes}"
        Process([*command, hosts], {"STK_EXPERIMENT_DIR": f"{name}/experiments"}).finish()
        lines = start.metrics_of(Path(name) / "experiments")
    return {"step_ms": start.step_ms([line["time"] for line in lines], work)}
