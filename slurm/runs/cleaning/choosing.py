"""Choose files to delete: never the best checkpoint, one to resume from, or a file of a live run."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path

from slurm.runs.cleaning.references import references, user_of
from slurm.status.rows import RunStatus, status
from toolkit.checkpoint.paths import best_named_by, matches_manifest, step_of_best
from toolkit.files import read_json
from toolkit.run.folder_trust import user_name
from toolkit.run.run_dir import MANIFEST, RunDir, archived_runs, find_runs

#: States of runs that do not change by themselves.
ENDED = ("finished", "failed", "cancelled", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The wishes of the user.

    keep_last     number of the newest checkpoints of each run to keep, besides the best
    older_than_s  minimal age of deleted items
    states        states of the runs to clean
    logs, old     whether to delete logs of earlier attempts, and runs that were set aside
    """

    keep_last: int = 1
    older_than_s: float = 0.0
    states: tuple[str, ...] = ENDED
    logs: bool = False
    old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item that may be deleted.

    kind   checkpoint, leftover, logs or old
    what   description
    paths  paths to delete: one folder, or the files of logs
    """

    run: RunDir
    kind: str
    what: str
    paths: tuple[Path, ...]
    bytes: int
    age_s: float

    def to_json(self) -> dict[str, object]:
        """Return the entry of `stk clean --json`."""
        return {
            "run_id": self.run.run_id,
            "kind": self.kind,
            "what": self.what,
            "paths": [str(path) for path in self.paths],
            "bytes": self.bytes,
            "age_s": round(self.age_s),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item that is kept, and why: a whole run, or one checkpoint."""

    run_id: str
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Items to delete and items to keep, of all runs."""

    items: tuple[Item, ...]
    kept: tuple[Kept, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)


def propose(runs: Sequence[RunDir], parent: Path, wishes: Wishes, *, only_these: bool = False) -> Proposal:
    """Return what may be deleted of these runs, with one query of Slurm for all. Deletes nothing.

    parent      the experiment folder; its other runs may start from checkpoints of these
    only_these  whether of the runs that were set aside only the earlier forms of these count
    """
    named = references([*find_runs(parent), *runs])
    found: list[Item | Kept] = []
    for run, now in zip(runs, status(runs), strict=True):
        try:
            found += list(of_run(run, now, named, wishes))
        except OSError as error:
            # The whole run is kept.
            why = f"{error.filename} cannot be read: {error.strerror}"
            found.append(Kept(run_id=run.run_id, what="all", why=why))
    if wishes.old:
        ids = [run.run_id for run in runs if run.path.parent == parent] if only_these else None
        found += _archived(parent, named, wishes, ids)
    return Proposal(
        items=tuple(each for each in found if isinstance(each, Item)),
        kept=tuple(each for each in found if isinstance(each, Kept)),
    )


def of_run(run: RunDir, now: RunStatus, named: Mapping[Path, str], wishes: Wishes) -> Iterator[Item | Kept]:
    """Yield items of a run that may be deleted, and selected items that are kept for a reason."""
    if (why := _why_kept(run.path)) and now.state in wishes.states:
        yield Kept(run_id=run.run_id, what="all", why=why)
    elif now.is_live:
        yield Kept(run_id=run.run_id, what="all", why=f"it is {now.state}")
    elif now.state in wishes.states:
        yield from _checkpoints(run, named, wishes, is_finished=now.state == "finished")
        yield from _leftovers(run, wishes)
        if wishes.logs and not _why_kept(run.logs):
            yield from _logs(run, wishes)
    elif now.state == "unknown":
        yield Kept(run_id=run.run_id, what="all", why=f"it is not known whether it is live: {now.reason}")


def _checkpoints(
    run: RunDir, named: Mapping[Path, str], wishes: Wishes, *, is_finished: bool
) -> Iterator[Item | Kept]:
    if (why := _why_kept(run.checkpoints)) and run.checkpoints.is_dir():
        yield Kept(run_id=run.run_id, what="checkpoints", why=why)
        return
    steps = run.checkpoint_steps()
    needed = _needed(run, steps, wishes, is_finished=is_finished)
    for step in steps:
        folder, what = run.checkpoint(step), f"checkpoint of step {step}"
        age_s = _age_s(folder / MANIFEST) if (folder / MANIFEST).exists() else _age_s(folder)
        if step in needed or age_s < wishes.older_than_s:
            continue
        yield _unless_kept(run, "checkpoint", what, folder, age_s, named, _of_another_user(folder))


def _needed(run: RunDir, steps: Sequence[int], wishes: Wishes, *, is_finished: bool) -> set[int]:
    """Return the steps to keep: the newest, the best, and the one an unfinished run would resume from."""
    needed = set(steps[-wishes.keep_last :]) if wishes.keep_last else set()
    if not is_finished and set(steps) - needed:
        good = next((step for step in reversed(steps) if matches_manifest(run.checkpoint(step))), None)
        # Without a good checkpoint, a person may want to inspect all of them.
        needed |= set(steps) if good is None else {good}
    # Without a best one, the newest of a finished run has the final weights.
    return needed | (_best(run, needed) & set(steps) or set(steps[-1:]))


def _best(run: RunDir, needed: Iterable[int]) -> set[int]:
    """Return the steps that the result, the link `best` or a manifest, and kept checkpoints name as best."""
    try:
        result = (read_json(run.result) or {}).get("best", {}).get("step")
    except (OSError, ValueError, AttributeError):
        result = None
    named = (best_named_by(run.checkpoint(step)) for step in needed)
    found = [result, step_of_best(run), *named]
    return {step for step in found if isinstance(step, int)}


def _leftovers(run: RunDir, wishes: Wishes) -> Iterator[Item]:
    for folder in () if _why_kept(run.checkpoints) else run.checkpoint_leftovers():
        if (age_s := _age_s(folder)) >= wishes.older_than_s and not _of_another_user(folder):
            is_damaged = ".damaged." in folder.name
            what = "damaged checkpoint" if is_damaged else "left by a failed save or a killed process"
            yield _item(run, "leftover", what, [folder], age_s)


def _logs(run: RunDir, wishes: Wishes) -> Iterator[Item]:
    """Yield the logs of the ranks of all attempts except the newest."""
    attempts: dict[str, list[Path]] = {}
    for path in filterfalse(_of_another_user, sorted(run.logs.glob("*.rank_*.log"))):
        attempts.setdefault(path.name.partition(".rank_")[0], []).append(path)
    youngest = {name: min(map(_age_s, paths)) for name, paths in attempts.items()}
    newest = min(youngest, key=youngest.__getitem__, default=None)
    old = [name for name, age_s in youngest.items() if name != newest and age_s >= wishes.older_than_s]
    if old:
        what = f"logs of {len(old)} earlier {'attempt' if len(old) == 1 else 'attempts'}"
        paths = [path for name in old for path in attempts[name]]
        yield _item(run, "logs", what, paths, min(youngest[name] for name in old))


def _archived(
    parent: Path, named: Mapping[Path, str], wishes: Wishes, ids: Collection[str] | None
) -> Iterator[Item | Kept]:
    for run in archived_runs(parent):
        name = run.run_id.lstrip(".")
        if ids is not None and not any(name.startswith(f"{each}.") for each in ids):
            continue
        is_trash = name != run.run_id and name.endswith(".trash")
        if (age_s := _age_s(run.path)) < wishes.older_than_s:
            continue
        why = _why_kept(run.path)
        if not why and not is_trash and not run.config.is_file():
            why = f"there is no {run.config.name} in it, so it is not a run"
        yield _unless_kept(run, "old", "run that was set aside", run.path, age_s, named, why)


def _unless_kept(
    run: RunDir, kind: str, what: str, folder: Path, age_s: float, named: Mapping[Path, str], why: str
) -> Item | Kept:
    """Return a folder as an item, unless there is a reason (why) to keep it or a run begins with it."""
    if not why and (user := user_of(folder, named)) is not None:
        why = f"{user} begins with it"
    if why:
        return Kept(run_id=run.run_id, what=what, why=why)
    return _item(run, kind, what, [folder], age_s)


def _item(run: RunDir, kind: str, what: str, paths: Sequence[Path], age_s: float) -> Item:
    size_now = sum(map(size, paths))
    return Item(run=run, kind=kind, what=what, paths=tuple(paths), bytes=size_now, age_s=age_s)


def _why_kept(folder: Path) -> str:
    """Return why nothing is deleted in a folder: a link, or another user's; empty if it may be deleted."""
    try:
        found = folder.lstat()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return "it is a link: its target may belong to another run"
    return _of_another_user(folder)


def _of_another_user(path: Path) -> str:
    """Return which other user owns a path; empty if this user owns it."""
    try:
        owner = path.lstat().st_uid
    except OSError:
        return ""
    return "" if owner == os.geteuid() else f"it belongs to user {user_name(owner)}"


def size(path: Path) -> int:
    """Return the bytes of a file or a whole folder; links are not followed, removed files count as 0."""
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(map(size, path.iterdir()))
        return path.lstat().st_size
    except OSError:
        return 0


def _age_s(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.lstat().st_mtime)
    except OSError:
        return 0.0
