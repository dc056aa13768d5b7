"""Loading the checkpoint that rank 0 selects into all ranks."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from toolkit.checkpoint.loading.broadcast import broadcast_checkpoint
from toolkit.checkpoint.loading.load import load
from toolkit.checkpoint.loading.select import Selection, select_checkpoint
from toolkit.checkpoint.paths import clear_leftovers
from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.verification import Identity, Note, verify, wait_for_manifest
from toolkit.distributed.process_group import Group
from toolkit.errors import CheckpointError
from toolkit.run.failure.classes import disk_errno
from toolkit.run.run_dir import RunDir

log = logging.getLogger("toolkit")


def load_selected(run: RunDir, group: Group, identity: Identity, note: Note, state: TrainState) -> bool:
    """Load the checkpoint that rank 0 selects; False without any checkpoint. Collective.

    All ranks must see the same manifest. Raises CheckpointError if there are checkpoints but none can be
    used: a silent start from scratch would lose the work.
    """
    choice = _agreed(run, group, identity, note)
    if choice is None:
        return False
    if choice.step is None:
        raise CheckpointError(
            f"no checkpoint in {run.checkpoints} can be used. To start from scratch, use --fresh. "
            f"The newest: {choice.fault}"
        )
    folder = run.checkpoint(choice.step)
    broadcast_checkpoint(folder, group)
    wait_for_manifest(folder, choice.manifest_crc32)
    _verify_elsewhere(folder, group, None if choice.forced else identity)
    load(folder, state)
    if choice.best_lost:
        state.progress.best_value = state.progress.best_loss = state.progress.best_step = None
        state.progress.since_best = 0
    return True


def _agreed(run: RunDir, group: Group, identity: Identity, note: Note) -> Selection | None:
    """Return rank 0's selection on all ranks. Collective."""
    found: list[Selection | None] = []

    def select() -> None:
        clear_leftovers(run)
        found.append(select_checkpoint(run, identity, note))

    # Reading large checkpoints may take longer than the timeout of a collective.
    group.main_first(select)
    own = found[0] if found else None
    agreed = group.agree(own and asdict(own))
    _warn_of_newer(run, group, (agreed or {}).get("step") or 0)
    return None if agreed is None else Selection(**agreed)


def _verify_elsewhere(folder: Path, group: Group, identity: Identity | None) -> None:
    """Verify the files on the other ranks: each host has its own cache of them. Collective.

    Raises CheckpointError.
    """
    faults: list[tuple[str, int | None]] = []

    def verify_here() -> None:
        try:
            if not group.world.is_main:
                verify(folder, identity)
        except (CheckpointError, OSError) as error:
            faults.append((str(error), disk_errno(error)))

    group.nodes_first(verify_here)
    for fault, number in chain.from_iterable(group.gather(faults)):
        # The cause decides whether the run starts again.
        raise CheckpointError(fault) from (OSError(number, os.strerror(number)) if number else None)


def _warn_of_newer(run: RunDir, group: Group, step: int) -> None:
    """Log if a machine with a folder of its own has a checkpoint after this step. Collective."""
    if group.shares_folder:
        return
    newest = max(run.checkpoint_steps(), default=0)
    found = group.gather([newest, group.world.rank - group.world.local_rank, os.uname().nodename])
    # Rank 0 has said why it uses none of its own newer ones.
    newest_there, machine, host = max(found)
    if newest_there > step and machine > 0 and group.world.is_main:
        log.warning(
            "%s has a checkpoint of step %d, newer than the one that is used. To continue from it, stop, "
            "and make %s the first machine",
            *(host, newest_there, host),
        )
