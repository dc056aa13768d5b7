"""Print results/results.json as a Markdown table, ordered by fault: `python benchmarks/peers/table.py`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faults import FAULTS

_HEAD = "| what happens | with | and then | steps done twice | seconds to the first new step | same weights |"
_RULE = "|---|---|---|--:|--:|---|"
_ORDER = ("submitit", "lightning", "hf", "hf-jit", "stk")
_UNDISTURBED = ("none", "none_again")
_RESULTS = Path(__file__).with_name("results") / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=_RESULTS)
    runs: list[dict[str, Any]] = json.loads(parser.parse_args().file.read_text())["runs"]
    print(_HEAD, _RULE, *_rows(runs), sep="\n")


def _rows(runs: list[dict[str, Any]]) -> Iterator[str]:
    undisturbed = {run["tool"]: run.get("sha256") for run in runs if run["fault"] == "none"}
    for fault in FAULTS:
        if fault.name in _UNDISTURBED:
            continue
        title = fault.title
        for run in sorted((run for run in runs if run["fault"] == fault.name), key=_place):
            cells = [title, run["label"], *_cells(run, undisturbed.get(run["tool"]))]
            yield f"| {' | '.join(cells)} |"
            title = ""


def _place(run: dict[str, Any]) -> int:
    return _ORDER.index(run["tool"])


def _cells(run: dict[str, Any], undisturbed: str | None) -> list[str]:
    """Return the outcome of the run, the repeated steps, the pause, and whether the weights are right."""
    if "driver_error" in run:
        return [f"not measured: {run['driver_error']}", "", "", ""]
    same = run["finished"] and run["sha256"] == undisturbed
    standstill = f"{run['seconds_without_new_step']:.0f}" if run["came_back_by_itself"] else "—"
    return [_and_then(run), str(run["lost_steps"]), standstill, "yes" if same else "**no**"]


def _and_then(run: dict[str, Any]) -> str:
    if run["came_back_by_itself"]:
        return "comes back" if run["starts"] <= 2 else f"comes back, {run['starts']} starts in all"
    stays = "hangs" if run["states"][0] == "hangs" else f"stays away ({run['states'][0]})"
    if not run["finished"]:
        return f"{stays}; did not finish after: {', '.join(run['by_hand'])}"
    return f"{stays}; by hand: {', '.join(run['by_hand'])}"


if __name__ == "__main__":
    main()
