"""stk run"""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from slurm.commands.report import render
from slurm.commands.resume import stored_experiment
from slurm.status import status
from slurm.submit import local_processes, put_aside, refuse_if_live
from slurm.topology import how_started, scrub, world_from_step
from toolkit.attempts.ledger import read_attempts
from toolkit.config import load, run_id
from toolkit.config.schema import Experiment
from toolkit.create import create_run, experiment_dir
from toolkit.data.glance import glance
from toolkit.errors import UserError
from toolkit.failure.records import tell_failure
from toolkit.files import read_json
from toolkit.rundir import RunDir, find_run
from toolkit.world import World

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")


def run(arguments: Namespace) -> int:
    """Train in local processes, or as one rank of the launcher around us."""
    experiment, parent = _experiment_or_run(arguments)
    world = world_of_this_process(os.environ)
    if world is not None:
        return _run_as_rank(experiment, parent, world)
    return _run_here(experiment, parent, arguments)


def _experiment_or_run(arguments: Namespace) -> tuple[Experiment, Path]:
    """The experiment and where its run lies: composed from a file, or that of an existing run."""
    parent = experiment_dir()
    path = Path(arguments.config)
    if path.is_file() or (path.suffix in (".yaml", ".yml") and not path.is_dir()):
        return load(path, arguments.overrides), parent
    found = find_run(arguments.config, parent)
    if arguments.overrides:
        raise UserError(f"{found.run_id} goes on with its own config: give no {arguments.overrides[0]}")
    return stored_experiment(found), found.path.parent


def world_of_this_process(environ: Mapping[str, str]) -> World | None:
    """The world that a launcher around us describes; None where we start the processes ourselves."""
    if is_forced_local(environ):
        return None
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return World.from_environment(environ)
    return world_from_step(environ) if how_started(environ) == "rank" else None


def is_forced_local(environ: Mapping[str, str]) -> bool:
    """Whether STK_FORCE_LOCAL says so, in any usual spelling. Raises UserError for another word."""
    word = environ.get("STK_FORCE_LOCAL", "").strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise UserError(f"STK_FORCE_LOCAL is {word!r}: use one of {', '.join(_TRUE)} or {', '.join(_FALSE[1:])}")


def _run_as_rank(experiment: Experiment, parent: Path, world: World) -> int:
    # Deferred, because only a rank needs torch; the ranks of a job stop like those of `stk submit`.
    from slurm.job import run_rank

    code = run_rank(create_run(experiment, parent), world)
    # In a job this status tells the batch script that the run is not done.
    return 130 if code and "SLURM_JOB_ID" not in os.environ else code


def _run_here(experiment: Experiment, parent: Path, arguments: Namespace) -> int:
    from toolkit.launch import launch

    target = RunDir(parent / run_id(experiment))
    procs = local_processes(experiment.resources) if arguments.procs is None else arguments.procs
    _check_processes(procs, experiment)
    if target.result.exists() and not arguments.fresh:
        print(f"{target.run_id} has finished already (--fresh starts anew)", file=sys.stderr)
        return _show_result(target, arguments.json)
    existed = _make_room(target, experiment, fresh=arguments.fresh)
    create_run(experiment, parent)
    print(f"{target.run_id}: {procs} local processes, folder {target.path}", file=sys.stderr)
    if experiment.resources.nodes != 1 or experiment.resources.groups:
        print("Other hosts of resources are for `stk submit`; this is one machine.", file=sys.stderr)
    code = launch(target, procs, environ=scrub(), quiet=arguments.json)
    if code == 0:
        return _show_result(target, arguments.json)
    _explain(target, code, quiet=arguments.json)
    if code == UserError.exit_code and not existed and not _has_trained(target):
        # Nothing came of it, and what was wrong has been told.
        shutil.rmtree(target.path, ignore_errors=True)
    return code


def _has_trained(target: RunDir) -> bool:
    """Whether some start of the run came as far as its first step."""
    return any("first_step" in line for line in read_attempts(target))


def _make_room(target: RunDir, experiment: Experiment, *, fresh: bool) -> bool:
    """See that the run can start; return whether its folder is there. Raises DataError, RunBusy."""
    glance(experiment)
    if fresh and target.path.exists():
        put_aside(target)
    elif target.path.exists():
        refuse_if_live(target)
    return target.path.exists()


def _check_processes(procs: int, experiment: Experiment) -> None:
    if not 1 <= procs <= experiment.train.logical_ranks:
        raise UserError(
            f"--procs is {procs}: it must be from 1 to train.logical_ranks, {experiment.train.logical_ranks}"
        )


def _show_result(target: RunDir, as_json: bool) -> int:
    if as_json:
        (row,) = status([target])
        print(json.dumps(row.to_json(), ensure_ascii=False))
    else:
        render([target])
        print(f"report  {target.report_html}")
    return 0


def _explain(target: RunDir, code: int, *, quiet: bool) -> None:
    """After a run that did not finish: what failed, or how to go on.

    What rank 0 could not write into failure.json it has told by itself, unless quiet.
    """
    failure = read_json(target.failure)
    if code == 130:
        print(f"interrupted; `stk resume {target.run_id}` or the same command goes on", file=sys.stderr)
    elif failure is not None:
        print(tell_failure(failure), file=sys.stderr)
    elif code != UserError.exit_code or quiet:
        print(f"error: the run failed; stk logs {target.run_id}", file=sys.stderr)
