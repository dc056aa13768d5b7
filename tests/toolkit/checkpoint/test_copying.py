"""Tensors are copied whole, however many threads share the work, and a fault is not lost in one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from toolkit.checkpoint import copying
from toolkit.checkpoint.copying import copy


@pytest.fixture(params=[1, 2, 7])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A process with one thread for arithmetic that may use so many cores; tensors are cut small."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)))
    monkeypatch.setattr(copying, "_SHARE", 64)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield request.param
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "shape", [(), (0,), (1,), (1000,), (7, 33), (40, 1, 3)], ids=lambda shape: "x".join(map(str, shape))
)
def test_tensors_arrive_whole(shape: tuple[int, ...], cores: int) -> None:
    sources = [torch.arange(float(torch.Size(shape).numel())).reshape(shape) + n for n in range(9)]
    targets = [torch.full(shape, -1.0) for _ in sources]
    copy(zip(targets, sources, strict=True))
    assert all(torch.equal(target, source) for target, source in zip(targets, sources, strict=True))


def test_other_memory_layout_and_parameters_are_copied(cores: int) -> None:
    turned = torch.nn.Parameter(torch.arange(6000.0).reshape(60, 100)).T
    target = torch.zeros(100, 60)
    copy([(target, turned)])
    assert torch.equal(target, turned)
    assert not target.requires_grad


def test_fault_reaches_who_waits(cores: int) -> None:
    pairs = [(torch.zeros(100), torch.ones(100)) for _ in range(20)]
    with pytest.raises(RuntimeError, match="must match"):
        copy([*pairs, (torch.zeros(2), torch.ones(3))])


def test_threads_are_as_many_as_cores_and_work_allow(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    assert [copying._threads(size) for size in (0, 64, 128, 6400)] == [0, 1, min(2, cores), min(4, cores)]


def test_torch_copies_alone_where_it_has_threads_itself(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert copying._threads(6400) == 1
