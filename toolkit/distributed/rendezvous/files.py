"""Rendezvous through a file in a folder of the run that only its owner may enter."""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from torch.distributed import FileStore  # type: ignore[attr-defined]  # not in __all__

from toolkit.distributed.rendezvous.check_in import RefusalWatch, check_in, wait_for_ranks
from toolkit.distributed.rendezvous.network import no_publication
from toolkit.distributed.rendezvous.result import JoiningRank, Rendezvous
from toolkit.distributed.secure.addresses import own_addresses, route_to, use_interface_of
from toolkit.errors import UserError

_POLL_S = 0.05


def by_file(joining: JoiningRank) -> Rendezvous:
    """Meet with a store in a file of this attempt, which needs no network. Collective."""
    world = joining.world
    if world.master_addr is not None:
        raise UserError(
            "train.rendezvous is file, but a launcher has set MASTER_ADDR, and its next attempt may have the "
            "same name and read a stale file: leave train.rendezvous at auto"
        )
    folder = joining.publication.with_suffix("").with_suffix(".filestore")
    _make_private(folder)
    store = FileStore(str(folder / "store"), world.size)
    if world.is_main:
        _remove_others(folder)
        addresses = own_addresses(world.nodes)
        store.set("addresses", " ".join(addresses))
        address = wait_for_ranks(store, joining, addresses[0])
        use_interface_of(address)

        def finish() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            joining.run.secret(world.nonce).unlink(missing_ok=True)

        return Rendezvous(store, replace(world, master_addr=address, master_port=0), joining.secret, finish)
    _await_addresses(store, joining, folder)
    addresses = store.get("addresses").decode().split()
    address, own = route_to(addresses)
    route = check_in(store, joining, address, "its host")
    use_interface_of(route if own.startswith("127.") else own)
    return Rendezvous(store, replace(world, master_addr=route, master_port=0), joining.secret)


def _await_addresses(store: FileStore, joining: JoiningRank, folder: Path) -> None:
    """Wait until rank 0 has written its addresses. Raises RendezvousError, UserError."""
    watch, deadline = RefusalWatch(joining), time.monotonic() + joining.remaining.total_seconds()
    while not store.check(["addresses"]):
        if (reason := watch.ask()) is not None:
            raise UserError(reason)
        if time.monotonic() > deadline:
            raise no_publication(joining.world, folder)
        time.sleep(_POLL_S)


def _make_private(folder: Path) -> None:
    """Make a folder that only this user may enter. Raises UserError if something else is in its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=stat.S_IRWXU)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UserError(
            f"{folder} must be a folder of this user with mode 700, because its files decide what the ranks "
            f"do; found {stat.filemode(found.st_mode)} of user {found.st_uid}. Remove it."
        )


def _remove_others(folder: Path) -> None:
    """Remove the folders that killed attempts have left."""
    for other in folder.parent.glob(f"*{folder.suffix}"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
