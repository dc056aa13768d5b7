"""SweepDir: every file name of a sweep; Record: what is kept of it. Beside the runs, in `sweeps/NAME`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import UserError
from toolkit.files import append_json_line, read_json, read_json_lines, write_json
from toolkit.rundir import RunDir

#: Beside the runs: a folder for each sweep.
SWEEPS = "sweeps"


@dataclass(frozen=True, slots=True)
class SweepDir:
    """A sweep's folder. Properties name files; none of them creates anything."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def experiments(self) -> Path:
        """The folder that holds the runs."""
        return self.path.parent.parent

    @property
    def record(self) -> Path:
        """What the sweep is, and which runs belong to it, JSON."""
        return self.path / "sweep.json"

    @property
    def waiting(self) -> Path:
        """Experiments of the runs that the scheduler has not been given yet, one JSON a line."""
        return self.path / "waiting.jsonl"

    @property
    def arrays(self) -> Path:
        """One line for each array before it is handed in, and one with its id after it."""
        return self.path / "arrays.jsonl"

    @property
    def lock(self) -> Path:
        """Held by whoever hands in runs of the sweep."""
        return self.path / ".submit.lock"

    def array(self, name: str) -> Path:
        """Where an array works: its script, and a link to each run by the number of its task."""
        return self.path / name

    def code(self, name: str) -> Path:
        """The code that the runs of one submission begin with."""
        return self.path / f"code-{name}"

    @property
    def report(self) -> Path:
        return self.path / "report"

    @property
    def report_html(self) -> Path:
        return self.report / "report.html"

    @property
    def report_json(self) -> Path:
        return self.report / "report.json"

    @property
    def report_csv(self) -> Path:
        """The table of runs."""
        return self.report / "runs.csv"

    @property
    def report_markdown(self) -> Path:
        return self.report / "report.md"

    def run(self, run_id: str) -> RunDir:
        """A run of the sweep."""
        return RunDir(self.experiments / run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One run of a sweep, and what its keys are set to."""

    run_id: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of a sweep.

    config   the experiment file that it is made from
    metric   SPLIT.METRIC; goal: max or min
    spaces   what each key is drawn from, or its values, as people write it
    log      keys that are drawn from a logarithmic range
    members  the runs that the last command asked for
    removed  runs of earlier commands that it did not ask for
    """

    name: str
    config: str
    method: str
    metric: str
    goal: str
    spaces: Mapping[str, str] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    max_parallel: int | None = None
    time: float = field(default_factory=time.time)
    members: tuple[Member, ...] = ()
    removed: tuple[Member, ...] = ()

    @property
    def everyone(self) -> Iterator[Member]:
        """Members and removed runs."""
        yield from self.members
        yield from self.removed


def read_record(sweep: SweepDir) -> Record | None:
    """What is known of a sweep; None where there is none. Raises UserError for a damaged file."""
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


def write_record(sweep: SweepDir, record: Record) -> None:
    """Write a sweep down."""
    sweep.path.mkdir(parents=True, exist_ok=True)
    write_json(sweep.record, asdict(record))


def find_sweep(name: str, experiment_dir: Path) -> SweepDir:
    """The sweep of a name, of the beginning of one, or in a folder. Raises UserError, which lists them."""
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
    """Write down what is going to be handed in, before the scheduler is asked."""
    line = {"array": name, "runs": list(runs), "throttle": throttle, "time": time.time()}
    append_json_line(sweep.arrays, line, durable=True)


def settle_array(sweep: SweepDir, name: str, job_id: str | None) -> None:
    """Write down the id of an array; None where it did not come to be."""
    append_json_line(sweep.arrays, {"array": name, "job_id": job_id, "time": time.time()})


def read_arrays(sweep: SweepDir) -> list[Array]:
    """The arrays of a sweep, oldest first; without those that did not come to be."""
    asked: dict[str, dict[str, Any]] = {}
    for line in read_json_lines(sweep.arrays):
        asked.setdefault(line.get("array", ""), {}).update(line)
    return [
        Array(name=name, runs=tuple(each["runs"]), throttle=each["throttle"], job_id=each.get("job_id"))
        for name, each in asked.items()
        if "runs" in each and ("job_id" not in each or each["job_id"] is not None)
    ]
