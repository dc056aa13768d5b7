"""Nothing that another process sends is unpickled or executed: a pickle can run any code of its sender."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from tests.tiers import first_quick
from tests.toolkit.support.ranks import in_ranks, joined, run_ranks
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import Attempt, train_rank
from toolkit.checkpoint.loading.broadcast import broadcast_checkpoint
from toolkit.distributed.process_group import Group
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import MANIFEST
from toolkit.system.world import World


class Unpickled(BaseException):
    """Something was unpickled."""


def refuse(*arguments: Any, **options: Any) -> Any:
    raise Unpickled


def without_pickle(world: World, function: Any, *arguments: Any) -> Any:
    """Call a function as one rank, which fails where it unpickles."""
    names = ("loads", "load", "Unpickler")
    patches = [patch.object(pickle, name, refuse) for name in names]
    patches.append(patch.object(torch.distributed.distributed_c10d, "_unpickler", refuse))
    for each in patches:
        each.start()
    try:
        return function(world, *arguments)
    finally:
        for each in patches:
            each.stop()


def exchange(world: World, folder: Path) -> list[Any]:
    with joined(world, folder) as group:
        group.main_first(lambda: None)
        group.barrier()
        return [
            group.agree({"from": world.rank, "text": "ä", "none": None}),
            group.gather(["x" * world.rank, world.rank]),
            group.gather(""),
            group.share(bytes([world.rank, 255])),
            group.share(b""),
        ]


def bytes_of_others(world: World, folder: Path) -> list[bytes]:
    with joined(world, folder) as group:
        if world.is_main:
            return [group.receive(rank) for rank in (1, 2, 1)]
        for number in range(3 - world.rank):
            group.send_to_main(bytes([world.rank]) * number)
        return []


def test_rank_0_receives_bytes_in_order_without_unpickling(tmp_path: Path) -> None:
    found, *others = in_ranks(3, without_pickle, bytes_of_others, tmp_path)
    assert found == [b"", b"", b"\x01"]
    assert others == [[], []]


def test_ranks_exchange_values_and_bytes_without_unpickling(tmp_path: Path) -> None:
    expected = [
        {"from": 0, "text": "ä", "none": None},
        [["", 0], ["x", 1], ["xx", 2]],
        ["", "", ""],
        b"\x00\xff",
        b"",
    ]
    assert in_ranks(3, without_pickle, exchange, tmp_path) == [expected] * 3


@pytest.mark.parametrize("reduction", first_quick(["exact", "fast"]))
def test_a_whole_run_unpickles_nothing(tmp_path: Path, reduction: str) -> None:
    """With everything that its ranks tell each other: data, quarantine, checkpoints, weights, the end."""
    settings = ("train.quarantine=2", "train.check_ranks_every=1", f"train.reduction={reduction}")
    run = create_run(tiny(tmp_path / "data", *settings), tmp_path / "runs")
    stopped = Attempt(size=2, stop_after=3)
    assert in_ranks(2, without_pickle, train_rank, run.path, stopped) == ["yielded"] * 2
    assert in_ranks(2, without_pickle, train_rank, run.path, Attempt(size=2)) == ["finished"] * 2


def test_a_value_that_is_not_json_is_refused_even_by_a_single_process() -> None:
    group = Group(World.single(), torch.device("cpu"))
    for value in (b"bytes", {1, 2}, Path("x")):
        with pytest.raises(TypeError):
            group.agree(value)
        with pytest.raises(TypeError):
            group.gather(value)


def carry_from(world: World, folder: Path, names: list[str]) -> str:
    own = folder / str(world.rank) / "step_00000001"
    if world.is_main:
        own.mkdir(parents=True)
        (own / MANIFEST).write_text("{}")
        (own / "weights").write_bytes(bytes(range(256)) * 3)
    with joined(world, folder) as group:
        apart = Group(
            World(rank=world.rank, size=world.size, local_rank=0, local_size=1), group.device, False
        )
        chunks = [(name, b"content") for name in names]
        with (
            patch("toolkit.checkpoint.loading.broadcast._chunks", lambda _: iter(chunks))
            if names
            else nullcontext()
        ):
            broadcast_checkpoint(own, apart)
    return (own / "weights").read_bytes().hex()


def test_a_checkpoint_is_broadcast_without_unpickling(tmp_path: Path) -> None:
    expected = (bytes(range(256)) * 3).hex()
    assert in_ranks(2, without_pickle, carry_from, tmp_path, []) == [expected] * 2


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", ""])
def test_a_broadcast_file_name_outside_the_checkpoint_is_refused(tmp_path: Path, name: str) -> None:
    _, receiver = run_ranks(2, carry_from, tmp_path, [name])
    assert receiver.error.startswith("CheckpointError")
    assert repr(name) in receiver.error
