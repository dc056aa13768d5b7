"""`stk sweep status`: the states of a sweep's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.text import Text

from slurm.status.columns import reason
from slurm.status.rows import RunStatus
from slurm.sweeps.candidates import states
from toolkit.files import read_json_lines
from toolkit.registry import metric_of
from toolkit.report.formats import score
from toolkit.sweeps.folder import Member, Record, SweepDir
from toolkit.sweeps.results.collect import task_of
from toolkit.sweeps.results.tables import compact, terminal_table
from toolkit.system.output.amounts import counted
from toolkit.workload import Metric

#: States of runs without a folder: not submitted yet, or submitted and deleted since.
_WAITS, _GONE = "waits", "no folder"
_COLOURS = {
    "running": "green",
    "finished": "cyan",
    "failed": "red",
    "unknown": "red",
    _GONE: "red",
    "held": "magenta",
}
#: The order of states: runs that may need attention come first.
_ORDER = (
    "failed", "held", "unknown", _GONE, "running", "requeued", "pending", "cancelled", _WAITS, "finished",
)  # fmt: skip
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The members of a sweep with their states.

    rows    None for a run without a folder
    states  by run id
    """

    folder: SweepDir
    record: Record
    rows: Sequence[tuple[Member, RunStatus | None]]
    states: Mapping[str, str]

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.states.values())

    def to_json(self) -> dict[str, object]:
        """Return the output of --json."""
        return {
            "sweep": self.folder.name,
            "sweep_dir": str(self.folder.path),
            "config": self.record.file,
            "metric": self.record.metric,
            "goal": self.record.goal,
            "counts": dict(self.counts),
            "runs": [
                {**self._plain(member, row), "values": dict(member.values)} for member, row in self.rows
            ],
            "removed": [each.run_id for each in self.record.removed],
        }

    def _plain(self, member: Member, row: RunStatus | None) -> dict[str, object]:
        if row is not None:
            return row.to_json()
        run, state = self.folder.run(member.run_id), self.states[member.run_id]
        return {"run_id": run.run_id, "run_dir": str(run.path), "job_id": None, "state": state}


def overview(folder: SweepDir, record: Record) -> Overview:
    """Read the state of every member, with at most two calls of Slurm."""
    # First: what is submitted meanwhile leaves this list, and has a folder then.
    later = {line.get("run_id") for line in read_json_lines(folder.waiting)}
    now = states([folder.run(each.run_id) for each in record.members])
    rows = [(each, now.get(folder.run(each.run_id))) for each in record.members]
    found = {
        each.run_id: row.state if row else _WAITS if each.run_id in later else _GONE for each, row in rows
    }
    return Overview(folder=folder, record=record, rows=rows, states=found)


def drawn(found: Overview) -> Group:
    """Return the counts and a line for each run, for rich."""
    counts = sorted(found.counts.items(), key=lambda item: _ORDER.index(item[0]))
    head = Text(f"sweep {found.folder.name}: {counted(len(found.rows), 'run')}")
    for state, count in counts:
        head.append(", ").append(f"{count} {state}", style=_COLOURS.get(state, ""))
    keys = list(dict.fromkeys(key for member, _ in found.rows for key in member.values))
    ordered = sorted(found.rows, key=lambda row: _ORDER.index(found.states[row[0].run_id]))
    # With its split: `loss` alone would be the validation loss here, and the training loss in `stk status`.
    titles = [*keys, "run", "state", "step", found.record.metric.replace(".", " ", 1), "job"]
    metric = metric_of(found.record.metric.partition(".")[2], task_of(found.folder, found.record))
    cells = [_cells(found, metric, keys, member, row) for member, row in ordered[:_MOST_ROWS]]
    table = terminal_table(titles, keys, cells)
    notes = [Text(f"… and {len(ordered) - _MOST_ROWS} more", "bright_black")] * (len(ordered) > _MOST_ROWS)
    notes += [
        Text(f"{row.run_id}: {reason(row)}", style="bright_black")
        for _, row in ordered[:_MOST_ROWS]
        if row is not None and row.state != "finished" and reason(row)
    ]
    if found.record.removed:
        notes.append(
            Text(f"runs of earlier commands that no longer belong to it: {len(found.record.removed)}")
        )
    return Group(head, table, *notes)


def _cells(
    found: Overview, metric: Metric | None, keys: Sequence[str], member: Member, row: RunStatus | None
) -> list[str | Text]:
    values = [compact(member.values.get(key, "")) for key in keys]
    state = found.states[member.run_id]
    shown: list[str | Text] = [*values, member.run_id, Text(state, style=_COLOURS.get(state, ""))]
    if row is None:
        return [*shown, "", "", ""]
    value = row.metrics.get(found.record.metric.replace(".", "_", 1))
    reached = f"{row.step}/{row.total_steps or '?'}"
    return [*shown, reached, "" if value is None else score(metric, value), row.job_id or ""]
