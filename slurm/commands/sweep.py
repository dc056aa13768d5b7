"""stk sweep"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slurm.commands import sweep_actions
from slurm.commands.submit import refuse_what_slurm_may_have
from slurm.commands.sweeping import bar, tell, train
from slurm.submit import choose_cluster
from slurm.sweeps.answer import answer
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.starting import cancel, start
from slurm.sweeps.submission import Handed
from slurm.sweeps.wanted import Wanted, describe, want
from toolkit.create import experiment_dir
from toolkit.data.glance import glance
from toolkit.sweeps.command_line import split_values
from toolkit.sweeps.folder import write_record
from toolkit.sweeps.sweep import Sweep


def run(arguments: Namespace) -> int:
    """Submit the runs of a sweep, or train them here one after the other; or act on one that is there."""
    if action := sweep_actions.ACTIONS.get(arguments.config):
        return action(arguments)
    config = Path(arguments.config)
    wanted = want(config, _asked(arguments, config), experiment_dir())
    _glance(wanted.to_start)
    cluster = _choose(arguments.cluster, wanted.to_start)
    if not arguments.json:
        # rich is not free, and --json does without it.
        from slurm.sweeps.table import show

        show(wanted)
    handed, code = Handed(), 0
    if not arguments.dry_run:
        handed, code = _carry_out(wanted, arguments, cluster)
    if arguments.json:
        print(json.dumps(answer(wanted, cluster, handed), ensure_ascii=False))
    elif not arguments.dry_run:
        tell(wanted.folder, wanted.to_start, handed, cluster)
    return code


def _asked(arguments: Namespace, config: Path) -> Sweep:
    """The sweep of the file and the command line."""
    changes = {
        "name": arguments.name,
        "seed": arguments.seed,
        "max_parallel": arguments.max_parallel,
        "metric": arguments.metric,
        "goal": arguments.goal,
        "zipped": tuple(tuple(each.split(",")) for each in arguments.zip),
        "seeds": tuple(split_values(f"seeds={arguments.seeds}")) if arguments.seeds else (),
        "samples": arguments.random or arguments.samples,
        "method": "random" if arguments.random else "optuna" if arguments.sampler else None,
        "sampler": arguments.sampler,
    }
    given = {name: value for name, value in changes.items() if value not in (None, ())}
    return replace(describe(config, arguments.overrides), **given)


def _glance(wanted: Sequence[Candidate]) -> None:
    """Look at the data files of each kind of data section once. Raises DataError."""
    seen = set()
    for one in wanted:
        key = repr((one.experiment.data, one.experiment.model))
        if key not in seen:
            glance(one.experiment)
            seen.add(key)


def _choose(wanted: str, runs: Sequence[Candidate]) -> str:
    """slurm or local; says so where auto falls back to local processes."""
    cluster = choose_cluster(wanted)
    if wanted == "auto" and cluster == "local":
        for one in runs:
            refuse_what_slurm_may_have(one.run)
        print("No Slurm controller answers here: training here, one run after the other.", file=sys.stderr)
    return cluster


def _carry_out(wanted: Wanted, arguments: Namespace, cluster: str) -> tuple[Handed, int]:
    """Write the sweep down and start its runs; what was handed in, and the exit code."""
    handed, code = Handed(), 0
    if cluster == "local":
        write_record(wanted.folder, wanted.record)
        code = train(wanted.to_start, quiet=arguments.json)
    else:
        with bar(len(wanted.to_start), quiet=arguments.json) as tick:
            handed = start(wanted, max_parallel=arguments.max_parallel, at_most=arguments.at_most, tick=tick)
    if arguments.cancel_removed:
        cancelled, _ = cancel(wanted.folder, wanted.removed)
        for run_id in cancelled:
            print(f"removed: {run_id} cancelled", file=sys.stderr)
    return handed, code
