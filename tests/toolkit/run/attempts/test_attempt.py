"""Each attempt of a run has one line in attempts.jsonl, even if it was killed."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.ranks import in_ranks, joined, worlds
from toolkit.errors import DeviceError, RendezvousError
from toolkit.files import append_json_line, read_json, read_json_lines
from toolkit.run.attempts.attempt import Attempt
from toolkit.run.attempts.records import explain_last, read_attempts
from toolkit.run.events import read_events
from toolkit.run.failure.records import record_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import process_start_time
from toolkit.system.world import World


def attempt(run: RunDir) -> Attempt:
    return Attempt(run, World.single())


def test_attempt_is_one_line_that_its_end_completes(run: RunDir) -> None:
    first = attempt(run)
    (line,) = read_json_lines(run.attempts)
    assert "first_step" not in line
    first.started(0, resumed=False)
    first.ended(12, "SIGTERM", step_s=0.5)
    second = attempt(run)
    second.started(12, resumed=True)
    second.ended(40, "finished")
    lines = list(read_json_lines(run.attempts))
    assert [(line["attempt"], line["first_step"], line["last_step"], line["why"]) for line in lines] == [
        (1, 0, 12, "SIGTERM"),
        (2, 12, 40, "finished"),
    ]
    assert [line["resumed"] for line in lines] == [False, True]
    assert lines[0]["step_s"] == 0.5


def test_killed_attempt_keeps_its_incomplete_line_and_counts(run: RunDir) -> None:
    attempt(run)
    attempt(run).started(0, resumed=False)
    later = attempt(run)
    assert later.number == 3
    later.started(4, resumed=True)
    later.ended(9, "finished")
    early, killed, ended = read_json_lines(run.attempts)
    assert "first_step" not in early
    assert "time_end" not in killed
    assert ended["attempt"] == 3


def test_attempt_in_another_precision_than_the_previous_one_notes_an_event(run: RunDir) -> None:
    """As with train.precision=auto on another kind of GPU; an attempt may end before it has a precision."""
    for precision in ("bf16", "bf16", "", "fp32", "fp32"):
        if precision:
            attempt(run).computes_in(precision)
        else:
            attempt(run)
    assert [each.precision for each in read_attempts(run)] == ["bf16", "bf16", None, "fp32", "fp32"]
    (event,) = read_events(run, "precision_changed")
    assert event.name == "precision_changed"


def test_first_step_records_the_startup_time(run: RunDir) -> None:
    start = attempt(run)
    start.started(0, resumed=False)
    process_s = time.time() - process_start_time()
    start.stepped()
    (line,) = read_json_lines(run.attempts)
    assert line["first_step_s"] >= round(process_s, 3)
    assert 0 <= line["first_step_after_start_s"] < line["first_step_s"]
    start.stepped()
    assert list(read_json_lines(run.attempts)) == [line]


def test_seconds_sum_all_attempts_that_ended(run: RunDir) -> None:
    append_json_line(run.attempts, {"attempt": 1, "time_start": 100.0, "time_end": 160.0})
    append_json_line(run.attempts, {"attempt": 2, "time_start": 200.0})
    append_json_line(run.attempts, {"attempt": 3, "time_start": 300.0, "time_end": 340.0})
    fourth = attempt(run)
    assert 100.0 <= fourth.seconds() < 160.0


def test_new_attempt_removes_the_failure_of_the_previous_one(run: RunDir) -> None:
    run.failure.write_text("{}")
    attempt(run)
    assert not run.failure.exists()


def test_new_attempt_of_torchrun_removes_a_failure_under_its_own_name(run: RunDir) -> None:
    """It names an attempt by its port, and the one before may have failed before it had a line."""
    world = replace(worlds(1)[0], master_addr="127.0.0.1")
    record_failure(run, world, "rendezvous", 0, RendezvousError("of the one before"))
    Attempt(run, world)
    assert not run.failure.exists()
    assert record_failure(run, world, "rendezvous", 0, RendezvousError("of this one"))


@pytest.mark.parametrize("is_overwritten", [False, True])
def test_failure_that_a_rank_recorded_before_the_attempt_began_stays(
    run: RunDir, is_overwritten: bool
) -> None:
    """Rank 1 fails while rank 0 is being imported, and rank 0 may then record how the last attempt ended."""
    first, second = worlds(2)
    record_failure(run, second, "rendezvous", 0, DeviceError("no driver"))
    if is_overwritten:
        run.failure.write_text('{"nonce": "of the last attempt"}')
    start = Attempt(run, first)
    record_failure(run, first, "rendezvous", 0, RendezvousError("rank 1 is missing"))
    start.failed(0)
    (line,) = read_attempts(run)
    assert (line.why, line.rank) == ("device", 1)
    assert read_json(run.failure)["message"] == "no driver"


def test_failed_attempt_records_the_first_failure_of_any_rank(run: RunDir) -> None:
    """Rank 0 only loses its peers; rank 3 has the cause."""
    ranks = worlds(4)
    start = Attempt(run, ranks[0])
    start.started(4, resumed=True)
    record_failure(run, ranks[3], "forward", 6, ValueError("bad sample"))
    record_failure(run, ranks[0], "communication", 6, RuntimeError("Connection closed by peer"))
    start.failed(6)
    (line,) = read_json_lines(run.attempts)
    assert (line["why"], line["rank"], line["step"], line["last_step"]) == ("exception", 3, 6, 6)
    assert line["blamed"] is None
    assert "time_end" in line


def test_reason_of_the_last_attempt_can_be_replaced(run: RunDir) -> None:
    for _ in range(2):
        attempt(run).ended(3, "SIGTERM")
    explain_last(run, "preempted", by_job="99")
    first, second = read_attempts(run)
    assert first.why == "SIGTERM"
    assert (second.why, second.last_step) == ("preempted", 3)
    assert [line.get("by_job") for line in read_json_lines(run.attempts)] == [None, "99"]


def test_explaining_a_missing_attempt_writes_nothing(run: RunDir) -> None:
    explain_last(run, "preempted")
    assert not run.attempts.exists()


def test_torn_and_foreign_lines_are_ignored(run: RunDir) -> None:
    attempt(run).ended(3, "SIGTERM")
    with open(run.attempts, "a") as stream:
        stream.write('{"who": "somebody"}\n{"attempt": 2, "time_st')
    second = attempt(run)
    second.started(3, resumed=True)
    assert second.number == 2
    assert [line["attempt"] for line in read_json_lines(run.attempts)] == [1, 2]


def test_full_disk_does_not_end_the_attempt(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("toolkit.run.attempts.attempt.append_json_line", full)
    monkeypatch.setattr("toolkit.run.attempts.records.write_atomic", full)
    start = attempt(run)
    start.started(0, resumed=False)
    start.ended(3, "finished")
    assert start.number == 1


def join_rank(world: World, folder: Path) -> tuple[int, int]:
    run = RunDir(folder)
    start = Attempt(run, world)
    with joined(world, folder) as group:
        start.joined(group, 0)
        start.started(0, resumed=False)
        start.ended(3, "finished")
        return os.getpid(), start.number


class OneGpu:
    """The only rank of a run, on a GPU."""

    world, device, gpu = World.single(), "cuda:0", "GPU-8f3a"

    def gather(self, value: Any) -> list[Any]:
        return [value]


def test_rank_record_has_the_uuid_of_its_gpu_and_how_many_were_usable(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1234")
    attempt(run).joined(OneGpu(), 4)
    (start,) = read_attempts(run)
    (rank,) = read_json_lines(run.ranks(start.nonce))
    assert (rank["device"], rank["gpu"], rank["usable_gpus"]) == ("cuda:0", "GPU-8f3a", 4)


def test_ranks_are_recorded_once_by_one_process(tmp_path: Path) -> None:
    append_json_line(RunDir(tmp_path).attempts, {"attempt": 1, "time_start": 1.0})
    pids, numbers = zip(*in_ranks(3, join_rank, tmp_path), strict=True)
    assert numbers == (2, 2, 2)
    _, line = read_json_lines(RunDir(tmp_path).attempts)
    assert (line["world_size"], line["device"], len(line["hosts"])) == (3, "cpu", 1)
    ranks = list(read_json_lines(RunDir(tmp_path).ranks(line["nonce"])))
    assert [(rank["rank"], rank["local_rank"], rank["pid"]) for rank in ranks] == [
        (number, number, pid) for number, pid in enumerate(pids)
    ]
    assert len({(rank["master_addr"], rank["master_port"]) for rank in ranks}) == 1
