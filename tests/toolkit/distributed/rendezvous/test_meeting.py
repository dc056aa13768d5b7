"""The ranks of one attempt find each other, and no others; missing ranks are named."""

from __future__ import annotations

import os
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.distributed.rendezvous.starting import SHORT_S, start
from tests.toolkit.support.ranks import worlds
from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.distributed.rendezvous.network import publish
from toolkit.distributed.rendezvous.result import Place
from toolkit.errors import RendezvousError, UserError
from toolkit.files import read_json, write_json
from toolkit.run.attempts.refusal import write_refusal
from toolkit.run.run_dir import RunDir


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_all_ranks_meet_at_one_store_in_any_order_of_arrival(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(4)
    joined = [each.result() for each in start(threads, run, [ranks[i] for i in order], PATIENCE_S)]
    assert {each.world.master_port for each in joined} == {joined[0].world.master_port}
    assert {each.world.master_addr for each in joined} == {"127.0.0.1"}
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)


def test_rank_does_not_join_the_store_of_another_attempt(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Though a store listens there: that of the attempt before, which is still ending."""
    old = [each.result() for each in start(threads, run, worlds(2, "job.1"), PATIENCE_S)]
    assert run.rendezvous("job.1").is_file()
    with pytest.raises(RendezvousError, match=r"rank 1 on .* found no .*job\.2.*rank 0 did not start"):
        meet(run, worlds(2, "job.2")[1], SHORT_S)
    assert old[0].world.master_port == read_json(run.rendezvous("job.1"))["port"]


@pytest.mark.parametrize(
    "present, way", [([0], "auto"), ([1, 2], "auto"), ([0, 1], "auto"), ([0, 1], "file"), ([1, 2], "file")]
)
def test_a_refusal_of_one_process_ends_the_wait_of_the_others(
    run: RunDir, threads: ThreadPoolExecutor, present: list[int], way: str
) -> None:
    ranks = worlds(3, "job.1")
    write_refusal(run, "job.1", "SLURM_PROCID is 'x'")
    for each in start(threads, run, [ranks[rank] for rank in present], PATIENCE_S, way):
        with pytest.raises(UserError, match=r"a process of this attempt on .*SLURM_PROCID is 'x'"):
            each.result()


@pytest.mark.parametrize("way", ["auto", "file"])
def test_missing_ranks_are_named_by_rank_0(run: RunDir, threads: ThreadPoolExecutor, way: str) -> None:
    ranks = worlds(5)
    host, guest = start(threads, run, [ranks[0], ranks[2]], 3.0, way)
    with pytest.raises(
        RendezvousError, match=r"3 of 5 ranks did not arrive .*: rank 1, rank 3, rank 4\..*timeout_s"
    ):
        host.result()
    with pytest.raises(RendezvousError, match=r"rank 2 .* joined rank 0 .* but not all ranks arrived"):
        guest.result()


def test_unreachable_rank_0_names_both_hosts_and_the_port(run: RunDir) -> None:
    with socket.socket() as silent:
        # Bound, so that no other process gets the port, but not listening.
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        world = worlds(2)[1]
        place = Place(host="node17", addresses=["127.0.0.1"], port=port)
        publish(run.rendezvous(world.nonce), place)
        expected = (
            rf"host {socket.gethostname()} \(rank 1\) cannot reach rank 0 on host node17 "
            rf"at 127.0.0.1 port {port}"
        )
        with pytest.raises(RendezvousError, match=expected):
            meet(run, world, SHORT_S)


def test_first_reachable_address_of_rank_0_is_used(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Rank 0 lists all of its host's addresses; some may lead nowhere."""
    ranks = worlds(2)
    publication = run.rendezvous(ranks[0].nonce)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    place = until(lambda: read_json(publication))
    write_json(publication, {**place, "addresses": ["127.255.255.254", *place["addresses"]]})
    joined = meet(run, ranks[1], PATIENCE_S)
    assert joined.world.master_port == host.result().world.master_port


def test_gloo_uses_the_interface_towards_rank_0(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # First set, so that the end of the test puts back what was there.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    for each in start(threads, RunDir(tmp_path), worlds(2), PATIENCE_S):
        each.result()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


def test_different_world_sizes_are_reported_on_every_rank(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """For example, another number of processes was typed on the second machine."""
    ranks = [*worlds(4, "typed")[:2], worlds(5, "typed")[3]]
    expected = r"rank 3 on .* has a world of 5 ranks, rank 0 on .* of 4"
    for each in start(threads, run, ranks, PATIENCE_S):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_duplicate_ranks_are_reported_on_every_rank(run: RunDir, threads: ThreadPoolExecutor) -> None:
    ranks = worlds(3, "typed")
    started = start(threads, run, [ranks[0], ranks[1], ranks[1]], PATIENCE_S)
    for each in started:
        with pytest.raises(UserError, match="two processes have the rank 1"):
            each.result()


def exchange(pool: ThreadPoolExecutor, joined: list[Rendezvous], timeout_s: float) -> list[Future[list[Any]]]:
    return [pool.submit(each.exchange, "device", {"rank": each.world.rank}, timeout_s) for each in joined]


@pytest.mark.parametrize("way", ["auto", "file"])
def test_exchange_returns_values_of_all_ranks(run: RunDir, threads: ThreadPoolExecutor, way: str) -> None:
    joined = [each.result() for each in start(threads, run, worlds(3), PATIENCE_S, way)]
    told = [{"rank": rank} for rank in range(3)]
    assert [each.result() for each in exchange(threads, joined, PATIENCE_S)] == [told] * 3


def test_exchange_names_a_rank_that_sends_nothing(run: RunDir, threads: ThreadPoolExecutor) -> None:
    joined = [each.result() for each in start(threads, run, worlds(3), PATIENCE_S)]
    for each in exchange(threads, joined[:2], SHORT_S):
        with pytest.raises(RendezvousError, match="rank 2 did not send their device"):
            each.result()
