"""A process without the secret of an attempt can neither join it nor act as its rank 0."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.distributed.rendezvous.starting import SHORT_S, start
from tests.toolkit.support.ranks import worlds
from tests.toolkit.support.tiny import events
from toolkit.distributed.rendezvous import meet
from toolkit.distributed.rendezvous.network import publish
from toolkit.distributed.rendezvous.result import Place
from toolkit.distributed.secure.channel import Channel
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.errors import RendezvousError
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def place_of(run: RunDir, world: World) -> dict[str, Any]:
    """Where rank 0 listens, as soon as it has said so."""
    return until(lambda: read_json(run.rendezvous(world.nonce)))


def refused(run: RunDir) -> list[str]:
    """The addresses of those that were refused, as soon as there are some."""
    return [line["address"] for line in until(lambda: events(run, "connection_refused"))]


def test_a_process_without_the_secret_cannot_join_and_is_recorded(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    ranks = worlds(2)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    stranger = World(rank=1, size=2, local_rank=1, local_size=2, nonce=ranks[0].nonce)
    place, secret = place_of(run, ranks[0]), run.secret(ranks[0].nonce)
    other = RunDir(run.path / "strangers")
    publish(other.rendezvous(stranger.nonce), place)
    with pytest.raises(RendezvousError, match=r"no rank 0 that shares its secret.*STK_SECRET_FILE"):
        meet(other, stranger, SHORT_S)
    assert secret.read_bytes() != other.secret(stranger.nonce).read_bytes()
    (guest,) = start(threads, run, ranks[1:], PATIENCE_S)
    assert host.result().store.get("claimed/1") == b"1"
    guest.result()
    assert {*refused(run)} == {"127.0.0.1"}


def test_a_false_rank_0_is_not_joined(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Its publication lies in the run's folder, and it answers; the true one comes later."""
    ranks = worlds(2)
    told: list[Any] = []
    refusals = Refusals(lambda event, **facts: told.append(event))
    false = SecureListener(listen(["127.0.0.1"]), b"another secret", Channel.close, refusals)
    place = Place(host="node17", addresses=["127.0.0.1"], port=false.port)
    publish(run.rendezvous(ranks[0].nonce), place)
    (guest,) = start(threads, run, ranks[1:], PATIENCE_S)
    until(lambda: refusals.count)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    assert guest.result().world.master_port == host.result().world.master_port != false.port
    false.close()


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "{}", '{"host": 1, "addresses": 2, "port": 1e999}'])
def test_an_invalid_publication_counts_as_missing(run: RunDir, text: str) -> None:
    world = worlds(2)[1]
    run.rendezvous(world.nonce).parent.mkdir()
    run.rendezvous(world.nonce).write_text(text)
    with pytest.raises(RendezvousError, match=r"found no .*rank 0 did not start"):
        meet(run, world, SHORT_S)


def test_a_rendezvous_on_one_machine_listens_on_loopback_only(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    for each in start(threads, run, worlds(2), PATIENCE_S):
        port = each.result().world.master_port
    # Another process of this machine may use the same port on another address.
    own = [line.laddr for line in psutil.net_connections("tcp") if line.pid == os.getpid()]
    assert {address.ip for address in own if address.port == port} == {"127.0.0.1"}
