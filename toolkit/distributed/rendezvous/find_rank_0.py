"""The three ways in which ranks find each other."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial

from toolkit.distributed.rendezvous.environment import by_environment
from toolkit.distributed.rendezvous.files import by_file
from toolkit.distributed.rendezvous.network import find_published, host, join, publish
from toolkit.distributed.rendezvous.result import JoiningRank, Rendezvous
from toolkit.distributed.rendezvous.where_to_listen import where_to_listen
from toolkit.distributed.secure.secret import shared_secret
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def meet(
    run: RunDir, world: World, timeout_s: float, way: str = "auto", environ: Mapping[str, str] = os.environ
) -> Rendezvous:
    """Open or join the store of this attempt. Collective: every rank of the world must call it.

    way  the value of train.rendezvous

    Raises RendezvousError after timeout_s seconds, naming the missing ranks (on rank 0) or the host that
    cannot reach rank 0 (on the others), and UserError if the ranks contradict each other or the secret is not
    safe. Connections that do not prove the secret are recorded in events.jsonl.
    """
    deadline = time.monotonic() + timeout_s
    secret = shared_secret(run.secret(world.nonce), world.nonce, environ)
    joining = JoiningRank(run=run, world=world, secret=secret, deadline=deadline)
    if way == "file":
        return by_file(joining)
    if way == "env" or world.master_addr is not None:
        return by_environment(joining, environ)
    if world.is_main:
        return host(
            joining, where_to_listen(joining, world.known_as), publish=partial(publish, joining.publication)
        )
    return join(joining, partial(find_published, joining.publication))
