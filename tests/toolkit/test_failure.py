"""failure.json explains the first failure of a start, not what followed from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.ranks import in_ranks, worlds
from tests.toolkit.tiny import events
from toolkit.errors import (
    CheckpointError,
    DataError,
    RendezvousError,
    TrainingDiverged,
)
from toolkit.failure import describe, record_failure
from toolkit.files import read_json
from toolkit.rundir import RunDir
from toolkit.world import World

PEER_LOST = RuntimeError("[../pair.cc:534] Connection closed by peer [127.0.0.1]:40001")


class OutOfMemoryError(RuntimeError):
    """Named like CUDA's."""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.mark.parametrize(
    "error, name, advice",
    [
        (DataError("no such column"), "input", "Correct"),
        (TrainingDiverged("the loss is nan"), "diverged", "same step again"),
        (RendezvousError("rank 3 is missing"), "rendezvous", "network"),
        (CheckpointError("all are bad"), "checkpoint", "space"),
        (MemoryError(), "out_of_memory", "accumulation"),
        (OutOfMemoryError("CUDA out of memory"), "out_of_memory", "accumulation"),
        (PEER_LOST, "peer_lost", "Another rank"),
        (ModuleNotFoundError("No module named 'x'"), "import", "Install"),
        (PermissionError(13, "denied"), "io", "file system"),
        (ZeroDivisionError(), "exception", "traceback"),
    ],
)
def test_failure_has_a_class_and_advice(error: BaseException, name: str, advice: str) -> None:
    found, what_to_do = describe(error)
    assert found == name
    assert advice in what_to_do


def test_failure_says_who_where_when_and_why(run: RunDir) -> None:
    world = worlds(4)[2]
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("in the model")
    assert record_failure(run, world, "backward", 17, caught.value)
    record = read_json(run.failure)
    assert (record["rank"], record["phase"], record["step"], record["class"]) == (
        2,
        "backward",
        17,
        "exception",
    )
    assert record["message"] == "ZeroDivisionError: in the model"
    assert "test_failure.py" in record["traceback"]
    assert record["nonce"] == world.nonce
    assert {"time", "host", "advice"} <= record.keys()
    assert [event["rank"] for event in events(run, "failure")] == [2]


def test_message_for_users_stands_without_the_name_of_its_class(run: RunDir) -> None:
    record_failure(run, World.single(), "data preparation", 0, DataError("films.tsv is empty"))
    assert read_json(run.failure)["message"] == "films.tsv is empty"


def test_first_failing_rank_stands(run: RunDir) -> None:
    first, second = worlds(2)
    assert record_failure(run, second, "forward", 3, ValueError("cause"))
    assert not record_failure(run, first, "forward", 3, KeyError("later"))
    assert read_json(run.failure)["message"] == "ValueError: cause"
    assert len(events(run, "failure")) == 2


def test_consequence_gives_way_to_the_cause_and_the_cause_to_nothing(run: RunDir) -> None:
    first, second = worlds(2)
    assert record_failure(run, first, "communication", 3, PEER_LOST)
    assert record_failure(run, second, "forward", 3, ValueError("cause"))
    assert not record_failure(run, first, "communication", 3, PEER_LOST)
    assert read_json(run.failure)["message"] == "ValueError: cause"


def test_failure_of_an_earlier_start_gives_way(run: RunDir) -> None:
    """A start that fails before it has begun has not removed it."""
    record_failure(run, worlds(1, "first")[0], "forward", 3, ValueError("of the first start"))
    assert record_failure(run, worlds(1, "second")[0], "rendezvous", 0, RendezvousError("of the second"))
    assert read_json(run.failure)["nonce"] == "second"


def fail(world: World, path: Path) -> bool:
    return record_failure(RunDir(path), world, "forward", 1, ValueError(f"rank {world.rank}"))


def test_of_ranks_that_fail_together_one_is_written_whole(run: RunDir) -> None:
    won = in_ranks(4, fail, run.path)
    # All ranks of one start have one nonce.
    assert won.count(True) == 1
    assert read_json(run.failure)["message"] == f"ValueError: rank {won.index(True)}"
