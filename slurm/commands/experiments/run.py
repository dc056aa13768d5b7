"""stk run"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from slurm.client.topology import is_rank, step_nonce, world_from_step
from slurm.commands.common import warn
from slurm.commands.experiments.local_world import (
    check_world_size,
    machines_here,
    rank_environ,
    refuse_by_hand,
    told_idle,
)
from slurm.commands.results.report import render
from slurm.config.rank_count import earlier_processes, local_processes, told_fewer
from slurm.status.rows import status
from slurm.status.run_state import since
from slurm.status.submissions import exclusively
from slurm.submission.submit import begin_anew, refuse_if_live, resolve_if_possible, take_back
from toolkit.config import load
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy, SchedulerError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import is_still, read_json
from toolkit.launch.machines.coordination import Nodes, Participant, meet_nodes
from toolkit.launch.machines.layout import Machines
from toolkit.precheck.changes import change_warnings, data_warnings
from toolkit.precheck.check_inputs import check_inputs
from toolkit.precheck.last_run import other_run_by_code
from toolkit.precheck.violation_messages import violation_lines
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.attempts.records import read_attempts
from toolkit.run.attempts.refusal import write_refusal
from toolkit.run.create_run import fill_run, run_of, stored_experiment
from toolkit.run.failure.classes import INPUT
from toolkit.run.failure.exit_status import exit_status
from toolkit.run.failure.format import format_failure
from toolkit.run.folder_trust import refuse_colon
from toolkit.run.kept_code.edited_code import begins_anew, edit_warnings, is_found, take_new_code
from toolkit.run.new_settings import take_new_settings
from toolkit.run.run_dir import RunDir, find_run
from toolkit.system.output.json_text import json_text
from toolkit.system.world import World

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")


def run(arguments: Namespace) -> int:
    """Train in local processes, or as one rank of the launcher that started this process."""
    experiment, target, earlier = _experiment_or_run(arguments)
    try:
        world = world_of_this_process(os.environ)
    except SchedulerError as error:
        # The other tasks of the step train the same run, and would wait for this one.
        fill_run(target, experiment)
        write_refusal(target, step_nonce(os.environ), str(error))
        raise
    if world is not None:
        refuse_by_hand(arguments)
        check_world_size(world.size, arguments, os.environ, experiment.resources)
        _warn_about_changes(experiment, target, world, arguments)
        return _run_as_rank(experiment, target, world)
    # Nothing has to be saved yet, and waiting for other machines may take long.
    interrupt_on_request()
    machines = machines_here(arguments, experiment, os.environ, earlier)
    environ = rank_environ(machines, arguments, experiment)
    return _run_here(experiment, target, arguments, machines, environ)


def _experiment_or_run(arguments: Namespace) -> tuple[Experiment, RunDir, int | None]:
    """Return the experiment, from a file or an existing run, and its run, which may not exist yet.

    Also the number of processes with which an existing run continues, if it was local.
    """
    path = Path(arguments.config)
    if path.is_file() or (path.suffix in (".yaml", ".yml") and not path.is_dir()):
        experiment = load(path, arguments.overrides)
        return experiment, run_of(experiment), None
    found = find_run(arguments.config, hint="give an experiment file, a run, or -- and a command")
    if arguments.overrides:
        raise UserError(f"{found.run_id} continues with its own config: leave out {arguments.overrides[0]}")
    experiment = stored_experiment(found)
    # The run may continue with another number of processes.
    resources = replace(experiment.resources, world_size=None)
    earlier = None if arguments.fresh else earlier_processes(found, experiment, os.environ)
    return replace(experiment, resources=resources), found, earlier


def world_of_this_process(environ: Mapping[str, str]) -> World | None:
    """Return the world that a launcher has set up; None if this process must start the ranks itself."""
    if is_forced_local(environ):
        return None
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return World.from_environment(environ)
    return world_from_step(environ) if is_rank(environ) else None


def is_forced_local(environ: Mapping[str, str]) -> bool:
    """Whether STK_FORCE_LOCAL has one of the usual words for true. Raises UserError for an unknown word."""
    word = environ.get("STK_FORCE_LOCAL", "").strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise UserError(f"STK_FORCE_LOCAL is {word!r}: use one of {', '.join(_TRUE)} or {', '.join(_FALSE[1:])}")


def _run_as_rank(experiment: Experiment, target: RunDir, world: World) -> int:
    # Imported here, because only a rank needs torch. Ranks of a job stop like those of `stk submit`.
    from slurm.job.stop_signals import JobStop
    from slurm.job.task import run_rank

    # Before the folder is made: a stop signal during that must not count as a crash.
    stop = JobStop(is_watched="SLURM_JOB_ID" in os.environ).install()
    fill_run(target, experiment)
    code = exit_status(lambda: run_rank(target, world, stop), target.path)
    # In a job, the batch script needs the original status to see that the run has not finished.
    has_left = code == ExitCode.YIELDED and "SLURM_JOB_ID" not in os.environ
    return ExitCode.INTERRUPTED if has_left else code


def _warn_about_changes(experiment: Experiment, target: RunDir, world: World, arguments: Namespace) -> None:
    if option := "--new-code" if arguments.new_code else "--fresh" if arguments.fresh else "":
        raise UserError(
            f"{option}: another program has started this process as a rank, and ranks cannot replace the "
            "code or the folder of their run. Give it to `stk submit`, or to `stk run` outside of it"
        )
    # Every rank checks and refuses: otherwise the others would wait for rank 0.
    changes = data_warnings(target, experiment)
    if world.rank == 0:
        # Others may have started ranks already, which read the settings of the run.
        edits = edit_warnings(target, experiment, new_code=False, takes_settings=False)
        warn([*edits, *changes, *_several_ranks(world.size, experiment)])


def _several_ranks(size: int, experiment: Experiment) -> list[str]:
    return violation_lines(experiment.warnings_of_several_ranks, None) if size > 1 else []


def _run_here(
    experiment: Experiment,
    target: RunDir,
    arguments: Namespace,
    machines: Machines,
    environ: Mapping[str, str],
) -> int:
    # Several machines may share the folder: only the first one checks it, or sets it aside.
    if machines.node == 0 and target.result.exists() and not arguments.fresh:
        warn(change_warnings(target, experiment, new_code=False))
        print(f"{target.run_id} has finished already (--fresh starts anew)", file=sys.stderr)
        return _show_result(target, arguments.json)
    # Before a folder is made or set aside.
    refuse_colon(target.path)
    old = None
    if machines.node == 0:
        old = _check_or_archive(target, experiment, arguments)
        warn(_several_ranks(machines.size, experiment))
    if len(machines.counts) > 1:
        return _run_together(experiment, target, arguments, machines, environ)
    is_new = fill_run(target, experiment) or old is not None
    made = target.path.stat()
    procs = machines.count
    resources = experiment.resources
    is_usual = procs == local_processes(experiment, os.environ)
    why = told_fewer(procs, resources) if is_usual and arguments.procs is None else ""
    shown = f"{procs} local process{'' if procs == 1 else 'es'}" + (f" ({why})" if why else "")
    print(f"{target.run_id}: {shown}, folder {target.path}", file=sys.stderr)
    if resources.nodes != 1 or resources.groups or len(resources.hosts) > 1:
        print("This machine trains alone; `stk submit` uses all hosts of resources.", file=sys.stderr)
    if not is_forced_local(os.environ) and (idle := told_idle(os.environ)):
        warn([idle])
    code = _launch(target, environ, arguments, Nodes(machines))
    if code == ExitCode.WRONG_INPUT and is_new:
        take_away(target, made, old)
    return code


def take_away(target: RunDir, made: os.stat_result, old: Path | None = None) -> None:
    """Remove the new folder of a run that has done nothing, unless another process has used or submitted it.

    made  what `stat` has returned of the new folder
    old   the folder to bring back, which `--fresh` has set aside
    """
    from filelock import FileLock, Timeout  # slow to import

    if not is_still(target.path, made):
        # A lock would make the folder again.
        return
    with (
        suppress(Timeout, RunBusy, OSError),
        ExitStack() as afterwards,
        exclusively(target),
        FileLock(target.alive, timeout=0),
    ):
        # An attempt that ended in another way is of another command.
        is_refused = all(each.why == INPUT for each in read_attempts(target))
        is_used = has_worked(target) or target.submissions.exists() or target.intent.exists()
        if is_refused and not is_used and is_still(target.path, made):
            take_back(target, old, afterwards)


def _run_together(
    experiment: Experiment,
    target: RunDir,
    arguments: Namespace,
    machines: Machines,
    environ: Mapping[str, str],
) -> int:
    """Train with other machines, on which a user has started the same command with the same experiment."""
    print(
        f"{target.run_id}: {machines.describe(machines.node)} of {len(machines.counts)} machines, "
        f"{machines.size} processes in all; meeting at {machines.master_addr or 'this machine'} port "
        f"{machines.master_port}",
        file=sys.stderr,
    )
    with meet_nodes(machines, target, experiment.train.rendezvous_timeout_s) as nodes:
        # After the rendezvous: it may fail, and machine 0 may have set an earlier folder aside.
        fill_run(target, experiment)
        # Without a shared folder each machine has its own config, and all must have the same settings.
        take_new_settings(target, experiment)
        print(f"all machines joined; folder {target.path}", file=sys.stderr)
        return _launch(target, environ, arguments, nodes)


def _launch(target: RunDir, environ: Mapping[str, str], arguments: Namespace, nodes: Nodes) -> int:
    """Train, and show the result."""
    from toolkit.launch.launcher import launch

    code = launch(target, environ, nodes, quiet=arguments.json)
    if code:
        explain(target, code, quiet=arguments.json)
        has_run = code != ExitCode.WRONG_INPUT or has_worked(target)
        if arguments.json and has_run and not isinstance(nodes, Participant):
            _show_result(target, as_json=True)
    elif isinstance(nodes, Participant) and not target.result.exists():
        print(f"finished; the results are in the folder of node 0, on {nodes.leader}", file=sys.stderr)
    else:
        _show_result(target, arguments.json)
    return code


def has_worked(target: RunDir) -> bool:
    """Whether any attempt of the run may have made a step, saved, or wrote into its work folder."""
    attempts = read_attempts(target)
    # A program that has logged step 0 only has first and last step 0.
    may_have_stepped = any(
        each.first_step is not None and (each.last_step != each.first_step or each.first_step_s is not None)
        for each in attempts
    )
    return may_have_stepped or any(each.saved or each.wrote for each in attempts) or not begins_anew(target)


def _check_or_archive(target: RunDir, experiment: Experiment, arguments: Namespace) -> Path | None:
    """Check that the run can start; return where `--fresh` has set the old run aside, else None.

    Raises DataError, RunBusy.
    """
    is_kept = target.code.exists() and not (arguments.fresh or arguments.new_code)
    check_inputs(experiment, has_code=is_kept and not is_found(experiment))
    if arguments.fresh and target.path.exists():
        with ExitStack() as locked:
            return begin_anew(experiment, target, locked)
    if target.path.exists():
        with exclusively(target):
            resolve_if_possible(target)
        refuse_if_live(target, experiment)
        warn(change_warnings(target, experiment, new_code=arguments.new_code))
        with exclusively(target):
            # Another command may have started it since.
            refuse_if_live(target, experiment)
            take_new_code(target, experiment, asked=arguments.new_code)
            take_new_settings(target, experiment)
    else:
        warn(other_run_by_code(target, experiment))
    return None


def _show_result(target: RunDir, as_json: bool) -> int:
    if as_json:
        (row,) = status([target])
        print(json_text(row.to_json()))
    else:
        render(target)
        # A failure of the report does not fail the run.
        if target.report_html.exists():
            print(f"report  {target.report_html}")
        else:
            hint = f"`stk report {target.run_id}` writes it, or says why it cannot"
            print(f"there is no {target.report_html}; {hint}", file=sys.stderr)
    return 0


def explain(target: RunDir, code: int, *, quiet: bool) -> None:
    """Print why a run did not finish, or how to continue it.

    Rank 0 has already printed an error that it could not write to failure.json, unless quiet.
    """
    failure = read_json(target.failure)
    if code == ExitCode.INTERRUPTED:
        lost = "".join(since(target, end) for end in read_attempts(target)[-1:])
        how = f"`stk resume {target.run_id}` or the same command continues it{lost}"
        print(f"interrupted; {how}", file=sys.stderr)
    elif failure is not None:
        print(format_failure(failure), file=sys.stderr)
    elif code != ExitCode.WRONG_INPUT or quiet:
        print(f"error: the run failed; stk logs {target.run_id}", file=sys.stderr)
