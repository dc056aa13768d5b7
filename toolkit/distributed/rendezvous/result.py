"""The result of a rendezvous: a store, the secret of the attempt, and the address of rank 0."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

from toolkit.errors import RendezvousError
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


class Place(TypedDict):
    """The place of rank 0's store."""

    host: str
    addresses: list[str]
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningRank:
    """A rank of an attempt that is about to join the others.

    secret    known to all ranks of the attempt
    deadline  monotonic time by which all ranks must have joined
    """

    run: RunDir
    world: World
    secret: bytes = field(repr=False)
    deadline: float

    @property
    def publication(self) -> Path:
        """The file in the run's folder with the address of rank 0."""
        return self.run.rendezvous(self.world.nonce)

    @property
    def unreached(self) -> Path:
        """The file in which ranks record that they cannot reach rank 0."""
        return self.publication.with_name(self.publication.name + ".unreached")

    @property
    def may_repeat(self) -> bool:
        """Whether a later attempt may have the same name, as under torchrun."""
        return self.world.master_addr is not None

    @property
    def remaining(self) -> timedelta:
        """The time until the deadline, at least a second."""
        return timedelta(seconds=max(1.0, self.deadline - time.monotonic()))


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """An open store that all ranks have joined, and the world, which now has rank 0's address.

    secret  the secret of this attempt
    close   on rank 0, stops accepting connections, and removes the files of the rendezvous
    """

    store: Any
    world: World
    secret: bytes = field(repr=False)
    close: Callable[[], None] = lambda: None

    def exchange(self, name: str, value: Any, timeout_s: float) -> list[Any]:
        """Exchange a JSON value under a name that is used once; return all ranks' values. Collective.

        Needs no process group. Raises RendezvousError if a rank sends nothing within timeout_s seconds.
        """
        self.store.set(f"{name}/{self.world.rank}", json.dumps(value))
        keys = [f"{name}/{rank}" for rank in range(self.world.size)]
        try:
            self.store.wait(keys, timedelta(seconds=timeout_s))
        except RuntimeError as error:
            silent = [f"rank {rank}" for rank, key in enumerate(keys) if not self.store.check([key])]
            raise RendezvousError(
                f"{', '.join(silent)} did not send their {name} to rank {self.world.rank} within "
                f"{timeout_s:g} s; their logs say why"
            ) from error
        return [json.loads(self.store.get(key)) for key in keys]
