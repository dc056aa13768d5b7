"""stk prepare"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from rich.console import Console

from slurm.topology import scrub
from toolkit import launch
from toolkit.config import load
from toolkit.config.kinds import TextTable
from toolkit.data.prepared import Prepared, prepare
from toolkit.display import Display, Live, Silent


def run(arguments: Namespace) -> int:
    """Build the prepared data of an experiment."""
    experiment = load(Path(arguments.config), arguments.overrides)
    if not isinstance(experiment.data, TextTable):
        # Tasks belong to the worker's world: a process of its own keeps torch out of this one.
        return launch.prepare(arguments.config, arguments.overrides, scrub())
    prepared = _prepare(experiment.data)
    print(json.dumps(prepared.to_json(), ensure_ascii=False) if arguments.json else prepared.summary())
    return 0


def _prepare(data: TextTable) -> Prepared:
    display = _display()
    try:
        return prepare(data, display.preparing)
    finally:
        display.stop()


def _display() -> Display:
    """A bar where somebody watches; not on standard output, which is for the answer."""
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Silent()
