"""What a follower shows while things happen: between two looks, a test does what a run would do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.runs.logs.following import Follower, liveness
from slurm.runs.logs.sources import Attempt, Rank
from slurm.runs.watching.polling import RateLimitedPoll
from slurm.status.submissions import record
from tests.slurm.runs.logs.folder import Logged
from tests.slurm.support.clock import Clock
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import User

Happening = Callable[[], object]


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


def follow(
    logged: Logged,
    *happenings: Happening,
    rank: Rank = 0,
    attempt: Attempt = "newest",
    lines: int | None = None,
) -> list[str]:
    """What is shown while one thing happens after each look, until the run is no longer live."""
    waiting = iter(happenings)
    left = [len(happenings)]

    def is_live() -> bool:
        return left[0] > 0

    def pause(_: float) -> None:
        left[0] -= 1
        next(waiting)()

    follower = Follower(run=logged.run, rank=rank, attempt=attempt, lines=lines, is_live=is_live, pause=pause)
    return list(follower.read())


def append(logged: Logged, nonce: str, text: str, rank: int = 0) -> Happening:
    def happen() -> None:
        with logged.run.log(nonce, rank).open("a") as stream:
            stream.write(text)

    return happen


def test_new_lines_are_shown_until_the_run_is_no_longer_live(logged: Logged) -> None:
    logged.start("a", "one\n")
    found = follow(logged, append(logged, "a", "two\nthr"), append(logged, "a", "ee"))
    assert found == ["one", "two", "three"]


def test_next_attempt_has_a_heading(logged: Logged) -> None:
    logged.start("101.0.0", "first\n", job_id="101")
    found = follow(logged, lambda: logged.start("101.0.1", "second\n", job_id="101"))
    assert found == ["first", "", "==> attempt 2, job 101: rank 0 <==", "second"]


def test_older_attempts_are_not_followed(logged: Logged) -> None:
    logged.start("a", "old\n")
    logged.start("b", "new\n")
    assert follow(logged, append(logged, "a", "a late word of a dying rank\n")) == ["new"]


def test_a_log_that_does_not_exist_yet_is_waited_for(logged: Logged) -> None:
    shown = follow(logged, lambda: None, lambda: logged.start("a", "zero\n", "one\n"), rank=1)
    assert shown == ["one"]


def test_only_the_last_lines_are_shown_first(logged: Logged) -> None:
    logged.start("a", "one\ntwo\nthree\n")
    assert follow(logged, append(logged, "a", "four\n"), lines=1) == ["three", "four"]


def test_chosen_attempt_is_followed_alone(logged: Logged) -> None:
    logged.start("a", "one\n")
    assert follow(logged, lambda: logged.start("b", "other\n"), attempt=1) == ["one"]


def test_all_ranks_are_followed_together(logged: Logged) -> None:
    logged.start("a", "zero\n", "one\n")

    def requeued() -> None:
        logged.start("b", "again\n")

    assert follow(logged, append(logged, "a", "more\n", rank=1), requeued, rank="all") == [
        "rank 0 | zero",
        "rank 1 | one",
        "rank 1 | more",
        "",
        "==> attempt 2 <==",
        "rank 0 | again",
    ]


def test_the_batch_script_is_followed_into_the_next_job(logged: Logged) -> None:
    first, second = (logged.run.logs / f"{job}.batch.log" for job in (101, 102))
    first.write_text("stk: starting again\n")
    found = follow(logged, lambda: second.write_text("srun: hello\n"), rank="batch")
    assert found == ["stk: starting again", "", "==> 102.batch.log <==", "srun: hello"]


# -- whether the run is live


def test_a_finished_run_is_known_without_the_scheduler(job: PretendJob, fake: FakeSlurm) -> None:
    job.run.result.write_text("{}")
    assert not liveness(job.run)()
    assert fake.calls("squeue") == []


def test_a_job_that_has_ended_is_noticed_at_the_next_question(
    job: PretendJob, fake: FakeSlurm, clock: Clock
) -> None:
    is_live = liveness(job.run, RateLimitedPoll(clock))
    assert is_live()
    fake.change("101", state="CANCELLED")
    assert is_live()
    clock.now += 30.0
    assert not is_live()


def test_run_of_a_dead_local_process_is_not_live(user: User) -> None:
    logged = Logged(user.experiments)
    record(logged.run, cluster="local", job_id="local-999999999", name="tiny-1.0")
    assert not liveness(logged.run)()
