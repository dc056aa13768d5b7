"""Compose and check the runs of a chain, and submit them to Slurm or to processes that wait for each other.

Slurm releases a job only if the previous job has ended COMPLETED with exit code 0, and our jobs do that only
if their run has finished. A job that saved and exited is requeued under its id, or its followers are moved to
the next job of its run (slurm.submission.submit_job).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slurm.status.rows import status
from slurm.status.submissions import Awaited, exclusively, last_submission
from slurm.submission.checks.early_checks import check_before_queue
from slurm.submission.submit import Submitted, check, refuse_if_live, resolve_if_possible, submit
from toolkit.config import load_with_origins
from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy, UserError
from toolkit.run.create_run import run_of
from toolkit.run.run_dir import RunDir

#: Variable with the folder of the previous run while a file after --then is composed.
EARLIER_RUN = "STK_EARLIER_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One run of a chain.

    origins   the places where the keys of its experiment were written
    """

    experiment: Experiment
    run: RunDir
    origins: Origins | None = None


def read_links(files: Sequence[Sequence[str]]) -> list[Link]:
    """Compose the experiments of a chain; a file may refer to the previous run: ${oc.env:STK_EARLIER_RUN}.

    files   for each run its file, and overrides `key=value`
    Raises ConfigError, and UserError if two of them are the same run.
    """
    links: list[Link] = []
    before = os.environ.get(EARLIER_RUN)
    try:
        for file, *overrides in files:
            experiment, origins = load_with_origins(Path(file), overrides)
            run = run_of(experiment)
            if run in [link.run for link in links]:
                raise UserError(
                    f"{file} makes the run {run.run_id} a second time: a run cannot wait for itself"
                )
            links.append(Link(experiment=experiment, run=run, origins=origins))
            os.environ[EARLIER_RUN] = str(run.path)
    finally:
        os.environ.pop(EARLIER_RUN, None)
        if before is not None:
            os.environ[EARLIER_RUN] = before
    return links


def check_links(links: Sequence[Link], cluster: str, *, fresh: bool) -> list[str]:
    """Check all links; raise ConfigError, DataError or SlurmRefused if one can never run. Writes nothing.

    fresh   whether all runs start anew; raise RunBusy if one of them is live
    Files that an earlier run of the chain will write are not checked, because they do not exist yet.
    Returns a line for each warning.
    """
    coming: dict[Path, Experiment] = {}
    warnings: list[str] = []
    for link in links:
        if link.run.result.exists() and not fresh:
            continue
        if fresh:
            # `submit` would only find it after the folders of earlier runs were set aside.
            refuse_if_live(link.run, link.experiment, must_know=cluster == "slurm")
        warnings += check_before_queue(link.experiment, link.origins, cluster, coming)
        if cluster == "slurm":
            check(link.experiment, link.run, "1" if coming else None)
        coming[link.run.path] = link.experiment
    return warnings


def submit_links(
    links: Sequence[Link], cluster: str, *, fresh: bool, new_code: bool, last: bool
) -> Iterator[Submitted]:
    """Submit the runs in order, each waiting for the previous one; yield the result of each.

    new_code   whether existing runs continue with the current code
    last       whether no job will wait for the last run

    A finished run is skipped, and the next run does not wait for it. A live run is not submitted again, and
    the next run waits for it; a live last run is refused. Raises RunBusy, SchedulerError; earlier
    submissions stay.
    """
    for number, link in enumerate(links):
        experiment, run = link.experiment, link.run
        is_awaited = not last or number < len(links) - 1
        if is_awaited and not fresh and (live := _live(run)) is not None:
            yield live
        elif number == 0:
            yield submit(experiment, run, cluster, fresh=fresh, new_code=new_code)
        else:
            with held(links[number - 1].run, cluster) as first:
                yield submit(experiment, run, cluster, fresh=fresh, new_code=new_code, awaits=first)


def _live(run: RunDir) -> Submitted | None:
    """Return the existing submission of a live run; None if the run is not live."""
    if run.intent.exists():
        with exclusively(run):
            resolve_if_possible(run)
    (now,) = status([run])
    # A live run without a job trains in a terminal or in another job: its newest one has ended.
    job = last_submission(run) if now.job_id else None
    return Submitted(run, job, joined=now.state) if now.is_live else None


@contextmanager
def held(run: RunDir, cluster: str) -> Iterator[Awaited | None]:
    """Yield what a job must wait for until a run has finished; None if it has already finished.

    The run is locked meanwhile against its next submission, which changes the dependencies of all waiting
    jobs and must see the new job too. Raises RunBusy if no job of this cluster can wait for the run,
    UserError if it has ended without finishing, SlurmUnavailable if Slurm does not say.
    """
    with exclusively(run):
        (now,) = status([run])
        if now.state == "finished":
            yield None
            return
        now.check_known()
        if not now.is_live:
            raise UserError(f"{run.run_id} is {now.state}, so nothing can wait for it: {now.reason}")
        last = last_submission(run)
        if cluster == "local":
            yield Awaited(run=run, job_id=None)
        elif last is not None and last.cluster == "slurm" and now.job_id is not None:
            yield Awaited(run=run, job_id=last.job_id)
        else:
            raise RunBusy(
                f"{run.run_id} runs outside of Slurm, or in a job that is not its newest one, and no Slurm "
                "job can wait for it: use --cluster local, or submit the next run when it has finished"
            )
