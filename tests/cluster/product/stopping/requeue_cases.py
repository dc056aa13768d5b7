"""Runs from which Slurm takes the hosts away, for the tests of what becomes of them.

They train side by side, because each of them mostly waits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from slurm.job.requeue import SETTLED
from tests.cluster.product.user import User, Users, assert_same_training, slowly, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import events
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class Case:
    """A user with one run in one job."""

    user: User
    run: RunDir
    job_id: str

    def preempt(self) -> None:
        """Take the hosts of the job for something urgent."""
        self.user.preempt(*starts(self.run)[-1]["hosts"])

    def finish(self) -> None:
        """Return when the run has finished and the end of its last attempt is recorded."""

        def is_done() -> bool:
            return self.run.result.exists() and "why" in starts(self.run)[-1]

        wait_until(is_done, lambda: self.user.story(self.run))

    def wait_until_stopped(self) -> None:
        """Return when the first attempt has ended, and has asked Slurm why."""
        wait_until(lambda: bool(self.events(*SETTLED)), lambda: self.user.story(self.run))

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return events(self.run, *kinds)

    @property
    def whys(self) -> list[str]:
        return [start["why"] for start in starts(self.run)]

    @property
    def signals(self) -> list[str]:
        """Names of the signals of rank 0 in the first attempt, each once, without those that wake it."""
        names = [name for name, _ in self.events("signal")[0]["signals"] if name != "SIGCONT"]
        return list(dict.fromkeys(names))


#: Stands before the real program on PATH: what puts a job back into the queue is ended with the job, before
#: it has said that it was heard.
_UNANSWERED = """\
#!/bin/sh
{program} "$@" || exit
[ "$1" != requeue ] || exec sleep 600
"""


def submit(users: Users, name: str, *resources: str, is_heard: bool = True) -> Case:
    """Submit long as a user of this name.

    is_heard  whether it gets an answer when it puts itself back into the queue
    """
    user = users.user(name)
    env = slowly(1.0)
    if not is_heard:
        env |= user.stand_before("scontrol", _UNANSWERED.format(program=shutil.which("scontrol")))
    return Case(user, *user.submit("long", *(f"resources.{each}" for each in resources), env=env))


def host(users: Users, number: int) -> str:
    """A preemptible job has its host for itself, so that only it makes room."""
    return f"nodelist={users.cluster.hosts[number]}"


@contextmanager
def under_way(users: Users, cases: dict[str, Case], *, unwatched: tuple[str, ...]) -> Iterator[None]:
    """While the runs train; afterwards their jobs are gone.

    unwatched  those that are not waited for until they train
    """
    try:
        for name, case in cases.items():
            if name not in unwatched:
                case.user.wait_for_step(case.run)
        yield
    finally:
        users.user("janitor").run("scancel", "--user=root", check=False)


def assert_as_if_undisturbed(case: Case, alone: RunDir) -> None:
    """The run was stopped, and ends with the curve and the weights of one that was not; no step is lost."""
    case.finish()
    assert len(case.whys) > 1
    assert case.whys[-1] == "finished"
    assert_same_training(case.run, alone)
    for first, second in zip(starts(case.run), starts(case.run)[1:], strict=False):
        assert second["first_step"] == first["last_step"] > first["first_step"]
