"""What the answers about folders mean."""

from __future__ import annotations

from typing import Any

import pytest

from slurm.doctor.checks.files import exchanged, findings
from slurm.doctor.findings import CHANGE, NOTE, OK, PROBLEM, Finding
from tests.slurm.doctor.clusters import about

NAMES = ("renames_over", "creates_once", "hard_links", "symlinks", "flock", "fcntl", "mmap", "keeps_case")
TRIED: dict[str, Any] = {
    **dict.fromkeys(NAMES, True),
    "clock_ahead_s": -0.002,
    "sync_s": 0.004,
    "speed": {"mb": 96.0, "write_mb_s": 200.0, "read_mb_s": 900.0},
}


def facts(tried: dict[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    fixed = {
        "path": "/home/me/experiments",
        "is_there": True,
        "kind": "nfs4",
        "options": ["rw", "hard"],
        "free_mb": 500 << 10,
        "free_files": None,
        "is_writable": True,
        "tried": {**TRIED, **(tried or {})},
    }
    return {**fixed, **other}


def of(told: dict[str, Any], what: str = "runs") -> list[Finding]:
    return list(findings(what, "STK_EXPERIMENT_DIR", told))


def test_folder_with_all_abilities_is_ok() -> None:
    found = of(facts())
    assert {each.level for each in found} == {OK}
    about(found, "/home/me/experiments on nfs4, 500 GB free")
    assert "a checkpoint of 1 GB takes about 5 s" in about(found, "200 MB/s written").follows


@pytest.mark.parametrize(
    "name, level",
    [
        ("renames_over", PROBLEM),
        ("hard_links", PROBLEM),
        ("flock", PROBLEM),
        ("mmap", PROBLEM),
        ("fcntl", NOTE),
    ],
)
def test_missing_ability_is_named_with_its_consequence(name: str, level: str) -> None:
    ok = of(facts())
    for answer, words in ((False, ""), ({"error": "Operation not supported"}, ": Operation not supported")):
        (finding,) = (each for each in of(facts({name: answer})) if each not in ok)
        assert (finding.level, bool(finding.follows)) == (level, True)
        assert finding.found.endswith(words)


def test_local_disk_or_memory_is_reported_for_runs() -> None:
    assert about(of(facts(kind="ext4")), "a disk of this machine").level == NOTE
    assert about(of(facts(kind="tmpfs")), "lost when the machine restarts").key == "STK_EXPERIMENT_DIR"
    assert {each.level for each in of(facts(kind="ext4"), "code")} == {OK}


@pytest.mark.parametrize(
    "told, words",
    [
        (facts(free_mb=100), "only 100 MB are free"),
        (facts(free_files=12), "only 12 more files"),
        (facts({"speed": {"error": "too little free space to try"}}), "its speed was not tried"),
    ],
)
def test_too_little_room_calls_for_a_change(told: dict[str, Any], words: str) -> None:
    assert about(of(told), words).level == CHANGE


@pytest.mark.parametrize(
    "told, words",
    [
        (facts({"sync_s": 2.0}), "2000.0 ms until"),
        (facts({"speed": {"mb": 12.0, "write_mb_s": 3.0, "read_mb_s": 9.0}}), "3 MB/s written"),
        (facts({"clock_ahead_s": 65.0}), "65.0 s ahead of this machine's clock"),
        (facts(options=["rw", "soft"]), "mounted soft"),
    ],
)
def test_slow_disk_wrong_clock_and_soft_mount_are_noted(told: dict[str, Any], words: str) -> None:
    assert about(of(told), words).level == NOTE


@pytest.mark.parametrize(
    "told",
    [
        {"why": "no answer in 60 s"},
        {"path": "/x", "is_there": False, "tried": None, "why": "Permission denied"},
        facts(tried=None) | {"tried": None, "is_writable": False},
        facts() | {"tried": {"why": "Disk quota exceeded"}},
    ],
)
def test_a_folder_that_cannot_be_used_is_a_problem(told: dict[str, Any]) -> None:
    worst = [each for each in of(told) if each.level is PROBLEM]
    assert [each.key for each in worst] == ["STK_EXPERIMENT_DIR"]


def test_two_hosts_that_share_the_folder_are_ok() -> None:
    told = {"sees_folder": True, "lock_holds": True, "there_and_back_s": 0.02, "clock_ahead_s": 0.01}
    assert {each.level for each in exchanged("node7", told)} == {OK}


@pytest.mark.parametrize(
    "change, words, level",
    [
        ({"sees_folder": False}, "does not see the folder", PROBLEM),
        ({"lock_holds": False}, "does not hold on node7", NOTE),
        ({"there_and_back_s": None}, "did not see each other's files", PROBLEM),
        ({"there_and_back_s": 31.0}, "answered in 31.00 s", NOTE),
        ({"clock_ahead_s": -90.0}, "90.0 s behind that of node7", NOTE),
        ({"why": "PermissionError: x"}, "PermissionError: x", PROBLEM),
    ],
)
def test_failed_exchange_between_hosts_is_reported(change: dict[str, Any], words: str, level: str) -> None:
    told = {"sees_folder": True, "lock_holds": True, "there_and_back_s": 0.02, "clock_ahead_s": 0.01}
    assert about(list(exchanged("node7", {**told, **change})), words).level == level
