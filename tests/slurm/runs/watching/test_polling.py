"""The scheduler is asked at most twice a minute."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.queue import UNKNOWN, JobState
from slurm.runs.watching import polling
from slurm.runs.watching.polling import RateLimitedPoll
from tests.slurm.support.clock import Clock
from tests.slurm.support.fake_slurm import FakeSlurm
from toolkit.errors import SchedulerError, SlurmUnavailable


@pytest.fixture
def ask(fake: FakeSlurm, clock: Clock) -> RateLimitedPoll:
    return RateLimitedPoll(clock)


def test_answer_is_reused_for_half_a_minute(fake: FakeSlurm, ask: RateLimitedPoll, clock: Clock) -> None:
    fake.add("101", state="RUNNING")
    fresh = []
    for _ in range(12):
        assert ask(["101"])["101"].state == "running"
        fresh.append(ask.is_fresh)
        clock.now += 5.0
    assert [number for number, is_fresh in enumerate(fresh) if is_fresh] == [0, 6]
    assert (len(fake.calls("squeue")), len(fake.calls("sacct"))) == (2, 0)


def test_a_job_that_has_ended_is_not_asked_about_again(
    fake: FakeSlurm, ask: RateLimitedPoll, clock: Clock
) -> None:
    fake.add("101", state="CANCELLED")
    for _ in range(5):
        assert ask(["101"])["101"].state == "cancelled"
        clock.now += 1000.0
    assert len(fake.calls("squeue")) == 1


def test_new_job_is_pending_until_the_next_poll(fake: FakeSlurm, ask: RateLimitedPoll, clock: Clock) -> None:
    fake.add("101", state="RUNNING")
    ask(["101"])
    fake.add("102", state="RUNNING")
    assert ask(["101", "102"])["102"].state == "pending"
    clock.now += 30.0
    assert ask(["101", "102"])["102"].state == "running"


def test_unreachable_controller_raises_and_is_polled_as_rarely(
    fake: FakeSlurm, ask: RateLimitedPoll, clock: Clock
) -> None:
    fake.add("101", state="RUNNING")
    fake.goes_away()
    for _ in range(3):
        with pytest.raises(SlurmUnavailable):
            ask(["101"])
    assert len(fake.calls("squeue")) == 1
    fake.comes_back()
    clock.now += 60.0
    assert ask(["101"])["101"].state == "running"


def test_slurm_is_not_asked_about_an_empty_list_of_jobs(fake: FakeSlurm, ask: RateLimitedPoll) -> None:
    assert ask([]) == {}
    assert fake.calls("squeue") == []


def test_forgotten_job_costs_two_calls_a_minute(fake: FakeSlurm, ask: RateLimitedPoll, clock: Clock) -> None:
    for _ in range(12):
        assert ask(["77"])["77"] == UNKNOWN
        clock.now += 10.0
    assert (len(fake.calls("squeue")), len(fake.calls("sacct"))) == (2, 2)


_ANSWERS = st.sampled_from([JobState(state="running"), JobState(state="finished"), UNKNOWN, None])


@given(st.lists(st.tuples(st.floats(0.0, 70.0), _ANSWERS), min_size=1, max_size=60))
def test_slurm_is_polled_at_most_twice_a_minute(rounds: list[tuple[float, JobState | None]]) -> None:
    """Whatever is answered, or nothing, and although there is a new job each time."""
    clock, asked = Clock(), []
    answers: list[JobState | None] = []

    def poll(ids: list[str]) -> dict[str, JobState]:
        asked.append(clock.now)
        if answers[-1] is None:
            raise SchedulerError("no answer")
        return dict.fromkeys(ids, answers[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polling, "poll", poll)
        ask = RateLimitedPoll(clock)
        for number, (seconds, answer) in enumerate(rounds):
            clock.now += seconds
            answers.append(answer)
            with suppress(SchedulerError):
                ask(["101", f"new-{number}"])
    assert all(sum(start <= each < start + 59.9 for each in asked) <= 2 for start in asked)
