"""Each rank gets its own GPU for any launcher; impossible assignments are refused with the ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.support.nvml import Library, gpu
from tests.toolkit.support.ranks import in_ranks, run_ranks
from toolkit.config.schema import Train
from toolkit.distributed import process_group
from toolkit.distributed.devices import (
    HostGpus,
    RankDevices,
    VisibleGpu,
    assign_device,
    check_gpus,
    choose_device,
    find_devices,
)
from toolkit.errors import DeviceError, UserError
from toolkit.files import read_json_lines
from toolkit.run.failure.classes import FAILURE_CLASSES, Policy, class_of
from toolkit.run.run_dir import RunDir
from toolkit.system import idle_gpus
from toolkit.system.world import World


def visible_gpu(uuid: str, name: str = "H100") -> VisibleGpu:
    return VisibleGpu(uuid=uuid, whole=uuid, name=name)


def ranks_of(*hosts: Sequence[str]) -> list[RankDevices]:
    """Ranks of hosts a, b, …, each host given as what its ranks see, such as `01` for two GPUs."""
    found: list[RankDevices] = []
    for host, ranks in zip("abcdef", hosts, strict=False):
        for local_rank, visible in enumerate(ranks):
            found.append(
                RankDevices(
                    rank=len(found),
                    local_rank=local_rank,
                    host=host,
                    processor="AVX2",
                    gpus=tuple(visible_gpu(f"{host}{number}") for number in visible),
                )
            )
    return found


def taken(
    every: Sequence[RankDevices], environ: Mapping[str, str] | None = None
) -> list[tuple[str, int | None]]:
    assigned = [assign_device(every, rank, environ or {}) for rank in range(len(every))]
    return [(each.gpu, each.device.index) for each in assigned]


@pytest.mark.parametrize(
    "every, expected",
    [
        # gres or gpus-per-node: all tasks see all GPUs of the host.
        (ranks_of(["0123"] * 4), ["a0", "a1", "a2", "a3"]),
        (ranks_of(["01", "01"], ["01", "01"]), ["a0", "a1", "b0", "b1"]),
        # gpus-per-task with a cgroup for each task: each sees one, under number 0.
        (ranks_of(["0", "1", "2"]), ["a0", "a1", "a2"]),
        # gpus-per-task=2: each task sees two of its own.
        (ranks_of(["01", "23"]), ["a0", "a2"]),
        # gpu-bind=closest: two sockets with two GPUs each, tasks in blocks.
        (ranks_of(["01", "01", "23", "23"]), ["a0", "a1", "a2", "a3"]),
        # Tasks dealt out to the sockets in turn: a local rank modulo 2 would put two on one GPU.
        (ranks_of(["01", "23", "01", "23"]), ["a0", "a2", "a1", "a3"]),
        # Unequal shares: who has a choice makes room.
        (ranks_of(["01", "0"]), ["a1", "a0"]),
        # Uneven hosts.
        (ranks_of(["012"] * 3, ["0"]), ["a0", "a1", "a2", "b0"]),
    ],
)
def test_no_two_ranks_share_a_gpu(every: list[RankDevices], expected: list[str]) -> None:
    found = taken(every)
    assert [uuid for uuid, _ in found] == expected
    for devices, (uuid, index) in zip(every, found, strict=True):
        assert index is not None
        assert devices.gpus[index].uuid == uuid


@given(st.integers(1, 6), st.data())
def test_every_rank_gets_a_gpu_if_there_are_enough(count: int, data: st.DataObject) -> None:
    """Each rank sees the GPU that is meant for it, and any others, in any order."""
    shown = [
        "".join(
            data.draw(st.permutations(sorted({str(rank), *data.draw(st.sets(st.sampled_from("012345")))})))
        )
        for rank in range(count)
    ]
    uuids = [uuid for uuid, _ in taken(ranks_of(shown))]
    assert len(set(uuids)) == count
    assert all(uuid[1:] in own for uuid, own in zip(uuids, shown, strict=True))


@pytest.mark.parametrize(
    "every, named",
    [
        (ranks_of(["0", "0"]), ["ranks 0, 1 on a", "a0", "Start 1", "train.device=cpu"]),
        (ranks_of(["01"] * 3), ["ranks 0, 1, 2 on a", "a0", "a1", "Start 2", "train.device=cpu"]),
        (ranks_of(["0"], ["0", "0"]), ["ranks 1, 2 on b", "b0", "Start 1"]),
        (ranks_of(["01", "01"], [""]), ["rank 2 on b can use no GPU"]),
    ],
)
def test_too_few_gpus_are_refused_with_the_ranks_and_gpus(every: list[RankDevices], named: list[str]) -> None:
    for rank in range(len(every)):
        with pytest.raises(UserError) as refusal:
            assign_device(every, rank, {})
        assert all(part in str(refusal.value) for part in named), refusal.value
    assert class_of(refusal.value) == "input"


def test_ranks_may_share_a_gpu_if_nccl_allows_it() -> None:
    allowed = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
    assert taken(ranks_of(["0", "0"]), allowed) == [("a0", 0), ("a0", 0)]


def test_devices_with_equal_names_are_alike() -> None:
    assert assign_device(ranks_of(["01", "01"]), 0, {}).is_alike
    unlike = [
        *ranks_of(["0"]),
        RankDevices(rank=1, local_rank=0, host="b", processor="AVX2", gpus=(visible_gpu("b0", "A100"),)),
    ]
    assert not assign_device(unlike, 0, {}).is_alike
    processors = [RankDevices(rank=0, local_rank=0, host="a", processor=kind) for kind in ("AVX2", "AVX512")]
    assert not assign_device(processors, 0, {}).is_alike
    assert assign_device(processors[:1], 0, {}).device == torch.device("cpu")


# -- what one process finds


@pytest.mark.parametrize(
    "facts",
    [
        # A broken driver.
        HostGpus(usable=0, why="Driver/library version mismatch", present=4, granted=2, visible="0,1"),
        # A GPU that has fallen off the bus.
        HostGpus(usable=0, why="No CUDA GPUs are available", present=0, granted=1, visible="0"),
        HostGpus(usable=1, present=2, granted=2, visible="0,1"),
    ],
)
@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_unusable_granted_gpus_blame_the_host(facts: HostGpus, wanted: str) -> None:
    with pytest.raises(DeviceError, match="host-7") as error:
        check_gpus(facts, wanted, "host-7")
    name = class_of(error.value)
    assert FAILURE_CLASSES[name].blames_host
    assert FAILURE_CLASSES[name].policy is Policy.RETRY


def test_torch_without_cuda_is_a_user_error() -> None:
    with pytest.raises(UserError, match="without CUDA"):
        check_gpus(HostGpus(usable=0, is_built=False, present=4, granted=4, visible="0,1,2,3"), "auto", "a")


@pytest.mark.parametrize(
    "facts, said",
    [
        (HostGpus(usable=0, present=4, granted=0), "asked for none"),
        (HostGpus(usable=0, present=1, why="Found no NVIDIA driver"), "Found no NVIDIA driver"),
        (HostGpus(usable=0, present=1, is_built=False), "without CUDA"),
        (HostGpus(usable=0), None),
        *((HostGpus(usable=0, present=4, visible=name), None) for name in ("", "-1", "NoDevFiles")),
    ],
)
def test_unused_gpus_cause_a_warning_unless_they_are_hidden(facts: HostGpus, said: str | None) -> None:
    warning = check_gpus(facts, "auto", "a")
    assert said in warning if said else warning == ""


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
@pytest.mark.parametrize(
    "granted, visible, is_warned",
    [
        (0, None, True),
        # --gpu-bind=none
        (2, None, True),
        (4, None, False),
        # Without a scheduler.
        (None, None, False),
        # A part of a GPU that is shared by time, or the user's own choice.
        (0, "0,1,2,3", False),
    ],
)
def test_usable_gpus_that_were_not_granted_cause_a_warning(
    granted: int | None, visible: str | None, is_warned: bool, wanted: str
) -> None:
    warning = check_gpus(HostGpus(usable=4, granted=granted, visible=visible), wanted, "a")
    assert (f"granted {granted}" in warning) == bool(warning) == is_warned


def test_gpus_that_were_not_granted_are_noted(
    cuda: list[SimpleNamespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    world = World(rank=0, size=1, local_rank=0, local_size=1, gpus=0)
    with process_group.join(RunDir(tmp_path), world, Train()) as group:
        assert group.device == torch.device("cuda", 0)
    (event,) = read_json_lines(RunDir(tmp_path).events)
    assert event["event"] == "gpus_not_granted"


@pytest.mark.parametrize(
    "facts, kind",
    [
        (HostGpus(usable=0), UserError),
        (HostGpus(usable=0, present=4, granted=0), UserError),
        (HostGpus(usable=0, present=4, is_built=False), UserError),
        (HostGpus(usable=0, present=4, visible=""), UserError),
        (HostGpus(usable=0, present=4, why="Found no NVIDIA driver"), DeviceError),
    ],
)
def test_device_cuda_without_usable_gpus_is_refused(facts: HostGpus, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"train\.device"):
        check_gpus(facts, "cuda", "a")


def test_one_mig_part_is_accepted_and_several_are_refused() -> None:
    assert check_gpus(HostGpus(usable=1, granted=1, visible="MIG-1"), "auto", "a") == ""
    with pytest.raises(UserError, match="MIG"):
        check_gpus(HostGpus(usable=1, granted=2, visible="MIG-1,MIG-2"), "auto", "a")


# -- with a fake torch.cuda


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """GPUs that torch is to see."""
    machine = [SimpleNamespace(uuid=f"{number}abc", name="H100") for number in range(2)]
    current: dict[str, Any] = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(machine))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(machine))
    monkeypatch.setattr(torch.cuda, "get_device_properties", machine.__getitem__)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: current.update(device=device.index))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current.get("device", 0))
    return machine


def test_visible_gpus_are_reported_by_uuid(cuda: list[SimpleNamespace]) -> None:
    devices, warning = find_devices(World.single(), "auto", {})
    assert [each.uuid for each in devices.gpus] == ["GPU-0abc", "GPU-1abc"]
    assert warning == ""
    assert find_devices(World.single(), "cpu", {})[0].gpus == ()
    assert choose_device("auto") == torch.device("cuda", 0)


def test_single_process_keeps_its_current_gpu(cuda: list[SimpleNamespace]) -> None:
    torch.cuda.set_device(torch.device("cuda", 1))
    assert choose_device("auto") == torch.device("cuda", 1)
    assert torch.cuda.current_device() == 1
    assert choose_device("cpu") == torch.device("cpu")


def test_ranks_on_two_mig_parts_of_one_gpu_are_refused(
    cuda: list[SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    del cuda[1]
    monkeypatch.setitem(sys.modules, "pynvml", Library([gpu(0)]))
    worlds = [World(rank=rank, size=2, local_rank=rank, local_size=2, gpus=2) for rank in range(2)]
    parts = [
        find_devices(world, "auto", {"CUDA_VISIBLE_DEVICES": f"MIG-{world.rank}"})[0] for world in worlds
    ]
    assert [part.gpus[0].uuid for part in parts] == ["MIG-0", "MIG-1"]
    with pytest.raises(UserError, match="MIG-0"):
        assign_device(parts, 0, {})
    assert assign_device(parts[:1], 0, {}).gpu == "MIG-0"


def test_a_failing_cuda_driver_is_reported_with_its_message(
    cuda: list[SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.clear()
    monkeypatch.setattr(torch.cuda, "init", Mock(side_effect=RuntimeError("Driver too old\nsee the manual")))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(idle_gpus, "count_present", lambda: 1)
    _, warning = find_devices(World.single(), "auto", {})
    assert warning.endswith("Driver too old")
    granted = World(rank=0, size=1, local_rank=0, local_size=1, gpus=1)
    with pytest.raises(DeviceError, match=r"Driver too old$"):
        find_devices(granted, "auto", {})


# -- all ranks


def join_with_gpus(world: World, folder: Path, shown: Sequence[str]) -> str:
    """Join as a rank that is shown these GPUs; NCCL is not reached, or fails at once, for there is none."""

    def show(world: World, wanted: str) -> tuple[RankDevices, str]:
        return ranks_of(shown)[world.rank], ""

    patch = pytest.MonkeyPatch()
    patch.setattr(process_group, "find_devices", show)
    patch.setattr(process_group, "make_current", lambda assigned: assigned)
    with process_group.join(RunDir(folder), world, Train()) as group:
        return f"{group.device} {group.gpu} {group.is_alike}"


@pytest.mark.parametrize(
    "shown, said", [(["0", "0"], "ranks 0, 1 on a share H100 a0"), (["0", ""], "rank 1 on a can use no GPU")]
)
def test_ranks_with_conflicting_gpus_are_refused_before_nccl_starts(
    shown: list[str], said: str, tmp_path: Path
) -> None:
    for ended in run_ranks(2, join_with_gpus, tmp_path, shown):
        assert ended.error.startswith("UserError")
        assert said in ended.error


def test_ranks_on_the_cpu_join(tmp_path: Path) -> None:
    assert in_ranks(2, join_with_gpus, tmp_path, ["", ""]) == ["cpu  True"] * 2
