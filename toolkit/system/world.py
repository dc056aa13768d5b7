"""World: the rank of this process, the number of ranks, and how they find each other."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.errors import UserError

#: Set by the local launcher: names this attempt, so that no rank joins the store of another one.
NONCE_VARIABLE = "STK_RENDEZVOUS"

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The place of one process in a run.

    rank, size              among all processes of the run
    local_rank, local_size  among those of the same host
    node, nodes             host number and count
    nonce                   unique name of this start (job, step, restart), for its logs and, without
                            master_addr, for the file in which rank 0 publishes its store
    job, restart            the scheduler's name for the job of this attempt, and how often it was started
                            before; empty and 0 without a scheduler
    gpus                    GPUs that a scheduler granted on this host; None if unknown
    known_as                names or addresses of this host, the best first, and then of other hosts, as the
                            scheduler knows them; else empty
    master_addr             host of a store that another program opened (torchrun); else None
    master_port             its port
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    node: int = 0
    nodes: int = 1
    nonce: str = ""
    job: str = ""
    restart: int = 0
    gpus: int | None = None
    known_as: tuple[str, ...] = ()
    master_addr: str | None = None
    master_port: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise UserError(f"rank {self.rank} is outside a world of {self.size} processes")
        if not 0 <= self.local_rank < self.local_size:
            raise UserError(f"local rank {self.local_rank} is outside the {self.local_size} of its host")

    @property
    def is_main(self) -> bool:
        """Whether this process writes what only one rank writes."""
        return self.rank == 0

    @classmethod
    def single(cls) -> World:
        """A world of one process."""
        return cls(rank=0, size=1, local_rank=0, local_size=1, nonce=uuid.uuid4().hex)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> World:
        """The world that torchrun or our local launcher describes; one process without them.

        Raises UserError if only some of the variables are set, or if one is not a number.
        """
        missing = [name for name in _VARIABLES if name not in environ]
        if len(missing) == len(_VARIABLES):
            return cls.single()
        if missing:
            present = ", ".join(name for name in _VARIABLES if name in environ)
            raise UserError(
                f"{present} is set but {', '.join(missing)} is not: a launcher sets all three. "
                "Unset them to run as a single process."
            )
        size = _integer(environ, "WORLD_SIZE")
        local_size = max(1, _integer(environ, "LOCAL_WORLD_SIZE", size))
        nonce = environ.get(NONCE_VARIABLE, "")
        if not nonce and not environ.get("MASTER_ADDR"):
            raise UserError(f"WORLD_SIZE is {size} but MASTER_ADDR is not set: start the ranks with torchrun")
        return cls(
            rank=_integer(environ, "RANK"),
            size=size,
            local_rank=_integer(environ, "LOCAL_RANK"),
            local_size=local_size,
            node=_integer(environ, "GROUP_RANK", 0),
            nodes=_integer(environ, "GROUP_WORLD_SIZE", max(1, size // local_size)),
            nonce=nonce
            or f"torchrun-{environ.get('MASTER_PORT', 0)}.{environ.get('TORCHELASTIC_RESTART_COUNT', 0)}",
            master_addr=None if nonce else environ["MASTER_ADDR"],
            master_port=None if nonce else _integer(environ, "MASTER_PORT", 29500),
        )


def _integer(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise UserError(f"{name} is {text!r}, expected a whole number") from None
