"""The rendezvous of a command's processes, and the environment of each process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from toolkit.distributed.secure.addresses import known_addresses, own_addresses
from toolkit.errors import RendezvousError
from toolkit.files import read_json, write_json
from toolkit.reliability.stop import LAUNCHER_VARIABLE
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command.recorded import newest_save
from toolkit.workloads.custom.command.stopping import KILL_AFTER_S

_POLL_S = 0.1
#: Variables between the toolkit's launcher and its ranks.
_OF_RANKS = ("STK_RENDEZVOUS", LAUNCHER_VARIABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What rank 0 tells the others: its address, the number of the attempt, and where it begins.

    latest  name of the newest save in the folder of checkpoints; empty without one
    """

    address: str
    port: int
    attempt: int
    latest: str


def publish(run: RunDir, world: World, attempt: int) -> None:
    """Let the other ranks start. Rank 0 calls it when it holds the run and has made all files they need.

    All ranks begin with its newest save: those that start later may already see another one.
    """
    path = run.address(world.nonce)
    path.parent.mkdir(exist_ok=True)
    known = known_addresses(world.known_as) if world.nodes > 1 else []
    address = (known or own_addresses(world.nodes))[0]
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    newest = newest_save(run)
    latest = "" if newest is None else newest.name
    write_json(path, asdict(Place(address=address, port=port, attempt=attempt, latest=latest)))


def find(run: RunDir, world: World, timeout_s: float, is_stopped: Callable[[], bool]) -> Place | None:
    """Return rank 0's address; None if a stop comes first. Raises RendezvousError after timeout_s."""
    path, deadline = run.address(world.nonce), time.monotonic() + timeout_s
    while (found := read_json(path)) is None:
        if is_stopped():
            return None
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"rank {world.rank} on {socket.gethostname()} has waited {timeout_s:g} s for rank 0: it has "
                f"not started, or its file {path} is not visible on this host. See the log of rank 0"
            )
        time.sleep(_POLL_S)
    return Place(**found)


def environment(run: RunDir, world: World, place: Place, *, by_node: bool, params: str) -> dict[str, str]:
    """Return the environment of a command's process.

    by_node  one process on each host: index and number of the hosts replace rank and world size
    """
    rank, size = (world.node, world.nodes) if by_node else (world.rank, world.size)
    local_rank, local_size = (0, 1) if by_node else (world.local_rank, world.local_size)
    restarter = os.environ.get(LAUNCHER_VARIABLE)
    environ = {name: value for name, value in os.environ.items() if name not in _OF_RANKS} | {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(local_size),
        "GROUP_RANK": str(world.node),
        "GROUP_WORLD_SIZE": str(world.nodes),
        "MASTER_ADDR": place.address,
        "MASTER_PORT": str(place.port),
        "STK_RUN_DIR": str(run.path),
        "STK_ATTEMPT": str(place.attempt),
        "STK_NONCE": world.nonce,
        "STK_WATCHER": str(os.getpid()),
        # Empty if the launcher is that of another run, whose command started this run.
        "STK_RESTARTER": restarter if restarter == str(os.getppid()) else "",
        "STK_CHECKPOINT_DIR": str(run.checkpoints),
        "STK_LATEST_CHECKPOINT": str(run.checkpoints / place.latest) if place.latest else "",
        "STK_STOP_FILE": str(run.stop_request(world.nonce)),
        "STK_PARAMS": params,
    }
    # Otherwise torchrun kills its processes 30 s after SIGTERM.
    environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", f"{KILL_AFTER_S:.0f}")
    # torchrun reads its options from these variables.
    pet = {"NNODES": size, "NODE_RANK": rank, "MASTER_ADDR": place.address, "MASTER_PORT": place.port}
    return environ | ({f"PET_{name}": str(value) for name, value in pet.items()} if by_node else {})
