"""The first step at which two runs differ in samples or loss, and possible causes. No torch."""

from __future__ import annotations

import filecmp
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, repeat
from pathlib import Path
from typing import Any

from toolkit.checkpoint.paths import newest_manifest
from toolkit.config.composition.compose import file_faults, read_mapping
from toolkit.config.serialize import flat, with_added_keys
from toolkit.errors import UserError
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.kept_code.edited_code import new_code_of
from toolkit.run.records.step_records import StepRecord, read_saves, read_step_records
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """The first step at which two runs differ: in `samples`, or in `loss` alone."""

    step: int
    what: str
    samples: tuple[str, str]
    loss: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A comparison of two runs; each pair has the value of the first run first.

    runs        ids
    steps       newest recorded step of each run
    compared    number of steps that both runs have recorded
    first       the first step that differs, None if all are equal
    saves       number of steps at which both saved
    weights     the first of these steps with different weights, None if all are equal
    config      dotted keys with different values, with the values; None for a key that one run lacks
    code        files of the code snapshots that differ: changed, or only in one
    new_code    edited files that each run took later, and from which step on
    data        fingerprints of the data, empty if no checkpoint has them
    torch       versions of torch
    trained_on  devices of the attempts
    quarantine  samples that are left out
    """

    runs: tuple[str, str]
    steps: tuple[int, int]
    compared: int
    first: FirstStep | None
    saves: int
    weights: int | None
    config: Mapping[str, tuple[Any, Any]]
    code: Mapping[str, Sequence[str]]
    new_code: tuple[Sequence[str], Sequence[str]]
    data: tuple[str, str]
    torch: tuple[str, str]
    trained_on: tuple[Sequence[str], Sequence[str]]
    quarantine: tuple[Sequence[int], Sequence[int]]

    @property
    def is_equal(self) -> bool:
        """Whether the runs are equal at all common steps and saves."""
        return self.first is None and self.weights is None


def compare(one: RunDir, other: RunDir) -> Difference:
    """Compare two runs. Raises UserError if one has no step records, or they have no step in common."""
    for run in (one, other):
        if next(read_step_records(run), None) is None:
            raise UserError(
                f"{run.run_id} has no step records ({run.step_records}): there is nothing to compare"
            )
    steps, compared, first = _walk(one, other)
    if compared == 0:
        raise UserError(f"{one.run_id} and {other.run_id} have no step in common")
    saves, weights = _compare_saves(one, other)
    manifests = (newest_manifest(one), newest_manifest(other))
    return Difference(
        runs=(one.run_id, other.run_id),
        steps=steps,
        compared=compared,
        first=first,
        saves=saves,
        weights=weights,
        config=_compare_config(one, other),
        code=_compare_code(one.code, other.code),
        new_code=(new_code_of(one), new_code_of(other)),
        data=(manifests[0].get("data", ""), manifests[1].get("data", "")),
        torch=(manifests[0].get("torch", ""), manifests[1].get("torch", "")),
        trained_on=(trained_on(one), trained_on(other)),
        quarantine=(_left_out(one), _left_out(other)),
    )


def trained_on(run: RunDir) -> list[str]:
    """Return the devices of a run's attempts, such as `2 processes on cpu`, each once."""
    named = (
        f"{each.world_size} {'process' if each.world_size == 1 else 'processes'} on {each.device}"
        for each in read_attempts(run)
        if each.world_size is not None and each.device is not None
    )
    return list(dict.fromkeys(named))


def _walk(one: RunDir, other: RunDir) -> tuple[tuple[int, int], int, FirstStep | None]:
    """The last steps of two runs, the number of steps that both have, and the first of these that differs.

    Keeps one record of each in memory.
    """
    sides = (zip(repeat(side), read_step_records(run), strict=False) for side, run in ((0, one), (1, other)))
    last, compared, first = [0, 0], 0, None
    for step, group in groupby(merge(*sides, key=_step), key=_step):
        records = dict(group)
        for side in records:
            last[side] = step
        if len(records) == 2:
            compared += 1
            a, b = records[0], records[1]
            if first is None and a != b:
                what = "loss" if a.samples == b.samples else "samples"
                samples, loss = (a.samples, b.samples), (a.loss, b.loss)
                first = FirstStep(step=step, what=what, samples=samples, loss=loss)
    return (last[0], last[1]), compared, first


def _step(noted: tuple[int, StepRecord]) -> int:
    return noted[1].step


def _compare_saves(one: RunDir, other: RunDir) -> tuple[int, int | None]:
    """Return the number of saves that two runs share, and the first one whose weights differ."""
    theirs = {save.step: save.weights for save in read_saves(other)}
    common = sorted((save.step, save.weights) for save in read_saves(one) if save.step in theirs)
    return len(common), next((step for step, weights in common if weights != theirs[step]), None)


def _compare_config(one: RunDir, other: RunDir) -> dict[str, tuple[Any, Any]]:
    stored = (read_mapping(run.config, file_faults(run.config)) for run in (one, other))
    a, b = (flat(with_added_keys(each)) for each in stored)
    pairs = {key: (a.get(key), b.get(key)) for key in a | b}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _compare_code(one: Path, other: Path) -> dict[str, list[str]]:
    a, b = _files(one), _files(other)
    changed = [name for name in a & b if not filecmp.cmp(one / name, other / name, shallow=False)]
    return {"changed": sorted(changed), "only_first": sorted(a - b), "only_second": sorted(b - a)}


def _files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix() for path in found}


def _left_out(run: RunDir) -> list[int]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return sorted(each["id"] for each in (read_json(run.quarantine) or {})["samples"])
    return []
