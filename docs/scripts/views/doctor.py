"""The picture of `stk doctor`: a recorded cluster, a machine with GPUs and a file system, as values."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from drawing import save, terminal_page
from rich.console import Console

from slurm.client.account_limits import Association
from slurm.client.parse import HostUse, parse_config, parse_partitions
from slurm.doctor.checks import files, machine
from slurm.doctor.checks.preemption import preemption
from slurm.doctor.checks.rules import limits, requeueing, scheduler
from slurm.doctor.checks.saves import Saves
from slurm.doctor.cluster import Cluster
from slurm.doctor.partitions import rows
from slurm.doctor.render import parts
from slurm.doctor.run_checks import Report

COLUMNS = 104
RECORDED = Path(__file__).resolve().parents[3] / "tests" / "slurm" / "support" / "recorded" / "doctor"
SETTINGS = {
    "ClusterName": "alps",
    "KillWait": "30 sec",
    "AuthInfo": "(null)",
    "AccountingStorageEnforce": "associations,limits",
    "SelectTypeParameters": "CR_CORE_MEMORY",
    "DefMemPerCPU": "4000",
}


def make(pictures: Path) -> None:
    """Store doctor.png."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True)
    console.print("[bold green]$[/] stk doctor --on-node", highlight=False)
    for part in parts(report(), COLUMNS):
        console.print(part)
    save(terminal_page(console), pictures / "terminal" / "doctor.png", width=1020, height=1600)


def report() -> Report:
    """Return the report on the recorded cluster with GPUs of two kinds, for a user with a large model."""
    here = cluster()
    saves = Saves(runs=6, saves=118, median_s=9.4, longest_s=21.6, longest_run="ned-6f0a4c1e")
    sections = {
        "Slurm": list(scheduler(here)),
        "Time limits and preemption": list(preemption(here, saves)),
        "Requeue": list(requeueing(here)),
        "Limits": list(limits(here)),
        "Host g07": [*machine.findings(HOST), *files.exchanged("g07", EXCHANGE)],
        "Files": list(files.findings("runs", "STK_EXPERIMENT_DIR", RUNS)),
    }
    return Report(cluster="alps", sections=sections, partitions=tuple(rows(here)))


def cluster() -> Cluster:
    """Return the recorded settings and partitions, with other names, limits and GPUs."""
    main, low, lowest, urgent = parse_partitions((RECORDED / "partitions.txt").read_text())
    partitions = (
        replace(main, name="gpu", max_time_min=1440, default_time_min=60),
        replace(low, name="spare", grace_s=60, max_time_min=240),
        replace(lowest, name="scavenge", max_time_min=2880),
        replace(urgent, name="urgent", max_time_min=120),
    )
    uses = tuple(use for each in partitions for use in busy(each.name))
    limits = {"MaxJobs": "8", "GrpTRES": "gres/gpu=6"}
    own = Association(account="nlp", partition="", qos=frozenset({"normal"}), limits=limits)
    settings = "".join((folder / "config.txt").read_text() for folder in (RECORDED.parent, RECORDED))
    return Cluster(
        config={**parse_config(settings), **SETTINGS},
        partitions=partitions,
        uses=uses,
        qos=(),
        associations=(own,),
    )


def busy(name: str) -> list[HostUse]:
    """Return hosts of two kinds, some of them busy."""
    facts = (
        ("mixed", "gpu:a100:4(S:0-1)", "gpu:a100:3(IDX:0-2)"),
        ("idle", "gpu:a100:4(S:0-1)", "gpu:a100:0(IDX:N/A)"),
        ("allocated", "gpu:h100:8", "gpu:h100:8(IDX:0-7)"),
        ("mixed", "gpu:h100:8", "gpu:h100:6(IDX:0-5)"),
    )
    return [
        HostUse(partition=name, state=state, hosts=1, gres=gres, gres_used=used)
        for state, gres, used in facts
    ]


def gpu(index: int, **facts: Any) -> dict[str, Any]:
    """Return a GPU of the host, with these facts changed."""
    fixed = {"name": "NVIDIA A100-SXM4-80GB", "memory_mb": 81920, "memory_used_mb": 4, "utilization": 0}
    more = {"compute_mode": "default", "clock_mhz": 1410, "clock_max_mhz": 1410, "is_cut": False}
    return {"index": index, **fixed, **more, "slowed_by": [], **facts}


HOST: dict[str, Any] = {
    "machine": {
        "host": "g07",
        "python": "3.11.7",
        "executable": "/home/ada/env/bin/python",
        "cpus": {"usable": 8, "online": 64, "quota": None, "model": "AMD EPYC 7543"},
        "memory": {"total_mb": 515_000, "available_mb": 402_000, "limit_mb": 32_000},
        "shared_memory_mb": 257_000,
        "limits": {"open_files": 1024, "processes": None, "locked_memory_kb": None},
        "network": {
            "interfaces": [{"name": "ib0", "addresses": ["10.12.0.7"], "speed_mbps": 200_000}],
            "own_address": "10.12.0.7",
            "infiniband": [{"name": "mlx5_0:1", "state": "ACTIVE", "rate": "200 Gb/sec (4X HDR)"}],
            "socket_ifname": {},
        },
    },
    "gpus": {"driver": "570.86.15", "cuda": "12.8", "gpus": [gpu(0)]},
    "torch": {
        "version": "2.9.0+cu128",
        "import_s": 6.1,
        "cuda": "12.8",
        "nccl": "2.27.3",
        "has_gloo": True,
        "devices": ["NVIDIA A100-SXM4-80GB"],
        "without_code": [],
        "why": None,
    },
}
EXCHANGE = {"sees_folder": True, "lock_holds": True, "there_and_back_s": 0.21, "clock_ahead_s": 0.004}
_HOLD = ("renames_over", "creates_once", "hard_links", "symlinks", "flock", "fcntl", "mmap", "keeps_case")
RUNS: dict[str, Any] = {
    "path": "/scratch/ada/experiments",
    "is_there": True,
    "kind": "lustre",
    "options": ["rw", "flock"],
    "free_mb": 41 << 20,
    "free_files": None,
    "tried": {
        **dict.fromkeys(_HOLD, True),
        "clock_ahead_s": 0.01,
        "sync_s": 0.011,
        "speed": {"mb": 96.0, "write_mb_s": 412.0, "read_mb_s": 1630.0},
    },
}
