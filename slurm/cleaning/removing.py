"""Taking things away, so that a crash in the middle leaves nothing half there under its name."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from slurm.cleaning.choosing import of_run
from slurm.cleaning.items import Item, Wishes
from slurm.cleaning.references import references
from slurm.status.rows import status
from slurm.submissions import exclusively
from toolkit.checkpoint.naming import mend_last, remove
from toolkit.rundir import RunDir, find_runs


def remove_items(items: Sequence[Item], parent: Path, wishes: Wishes) -> list[Item]:
    """Delete what was proposed and still may go; return that.

    Each run is held against its submission meanwhile, and looked at again: it may have been started since.
    Raises OSError; what is done by then stays done, and the same call goes on.
    """
    removed: list[Item] = []
    for run in dict.fromkeys(item.run for item in items):
        own = [item for item in items if item.run == run]
        if own[0].kind == "old":
            _remove(own)
            removed += own
        else:
            removed += _of_run(run, own, parent, wishes)
    return removed


def _of_run(run: RunDir, items: Iterable[Item], parent: Path, wishes: Wishes) -> list[Item]:
    with exclusively(run):
        (now,) = status([run])
        again = of_run(run, now, references([*find_runs(parent), run]), wishes)
        still = {each.paths for each in again if isinstance(each, Item)}
        own = [item for item in items if item.paths in still]
        _remove(own)
        mend_last(run)
    return own


def _remove(items: Iterable[Item]) -> None:
    for item in items:
        for path in item.paths:
            if path.is_dir():
                remove(path, uuid.uuid4().hex[:8])
            else:
                path.unlink(missing_ok=True)
