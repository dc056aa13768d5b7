"""stk sweep"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slurm.commands.common import warn
from slurm.commands.experiments import sweep_actions
from slurm.commands.experiments.submit import choose
from slurm.commands.experiments.sweep_actions import print_submitted, start_runs
from slurm.status.rows import status
from slurm.submission.checks.early_checks import check_before_queue
from slurm.sweeps.actions import END_THERE, cancel, renew_code, write_down
from slurm.sweeps.array import check_equal_hosts
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.request import Wanted, describe, want
from slurm.sweeps.submission import ELSEWHERE, SubmittedRuns
from toolkit.errors import UserError
from toolkit.run.run_dir import experiment_dir
from toolkit.sweeps.command_line import split_values
from toolkit.sweeps.sweep import Sweep
from toolkit.system.output.json_text import json_text


def run(arguments: Namespace) -> int:
    """Submit the runs of a sweep, or train them here one after the other; or act on an existing sweep."""
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
    here = "sweeps train here, one run after the other"
    cluster = choose(arguments.cluster, *runs, sweep=wanted.folder, otherwise=here)
    warn([*wanted.warnings, *check_candidates(wanted.to_start, cluster)])
    warn(renew_code(wanted.known, asked=arguments.new_code, cluster=cluster, dry_run=arguments.dry_run))
    if not arguments.json:
        from slurm.status.table import console_for_tables
        from slurm.sweeps.table import preview

        console_for_tables().print(preview(wanted))
    handed = SubmittedRuns() if arguments.dry_run else _start_runs(wanted, arguments, cluster)
    if arguments.json:
        print(json_text(answer(wanted, cluster, handed)))
    elif not arguments.dry_run:
        print_submitted(wanted.folder, wanted.to_start, handed, cluster)
    return handed.code


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
    """Return the sweep of a file, overrides and options. Raises ConfigError and UserError.

    random   runs with values drawn at random
    samples  more runs, proposed by the sampler
    others   fields of Sweep; None: as in the file
    """
    if random and (samples or sampler):
        raise UserError("random does not go with sampler or samples: leave one of them out")
    changes = {
        **others,
        "zipped": tuple(map(tuple, zipped)),
        "seeds": tuple(seeds),
        "samples": random or samples,
        "method": "random" if random else "optuna" if sampler else None,
        "sampler": sampler,
    }
    given: dict[str, Any] = {
        # An array of NumPy cannot be compared with ().
        name: value
        for name, value in changes.items()
        if value is not None and not (isinstance(value, tuple) and not value)
    }
    return replace(describe(config, overrides), **given)


def check_candidates(wanted: Sequence[Candidate], cluster: str) -> list[str]:
    """Check each pair of data and training once; return a line for each warning. Raises UserError."""
    seen: set[str] = set()
    warnings: list[str] = []
    for one in wanted:
        of = one.experiment
        data, key = repr((of.task, of.data)), repr((of.task, of.data, of.model, of.train, of.lr_scheduler))
        if key not in seen:
            if cluster == "slurm":
                check_equal_hosts(of.resources)
            warnings += check_before_queue(of, None, cluster, reads_data=data not in seen)
            seen |= {data, key}
    return warnings


def _start_runs(wanted: Wanted, arguments: Namespace, cluster: str) -> SubmittedRuns:
    """Write the record of the sweep and start its runs."""
    if cluster == "local":
        write_down(wanted.folder, wanted.record, wanted.to_start)
    handed = start_runs(wanted.folder, wanted.record, wanted.to_start, wanted.live, cluster, arguments)
    if arguments.cancel_removed and not handed.code:
        cancelled = cancel(wanted.folder, wanted.removed)
        warn([*cancelled.warnings, *(f"{run_id} {END_THERE}" for run_id in cancelled.elsewhere)])
        for run_id in cancelled.runs:
            print(f"removed: {run_id} cancelled", file=sys.stderr)
    return handed


def answer(wanted: Wanted, cluster: str, handed: SubmittedRuns) -> dict[str, object]:
    """Return the document of --json: an entry for each run, and the ids of the arrays."""
    return {
        "sweep": wanted.folder.name,
        "sweep_dir": str(wanted.folder.path),
        "job_id": handed.arrays[0] if handed.arrays else None,
        "job_ids": handed.arrays,
        "cluster": cluster,
        "runs": list(_entries(wanted, cluster, handed)),
        "removed": [{"run_id": row.run_id, "state": row.state} for row in wanted.removed],
    }


def _entries(wanted: Wanted, cluster: str, handed: SubmittedRuns) -> Iterator[dict[str, object]]:
    values = {each.run_id: each.values for each in wanted.record.members}
    later = {each.run for each in handed.later}
    for one in wanted.known:
        job_id = one.now.job_id if one.now else None
        state = one.now.state if one.now else None
        if one.run in handed.jobs:
            job_id, state = handed.jobs[one.run].job_id, "pending"
        elif cluster == "local" and one.run.config.exists():
            (now,) = status([one.run])
            job_id, state = now.job_id, now.state
        skipped = one.skipped
        if not skipped and one.run in later:
            skipped = f"waits: {handed.why}"
        elif not skipped and handed.jobs and one.run not in handed.jobs:
            # Another process started the run before this one had the lock.
            skipped = ELSEWHERE
        yield {
            "run_id": one.run.run_id,
            "run_dir": str(one.run.path),
            "job_id": job_id,
            "state": state,
            "values": dict(values[one.run.run_id]),
            "change": one.change,
            "skipped": skipped or None,
        }
