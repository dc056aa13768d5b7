"""Read the runs of a comparison: an unreadable one is named, and the others are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolkit.errors import StkError
from toolkit.report.comparison.groups import Group, groups
from toolkit.report.formats import clean
from toolkit.report.model import RunSummary, config_differences, score_names
from toolkit.report.model import to_json as run_to_json
from toolkit.report.run import text
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Several runs.

    runs        the readable runs, in the given order
    unreadable  error messages of the other runs, by run id
    """

    runs: tuple[RunSummary, ...]
    unreadable: dict[str, str]


def compare(folders: Sequence[RunDir]) -> Compared:
    """Read the folders of several runs. Raises nothing for a damaged one."""
    runs, unreadable = [], {}
    for folder in folders:
        try:
            runs.append(summarize(folder))
        except (StkError, OSError) as error:
            unreadable[clean(folder.run_id)] = clean(str(error) or type(error).__name__)
    return Compared(runs=tuple(runs), unreadable=unreadable)


def to_json(compared: Compared) -> dict[str, Any]:
    """Return runs, settings with means over their seeds, and differences, as plain JSON values."""
    split = text.compared_split(compared.runs)
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
