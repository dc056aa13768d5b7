"""stk status"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase

from slurm.status.filters import matches, ordered
from slurm.status.rows import status
from toolkit.run.run_dir import experiment_dir, runs_named
from toolkit.sweeps.folder import find_sweeps, read_record
from toolkit.system.garbage_collection import without_collection


def run(arguments: Namespace) -> int:
    # Garbage collection takes a tenth of the time for thousands of runs, and frees nearly nothing.
    with without_collection():
        _run(arguments)
    return 0


def _run(arguments: Namespace) -> None:
    runs = runs_named(arguments.runs)
    # By name before the others: it needs no file of a run.
    named = [run for run in runs if arguments.name is None or fnmatchcase(run.run_id, arguments.name)]
    conditions = {
        "states": arguments.state,
        "sweep": arguments.sweep,
        "members": frozenset(_members(arguments.sweep)) if arguments.sweep else (),
        "since": arguments.since,
        "is_live": arguments.live,
    }
    rows = [row for row in status(named) if matches(row, **conditions)]
    if arguments.sort != "name" or arguments.reverse:
        rows = ordered(rows, arguments.sort, is_reversed=arguments.reverse)
    if arguments.json:
        print(json.dumps([row.to_json() for row in rows]))
    elif rows:
        from slurm.status.table import show  # rich is slow to import

        show(rows)
    elif runs:
        print(f"none of {len(runs):,} runs under {experiment_dir()} matches")
    else:
        print(f"no runs under {experiment_dir()}")


def _members(pattern: str) -> Iterator[str]:
    """Yield the ids of the runs of each sweep whose name matches, also of runs submitted alone."""
    for folder in find_sweeps(experiment_dir()):
        record = read_record(folder) if fnmatchcase(folder.name, pattern) else None
        yield from (each.run_id for each in record.everyone) if record else ()
