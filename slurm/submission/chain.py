"""Compose and check the runs of a chain, and submit them to Slurm or to processes that wait for each other.

Slurm releases a job only when the one before it has ended COMPLETED with exit code 0, which a job of ours
does only when its run has finished: one that saved and left goes back under its id, or ends otherwise and
its followers are moved to the next job (slurm.client.retarget).
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
from slurm.submission.submit import Submitted, check, submit
from toolkit.config import load_with_origins
from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy, UserError
from toolkit.run.create_run import run_of
from toolkit.run.run_dir import RunDir

#: While a file behind --then is composed: the folder of the run before it.
EARLIER_RUN = "STK_EARLIER_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One run of a chain.

    origins   where the keys of its experiment were written
    """

    experiment: Experiment
    run: RunDir
    origins: Origins | None = None


def read_links(files: Sequence[Sequence[str]], parent: Path) -> list[Link]:
    """Compose the experiments of a chain; each file may name the run before it as ${oc.env:STK_EARLIER_RUN}.

    files   each a file and the keys that are set in it, `key=value`
    Raises ConfigError, and UserError where two of them are the same run.
    """
    links: list[Link] = []
    for file, *overrides in files:
        with _earlier(links[-1].run if links else None):
            experiment, origins = load_with_origins(Path(file), overrides)
        run = run_of(experiment, parent)
        if run in [link.run for link in links]:
            raise UserError(f"{file} makes the run {run.run_id} a second time: a run cannot wait for itself")
        links.append(Link(experiment=experiment, run=run, origins=origins))
    return links


@contextmanager
def _earlier(run: RunDir | None) -> Iterator[None]:
    """Name the run before in the environment, for the composition of the next."""
    before = os.environ.get(EARLIER_RUN)
    if run is not None:
        os.environ[EARLIER_RUN] = str(run.path)
    try:
        yield
    finally:
        if run is not None:
            os.environ.pop(EARLIER_RUN)
            if before is not None:
                os.environ[EARLIER_RUN] = before


def check_links(links: Sequence[Link], cluster: str, *, fresh: bool) -> list[str]:
    """Raise where one of them could never run: ConfigError, DataError, SlurmRefused. Nothing is written.

    What a run takes from one before it in the chain is not there yet, and is not looked for.
    Returns a line for each warning.
    """
    coming: dict[Path, Experiment] = {}
    warnings: list[str] = []
    for link in links:
        if link.run.result.exists() and not fresh:
            continue
        warnings += check_before_queue(link.experiment, link.origins, cluster, coming)
        if cluster == "slurm":
            check(link.experiment, link.run, "1" if coming else None)
        coming[link.run.path] = link.experiment
    return warnings


def submit_links(
    links: Sequence[Link], parent: Path, cluster: str, *, fresh: bool, new_code: bool, last: bool
) -> Iterator[Submitted]:
    """Hand in one run after the other, each to wait for the one before; yield the result of each.

    new_code   whether runs that exist go on with the code as it is now
    last       whether nothing is to wait for the last one

    A finished run is left out, and the next one does not wait for it. The next one waits for a live run
    as it is; a live run that nothing is to wait for is refused. Raises RunBusy, SchedulerError; what was
    handed in before stays.
    """
    for number, link in enumerate(links):
        is_awaited = not last or number < len(links) - 1
        if is_awaited and not fresh and (live := _live(link.run)) is not None:
            yield live
        elif number == 0:
            yield submit(link.experiment, parent, cluster, fresh=fresh, new_code=new_code)
        else:
            with held(links[number - 1].run, cluster) as first:
                yield submit(link.experiment, parent, cluster, fresh=fresh, new_code=new_code, awaits=first)


def _live(run: RunDir) -> Submitted | None:
    """A run that waits or trains already, as it was submitted."""
    (now,) = status([run])
    return Submitted(run, last_submission(run), joined=now.state) if now.is_live else None


@contextmanager
def held(run: RunDir, cluster: str) -> Iterator[Awaited | None]:
    """Yield what to wait for before a run ends; None if it has finished.

    The run is locked against its own next submission meanwhile: that submission moves all waiting jobs to
    its new job, so it must see this one, too. Raises RunBusy where no job of this cluster can wait for it,
    UserError where it has ended otherwise.
    """
    with exclusively(run):
        (now,) = status([run])
        if now.state == "finished":
            yield None
            return
        if not now.is_live:
            raise UserError(f"{run.run_id} is {now.state}, so nothing can wait for it: {now.reason}")
        last = last_submission(run)
        if cluster == "local":
            yield Awaited(run=run, job_id=None)
        elif last is not None and last.cluster == "slurm":
            yield Awaited(run=run, job_id=last.job_id)
        else:
            raise RunBusy(
                f"{run.run_id} runs on this machine, where no job of Slurm's can wait for it: use "
                "--cluster local, or submit the next one when it has finished"
            )
