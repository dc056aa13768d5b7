"""The ranks of one start find each other, and no others; who does not come is named."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.toolkit.ranks import worlds
from toolkit.errors import RendezvousError
from toolkit.files import read_json, write_json
from toolkit.rendezvous import Meeting, meet
from toolkit.rundir import RunDir
from toolkit.world import World

PATIENCE_S = 30.0
SHORT_S = 0.3


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    # Chosen by a meeting, unless it is set.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    return RunDir(tmp_path)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def start(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], timeout_s: float
) -> list[Future[Meeting]]:
    return [pool.submit(meet, world, run.rendezvous(world.nonce), timeout_s) for world in ranks]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_all_ranks_meet_at_one_store_whoever_comes_first(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(4)
    meetings = [each.result() for each in start(threads, run, [ranks[i] for i in order], PATIENCE_S)]
    assert {meeting.world.master_port for meeting in meetings} == {meetings[0].store.port}
    assert {meeting.world.master_addr for meeting in meetings} == {"127.0.0.1"}
    meetings[0].store.set("greeting", "hello")
    assert all(meeting.store.get("greeting") == b"hello" for meeting in meetings)


def test_two_starts_at_once_do_not_mix(run: RunDir, threads: ThreadPoolExecutor) -> None:
    first, second = worlds(2, "job.1"), worlds(2, "job.2")
    meetings = [each.result() for each in start(threads, run, [*first, *second], PATIENCE_S)]
    ports = [meeting.world.master_port for meeting in meetings]
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_publication_of_another_start_is_never_joined(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Though a store listens there: that of the start before, which is still ending."""
    old = [each.result() for each in start(threads, run, worlds(2, "job.1"), PATIENCE_S)]
    assert run.rendezvous("job.1").is_file()
    with pytest.raises(RendezvousError, match=r"rank 1 on .* found no .*job\.2.*rank 0 did not start"):
        meet(worlds(2, "job.2")[1], run.rendezvous("job.2"), SHORT_S)
    assert old[0].store.port == read_json(run.rendezvous("job.1"))["port"]


def test_missing_ranks_are_named_by_rank_0(run: RunDir, threads: ThreadPoolExecutor) -> None:
    ranks = worlds(5)
    host, guest = start(threads, run, [ranks[0], ranks[2]], 3.0)
    with pytest.raises(
        RendezvousError, match=r"3 of 5 ranks did not arrive .*: rank 1, rank 3, rank 4\..*timeout_s"
    ):
        host.result()
    with pytest.raises(RendezvousError, match=r"rank 2 .* joined rank 0 .* but not all ranks arrived"):
        guest.result()


def test_unreachable_rank_0_names_both_hosts_and_the_port(run: RunDir) -> None:
    with socket.socket() as silent:
        # Bound, so that nobody else gets the port, but not listening.
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        world = worlds(2)[1]
        place = {"host": "node17", "addresses": ["127.0.0.1"], "port": port}
        run.rendezvous(world.nonce).parent.mkdir()
        write_json(run.rendezvous(world.nonce), place)
        expected = (
            rf"host {socket.gethostname()} \(rank 1\) cannot reach rank 0 on host node17 "
            rf"at 127.0.0.1 port {port}"
        )
        with pytest.raises(RendezvousError, match=expected):
            meet(world, run.rendezvous(world.nonce), SHORT_S)


def test_first_address_that_answers_is_taken(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Rank 0 lists all of its host's addresses; some may lead nowhere."""
    ranks = worlds(2)
    publication = run.rendezvous(ranks[0].nonce)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    while (place := read_json(publication)) is None:
        time.sleep(0.01)
    write_json(publication, {**place, "addresses": ["127.255.255.254", *place["addresses"]]})
    meeting = meet(ranks[1], publication, PATIENCE_S)
    assert meeting.world.master_port == host.result().world.master_port


def test_interface_towards_rank_0_is_told_to_gloo(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # First set, so that the end of the test puts back what was there.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    for each in start(threads, RunDir(tmp_path), worlds(2), PATIENCE_S):
        each.result()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
