"""stk sweep status, cancel, resume and report: what is done with a sweep that is there."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping

from slurm.commands.sweeping import bar, tell, train
from slurm.submit import choose_cluster
from slurm.sweeps.candidates import states
from slurm.sweeps.starting import cancel, resume, to_resume
from slurm.sweeps.submission import Handed
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.sweeps.folder import Record, SweepDir, find_sweep, find_sweeps, read_record


def _status(arguments: Namespace) -> int:
    """Show where the runs of a sweep stand."""
    from slurm.sweeps.overview import overview, show

    folder, record = _named(arguments)
    found = overview(folder, record)
    if arguments.json:
        print(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        show(found)
    return 0


def _cancel(arguments: Namespace) -> int:
    """End what waits or runs."""
    folder, record = _named(arguments)
    members = record.everyone if arguments.cancel_removed else record.members
    rows = states([folder.run(each.run_id) for each in members])
    cancelled, elsewhere = cancel(folder, list(rows.values()))
    if arguments.json:
        print(json.dumps({"sweep": folder.name, "cancelled": cancelled, "elsewhere": elsewhere}))
        return 0
    print(f"{len(cancelled)} runs cancelled" if cancelled else "no run is live: nothing to cancel")
    for run_id in elsewhere:
        print(f"{run_id} runs in a terminal or on another host: end it there")
    return 0


def _resume(arguments: Namespace) -> int:
    """Hand in what has ended unfinished, and what was not handed in yet."""
    folder, record = _named(arguments)
    runs, live = to_resume(folder, record)
    cluster, handed, code = choose_cluster(arguments.cluster), Handed(), 0
    if runs and not arguments.dry_run:
        if cluster == "local":
            code = train(runs, quiet=arguments.json)
        else:
            limits = {"max_parallel": arguments.max_parallel, "at_most": arguments.at_most}
            with bar(len(runs), quiet=arguments.json) as tick:
                handed = resume(folder, record, runs, live, **limits, tick=tick)
    if arguments.json:
        later = [one.run.run_id for one in handed.later]
        jobs = {run.run_id: job.job_id for run, job in handed.jobs.items()}
        resumed = [one.run.run_id for one in runs if one.run.run_id not in later]
        print(json.dumps({"sweep": folder.name, "resumed": resumed, "jobs": jobs, "later": later}))
    elif arguments.dry_run:
        for one in runs:
            print(f"{one.run.run_id}  {one.now.state if one.now else 'not handed in yet'}")
    else:
        tell(folder, runs, handed, cluster)
    return code


def _report(arguments: Namespace) -> int:
    """Write the report of a sweep, and show its table."""
    from slurm.sweeps.overview import overview
    from toolkit.sweeps.report import write_report
    from toolkit.sweeps.results import read_results, to_json
    from toolkit.sweeps.tables import render

    folder, record = _named(arguments)
    found = overview(folder, record)
    results = read_results(folder, record, found.states, metric=arguments.metric, goal=arguments.goal)
    page = write_report(folder, results)
    if arguments.json:
        print(json.dumps(to_json(results), ensure_ascii=False))
    else:
        render(results)
        print(f"report  {page}")
    return 0


#: What each word does.
ACTIONS: Mapping[str, Callable[[Namespace], int]] = {
    "status": _status,
    "cancel": _cancel,
    "resume": _resume,
    "report": _report,
}


def _named(arguments: Namespace) -> tuple[SweepDir, Record]:
    """The sweep that the command names; the only one, where it names none. Raises UserError."""
    parent, names = experiment_dir(), arguments.overrides
    if len(names) > 1:
        raise UserError(f"one sweep at a time: found {', '.join(names)}")
    there = sorted(each.name for each in find_sweeps(parent))
    if not names and len(there) != 1:
        raise UserError(f"which sweep? Under {parent} there are: {', '.join(there) or 'none'}")
    folder = find_sweep(names[0] if names else there[0], parent)
    record = read_record(folder)
    if record is None:
        raise UserError(f"{folder.path} holds no sweep")
    if not names:
        print(f"sweep {folder.name}", file=sys.stderr)
    return folder, record
