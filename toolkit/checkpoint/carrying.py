"""Carrying a checkpoint to machines that do not share the run's folder with rank 0."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from toolkit.distributed import Group
from toolkit.files import crc32, fsync_dir
from toolkit.rundir import MANIFEST

#: Bytes sent at a time: each rank holds that much of it.
_CHUNK = 32 << 20


def carry(folder: Path, group: Group) -> None:
    """Copy rank 0's checkpoint to the same place on every machine that lacks it. Collective.

    Nothing happens where all ranks see the run's folder. What is carried is verified like any other.
    """
    if group.shares_folder:
        return
    is_main = group.world.is_main
    wanted = group.agree(crc32(folder / MANIFEST) if is_main else None)
    has_it = (folder / MANIFEST).is_file() and crc32(folder / MANIFEST) == wanted
    if all(group.gather(has_it)):
        return
    target = folder.with_name(f".{folder.name}.carried.tmp")
    is_receiver = group.world.local_rank == 0 and not has_it
    if is_receiver:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
    chunks = _chunks(folder) if is_main else iter(())
    while (piece := group.agree(next(chunks, None))) is not None:
        name, content = piece
        if is_receiver:
            with open(target / name, "ab") as stream:
                stream.write(content)
    if is_receiver:
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
        fsync_dir(folder.parent)
    group.barrier()


def _chunks(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder in pieces, at least one of each."""
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as stream:
            yield path.name, stream.read(_CHUNK)
            while content := stream.read(_CHUNK):
                yield path.name, content
