"""`stk.sweep`: many runs of one experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from slurm.api.asked import check_cluster, file_and_overrides, items, listed, value_text, warn
from slurm.api.handle import Run, handle
from slurm.api.submitting import until_end
from slurm.commands.experiments.submit import choose_for
from slurm.commands.experiments.sweep import asked, check_candidates
from slurm.submission.submit import submit
from slurm.sweeps.actions import renew_code, start, write_down
from slurm.sweeps.request import want
from toolkit.errors import UserError
from toolkit.run.run_dir import experiment_dir
from toolkit.sweeps.command_line import read_space
from toolkit.sweeps.spaces import Values


def sweep(
    what: Any,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    name: str | None = None,
    random: int | None = None,
    seeds: Sequence[int] = (),
    zipped: Sequence[Sequence[str]] = (),
    sampler: str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    max_parallel: int | None = None,
    cluster: str = "auto",
    new_code: bool = False,
) -> list[Run]:
    """Start a run for each combination of values, as `stk sweep` does; return all runs of the sweep.

        runs = stk.sweep("digits.yaml", {"optimizer.lr": [1e-3, 3e-4], "model.hidden": [64, 128]})

    what          an experiment file, or a command as a list of words. Call `stk.submit` for each call of a
                  function
    values        keys with their values: a list, `range` or array, one run for each element; a search
                  range as a text, such as "loguniform(1e-5, 1e-2)"; or one value for all runs. None: the
                  file's section `sweep`
    name          of the sweep; None: that in the file, or the experiment's
    random        number of runs with random values
    seeds         repeat each run with each of these seeds
    zipped        lists of keys whose values go together
    sampler       tpe: `samples` more runs with values that Optuna proposes
    seed          of the random values
    max_parallel  runs at the same time
    cluster       slurm: job arrays; local: here, one after the other, until all have ended; auto: Slurm if
                  a controller answers
    new_code      whether existing runs take the code as it is now

    The list also has finished and live runs, which are not started. A warning names runs that Slurm does
    not take yet; `stk sweep resume` starts these.

    Raises stk.UserError with the errors of all runs, before anything is submitted, and
    stk.SchedulerError if Slurm refuses them or does not answer.
    """
    check_cluster(cluster)
    if callable(what):
        raise UserError(
            "a sweep takes an experiment file or a command: call stk.submit for each call of a function"
        )
    path, _ = file_and_overrides(what, (), {}, None)
    words = [_word(key, value) for key, value in items(values)]
    for option, given in (("seeds", seeds), ("zipped", zipped)):
        if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise UserError(f"{option} is {given!r:.100}: expected a list")
    wanted = want(
        path,
        asked(
            path,
            words,
            name=name,
            random=_number(random),
            seeds=[each if isinstance(each, str) else value_text("seeds", each) for each in seeds],
            zipped=zipped,
            sampler=sampler,
            samples=_number(samples),
            seed=_number(seed),
            max_parallel=_number(max_parallel),
        ),
        experiment_dir(),
    )
    chosen = choose_for(cluster, *(one.run for one in wanted.to_start), sweep=wanted.folder)
    warn(
        [
            *wanted.warnings,
            *check_candidates(wanted.to_start, chosen),
            *renew_code(wanted.known, asked=new_code, cluster=chosen),
        ]
    )
    if chosen == "local":
        write_down(wanted.folder, wanted.record, wanted.to_start)
        for one in wanted.to_start:
            until_end(handle(submit(one.experiment, one.run, "local").run))
    else:
        to_start, live = wanted.to_start, wanted.live
        most = _number(max_parallel)
        handed = start(wanted.folder, wanted.record, to_start, live, max_parallel=most)
        warn([f"{one.run.run_id} is not submitted yet: {handed.why.splitlines()[0]}" for one in handed.later])
    return [handle(one.run) for one in wanted.known]


def _number(value: Any) -> Any:
    """Return an integer of NumPy as one of Python; other values, which `asked` checks, as they are."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _word(key: str, value: Any) -> str:
    """Return the value of a key as on the command line. Raises UserError."""
    if isinstance(value, str) and "(" in value:
        # Raises UserError for an invalid range, such as uniform(a).
        space = read_space(f"{key}={value}")
        if space is not None and type(space) is not Values:
            return f"{key}={value}"
    value = listed(key, value)
    if isinstance(value, list | tuple):
        if not value:
            raise UserError(f"{key}: found an empty list, expected the values of its runs")
        return f"{key}={','.join(value_text(key, each) for each in value)}"
    return f"{key}={value_text(key, value)}"
