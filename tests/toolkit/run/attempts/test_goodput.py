"""Every second of a run is counted exactly once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.files import append_json_line
from toolkit.run.attempts.goodput import Goodput, spans, timeline
from toolkit.run.attempts.records import attempt_records, read_attempts
from toolkit.run.run_dir import RunDir


def told(run: RunDir, *starts: dict[str, Any], saves: tuple[tuple[float, float], ...] = ()) -> RunDir:
    """A run with these attempts, and saves as (when, how long training stood still)."""
    run.path.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(starts, start=1):
        append_json_line(run.attempts, {"attempt": number, **start})
    for time, stall_s in saves:
        append_json_line(run.events, {"time": time, "event": "save", "stall_s": stall_s, "waited_s": 0.0})
    return run


def start(
    begin: float, end: float | None, first: int, last: int, ready_s: float | None = 2.0
) -> dict[str, Any]:
    line = {"time_start": begin, "time_end": end, "first_step": first, "last_step": last}
    line["first_step_after_start_s"] = ready_s
    return {name: value for name, value in line.items() if value is not None}


def goodput(run: RunDir, now: float) -> Goodput:
    return sum((each.spent for each in timeline(run, now)), Goodput())


def test_run_without_a_stop_spends_time_on_startup_saves_and_training(run: RunDir) -> None:
    told(run, start(100, 112, 0, 50), saves=((105, 0.5), (111, 0.25)))
    assert goodput(run, 999) == Goodput(training=9.25, saving=0.75, starting=2)


def test_repeated_steps_do_not_count_as_training(run: RunDir) -> None:
    """Ten steps a second; the kill costs twenty of eighty."""
    told(run, start(100, 110, 0, 80), start(130, 135, 60, 90))
    assert goodput(run, 999) == Goodput(training=6 + 3, repeated=2, starting=4, away=20)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({}, id="killed before it knew its first step"),
        pytest.param({"first_step": 60, "last_step": 60}, id="stopped before its first step"),
        # Earlier versions wrote the last step of the previous attempt.
        pytest.param({"first_step": 80, "last_step": 80}, id="died before its first line"),
    ],
)
def test_lost_steps_are_those_before_the_next_attempt_with_a_step(run: RunDir, line: dict[str, Any]) -> None:
    dead = {"time_start": 115, "time_end": 120, **line}
    told(run, start(100, 110, 0, 80), dead, start(130, 135, 60, 90))
    assert goodput(run, 999) == Goodput(training=6 + 3, repeated=2, starting=2 + 5 + 2, away=5 + 10)


@pytest.mark.parametrize(
    "facts, following, repeated",
    [
        pytest.param({}, [{"resumed": False}], 8, id="starts over"),
        pytest.param({}, [{}, {"resumed": False}], 8, id="starts over after an attempt that died early"),
        pytest.param({}, [{"resumed": False, "first_step": 0}], 8, id="starts over and logs steps"),
        pytest.param({"wrote": True}, [{"resumed": False}], 0, id="may continue from what it wrote"),
        pytest.param({"saved": True}, [{"resumed": False}], 0, id="may continue from a save"),
        pytest.param({"wrote": None}, [{"resumed": False}], 0, id="of an earlier version"),
        pytest.param({}, [{}], 0, id="the next one has not begun"),
    ],
)
def test_command_without_steps_repeats_all_if_it_starts_over(
    run: RunDir, facts: dict[str, Any], following: list[dict[str, Any]], repeated: float
) -> None:
    """A killed command has 0 as its last step."""
    command = {"time_start": 100, "time_end": 110, "first_step_after_start_s": 2.0, "last_step": 0}
    command |= {"wrote": False, **facts}
    told(run, command, *({"time_start": 120 + number, **each} for number, each in enumerate(following)))
    first, *_ = timeline(run, 999)
    assert (first.spent.repeated, first.spent.training) == (repeated, 8 - repeated)


def test_attempt_without_a_step_counts_as_starting(run: RunDir) -> None:
    told(run, start(100, 107, 0, 0, ready_s=None), start(110, 115, 0, 30))
    assert goodput(run, 999) == Goodput(training=3, starting=7 + 2, away=3)


def test_time_after_the_training_is_finishing(run: RunDir) -> None:
    told(run, start(100, 120, 0, 50) | {"trained_after_start_s": 12.0}, saves=((105, 0.5), (115, 1)))
    assert goodput(run, 999) == Goodput(training=9.5, saving=0.5, starting=2, finishing=8)
    (only,) = timeline(run, 999)
    assert [(each.kind, each.end) for each in only.spans()][1:3] == [("training", 112), ("finishing", 120)]


@pytest.mark.parametrize("ready_s", [None, 5.0])
def test_attempt_that_finds_no_step_left_starts_and_finishes(run: RunDir, ready_s: float | None) -> None:
    told(run, start(100, 107, 60, 60, ready_s) | {"trained_after_start_s": 3.0})
    assert goodput(run, 999) == Goodput(starting=3, finishing=4)


def test_clock_set_back_gives_no_negative_time(run: RunDir) -> None:
    told(run, start(100, 110, 0, 80, ready_s=-3600.0), start(20, 25, 60, 90))
    spent = goodput(run, 999)
    assert min(getattr(spent, name) for name in Goodput.__slots__) >= 0
    first, _ = timeline(run, 999)
    assert first.begin <= first.ready <= first.end


def test_imports_before_the_first_line_count_as_starting(run: RunDir) -> None:
    again = start(130, 135, 60, 90) | {"process_start": 124.5}
    told(run, start(100, 110, 0, 60) | {"process_start": 97}, again)
    first, second = timeline(run, 999)
    assert (first.spent.starting, first.begin, first.ready) == (3 + 2, 97, 102)
    assert (second.spent.starting, second.spent.away) == (5.5 + 2, 14.5)


def test_second_attempt_in_one_process_begins_at_the_end_of_the_first(run: RunDir) -> None:
    told(run, start(100, 110, 0, 60), start(112, 120, 60, 90) | {"process_start": 50})
    assert goodput(run, 999) == Goodput(training=8 + 6, starting=2 + 2 + 2)


def test_running_attempt_lasts_until_now(run: RunDir) -> None:
    told(run, start(100, None, 0, 5))
    assert goodput(run, 106) == Goodput(training=4, starting=2)


def test_attempt_that_hung_ends_when_its_replacement_begins(run: RunDir) -> None:
    told(run, start(100, 150, 0, 10), start(120, 130, 10, 20))
    assert goodput(run, 999) == Goodput(training=18 + 8, starting=4)


def test_run_that_has_not_begun_has_no_time(run: RunDir) -> None:
    assert goodput(run, 5) == Goodput()
    assert goodput(run, 5).share == 0


@given(
    gaps=st.lists(
        st.tuples(
            st.floats(0, 50), st.floats(0, 50), st.none() | st.floats(0, 60), st.none() | st.floats(0, 60)
        ),
        min_size=1,
        max_size=6,
    ),
    steps=st.lists(st.integers(0, 40), min_size=7, max_size=7),
    stalls=st.lists(st.tuples(st.floats(0, 300), st.floats(0, 9)), max_size=5),
)
def test_the_parts_sum_to_the_total_time(
    tmp_path_factory: pytest.TempPathFactory,
    gaps: list[tuple[float, float, float | None, float | None]],
    steps: list[int],
    stalls: list[tuple[float, float]],
) -> None:
    run = RunDir(tmp_path_factory.mktemp("runs") / "run")
    clock, starts = 0.0, []
    for number, (away, length, ready_s, trained_s) in enumerate(gaps):
        begin = clock + away
        clock = begin + length
        line = start(begin, clock, steps[number], steps[number] + steps[number + 1], ready_s)
        starts.append(line | ({} if trained_s is None else {"trained_after_start_s": trained_s}))
    told(run, *starts, saves=tuple(stalls))
    found = goodput(run, 1e9)
    assert found.total == pytest.approx(clock - starts[0]["time_start"], abs=1e-6)
    assert min(getattr(found, name) for name in Goodput.__slots__) >= 0
    assert 0 <= found.share <= 1
    for each in timeline(run, 1e9):
        without_saves = [span for span in each.spans() if span.kind != "saving"]
        length = sum(span.end - span.begin for span in without_saves)
        assert length == pytest.approx(each.spent.total, abs=1e-6)
    whole = spans(read_attempts(run), [-1.0], clock + 5)
    assert all(span.begin < span.end for span in whole)
    assert all(one.end == pytest.approx(other.begin) for one, other in itertools.pairwise(whole))


# ---- the queue


def submitted(run: RunDir, *times: float) -> None:
    for time in times:
        append_json_line(run.submissions, {"time": time, "cluster": "slurm", "job_id": "7"})


def test_time_from_submission_to_the_first_attempt_is_waiting(run: RunDir) -> None:
    submitted(told(run, start(100, 110, 0, 10)), 40)
    found = goodput(run, 999)
    assert found == Goodput(training=8, starting=2, waiting=60)
    assert (found.total, found.allocated, found.share) == (70, 10, 0.8)


@pytest.mark.parametrize(
    "job, restart, submissions, waiting, away",
    [
        pytest.param("7", 1, (), 40, 0, id="requeued"),
        pytest.param("8", 0, (90, 135), 10 + 15, 25, id="submitted again"),
        pytest.param("8", 0, (100, 108), 40, 0, id="chained"),
    ],
)
def test_time_between_attempts_is_waiting_once_the_next_is_submitted_or_requeued(
    run: RunDir, job: str, restart: int, submissions: tuple[float, ...], waiting: float, away: float
) -> None:
    first = {**start(100, 110, 0, 10), "job_id": "7", "restart": 0}
    told(run, first, {**start(150, 160, 10, 20), "job_id": job, "restart": restart})
    submitted(run, *submissions)
    found = goodput(run, 999)
    assert (found.waiting, found.away) == (waiting, away)


def test_damaged_submission_lines_are_ignored(run: RunDir) -> None:
    told(run, start(100, 110, 0, 10))
    run.submissions.write_text('{"time": "noon"}\n{"cluster": "slurm"}\n{"time": 9')
    assert goodput(run, 999).waiting == 0


# ---- the time line


def test_time_line_of_an_attempt_has_its_spans_at_their_times(run: RunDir) -> None:
    told(run, start(100, 110, 0, 80), start(130, 135, 60, 90), saves=((105, 0.5),))
    first, second = timeline(run, 999)
    spans = {span.kind: (span.begin, span.end) for span in first.spans()}
    assert spans["starting"] == (100, 102)
    assert spans["saving"] == (104.5, 105)
    assert spans["repeated"] == (110 - first.spent.repeated, 110)
    assert [span.kind for span in second.spans()] == ["away", "starting", "training"]


def told_spans(
    starts: list[dict[str, Any]], now: float, *submitted: float, is_live: bool = True
) -> list[tuple[str, float, float]]:
    attempts = attempt_records({"attempt": number, **each} for number, each in enumerate(starts, start=1))
    return [(each.kind, each.begin, each.end) for each in spans(attempts, submitted, now, is_live=is_live)]


def test_requeued_run_waits_before_and_between_its_attempts() -> None:
    first = start(100, 150, 0, 10, 10) | {"job_id": "7", "restart": 0}
    second = start(180, 250, 10, 30, 10) | {"job_id": "7", "restart": 1}
    assert told_spans([first, second], 300, 50) == [
        ("waiting", 50, 100),
        ("starting", 100, 110),
        ("training", 110, 150),
        ("waiting", 150, 180),
        ("starting", 180, 190),
        ("training", 190, 250),
        ("waiting", 250, 300),
    ]


def test_only_a_live_run_waits_until_now() -> None:
    assert told_spans([start(100, 150, 0, 5)], 300, is_live=False)[-1] == ("training", 102, 150)
    assert told_spans([], 90, 50) == [("waiting", 50, 90)]
    assert told_spans([], 90) == []


def test_attempt_without_a_start_time_is_left_out() -> None:
    assert told_spans([{}, start(100, None, 0, 5)], 200)[0] == ("starting", 100, 102)
