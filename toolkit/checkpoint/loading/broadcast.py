"""Sending a checkpoint to machines that do not share the run's folder with rank 0."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from toolkit.distributed.process_group import Group
from toolkit.errors import CheckpointError
from toolkit.files import crc32, fsync_path
from toolkit.run.run_dir import MANIFEST

#: Bytes sent at a time; each rank holds one chunk in memory.
_CHUNK = 32 << 20


def broadcast_checkpoint(folder: Path, group: Group) -> None:
    """Copy rank 0's checkpoint to every machine that lacks it, and delete older copies there. Collective.

    A machine with a newer checkpoint keeps all. Does nothing if all ranks see the same run folder. The copy
    is verified like any other checkpoint.
    """
    if group.shares_folder:
        return
    is_main = group.world.is_main
    wanted = group.agree(crc32(folder / MANIFEST) if is_main else None)
    has_it = (folder / MANIFEST).is_file() and crc32(folder / MANIFEST) == wanted
    if all(group.gather(has_it)):
        return
    kept = group.agree([each.name for each in _beside(folder)] if is_main else None)
    target = folder.with_name(f".{folder.name}.carried.tmp")
    is_receiver = group.world.local_rank == 0 and not has_it
    if is_receiver:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
    chunks = _chunks(folder) if is_main else iter(())
    while True:
        name, content = next(chunks, (None, b""))
        if (name := group.agree(name)) is None:
            break
        content = group.share(content)
        if is_receiver:
            with open(_inside(target, name), "ab") as stream:
                stream.write(content)
    if is_receiver:
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
        fsync_path(folder.parent)
        # Keep what rank 0 has: this may be rank 0's own folder, shown late by a network file system.
        # Keep all beside a newer one, whose best may be among them: the machines may be in a wrong order.
        here = _beside(folder)
        is_newest = all(each <= folder for each in here)
        old = [each for each in here if is_newest and each.name not in kept]
        for each in (*old, *folder.parent.glob(".step_*.carried.tmp")):
            shutil.rmtree(each, ignore_errors=True)
    group.barrier()


def _beside(folder: Path) -> list[Path]:
    """This checkpoint and those beside it."""
    return list(folder.parent.glob(f"step_{8 * '[0-9]'}"))


def _inside(folder: Path, name: str) -> Path:
    """A file of a folder, named by another rank. Raises CheckpointError for a name outside the folder."""
    if name in ("", ".", "..") or "/" in name:
        raise CheckpointError(
            f"rank 0 sent a file of a checkpoint named {name!r}, expected a file name without a path"
        )
    return folder / name


def _chunks(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder in pieces, at least one of each file."""
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as stream:
            yield path.name, stream.read(_CHUNK)
            while content := stream.read(_CHUNK):
                yield path.name, content
