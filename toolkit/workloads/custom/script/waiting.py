"""The ranks of a script wait for each other before a call that all of them have to make.

A call on rank 0 alone, as in `if rank == 0: with run.checkpoint(step)`, would exchange its numbers with the
gradients of the other ranks: gloo aborts, and NCCL waits for ever. Here rank 0 waits outside collectives, and
says so.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from toolkit.workloads.custom.script.misuse import place_of_call
from toolkit.workloads.custom.script.ranks import group

#: Backends whose groups have no store that can be used.
_WITHOUT_STORE = ("mpi", "fake")
#: Seconds after which a rank says for whom it waits.
_SAY_AFTER_S = 30.0
#: Seconds after which it makes the call nevertheless: the store does not notice that a rank is dead.
_WAIT_S = 60.0
#: Seconds between two questions to the store, at first and at most.
_POLL_S, _MOST_POLL_S = 0.001, 0.25


def wait_for_ranks(call: str, hint: str) -> None:
    """Wait up to a minute until all ranks of the script's group have come here equally often. Collective.

    Polls the store of the group: a blocking wait would keep torch's own threads from using the store. Keeps
    nothing in this process, not even the store, whose server would outlive the group. Returns at once without
    a group, or if its backend has no store.

    call   the call, such as `run.checkpoint(10)`
    hint   what to do if a rank does not make it
    """
    if (distributed := group()) is None or (store := _store(distributed)) is None:
        return
    rank, size = distributed.get_rank(), distributed.get_world_size()
    met = store.add(_came(rank), 1)
    everyone = f"stk/met/{met}"
    if store.add(f"{everyone}/count", 1) == size:
        store.set(everyone, "")
    begun, pause, is_told = time.monotonic(), _POLL_S, False
    while not store.check([everyone]) and (waited := time.monotonic() - begun) < _WAIT_S:
        if not is_told and waited >= _SAY_AFTER_S:
            is_told = True
            missing = [each for each in range(size) if store.add(_came(each), 0) < met]
            sys.stderr.write(
                f"stk: {place_of_call()}{call}: {_who(missing, size)}; rank {rank} waits. {hint}\n"
            )
        time.sleep(pause)
        pause = min(2 * pause, _MOST_POLL_S)


def _store(distributed: Any) -> Any:
    if distributed.get_backend() in _WITHOUT_STORE:
        return None
    return distributed.distributed_c10d._get_default_store()


def _came(rank: int) -> str:
    """Return the key under which a rank counts its calls."""
    return f"stk/came/{rank}"


def _who(missing: list[int], size: int) -> str:
    """Return which ranks have not made the call, as in `rank 1 has not called it for 30 s`."""
    named = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
    subject = f"rank {named} has" if len(missing) == 1 else f"{len(missing)} of {size} ranks ({named}) have"
    return f"{subject} not called it for {_SAY_AFTER_S:g} s"
