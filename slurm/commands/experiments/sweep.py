"""stk sweep"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slurm.commands.common import warn
from slurm.commands.experiments import sweep_actions
from slurm.commands.experiments.submit import choose
from slurm.commands.experiments.sweep_actions import bar, tell, train
from slurm.submission.checks.early_checks import check_before_queue
from slurm.sweeps.actions import cancel, renew_code, start
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.json_output import answer
from slurm.sweeps.request import Wanted, describe, want
from slurm.sweeps.submission import SubmittedRuns
from toolkit.run.run_dir import experiment_dir
from toolkit.sweeps.command_line import split_values
from toolkit.sweeps.folder import write_record
from toolkit.sweeps.sweep import Sweep
from toolkit.system.json_text import json_text


def run(arguments: Namespace) -> int:
    """Submit the runs of a sweep, or train them here one after the other; or act on one that is there."""
    if action := sweep_actions.ACTIONS.get(arguments.config):
        return action(arguments)
    config = Path(arguments.config)
    sweep = asked(
        config,
        arguments.overrides,
        name=arguments.name,
        seed=arguments.seed,
        max_parallel=arguments.max_parallel,
        metric=arguments.metric,
        goal=arguments.goal,
        zipped=[each.split(",") for each in arguments.zip],
        seeds=split_values(f"seeds={arguments.seeds}") if arguments.seeds else (),
        random=arguments.random,
        samples=arguments.samples,
        sampler=arguments.sampler,
    )
    wanted = want(config, sweep, experiment_dir())
    runs = [one.run for one in wanted.to_start]
    cluster = choose(arguments.cluster, *runs, otherwise="training here, one run after the other")
    warn(check_candidates(wanted.to_start, cluster))
    warn(renew_code(wanted.to_start, asked=arguments.new_code, dry_run=arguments.dry_run))
    if not arguments.json:
        # rich is not free, and --json does without it.
        from slurm.sweeps.table import show

        show(wanted)
    handed, code = SubmittedRuns(), 0
    if not arguments.dry_run:
        handed, code = _carry_out(wanted, arguments, cluster)
    if arguments.json:
        print(json_text(answer(wanted, cluster, handed)))
    elif not arguments.dry_run:
        tell(wanted.folder, wanted.to_start, handed, cluster)
    return code


def asked(
    config: Path,
    overrides: Sequence[str],
    *,
    zipped: Sequence[Sequence[str]] = (),
    seeds: Sequence[str] = (),
    random: int | None = None,
    samples: int | None = None,
    sampler: str | None = None,
    **others: str | int | None,
) -> Sweep:
    """The sweep of a file, overrides and options. Raises ConfigError and UserError.

    random   runs with values drawn at random
    samples  more runs, proposed by the sampler
    others   fields of Sweep; None for what the file says
    """
    changes = {
        **others,
        "zipped": tuple(map(tuple, zipped)),
        "seeds": tuple(seeds),
        "samples": random or samples,
        "method": "random" if random else "optuna" if sampler else None,
        "sampler": sampler,
    }
    given: dict[str, Any] = {name: value for name, value in changes.items() if value not in (None, ())}
    return replace(describe(config, overrides), **given)


def check_candidates(wanted: Sequence[Candidate], cluster: str) -> list[str]:
    """Check each pair of data and training once; return a line for each warning. Raises DataError."""
    seen: set[str] = set()
    warnings: list[str] = []
    for one in wanted:
        of = one.experiment
        key = repr((of.data, of.model, of.train, of.lr_scheduler))
        if key not in seen:
            warnings += check_before_queue(of, None, cluster)
            seen.add(key)
    return warnings


def _carry_out(wanted: Wanted, arguments: Namespace, cluster: str) -> tuple[SubmittedRuns, int]:
    """Write the sweep down and start its runs; what was handed in, and the exit code."""
    handed, code = SubmittedRuns(), 0
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
