"""Several runs for programs: JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolkit.report import facts
from toolkit.report.comparison.groups import Group, groups
from toolkit.report.comparison.reading import Compared
from toolkit.report.values import config_differences, score_names
from toolkit.report.values import to_json as run_to_json


def to_json(compared: Compared) -> dict[str, Any]:
    """Return runs, settings with means over their seeds, and what differs, as plain JSON values."""
    split = facts.compared_split(compared.runs)
    ids = [run.run_id for run in compared.runs]
    differences = config_differences(compared.runs)
    return {
        "split": split,
        "runs": [run_to_json(run) for run in compared.runs],
        "groups": [_group(group, split) for group in groups(compared.runs)],
        "differences": {key: dict(zip(ids, values, strict=True)) for key, values in differences.items()},
        "unreadable": compared.unreadable,
    }


def _group(group: Group, split: str) -> dict[str, Any]:
    spreads = {name: group.spread(split, name) for name in score_names(group.runs)}
    return {
        "setting": group.label,
        "runs": [run.run_id for run in group.runs],
        "finished": [run.run_id for run in group.finished],
        "seeds": list(group.seeds),
        "scores": {name: asdict(each) for name, each in spreads.items() if each is not None},
    }
