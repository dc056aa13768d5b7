"""`stk.submit` and `stk.run`: an experiment, a command or a function as a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from slurm.api.asked import check_cluster, file_and_overrides, warn
from slurm.api.handle import Run, handle
from slurm.commands.experiments.submit import choose_for, measured_warnings
from slurm.submission.checks.early_checks import check_before_queue
from slurm.submission.submit import submit as submit_experiment
from toolkit.config import load_with_origins
from toolkit.errors import UserError
from toolkit.precheck.changes import change_warnings
from toolkit.run.create_run import run_of


def submit(
    what: Any,
    /,
    *args: Any,
    overrides: Mapping[str, Any] | None = None,
    cluster: str = "auto",
    fresh: bool = False,
    new_code: bool = False,
    **kwargs: Any,
) -> Run:
    """Start a job and return its run at once, as `stk submit` does.

        run = stk.submit("digits.yaml", {"optimizer.lr": 3e-4}, cluster="slurm")
        run = stk.submit(["python", "train.py", "--lr", "3e-4"], {"resources.nodes": 2})
        run = stk.submit(train, "data.csv", lr=3e-4, overrides={"resources.time": "4:00:00"})

    what       an experiment file; a command, as a list of words; or a function, called in the job
    args       of a file or a command: one dictionary, as `overrides`; of a function: its arguments
    kwargs     further arguments of a function, by name
    overrides  keys of the experiment with their values; a dictionary as a value replaces its whole section
    cluster    slurm, local: processes on this machine, or auto: Slurm if a controller answers
    fresh      whether to set the run's folder aside and start anew
    new_code   whether an existing run takes the code as it is now

    The same experiment, or the same call of a function, joins its run: a finished run has its result, a
    live run is refused, any other continues from its latest checkpoint, with its own code. Without a
    checkpoint it takes your edits. A warning names the files that you have edited since.

    A function is imported by its name, from a copy of the files that git tracks in your working
    directory, and of new scripts beside them and in packages; without git of all small files. Each
    process calls it, and the result is that of rank 0. It may call `stk.current_run()`. Arguments and
    result are JSON.

    Raises stk.UserError with all errors of the experiment, for a live run, for a function that a job
    cannot import (a lambda, an inner function, one of a notebook), and for arguments that JSON cannot
    hold. Raises stk.SchedulerError if Slurm refuses the job or does not answer.
    """
    check_cluster(cluster)
    given = {"overrides": overrides is not None, "fresh": fresh, "new_code": new_code}
    asked = file_and_overrides(what, args, kwargs, overrides, {**given, "cluster": cluster != "auto"})
    return _submitted(*asked, cluster=cluster, fresh=fresh, new_code=new_code)


def run(
    what: Any,
    /,
    *args: Any,
    overrides: Mapping[str, Any] | None = None,
    fresh: bool = False,
    new_code: bool = False,
    **kwargs: Any,
) -> Run:
    """Run it now in processes of this machine, and return the run when it has ended.

    what, args, overrides, fresh, new_code, kwargs   as in `stk.submit`; `resources.tasks_per_node` is the
                                                     number of processes

    A failed run raises nothing here: see `status()` and `result()`. The output goes to the run's logs.
    Ctrl-C lets the run save and leave.

    Raises stk.UserError as `stk.submit` does.
    """
    given = {"overrides": overrides is not None, "fresh": fresh, "new_code": new_code}
    asked = file_and_overrides(what, args, kwargs, overrides, given)
    return until_end(_submitted(*asked, cluster="local", fresh=fresh, new_code=new_code))


def until_end(started: Run) -> Run:
    """Wait for a run on this machine; on Ctrl-C let it save and end, then raise KeyboardInterrupt."""
    try:
        return started.wait()
    except KeyboardInterrupt:
        with suppress(UserError):
            # UserError: the run has just ended.
            started.cancel()
        started.wait()
        raise


def _submitted(path: Path, words: list[str], *, cluster: str, fresh: bool, new_code: bool) -> Run:
    experiment, origins = load_with_origins(path, words)
    target = run_of(experiment)
    chosen = choose_for(cluster, target)
    warnings = []
    if fresh or not target.result.exists():
        warnings = check_before_queue(experiment, origins, chosen)
    if not fresh:
        warnings += change_warnings(target, experiment, new_code=new_code)
    submitted = submit_experiment(experiment, target, chosen, fresh=fresh, new_code=new_code)
    if submitted.submission is not None and chosen == "slurm":
        warnings += measured_warnings(submitted.run)
    warn(warnings, depth=2)
    return handle(submitted.run)
