"""A run without progress is held until a user releases it; no run is restarted for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.run.attempts.attempts import FAILURES, STOPS, crash, start, with_budget
from tests.toolkit.support.tiny import events
from toolkit.config import Experiment
from toolkit.errors import NoProgress
from toolkit.files import append_json_line, read_json
from toolkit.reliability.restart_policy import (
    STARTS_FROM_ONE_STEP,
    after_failure,
    after_stop,
    check_progress,
    reset_counters,
)
from toolkit.run.failure.classes import FAILURE_CLASSES
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir


def test_three_attempts_without_a_step_hold_the_run(run: RunDir, plain: Experiment) -> None:
    for _ in range(2):
        start(run, of=4, to=4, why="killed", rank=0, host="w1")
        assert after_failure(run, plain).action == "retry"
        check_progress(run)
    write_first(
        run, failure_record("start3", "killed", "out of memory", rank=0, host="w1", phase="x", step=4)
    )
    start(run, of=4, to=4, why="killed", rank=0, host="w1")
    decision = after_failure(run, plain)
    assert decision.action == "hold"
    assert "3 attempts in a row made no step" in decision.why
    (held,) = events(run, "held")
    assert "made no step" in held["why"]
    failure = read_json(run.failure)
    assert failure["class"] == "no_progress"
    assert failure["message"].endswith("out of memory")
    assert "stk resume" in failure["advice"]
    with pytest.raises(NoProgress, match="3 attempts in a row made no step"):
        check_progress(run)


def test_repeated_hold_decision_is_unchanged(run: RunDir, plain: Experiment) -> None:
    for _ in range(3):
        start(run, of=0, to=0, why="killed")
    first, text = after_failure(run, plain), run.failure.read_text()
    assert after_failure(run, plain) == first
    assert run.failure.read_text() == text


def test_attempt_with_a_step_resets_the_count(run: RunDir) -> None:
    start(run, of=0)
    start(run, of=0)
    start(run, of=0, to=1, why="preempted")
    start(run, of=1)
    start(run, of=1)
    check_progress(run)
    start(run, of=1)
    with pytest.raises(NoProgress):
        check_progress(run)


def test_finishing_without_a_new_step_is_progress(run: RunDir) -> None:
    start(run, of=16)
    start(run, of=16)
    start(run, of=16, to=16, why="finished")
    check_progress(run)


def test_three_preemptions_before_the_first_step_hold_the_run(run: RunDir, plain: Experiment) -> None:
    for _ in range(3):
        start(run, of=0, to=0, why="preempted")
    assert after_stop(run, plain, "preempted").action == "hold"


def test_repeated_attempts_without_a_saved_step_are_no_progress(run: RunDir, plain: Experiment) -> None:
    for _ in range(STARTS_FROM_ONE_STEP - 1):
        start(run, of=4, to=9, why="requeued")
        check_progress(run)
    start(run, of=4, to=9, why="requeued")
    with pytest.raises(NoProgress, match=r"none saved a later one: save more often"):
        check_progress(run)
    run.checkpoint(8).mkdir(parents=True)
    check_progress(run)


@pytest.mark.parametrize("facts", [{"saved": True}, {"saved": False, "wrote": True}])
def test_program_without_steps_makes_progress_by_writing_files(
    run: RunDir, plain: Experiment, facts: dict[str, bool]
) -> None:
    def leave(**facts: bool) -> None:
        start(run, of=0, to=0, why="time_limit", **{"first_step": None, "first_step_s": 1.0, **facts})

    leave(**facts)
    for _ in range(STARTS_FROM_ONE_STEP - 1):
        leave(saved=False)
        assert after_stop(run, plain, "time_limit").action == "retry"
    leave(saved=False)
    decision = after_stop(run, plain, "time_limit")
    assert decision.action == "hold"
    assert str(run.work) in decision.why
    assert "checkpoint." not in decision.why


def test_release_resets_all_counts_but_keeps_the_strikes(run: RunDir, plain: Experiment) -> None:
    for _ in range(5):
        crash(run, "hang", step=0)
    assert after_failure(run, plain).action == "stop"
    reset_counters(run)
    check_progress(run)
    crash(run, "hang", step=8)
    decision = after_failure(run, plain)
    assert (decision.action, decision.exclude) == ("retry", ("w2",))


def test_release_event_with_only_a_time_resets_the_count(run: RunDir) -> None:
    for _ in range(3):
        start(run, of=0)
    append_json_line(run.events, {"time": 3500.0, "event": "released"})
    check_progress(run)


def test_reset_of_a_run_without_attempts_writes_no_event(run: RunDir) -> None:
    reset_counters(run)
    assert not run.events.exists()


LINES = st.lists(
    st.tuples(
        st.sampled_from([*STOPS, *FAILURES]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from(["w1", "w2", "w3"]),
    ),
    min_size=1,
    max_size=14,
)


@given(lines=LINES, max_crashes=st.integers(0, 4), max_timeouts=st.integers(0, 4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_retries_of_any_history_are_bounded(
    plain: Experiment,
    tmp_path_factory: pytest.TempPathFactory,
    lines: Sequence[tuple[str, int, int, str]],
    max_crashes: int,
    max_timeouts: int,
) -> None:
    """Whatever attempts.jsonl says: a retry keeps within all budgets, asking changes no answer, hosts have
    been blamed twice, and three starts without a step end it."""
    run = RunDir(tmp_path_factory.mktemp("run"))
    experiment = with_budget(plain, max_crashes=max_crashes, max_timeouts=max_timeouts)
    for why, of, steps, host in lines:
        if why in FAILURE_CLASSES:
            crash(run, why, of=of, step=of + steps, host=host)
        else:
            start(run, of=of, to=of + steps, why=why)
    last = lines[-1][0]
    decision = (
        after_failure(run, experiment) if last in FAILURE_CLASSES else after_stop(run, experiment, last)
    )
    again = after_failure(run, experiment) if last in FAILURE_CLASSES else after_stop(run, experiment, last)
    assert decision == again
    assert all(
        sum(host == line[3] for line in lines if line[0] in FAILURE_CLASSES) >= 2 for host in decision.exclude
    )
    idle = len(lines) >= 3 and all(steps == 0 and why != "finished" for why, _, steps, _ in lines[-3:])
    if decision.action == "retry":
        assert last not in FAILURE_CLASSES or sum(why in FAILURE_CLASSES for why, *_ in lines) <= max_crashes
        assert last != "time_limit" or sum(why == last for why, *_ in lines) <= max_timeouts
        assert not idle
        check_progress(run)
    if decision.action == "hold" and last != "no_progress":
        assert read_json(run.failure)["class"] == "no_progress"
