"""stk report"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from toolkit.create import experiment_dir
from toolkit.rundir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """Write reports and show their tables."""
    from toolkit.report import summarize, to_json, write_comparison, write_report

    parent = experiment_dir()
    runs = [find_run(name, parent) for name in arguments.runs]
    pages = [write_report(each) for each in runs]
    if len(runs) > 1 and arguments.output:
        pages = [write_comparison(runs, Path(arguments.output))]
    if arguments.json:
        print(json.dumps([to_json(summarize(each)) for each in runs], ensure_ascii=False))
    else:
        render(runs)
        for page in pages:
            print(f"report  {page}")
    return 0


def render(runs: list[RunDir]) -> None:
    """Print the tables of runs."""
    from rich.console import Console

    from toolkit.report import render, summarize

    render([summarize(each) for each in runs], Console())
