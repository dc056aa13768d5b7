"""Submit the runs of a chain to Slurm, or to processes on this machine that wait for each other.

Slurm releases a job only when the one before it has ended COMPLETED with exit code 0, which a job of ours
does only when its run has finished: one that saved and left goes back under its id, or ends otherwise and
its followers are moved to the next job (slurm.client.retarget).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from slurm.chains.links import Link
from slurm.status.rows import status
from slurm.submission.submit import Submitted, submit
from slurm.submissions import Awaited, exclusively, last_submission
from toolkit.errors import RunBusy, UserError
from toolkit.run.run_dir import RunDir


def submit_links(
    links: Sequence[Link], parent: Path, cluster: str, *, fresh: bool, new_code: bool, last: bool
) -> Iterator[Submitted]:
    """Hand in one run after the other, each to wait for the one before; yield what came of each.

    new_code   whether runs that exist go on with the code as it is now
    last       whether nothing is to wait for the last one

    A run that has finished is left out, and the next one does not wait for it. One that is live is waited
    for as it is; if nothing is to wait for it, it is refused. Raises RunBusy, SchedulerError; what was
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
