"""Findings about a folder: its file system, the guarantees that runs rely on, its speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slurm.doctor.findings import CHANGE, NOTE, OK, PROBLEM, Finding
from toolkit.system.output.amounts import size_mb

Facts = Mapping[str, Any]

_SHARED = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "panfs", "wekafs", "afs", "9p")
_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay")
_IN_MEMORY = ("tmpfs", "ramfs")
_LITTLE_MB, _FEW_FILES = 10 * 1024, 10_000
_SLOW_SYNC_S, _SLOW_MB_S = 0.5, 20.0
#: Largest difference of two clocks that is not reported.
_SKEW_S = 5.0
_SLOW_EXCHANGE_S = 10.0

#: Guarantees that runs rely on, by the name of the test: the finding if it fails, and what follows.
_NEEDED = {
    "renames_over": (
        PROBLEM,
        "a rename does not replace a file atomically",
        "a checkpoint or record may be half-written: keep runs elsewhere",
    ),
    "creates_once": (PROBLEM, "a file can be created twice", "two submissions of a run may both go through"),
    "hard_links": (
        PROBLEM,
        "there are no hard links",
        "it is not known which process was first: keep runs elsewhere",
    ),
    "symlinks": (
        NOTE,
        "there are no symbolic links",
        "`best` and `last` of checkpoints are missing, and old checkpoints are not deleted",
    ),
    "flock": (
        PROBLEM,
        "locks do not hold (flock)",
        "runs cannot be submitted, or a live run is not detected: keep runs elsewhere",
    ),
    "fcntl": (NOTE, "locks of byte ranges do not hold (fcntl)", "SQLite needs them when data are prepared"),
    "mmap": (
        PROBLEM,
        "files cannot be mapped into memory",
        "prepared data cannot be read: keep them elsewhere",
    ),
    "keeps_case": (NOTE, "names that differ in case only are the same", "runs `A` and `a` would be one"),
}


def findings(what: str, variable: str, facts: Facts) -> Iterator[Finding]:
    """Yield findings about one folder. Pure.

    what      purpose of the folder: runs, data, code
    variable  the variable that sets it; empty without one
    """
    if facts.get("why"):
        place = f" {facts['path']}" if "path" in facts else ""
        found = f"{what}: the file system{place} does not answer: {facts['why']}"
        yield Finding(PROBLEM, found, "a file server may be down", variable)
        return
    yield _place(what, variable, facts)
    yield from _room(what, variable, facts)
    if what == "runs":
        yield from _write_findings(variable, facts)


def _place(what: str, variable: str, facts: Facts) -> Finding:
    kind = facts["kind"] or "unknown kind"
    not_yet = "" if facts["is_there"] else " (not there yet)"
    found = f"{what}: {facts['path']}{not_yet} on {kind}, {size_mb(facts['free_mb'])} free"
    if kind in _IN_MEMORY:
        return Finding(CHANGE, found, "its content is lost when the machine restarts", variable)
    if kind in _LOCAL and what == "runs":
        follows = "a disk of this machine: other hosts see it only if it is exported"
        return Finding(NOTE, found, follows, variable)
    if kind in _SHARED:
        follows = "free space is that of all users; `quota -s` or `lfs quota` know your share"
        return Finding(OK, found, follows)
    return Finding(OK, found)


def _room(what: str, variable: str, facts: Facts) -> Iterator[Finding]:
    if facts["free_mb"] < _LITTLE_MB and what != "code":
        found = f"{what}: only {size_mb(facts['free_mb'])} are free"
        yield Finding(CHANGE, found, "a save without enough space is skipped", variable)
    files = facts["free_files"]
    if files is not None and files < _FEW_FILES and what != "code":
        found = f"{what}: only {files} more files can be made"
        yield Finding(CHANGE, found, "each run makes a few dozen", variable)
    if facts["kind"] in ("nfs", "nfs4") and "soft" in facts["options"]:
        yield Finding(NOTE, f"{what}: mounted soft", "a server that is slow for long is an error, not a wait")


def _write_findings(variable: str, facts: Facts) -> Iterator[Finding]:
    tried = facts["tried"]
    if tried is None:
        yield Finding(PROBLEM, f"runs: {facts['path']} cannot be written", "choose another folder", variable)
        return
    if tried.get("why"):
        yield Finding(PROBLEM, f"runs: {facts['path']} cannot be written: {tried['why']}", "", variable)
        return
    is_good = True
    for name, (level, failure, follows) in _NEEDED.items():
        answer = tried.get(name)
        if isinstance(answer, Mapping) or answer is False:
            is_good = False
            why = f": {answer['error']}" if answer else ""
            yield Finding(level, f"runs: {failure}{why}", follows, variable)
    if is_good:
        yield Finding(OK, "runs: renames, locks, links and mappings do what a run relies on")
    yield from _pace(variable, tried)


def _pace(variable: str, tried: Facts) -> Iterator[Finding]:
    sync_s, speed = tried.get("sync_s"), tried.get("speed")
    if isinstance(speed, Mapping) and "error" in speed:
        yield Finding(CHANGE, f"runs: its speed was not tried: {speed['error']}", "", variable)
    elif isinstance(speed, Mapping) and isinstance(sync_s, float | int):
        shown = f"{speed['write_mb_s']:.0f} MB/s written, {speed['read_mb_s']:.0f} MB/s read"
        is_slow = sync_s > _SLOW_SYNC_S or speed["write_mb_s"] < _SLOW_MB_S
        yield Finding(
            NOTE if is_slow else OK,
            f"runs: {shown} ({speed['mb']:.0f} MB), {1000 * sync_s:.1f} ms until a small file is on the disk",
            f"a checkpoint of 1 GB takes about {1024 / max(speed['write_mb_s'], 0.1):.0f} s to write",
            "checkpoint.every_minutes" if is_slow else "",
        )
    ahead_s = tried.get("clock_ahead_s")
    if isinstance(ahead_s, float | int) and abs(ahead_s) > _SKEW_S:
        found = f"runs: files get times {_clock_difference(ahead_s)} this machine's clock"
        yield Finding(NOTE, found, "ages of files are off by that; ask your site about its time server")


def exchanged(host: str, facts: Facts) -> Iterator[Finding]:
    """Yield findings about the folder of runs, as seen from two hosts. Pure."""
    if facts.get("why"):
        found = f"{host} could not use the folder of runs: {facts['why']}"
        yield Finding(PROBLEM, found, "", "STK_EXPERIMENT_DIR")
        return
    if not facts["sees_folder"]:
        found = f"{host} does not see the folder of runs"
        follows = "runs must be on a file system that all hosts share"
        yield Finding(PROBLEM, found, follows, "STK_EXPERIMENT_DIR")
        return
    if facts["lock_holds"] is False:
        found = f"a lock that is held here does not hold on {host}"
        yield Finding(NOTE, found, "only Slurm and the run's fence show that a run is live on another host")
    elif facts["lock_holds"]:
        yield Finding(OK, f"a lock that is held here holds on {host}")
    yield from _exchange_findings(host, facts["there_and_back_s"], facts["clock_ahead_s"])


def _exchange_findings(host: str, there_and_back_s: float | None, ahead_s: float | None) -> Iterator[Finding]:
    if there_and_back_s is None or ahead_s is None:
        found = f"{host} and this machine did not see each other's files in time"
        yield Finding(PROBLEM, found, "", "STK_EXPERIMENT_DIR")
        return
    is_slow = there_and_back_s > _SLOW_EXCHANGE_S
    found = f"a file made here is seen on {host} and answered in {there_and_back_s:.2f} s"
    follows = "the rendezvous of ranks takes as long" if is_slow else ""
    yield Finding(NOTE if is_slow else OK, found, follows)
    if abs(ahead_s) > max(_SKEW_S, there_and_back_s):
        found = f"the clock of this machine is {_clock_difference(ahead_s)} that of {host}"
        follows = "ages and times of runs are off by that; ask your site about its time server"
        yield Finding(NOTE, found, follows)
    else:
        yield Finding(OK, f"the clocks of {host} and this machine differ by {abs(ahead_s):.2f} s")


def _clock_difference(seconds: float) -> str:
    return f"{abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'}"
