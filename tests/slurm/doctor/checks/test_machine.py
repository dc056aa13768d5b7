"""What the answers of a machine mean."""

from __future__ import annotations

from typing import Any

import pytest

from slurm.doctor.checks.machine import findings
from slurm.doctor.findings import CHANGE, NOTE, OK, PROBLEM, Finding
from tests.slurm.doctor.clusters import about


def computer(**facts: Any) -> dict[str, Any]:
    fixed: dict[str, Any] = {
        "host": "node7",
        "python": "3.11.7",
        "executable": "/env/bin/python",
        "cpus": {"usable": 8, "online": 64, "quota": None, "model": "EPYC"},
        "memory": {"total_mb": 256 << 10, "available_mb": 200 << 10, "limit_mb": None},
        "shared_memory_mb": 128 << 10,
        "limits": {"open_files": 65536, "processes": None, "locked_memory_kb": None},
        "network": {
            "interfaces": [
                {"name": "lo", "addresses": ["127.0.0.1"], "speed_mbps": None},
                {"name": "eth0", "addresses": ["fe80::1", "10.0.0.7"], "speed_mbps": 25000},
            ],
            "own_address": "10.0.0.7",
            "infiniband": [],
            "socket_ifname": {},
        },
    }
    return {**fixed, **facts}


def network(**facts: Any) -> dict[str, Any]:
    return computer(network={**computer()["network"], **facts})


def gpu(**facts: Any) -> dict[str, Any]:
    fixed = {
        "index": 0,
        "name": "H100",
        "uuid": "GPU-1",
        "memory_mb": 80 << 10,
        "memory_used_mb": 4,
        "utilization": 0,
        "compute_mode": "default",
        "clock_mhz": 1980,
        "clock_max_mhz": 1980,
        "temperature_c": 30,
        "slowed_by": [],
        "is_cut": False,
    }
    return {**fixed, **facts}


def with_gpu(**facts: Any) -> dict[str, Any]:
    return {"gpus": {"driver": "570.1", "cuda": "12.8", "gpus": [gpu(**facts)]}}


TORCH = {
    "version": "2.9",
    "import_s": 2.0,
    "cuda": "12.8",
    "nccl": "2.27.3",
    "has_nccl": True,
    "has_gloo": True,
    "threads": 8,
    "devices": ["H100"],
    "without_code": [],
    "why": None,
}


def of(**answers: Any) -> list[Finding]:
    return list(findings(answers))


def test_an_ordinary_machine_is_fine() -> None:
    found = of(machine=computer(), **with_gpu(), torch=TORCH)
    assert {each.level for each in found} == {OK}
    about(found, "8 of 64 processors to use (EPYC)")
    about(found, "eth0 (10.0.0.7, 25 Gbit/s)")
    about(found, "1 x H100 (80.0 GB); driver 570.1, for CUDA up to 12.8")
    about(found, "torch 2.9: CUDA 12.8, NCCL 2.27.3, gloo; importing it took 2.0 s")


def test_limits_of_a_control_group_are_reported() -> None:
    here = computer(
        cpus={"usable": 64, "online": 64, "quota": 4.0, "model": None},
        memory={"total_mb": 256 << 10, "available_mb": 200 << 10, "limit_mb": 16 << 10},
    )
    found = of(machine=here)
    about(found, "time of 4 (control group)")
    about(found, "200 GB free; this control group may use 16.0 GB")


def test_few_open_files_and_little_shared_memory_call_for_a_change() -> None:
    limits = {"open_files": 1024, "processes": None, "locked_memory_kb": None}
    found = of(machine=computer(limits=limits, shared_memory_mb=64))
    assert about(found, "may open 1024 files").key == "resources.setup"
    assert about(found, "/dev/shm holds 64.0 MB").level == CHANGE


def test_locked_memory_matters_only_with_infiniband() -> None:
    limits = {"open_files": None, "processes": None, "locked_memory_kb": 8192}
    assert not [each for each in of(machine=computer(limits=limits)) if "lock 8192" in each.found]
    port = {"name": "mlx5_0:1", "state": "ACTIVE", "rate": "200 Gb/sec"}
    here = {**network(infiniband=[port]), "limits": limits}
    found = of(machine=here)
    assert about(found, "lock 8192 kB").level == CHANGE
    assert about(found, "network:").follows == "NCCL takes InfiniBand: mlx5_0:1 200 Gb/sec"


def test_host_name_that_resolves_to_loopback_or_nothing_is_reported() -> None:
    about(of(machine=network(own_address="127.0.1.1")), "own name resolves to 127.0.1.1")
    about(of(machine=network(own_address=None)), "own name resolves to no address")


def test_machine_without_a_network_is_noted() -> None:
    alone = network(interfaces=[{"name": "lo", "addresses": ["127.0.0.1"], "speed_mbps": None}])
    assert about(of(machine=alone), "no network").level == NOTE


@pytest.mark.parametrize(
    "value, level", [("eth", NOTE), ("=eth0", NOTE), ("^docker", NOTE), ("ib0,eth0", NOTE), ("ib", PROBLEM)]
)
def test_chosen_network_interface_must_exist(value: str, level: str) -> None:
    here = network(socket_ifname={"NCCL_SOCKET_IFNAME": value})
    assert about(of(machine=here), f"NCCL_SOCKET_IFNAME={value}").level == level


@pytest.mark.parametrize(
    "facts, words, level",
    [
        ({"compute_mode": "prohibited"}, "takes no work", PROBLEM),
        ({"compute_mode": "exclusive process"}, "one process at a time", NOTE),
        ({"slowed_by": ["power cap"], "clock_mhz": 900}, "by power cap: 900 of 1980 MHz", NOTE),
        ({"memory_used_mb": 40 << 10, "utilization": 97}, "40.0 GB in use, 97 % busy", NOTE),
        ({"memory_used_mb": None, "utilization": 97}, "memory unknown, 97 % busy", NOTE),
        ({"is_cut": True, "utilization": None}, "MIG", NOTE),
    ],
)
def test_impaired_gpu_is_reported(facts: dict[str, Any], words: str, level: str) -> None:
    assert about(of(**with_gpu(**facts)), words).level == level


def test_note_on_missing_gpus_says_where_to_look() -> None:
    none = {"gpus": {"gpus": [], "why": "no driver"}}
    assert about(list(findings(none, "look there")), "no driver").follows == "look there"
    assert about(of(**none), "no driver").level == NOTE


@pytest.mark.parametrize(
    "facts, words, level",
    [
        ({"version": None, "why": "ImportError: x"}, "cannot be imported: ImportError: x", PROBLEM),
        ({"has_gloo": False}, "no gloo", PROBLEM),
        ({"without_code": ["V100 (sm_70)"]}, "no code for V100 (sm_70)", PROBLEM),
        ({"devices": [], "why": "driver too old"}, "driver too old", PROBLEM),
        ({"devices": [], "cuda": None}, "built without CUDA", CHANGE),
        ({"import_s": 90.0}, "importing it took 90.0 s", NOTE),
    ],
)
def test_unsuitable_torch_is_reported_with_the_reason(facts: dict[str, Any], words: str, level: str) -> None:
    assert about(of(**with_gpu(), torch={**TORCH, **facts}), words).level == level


def test_a_machine_that_does_not_answer_is_a_problem() -> None:
    assert about(of(why="no answer in 30 s"), "no answer in 30 s").level == PROBLEM
    assert about(of(machine={"why": "OSError: x"}), "OSError: x").level == PROBLEM
