"""What `stk sweep` and `stk sweep resume` share: training here, a bar, and what came of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from slurm.commands.run import explain, has_trained
from slurm.submit import local_processes
from slurm.sweeps.answer import ELSEWHERE
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.submission import Handed
from slurm.topology import scrub
from toolkit.create import create_run
from toolkit.errors import UserError
from toolkit.machines.crew import Crew
from toolkit.machines.layout import Machines
from toolkit.sweeps.folder import SweepDir

_INTERRUPTED = 130
#: From so many runs on, making their folders takes long enough to be watched.
_MANY = 50


@contextmanager
def bar(runs: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show how many folders are made, where there are many and somebody watches; call it for each."""
    if quiet or runs < _MANY or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("making the folders of the runs", total=runs)
        yield lambda: progress.advance(task)


def train(wanted: Sequence[Candidate], *, quiet: bool) -> int:
    """Train the runs one after the other; the exit code of the worst. Ctrl-C ends them all."""
    worst = 0
    for number, one in enumerate(wanted, start=1):
        print(f"{number} of {len(wanted)}: {one.run.run_id}, folder {one.run.path}", file=sys.stderr)
        code = _train_one(one, quiet=quiet)
        if code == _INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst


def _train_one(one: Candidate, *, quiet: bool) -> int:
    from toolkit.launch import launch

    existed = one.run.path.exists()
    create_run(one.experiment, one.run.path.parent)
    crew = Crew(Machines.alone(local_processes(one.experiment.resources)))
    code = launch(one.run, scrub(), crew, quiet=quiet)
    if code:
        explain(one.run, code, quiet=quiet)
    if code == UserError.exit_code and not existed and not has_trained(one.run):
        # Nothing came of it, and what was wrong has been told.
        shutil.rmtree(one.run.path, ignore_errors=True)
    return code


def tell(folder: SweepDir, wanted: Sequence[Candidate], handed: Handed, cluster: str) -> None:
    """Say what came of it, and how to follow it."""
    if not wanted:
        print("nothing to do: every run has finished or is live")
        return
    if cluster != "slurm":
        print(f"report  stk sweep report {folder.name}")
        return
    later = {each.run for each in handed.later}
    for one in wanted:
        if one.run not in handed.jobs and one.run not in later:
            print(f"left out: {one.run.run_id} {ELSEWHERE}")
    for job_id in handed.arrays:
        size = sum(job.job_id.partition("_")[0] == job_id for job in handed.jobs.values())
        print(f"job     {job_id}, an array of {size} runs")
    if later:
        print(f"later   {len(later)} runs are not handed in yet: {handed.why.splitlines()[0]}")
        print(f"        stk sweep resume {folder.name} hands in more, when others have ended")
    if handed.arrays:
        print(f"follow  stk sweep status {folder.name}    stk watch")
