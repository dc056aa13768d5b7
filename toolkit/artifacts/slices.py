"""What entity disambiguation scores in each slice of a split: CSV in the original's columns, and JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.entities.sentences import RESERVED_SLICE
from toolkit.files import open_atomic, write_json
from toolkit.metrics.slice_score import SHARES, SliceScore
from toolkit.rundir import RunDir

#: Bootleg's columns: NC is its class for "no candidate", boot the model, pop the most popular candidate.
_COLUMNS = (
    "task", "dataset", "split", "slice", "mentions", "mentions_notNC",
    "acc_boot", "acc_boot_notNC", "acc_pop", "acc_pop_notNC",
)  # fmt: skip
_TASK = "NED"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """A slice and its counts; `final_loss` is that of all scored mentions."""

    name: str
    scores: SliceScore


def write_slices(
    run: RunDir, split: str, rows: Sequence[SliceRow], *, dataset: str, no_candidate: bool = False
) -> None:
    """Write `<split>_disambig_metrics.csv`, by the slices' names, and `<split>_slices.json`, as given.

    dataset       what the data are called by: the data file's name without its suffix
    no_candidate  whether the model had a class for mentions whose gold is none of the candidates
    """
    assert any(row.name == RESERVED_SLICE for row in rows), "the slice of all mentions is always there"
    run.artifacts.mkdir(parents=True, exist_ok=True)
    with open_atomic(run.disambig_metrics(split)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in sorted(rows, key=lambda row: row.name):
            numbers = (getattr(row.scores, name) for name in ("mentions", "mentions_not_nc", *SHARES))
            writer.writerow([_TASK, dataset, split, row.name, *numbers])
    slices = [{"name": row.name, **row.scores.to_json()} for row in rows]
    head = {"split": split, "dataset": dataset, "no_candidate": no_candidate}
    write_json(run.slices(split), {**head, "slices": slices})
