"""SweepDir: all file names of a sweep, in `sweeps/NAME` beside the runs; Record: the record of a sweep."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import UserError
from toolkit.files import append_json_line, make_like_parent, read_json, read_json_lines, write_json
from toolkit.run.run_dir import ReportFiles, RunDir, named

#: Folder beside the runs, with a folder for each sweep.
SWEEPS = "sweeps"


@dataclass(frozen=True, slots=True)
class SweepDir(ReportFiles):
    """A sweep's folder. Properties name files; none of them creates anything."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    record = named("sweep.json")
    """The sweep and its runs, JSON."""
    waiting = named("waiting.jsonl")
    """Experiments of the runs that are not submitted yet, JSON lines."""
    arrays = named("arrays.jsonl")
    """Two lines for each array: one before it is submitted, and one with its id."""
    lock = named(".submit.lock")
    """Held while runs of the sweep are submitted."""

    def array(self, name: str) -> Path:
        """The folder of an array: its script, and a link to each run by the number of its task."""
        return self.path / name

    def code(self, name: str) -> Path:
        """The code that the runs of one submission begin with."""
        return self.path / f"code-{name}"

    def run(self, run_id: str) -> RunDir:
        """A run of the sweep, beside the folder of all sweeps."""
        return RunDir(self.path.parent.parent / run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One run of a sweep, and the values of its keys."""

    run_id: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The record of a sweep.

    config   the experiment file of the sweep
    metric   SPLIT.METRIC; goal: max or min
    task     the kind of task, which declares the metrics; empty in old sweeps
    spaces   the range or values of each key, as people write them
    log      keys that are drawn from a logarithmic range
    members  runs of the last command
    removed  runs of earlier commands that the last one did not include
    """

    name: str
    config: str
    method: str
    metric: str
    goal: str
    task: str = ""
    spaces: Mapping[str, str] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    max_parallel: int | None = None
    time: float = field(default_factory=time.time)
    members: tuple[Member, ...] = ()
    removed: tuple[Member, ...] = ()

    @property
    def file(self) -> str | None:
        """The experiment file; None if the experiment was written on the command line."""
        return None if Path(self.config).name.startswith("<") else self.config

    @property
    def everyone(self) -> Iterator[Member]:
        """Members and removed runs."""
        yield from self.members
        yield from self.removed


def read_record(sweep: SweepDir) -> Record | None:
    """Return the record of a sweep; None without one. Raises UserError for a damaged file."""
    try:
        known = read_json(sweep.record)
        if known is None:
            return None
        members = {name: tuple(Member(**each) for each in known[name]) for name in ("members", "removed")}
        return Record(**{**known, **members, "log": tuple(known["log"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{sweep.record} is damaged ({error}): move it away, and the same `stk sweep` makes it anew"
        ) from None


def make_sweep(sweep: SweepDir) -> None:
    """Make a sweep's folder. Files in it are executed, so no other user may write there."""
    try:
        make_like_parent(sweep.path.parent)
        sweep.path.mkdir(mode=0o755, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write {sweep.path}: {error.strerror}. STK_EXPERIMENT_DIR chooses another place"
        ) from error


def write_record(sweep: SweepDir, record: Record) -> None:
    """Write the record of a sweep."""
    make_sweep(sweep)
    write_json(sweep.record, asdict(record))


def find_sweep(name: str, experiment_dir: Path) -> SweepDir:
    """Find a sweep by its name, a unique prefix or its folder. Raises UserError that lists the candidates."""
    if (Path(name) / "sweep.json").is_file():
        return SweepDir(Path(name).resolve())
    known = sorted(find_sweeps(experiment_dir), key=lambda each: each.name)
    exact = [each for each in known if each.name == name]
    matches = exact or [each for each in known if each.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(each.name for each in (matches or known)[:10]) or "none"
    if matches:
        raise UserError(f"{name!r} names {len(matches)} sweeps: {listed}")
    raise UserError(f"no sweep {name!r} under {experiment_dir}; sweeps there: {listed}")


def find_sweeps(experiment_dir: Path) -> Iterator[SweepDir]:
    """Every sweep beside the runs."""
    folder = experiment_dir / SWEEPS
    for entry in folder.iterdir() if folder.is_dir() else ():
        if (entry / "sweep.json").is_file():
            yield SweepDir(entry)


# -- arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array of a sweep: its name, its runs in the order of their tasks, and its id once it has one."""

    name: str
    runs: tuple[str, ...]
    throttle: int | None
    job_id: str | None


def intend_array(sweep: SweepDir, name: str, runs: Sequence[str], throttle: int | None) -> None:
    """Record the array that is about to be submitted."""
    line = {"array": name, "runs": list(runs), "throttle": throttle, "time": time.time()}
    append_json_line(sweep.arrays, line, durable=True)


def settle_array(sweep: SweepDir, name: str, job_id: str | None) -> None:
    """Record the id of an array; None if it was not submitted."""
    append_json_line(sweep.arrays, {"array": name, "job_id": job_id, "time": time.time()})


def read_arrays(sweep: SweepDir) -> list[Array]:
    """The arrays of a sweep, oldest first; without those that were not submitted."""
    by_name: dict[str, dict[str, Any]] = {}
    for line in read_json_lines(sweep.arrays):
        by_name.setdefault(line.get("array", ""), {}).update(line)
    return [
        Array(name=name, runs=tuple(each["runs"]), throttle=each["throttle"], job_id=each.get("job_id"))
        for name, each in by_name.items()
        if "runs" in each and ("job_id" not in each or each["job_id"] is not None)
    ]
