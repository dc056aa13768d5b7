"""Delete items, so that a crash in the middle leaves no incomplete folder under its name."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from slurm.runs.cleaning.choosing import Item, Wishes, of_run
from slurm.runs.cleaning.references import references
from slurm.status.rows import status
from slurm.status.submissions import exclusively
from toolkit.checkpoint.paths import remove, renew_last_link
from toolkit.errors import StkError
from toolkit.run.run_dir import RunDir, find_runs


def remove_items(items: Sequence[Item], parent: Path, wishes: Wishes) -> tuple[list[Item], dict[str, str]]:
    """Delete proposed items that may still be deleted; return them, and errors by run id.

    Each run is locked against submission and checked again, because it may have been started since.
    An error in one run does not stop the others.
    """
    removed: list[Item] = []
    failed: dict[str, str] = {}
    by_run: dict[RunDir, list[Item]] = {}
    for item in items:
        by_run.setdefault(item.run, []).append(item)
    named, read = references(by_run), set[str]()
    for run, own in by_run.items():
        try:
            removed += _of_run(run, own, parent, wishes, named, read)
        except OSError as error:
            failed[run.run_id] = f"cannot delete {error.filename}: {error.strerror or error}"
        except StkError as error:
            failed[run.run_id] = str(error)
    return removed, failed


def _of_run(
    run: RunDir, items: Sequence[Item], parent: Path, wishes: Wishes, named: dict[Path, str], read: set[str]
) -> Sequence[Item]:
    if items[0].kind == "old":
        _remove(items)
        return items
    with exclusively(run):
        (now,) = status([run])
        # New runs may begin with a checkpoint. There may be thousands: each config is read twice at most.
        new = list(find_runs(parent, besides=read))
        read.update(each.run_id for each in new)
        named.update(references(new))
        again = of_run(run, now, named, wishes)
        still = {each.paths for each in again if isinstance(each, Item)}
        own = [item for item in items if item.paths in still]
        _remove(own)
        renew_last_link(run)
    return own


def _remove(items: Iterable[Item]) -> None:
    for item in items:
        for path in item.paths:
            if path.is_dir() and not path.is_symlink():
                remove(path, uuid.uuid4().hex[:8])
            else:
                path.unlink(missing_ok=True)
