"""Memory limits and CPU quotas are read from both versions of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.system.cgroups import cpu_quota, memory_limit_mb


class Groups:
    """Control groups in a folder."""

    def __init__(self, folder: Path) -> None:
        self._own = folder / "cgroup"
        self._mounted = folder / "mounted"

    def write(self, name: str, text: str) -> None:
        path = self._mounted / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def limit_mb(self, *lines: str) -> float | None:
        """The limit of a process with these lines in /proc/self/cgroup."""
        return memory_limit_mb(*self._of(lines))

    def quota(self, *lines: str) -> float | None:
        """Its cores."""
        return cpu_quota(*self._of(lines))

    def _of(self, lines: tuple[str, ...]) -> tuple[Path, Path]:
        self._own.write_text("".join(f"{line}\n" for line in lines))
        return self._own, self._mounted


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


def test_the_lowest_memory_limit_of_all_parents_counts(groups: Groups) -> None:
    groups.write("slurm/job_7/memory.max", str(64 << 20))
    groups.write("slurm/job_7/step_0/memory.max", "max")
    groups.write("slurm/memory.max", str(128 << 20))
    assert groups.limit_mb("0::/slurm/job_7/step_0") == 64.0


def test_memory_limits_of_cgroups_v1_are_read(groups: Groups) -> None:
    groups.write("memory/slurm/job_7/memory.limit_in_bytes", str(32 << 20))
    groups.write("memory/memory.limit_in_bytes", "9223372036854771712")
    assert groups.limit_mb("9:cpu,cpuacct:/", "4:memory:/slurm/job_7", "0::/") == 32.0


@pytest.mark.parametrize("text", ["max", "9223372036854771712", "", "lots"])
def test_an_unlimited_or_invalid_limit_is_none(groups: Groups, text: str) -> None:
    groups.write("job/memory.max", text)
    assert groups.limit_mb("0::/job") is None


def test_a_system_without_cgroups_has_no_limit(tmp_path: Path) -> None:
    assert memory_limit_mb(tmp_path / "nothing", tmp_path) is None


def test_a_group_outside_the_mount_is_ignored(groups: Groups) -> None:
    assert groups.limit_mb("0::/../../else", "damaged") is None


def test_the_lowest_cpu_quota_of_all_parents_counts(groups: Groups) -> None:
    groups.write("slurm/cpu.max", "150000 100000")
    groups.write("slurm/job_7/cpu.max", "max 100000")
    assert groups.quota("0::/slurm/job_7") == 1.5


def test_cpu_quotas_of_cgroups_v1_are_read(groups: Groups) -> None:
    groups.write("cpu/job/cpu.cfs_period_us", "100000")
    groups.write("cpu/job/cpu.cfs_quota_us", "-1")
    assert groups.quota("4:cpu,cpuacct:/job") is None
    groups.write("cpu/job/cpu.cfs_quota_us", "200000")
    assert groups.quota("4:cpu,cpuacct:/job") == 2.0
