"""Run folders of entity disambiguation, as a worker writes them."""

from __future__ import annotations

from pathlib import Path

from tests.toolkit.report.report_folders import START_S, write_attempts, write_config
from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.artifacts import write_slices
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SliceScore

#: For each slice: mentions, right predictions, right most popular candidates.
SLICES = {
    "unif_all": (2000, 1500, 700),
    "unif_NS_HD": (400, 390, 380),
    "unif_NS_TL": (900, 540, 90),
    "unif_NS_TS": (0, 0, 0),
    "final_loss": (2000, 1500, 700),
}


def write_disambiguation(path: Path, *, outside: int = 0, gain: int = 0) -> RunDir:
    """Write a finished run of entity disambiguation, with scores of slices in every epoch.

    outside  number of mentions whose gold is not a candidate
    gain     number of additional right predictions
    """
    run = RunDir(path)
    write_config(run, metric="accuracy/unif_NS_TL:max", kind="entity_disambiguation")
    for step in (100, 200, 300):
        head = {"time": START_S + step, "step": step, "epoch": step / 100}
        training = {"loss": 2 / step, "accuracy": step / 400, "samples_per_s": 3.0}
        append_json_line(run.metrics, {**head, "split": "train", **training})
        of_slices = {
            f"accuracy/{name}": right / mentions * step / 300 if mentions else 0.0
            for name, (mentions, right, _) in SLICES.items()
        }
        scores = {"loss": 3 / step, "accuracy": 0.75 * step / 300, "popularity": 0.35}
        append_json_line(run.metrics, {**head, "split": "validation", **scores, **of_slices})
    write_attempts(run)
    splits = ("validation", "test")
    for split in splits:
        write_slices(run, split, _slice_scores(outside, gain), dataset="usage", no_candidate=False)
    metrics = {split: {"loss": 0.01, "accuracy": 0.75, "popularity": 0.35, **of_slices} for split in splits}
    best = {"step": 300, "metric": "accuracy/unif_NS_TL:max", "value": 0.6}
    result = {"state": "finished", "step": 300, "epoch": 3.0, "attempts": 2, "seconds": 300.5}
    write_json(run.result, {**result, "metrics": metrics, "best": best})
    return run


def _slice_scores(outside: int, gain: int) -> dict[str, SliceScore]:
    scores = {}
    for name, (mentions, right, popular) in SLICES.items():
        is_whole = name in ("unif_all", "final_loss")
        inside = mentions - outside * is_whole
        correct = right + gain * is_whole
        scores[name] = SliceScore(
            mentions=mentions,
            mentions_not_nc=inside,
            correct=correct,
            correct_not_nc=correct,
            popular=popular,
            popular_not_nc=popular,
        )
    return scores
