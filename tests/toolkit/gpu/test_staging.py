"""A training state on a GPU is copied into pinned memory that is no larger than its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load

from tests.toolkit.gpu.device import CUDA, Device, pretended_device
from tests.toolkit.support.checkpointing import new_state
from toolkit.checkpoint.writing import staging
from toolkit.checkpoint.writing.direct_io import BLOCK
from toolkit.checkpoint.writing.staging import Buffer, Staging
from toolkit.run.run_dir import WEIGHTS


@pytest.fixture
def device() -> Iterator[Device]:
    with pretended_device() as pretended:
        yield pretended


def filled(buffer: Buffer, size: int) -> torch.Tensor:
    tensor = torch.arange(size, dtype=torch.uint8, device=CUDA)
    buffer.fill({"a": tensor}, {})
    return tensor.cpu()


def is_inherited(buffer: Buffer) -> bool:
    """Whether forked processes have the memory of a buffer, by the kernel's list of this process's memory."""
    first, covers = torch.frombuffer(next(buffer.pieces()), dtype=torch.uint8).data_ptr(), False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            covers = int(found[1], 16) <= first < int(found[2], 16)
        elif covers and line.startswith("VmFlags:"):
            return "dc" not in line.split()
    raise AssertionError(f"no memory at {first:x}")


def test_pinned_memory_is_as_large_as_the_file(device: Device) -> None:
    buffer = Buffer()
    tensor = filled(buffer, (1 << 16) + 1)
    (pinned,) = device.pinned.values()
    assert buffer.is_pinned
    assert buffer.size <= pinned <= buffer.size + BLOCK
    assert torch.equal(load(b"".join(buffer.pieces()))["a"], tensor)


def test_only_pinned_memory_is_kept_from_forked_processes(device: Device) -> None:
    """On older kernels the GPU would write into a page that the process no longer has."""
    pinned, pageable = Buffer(), Buffer()
    filled(pinned, 10 * BLOCK)
    pageable.fill({"a": torch.zeros(10 * BLOCK, dtype=torch.uint8)}, {})
    assert [is_inherited(each) for each in (pinned, pageable)] == [False, True]


def test_pinned_memory_is_released_on_a_new_layout_and_on_deletion(device: Device) -> None:
    buffer = Buffer()
    filled(buffer, 10)
    filled(buffer, 2 * BLOCK)
    assert len(device.pinned) == 1
    del buffer
    assert not device.pinned


def test_copy_synchronizes_with_the_device_once(device: Device) -> None:
    state = new_state()
    state.model.to(CUDA)
    copied = Staging()
    copied.fill(state)
    device.waits.clear()
    copied.fill(state)
    assert len(device.waits) == 1
    weights = load(b"".join(copied.files()[WEIGHTS]))
    assert all(torch.equal(weights[name], value.cpu()) for name, value in state.model.state_dict().items())


def test_memory_that_cannot_be_pinned_is_used_as_it_is(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(torch.cuda.CudaError):
        def __init__(self) -> None:
            """Without the library of CUDA, which would put the code into words."""

    monkeypatch.setattr(staging, "pin", Mock(side_effect=Refused))
    buffer = Buffer()
    tensor = filled(buffer, 10)
    assert not buffer.is_pinned
    assert torch.equal(load(b"".join(buffer.pieces()))["a"], tensor)
