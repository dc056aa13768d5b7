"""stk status"""

from __future__ import annotations

import json
from argparse import Namespace

from slurm.status.filters import Choice, ordered
from slurm.status.rows import status
from toolkit.run.run_dir import experiment_dir, runs_named


def run(arguments: Namespace) -> int:
    """Show the states of runs."""
    choice = Choice(
        states=arguments.state,
        name=arguments.name,
        sweep=arguments.sweep,
        since=arguments.since,
        is_live=arguments.live,
    )
    runs = runs_named(arguments.runs)
    rows = choice.of_rows(status(choice.of_runs(runs)))
    if arguments.sort != "name" or arguments.reverse:
        rows = ordered(rows, arguments.sort, is_reversed=arguments.reverse)
    if arguments.json:
        print(json.dumps([row.to_json() for row in rows]))
    elif rows:
        from slurm.status.layout import show  # rich is slow to import

        show(rows)
    elif runs:
        print(f"none of {len(runs):,} runs under {experiment_dir()} matches")
    else:
        print(f"no runs under {experiment_dir()}")
    return 0
