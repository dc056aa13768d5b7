"""The pretended device behaves like a GPU in all respects that other tests rely on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.support.patience import PATIENCE_S
from tests.toolkit.gpu.collectives import pretended_gpu
from tests.toolkit.gpu.device import CUDA, Device, pretended_device
from tests.toolkit.support.checkpointing import save
from tests.toolkit.support.ranks import in_ranks, run_ranks
from toolkit.checkpoint.loading.broadcast import broadcast_checkpoint
from toolkit.config.schema import Train
from toolkit.distributed import process_group
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.system.world import World


@pytest.fixture
def device() -> Iterator[Device]:
    with pretended_device() as pretended:
        yield pretended


def test_tensors_stay_on_their_device(device: Device) -> None:
    there, here = torch.arange(6, device=CUDA).view(2, 3)[1], torch.ones(3)
    assert (there.device, (there * 2).device, torch.zeros_like(there).device) == (CUDA, CUDA, CUDA)
    assert (here.device, there.cpu().device) == (torch.device("cpu"), torch.device("cpu"))
    assert here.to(there).is_cuda
    with pytest.raises(RuntimeError, match="on one device"):
        there + here
    assert (there + torch.tensor(1)).is_cuda
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()


@pytest.mark.parametrize(
    "use",
    [
        lambda tensor: tensor.sum().item(),
        lambda tensor: bool(tensor.any()),
        lambda tensor: tensor.tolist(),
        lambda tensor: tensor.cpu(),
        lambda tensor: tensor.nonzero(),
        lambda tensor: tensor[tensor > 1],
        lambda tensor: tensor.repeat_interleave(tensor),
        lambda tensor: torch.ones(3).to(CUDA),
        lambda tensor: tensor.new_tensor([1, 2]),
        lambda tensor: torch.cuda.synchronize(),
    ],
)
def test_synchronizing_operations_are_noted(device: Device, use: Callable[..., object]) -> None:
    tensor = torch.arange(3, device=CUDA)
    assert device.waits == []
    use(tensor)
    assert len(device.waits) == 1


def go_on_before_the_others_come(world: World, folder: Path, is_on_device: bool) -> list[float]:
    """Rank 0 comes once rank 1 has gone on, or after a while."""
    gone_on = folder / "gone on"
    with pretended_gpu(), process_group.join(RunDir(folder), world, Train()):
        values = torch.ones(2, device=CUDA if is_on_device else "cpu")
        deadline = time.monotonic() + (PATIENCE_S if is_on_device else 0.3)
        while world.is_main and not gone_on.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        came_first = gone_on.exists()
        dist.all_reduce(values)
        if not world.is_main:
            gone_on.touch()
        return [*values.tolist(), float(came_first)]


@pytest.mark.parametrize("is_on_device", [True, False])
def test_all_reduce_on_the_device_does_not_block_the_host(is_on_device: bool, tmp_path: Path) -> None:
    first, second = in_ranks(2, go_on_before_the_others_come, tmp_path, is_on_device)
    assert first == [2.0, 2.0, float(is_on_device)]
    assert second[:2] == [2.0, 2.0]


def sum_over_another_backend(world: World, folder: Path) -> None:
    with pretended_gpu(), process_group.join(RunDir(folder), world, Train(device="cpu")):
        dist.all_reduce(torch.ones(2, device=CUDA))


def test_all_reduce_with_the_wrong_backend_raises(tmp_path: Path) -> None:
    for ended in run_ranks(2, sum_over_another_backend, tmp_path):
        assert "no nccl" in ended.error


def carried(world: World, folder: Path) -> list[bool]:
    """Ranks 1 and 2 are on another machine than rank 0, with a folder of their own."""
    with pretended_gpu(), process_group.join(RunDir(folder / "run"), world, Train()) as joined:
        placed = replace(world, local_rank=max(world.rank - 1, 0))
        group = replace(joined, world=placed, shares_folder=False)
        checkpoint = RunDir(folder / ("theirs" if world.rank else "ours")).checkpoint(7)
        broadcast_checkpoint(checkpoint, group)
        found = (checkpoint / MANIFEST).is_file()
        group.barrier()
        return [found]


def test_broadcast_checkpoint_exists_for_every_rank_of_the_machine(tmp_path: Path) -> None:
    ours = RunDir(tmp_path / "ours")
    ours.path.mkdir()
    save(ours, 7, best=7)
    assert in_ranks(3, carried, tmp_path) == [[True]] * 3
