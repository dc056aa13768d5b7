"""Write the scores of each slice of a split: CSV with Bootleg's columns, and JSON."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from toolkit.files import open_atomic, write_json
from toolkit.run.run_dir import RunDir
from toolkit.system.output.csv_cells import harmless
from toolkit.workloads.entity_disambiguation.config import WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SHARES, SliceScore

#: Bootleg's columns: NC is the class for "no candidate", boot the model, pop the most popular candidate.
_COLUMNS = (
    "task", "dataset", "split", "slice", "mentions", "mentions_notNC",
    "acc_boot", "acc_boot_notNC", "acc_pop", "acc_pop_notNC",
)  # fmt: skip
_TASK = "NED"


def write_slices(
    run: RunDir, split: str, scores: Mapping[str, SliceScore], *, dataset: str, no_candidate: bool = False
) -> None:
    """Write `<split>_disambig_metrics.csv`, sorted by slice, and `<split>_slices.json`, in the given order.

    dataset       the data file's name without its suffix
    no_candidate  whether the model has a class for mentions with a gold that is not a candidate
    """
    assert WHOLE_SLICE in scores, "the slice of all mentions always exists"
    run.artifacts.mkdir(parents=True, exist_ok=True)
    with open_atomic(DisambiguationFiles(run).disambig_metrics(split)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for name, of in sorted(scores.items()):
            numbers = (getattr(of, column) for column in ("mentions", "mentions_not_nc", *SHARES))
            writer.writerow(harmless([_TASK, dataset, split, name, *numbers]))
    slices = [{"name": name, **of.to_json()} for name, of in scores.items()]
    head = {"split": split, "dataset": dataset, "no_candidate": no_candidate}
    write_json(DisambiguationFiles(run).slices(split), {**head, "slices": slices})
