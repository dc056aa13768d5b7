"""The least busy visible GPUs are chosen; a machine without GPUs is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.support.nvml import Library, NVMLError, gpu
from toolkit.errors import UserError
from toolkit.system import idle_gpus
from toolkit.system.idle_gpus import Gpu, NoGpus, least_busy

BUSY = [gpu(0, 9000, 90), gpu(1, 10, 50), gpu(2, 10, 5), gpu(3, 0, 99)]


def indices(
    count: int, machine: list[Gpu], visible: str | None = None, order: str | None = None
) -> list[int]:
    return [each.index for each in least_busy(count, machine, visible, order)]


def test_gpus_are_ranked_by_memory_then_load_then_bus_order() -> None:
    assert indices(4, BUSY) == [3, 2, 1, 0]
    assert indices(2, BUSY) == [3, 2]
    assert indices(2, [gpu(number) for number in range(4)]) == [0, 1]


@pytest.mark.parametrize(
    "visible, expected",
    [
        ("0,1", [1, 0]),
        ("GPU-0abc,GPU-2", [2, 0]),
        ("1, 3", [3, 1]),
        # CUDA sees nothing from the first entry on that names none, or one that was named before.
        ("1,0,9,3", [1, 0]),
        ("1,0,-1,3", [1, 0]),
        ("1,0,1,3", [1, 0]),
    ],
)
def test_only_visible_gpus_are_chosen(visible: str, expected: list[int]) -> None:
    assert indices(2, BUSY, visible) == expected


@pytest.mark.parametrize("visible", ["", "-1", "NoDevFiles", "GPU-9"])
def test_choosing_without_visible_gpus_is_refused(visible: str) -> None:
    with pytest.raises(UserError, match="1 GPUs are wanted, but there are 0 among CUDA_VISIBLE_DEVICES="):
        least_busy(1, BUSY, visible)


def test_more_gpus_than_available_are_refused_with_both_numbers() -> None:
    with pytest.raises(UserError, match="5 GPUs are wanted, but there are 4 on this machine"):
        least_busy(5, BUSY, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8), st.data())
def test_chosen_gpus_are_the_least_busy(loads: list[tuple[int, int]], data: st.DataObject) -> None:
    machine = [gpu(index, *load) for index, load in enumerate(loads)]
    count = data.draw(st.integers(1, len(machine)))
    chosen = least_busy(count, machine, None)
    left = [each for each in machine if each not in chosen]
    assert len(chosen) == count
    for one in chosen:
        for other in left:
            assert (one.memory_used_mb, one.utilisation) <= (other.memory_used_mb, other.utilisation)


def test_numbers_of_unequal_gpus_need_cuda_device_order() -> None:
    machine = [gpu(0, name="A100"), gpu(1, name="V100")]
    with pytest.raises(UserError, match=r"names GPU 1, .* Set that to PCI_BUS_ID"):
        least_busy(1, machine, "1")
    assert indices(1, machine, "1", "PCI_BUS_ID") == [1]
    assert indices(1, machine, "GPU-1") == [1]


def test_choosing_among_mig_parts_is_refused() -> None:
    with pytest.raises(UserError, match="names a part of a GPU, MIG-1"):
        least_busy(1, BUSY, "MIG-1")


# -- the library, which no machine without a GPU can answer for


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library(BUSY)
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    return stand_in


def test_chosen_gpus_are_set_by_uuid_in_cuda_visible_devices(library: Library) -> None:
    environ = idle_gpus.choose(2, {"HOME": "/home/me", "CUDA_VISIBLE_DEVICES": "0,1,2"})
    assert environ == {"HOME": "/home/me", "CUDA_VISIBLE_DEVICES": "GPU-2abc,GPU-1abc"}
    assert library.open == 0


def test_a_gpu_with_unknown_load_counts_as_idle(library: Library) -> None:
    library.machine = [gpu(0, 10, 5), gpu(1, 10, -1)]
    assert idle_gpus.choose(1, {})["CUDA_VISIBLE_DEVICES"] == "GPU-1abc"


def test_count_visible_counts_the_visible_gpus(library: Library) -> None:
    assert idle_gpus.count_visible({}) == 4
    assert idle_gpus.count_visible({"CUDA_VISIBLE_DEVICES": "2,3"}) == 2
    library.fault = "Driver Not Loaded"
    assert idle_gpus.count_visible({}) == 0


def test_gpu_that_tells_its_memory_only_to_root_is_counted_and_chosen(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In MIG mode the library refuses to tell an ordinary user the memory of the whole GPU."""

    def refuse(handle: Gpu) -> None:
        raise NVMLError("Insufficient Permissions")

    monkeypatch.setattr(library, "nvmlDeviceGetMemoryInfo", refuse)
    assert idle_gpus.count_visible({}) == 4
    assert idle_gpus.choose(1, {})["CUDA_VISIBLE_DEVICES"] == "GPU-2abc"


def test_process_on_parts_of_a_gpu_sees_one_device_with_and_without_the_library(library: Library) -> None:
    assert idle_gpus.count_visible({"CUDA_VISIBLE_DEVICES": "MIG-1,MIG-2"}) == 1
    library.fault = "Driver Not Loaded"
    assert idle_gpus.count_visible({"CUDA_VISIBLE_DEVICES": "MIG-1"}) == 1


def test_a_missing_driver_is_reported(library: Library) -> None:
    library.fault = "Driver Not Loaded"
    with pytest.raises(NoGpus, match="no NVIDIA GPU can be chosen on this machine: Driver Not Loaded"):
        idle_gpus.choose(1, {})


def test_a_missing_gpu_library_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoGpus, match="needs the package nvidia-ml-py: pip install nvidia-ml-py"):
        idle_gpus.read_gpus()


def test_visible_gpus_are_in_the_order_of_cuda_visible_devices(library: Library) -> None:
    assert [each.index for each in idle_gpus.visible_gpus({})] == [0, 1, 2, 3]
    assert [each.index for each in idle_gpus.visible_gpus({"CUDA_VISIBLE_DEVICES": "3,1"})] == [3, 1]


def test_visible_gpus_of_unequal_types_need_cuda_device_order(library: Library) -> None:
    library.machine = [gpu(0, name="A100"), gpu(1, name="V100")]
    with pytest.raises(UserError, match="CUDA_DEVICE_ORDER"):
        idle_gpus.visible_gpus({})
    ordered = idle_gpus.visible_gpus({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert [each.name for each in ordered] == ["A100", "V100"]


def test_count_present_counts_gpus_despite_a_broken_driver(library: Library, tmp_path: Path) -> None:
    assert idle_gpus.count_present(tmp_path) == 4
    library.fault = "Driver/library version mismatch"
    assert idle_gpus.count_present(tmp_path) == 0
    (tmp_path / "0000:3b:00.0").mkdir()
    assert idle_gpus.count_present(tmp_path) == 1


def test_whole_of_returns_the_gpu_of_a_mig_part(library: Library) -> None:
    assert idle_gpus.whole_of("MIG-3") == "GPU-0abc"
    library.fault = "Driver Not Loaded"
    assert idle_gpus.whole_of("MIG-3") == "MIG-3"
