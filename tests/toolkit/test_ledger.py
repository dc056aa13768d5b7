"""One line for each start of a run, whether it ended in order or not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from tests.toolkit.ranks import in_ranks
from toolkit import distributed
from toolkit.config.schema import Train
from toolkit.distributed import Group
from toolkit.files import append_json_line, read_json_lines
from toolkit.ledger import Attempt
from toolkit.rundir import RunDir
from toolkit.world import World


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "0")
    return RunDir(tmp_path)


def attempt(run: RunDir) -> Attempt:
    return Attempt(run, Group(World.single(), torch.device("cpu")))


def test_start_is_one_line_that_its_end_completes(run: RunDir) -> None:
    first = attempt(run)
    first.started(0, resumed=False)
    (line,) = read_json_lines(run.attempts)
    assert "why" not in line
    first.ended(12, "SIGTERM")
    second = attempt(run)
    second.started(12, resumed=True)
    second.ended(40, "finished")
    lines = list(read_json_lines(run.attempts))
    assert [(line["attempt"], line["first_step"], line["last_step"], line["why"]) for line in lines] == [
        (1, 0, 12, "SIGTERM"),
        (2, 12, 40, "finished"),
    ]
    assert [line["resumed"] for line in lines] == [False, True]


def test_killed_start_stays_as_it_began_and_counts(run: RunDir) -> None:
    attempt(run).started(0, resumed=False)
    later = attempt(run)
    assert later.number == 2
    later.started(4, resumed=True)
    later.ended(9, "finished")
    killed, ended = read_json_lines(run.attempts)
    assert "time_end" not in killed
    assert ended["attempt"] == 2


def test_seconds_are_those_of_all_starts_that_ended(run: RunDir) -> None:
    append_json_line(run.attempts, {"attempt": 1, "time_start": 100.0, "time_end": 160.0})
    append_json_line(run.attempts, {"attempt": 2, "time_start": 200.0})
    append_json_line(run.attempts, {"attempt": 3, "time_start": 300.0, "time_end": 340.0})
    third = attempt(run)
    assert 100.0 <= third.seconds() < 160.0


def test_start_removes_the_failure_of_the_one_before(run: RunDir) -> None:
    run.failure.write_text("{}")
    attempt(run)
    assert not run.failure.exists()


def join_rank(world: World, folder: Path) -> int:
    run = RunDir(folder)
    with distributed.join(run, world, Train(device="cpu")) as group:
        each = Attempt(run, group)
        each.started(0, resumed=False)
        each.ended(3, "finished")
        return os.getpid()


def test_ranks_are_written_down_once_and_by_one(tmp_path: Path) -> None:
    pids = in_ranks(3, join_rank, tmp_path)
    (line,) = read_json_lines(RunDir(tmp_path).attempts)
    assert (line["world_size"], line["device"], len(line["hosts"])) == (3, "cpu", 1)
    ranks = [json.loads(text) for text in RunDir(tmp_path).ranks(line["nonce"]).read_text().splitlines()]
    assert [(rank["rank"], rank["local_rank"], rank["pid"]) for rank in ranks] == [
        (number, number, pid) for number, pid in enumerate(pids)
    ]
    assert len({(rank["master_addr"], rank["master_port"]) for rank in ranks}) == 1
