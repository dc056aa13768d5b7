"""stk prepare"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from slurm.topology import scrub
from toolkit.config import load
from toolkit.launch import prepare


def run(arguments: Namespace) -> int:
    """Build the prepared data of an experiment."""
    # Checked here, so that a fault is told in the same words as everywhere.
    load(Path(arguments.config), arguments.overrides)
    # Tasks belong to the worker's world: a process of its own keeps torch out of this one.
    return prepare(arguments.config, arguments.overrides, scrub())
