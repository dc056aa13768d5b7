"""stk doctor"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from slurm.doctor.examination import Wish, examine
from slurm.doctor.experiment import Asked
from slurm.submit import choose_cluster
from toolkit.config import load, run_id
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.rundir import RunDir


def run(arguments: Namespace) -> int:
    """Say what is found; 0 whatever that is."""
    asked = _asked(arguments)
    wish = Wish(
        asks_slurm=choose_cluster(arguments.cluster) == "slurm",
        wants_slurm=arguments.cluster != "local",
        asked=asked,
        partition=arguments.partition or "",
        on_node=arguments.on_node,
    )
    if wish.on_node and not wish.asks_slurm:
        raise UserError("--on-node asks on a host of a cluster, and no Slurm controller answers here")
    report = examine(wish, _say)
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
        return 0
    from slurm.doctor.render import show

    show(report)
    return 0


def _asked(arguments: Namespace) -> Asked | None:
    if arguments.config is None:
        return None
    experiment = load(Path(arguments.config), arguments.overrides)
    return Asked(experiment, RunDir(experiment_dir() / run_id(experiment)))


def _say(what: str) -> None:
    """What is being done, while somebody waits for it."""
    if sys.stderr.isatty():
        print(f"… {what}", file=sys.stderr, flush=True)
