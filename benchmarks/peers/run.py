"""Run the same training with the same faults under several tools on a Slurm test cluster; write figures.

    export SLURM_CONF=...            # ./scripts/cluster up prints it
    python benchmarks/peers/run.py --peers-python VENV/bin/python --runs FOLDER

Each result is written to results/results.json at once; results in it are not measured again without --again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from cluster import command
from faults import FAULTS, Fault
from jobs.settings import RANKS, SAVE_EVERY, STEPS, STRIKE_AT
from story import Hangs, Story
from tools.peers import HuggingFace, HuggingFaceJit, Lightning, Submitit
from tools.stk import Stk
from tools.tool import Submission, Tool

HERE = Path(__file__).resolve().parent
PEERS = {tool.name: tool for tool in (Submitit, Lightning, HuggingFace, HuggingFaceJit)}


def main() -> int:
    arguments = _parse()
    if not os.environ.get("SLURM_CONF"):
        print("error: SLURM_CONF is not set; `./scripts/cluster up` prints it", file=sys.stderr)
        return 1
    results = Results(arguments.results)
    tools = [_tool(name, arguments) for name in arguments.tools]
    for fault in FAULTS:
        if fault.name in arguments.faults:
            _measure_all(tools, fault, arguments, results)
    return 0


def _parse() -> argparse.Namespace:
    every_fault = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tools", nargs="+", choices=[*PEERS, Stk.name], default=list(PEERS), metavar="TOOL")
    parser.add_argument("--faults", nargs="+", choices=every_fault, default=every_fault, metavar="FAULT")
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs, shared by all hosts")
    parser.add_argument("--peers-python", default=sys.executable, help="has requirements.txt installed")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--again", action="store_true", help="measure results again that are already there")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "results.json")
    return parser.parse_args()


def _tool(name: str, arguments: argparse.Namespace) -> Tool:
    return Stk() if name == Stk.name else PEERS[name](arguments.peers_python)


class Results:
    """The file results/results.json: the figures of each tool and fault."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"runs": []}

    def has(self, tool: Tool, fault: Fault) -> bool:
        return any((run["tool"], run["fault"]) == (tool.name, fault.name) for run in self._content["runs"])

    def add(self, tool: Tool, fault: Fault, figures: dict[str, Any]) -> None:
        """Add or replace the figures of one run, and write the file."""
        head = {"tool": tool.name, "label": tool.label, "fault": fault.name, "title": fault.title}
        with self._lock:
            others = [
                run for run in self._content["runs"] if (run["tool"], run["fault"]) != (tool.name, fault.name)
            ]
            self._content = {"setting": _setting(), "runs": [*others, {**head, **figures}]}
            self._file.write_text(json.dumps(self._content, indent=1, ensure_ascii=False) + "\n")


def _setting() -> dict[str, Any]:
    return {
        "slurm": command("scontrol", "--version"),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "ranks": RANKS,
        "steps": STEPS,
        "save_every": SAVE_EVERY,
        "strike_at": STRIKE_AT,
    }


def _measure_all(
    tools: Iterable[Tool], fault: Fault, arguments: argparse.Namespace, results: Results
) -> None:
    due = [tool for tool in tools if arguments.again or not results.has(tool, fault)]
    if not due:
        return
    with fault.around(), ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(partial(_measure, fault=fault, runs=arguments.runs, results=results), due))


def _measure(tool: Tool, fault: Fault, runs: Path, results: Results) -> None:
    """Measure one tool with one fault; a failure of the driver becomes the figure `driver_error`."""
    began = time.time()
    folder = runs.resolve() / tool.name / fault.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        figures = _figures_of(tool, fault, folder)
    except (Hangs, RuntimeError, OSError, LookupError, ValueError) as error:
        figures = {"driver_error": f"{type(error).__name__}: {error}"}
    figures.update(load_average=os.getloadavg()[1], took_s=round(time.time() - began))
    results.add(tool, fault, figures)
    print(time.strftime("%H:%M:%S"), tool.name, fault.name, json.dumps(figures), flush=True)


def _figures_of(tool: Tool, fault: Fault, folder: Path) -> dict[str, Any]:
    submission = Submission(
        folder=folder, partition=fault.partition, minutes=fault.minutes, step_ms=fault.step_ms
    )
    story = Story(tool, submission)
    story.submit()
    if fault.strike:
        fault.strike(story)
    story.follow()
    story.help()
    return story.figures()


if __name__ == "__main__":
    sys.exit(main())
