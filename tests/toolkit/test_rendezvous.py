"""The ranks of one start find each other, and no others; who does not come is named."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.toolkit.ranks import worlds
from toolkit.errors import RendezvousError, UserError
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


# -- ranks that contradict each other


def test_ranks_of_two_worlds_are_told_at_once_on_both_sides(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """As where somebody has typed another number of processes on the second machine."""
    ranks = [*worlds(4, "typed")[:2], worlds(5, "typed")[3]]
    expected = r"rank 3 on .* was told of a world of 5 ranks, rank 0 on .* of 4"
    for each in start(threads, run, ranks, PATIENCE_S):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_two_processes_with_one_rank_are_told_at_once_on_every_side(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    ranks = worlds(3, "typed")
    started = start(threads, run, [ranks[0], ranks[1], ranks[1]], PATIENCE_S)
    for each in started:
        with pytest.raises(UserError, match="two processes say that they are rank 1"):
            each.result()


# -- by the environment


@pytest.fixture
def place() -> dict[str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}


def by_environment(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], place: dict[str, str], timeout_s: float
) -> list[Future[Meeting]]:
    return [pool.submit(meet, world, run.rendezvous(world.nonce), timeout_s, "env", place) for world in ranks]


def test_ranks_meet_where_the_environment_says(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    meetings = [each.result() for each in by_environment(threads, run, worlds(3), place, PATIENCE_S)]
    assert {str(meeting.world.master_port) for meeting in meetings} == {place["MASTER_PORT"]}
    meetings[0].store.set("greeting", "hello")
    assert all(meeting.store.get("greeting") == b"hello" for meeting in meetings)
    assert not run.rendezvous(meetings[0].world.nonce).exists()


def test_one_port_serves_one_start_after_another(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    for nonce in ("first", "second"):
        for each in by_environment(threads, run, worlds(2, nonce), place, PATIENCE_S):
            assert each.result().world.master_addr == "127.0.0.1"


def test_ranks_that_the_environment_misses_are_named(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    """By torch itself only their number would be known, and that after minutes."""
    (host,) = by_environment(threads, run, worlds(3)[:1], place, SHORT_S)
    with pytest.raises(RendezvousError, match=r"2 of 3 ranks did not arrive .*: rank 1, rank 2"):
        host.result()


def test_a_master_address_that_leads_nowhere_is_named(run: RunDir, place: dict[str, str]) -> None:
    expected = rf"\(rank 1\) cannot reach rank 0 on host 127.0.0.1 at 127.0.0.1 port {place['MASTER_PORT']}"
    with pytest.raises(RendezvousError, match=expected):
        meet(worlds(2)[1], run.rendezvous("typed"), SHORT_S, "env", place)


@pytest.mark.parametrize("environ", [{}, {"MASTER_ADDR": "a"}, {"MASTER_ADDR": "a", "MASTER_PORT": "x"}])
def test_without_a_place_in_the_environment_that_is_said(run: RunDir, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="the rendezvous is by the environment, but MASTER_ADDR is"):
        meet(worlds(2)[0], run.rendezvous("typed"), SHORT_S, "env", environ)


# -- through a file


def by_file(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], timeout_s: float
) -> list[Future[Meeting]]:
    return [pool.submit(meet, world, run.rendezvous(world.nonce), timeout_s, "file") for world in ranks]


def files(run: RunDir) -> list[str]:
    return [path.name for path in run.rendezvous("").parent.glob("*.filestore")]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_ranks_meet_through_a_file_that_is_gone_in_the_end(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(3, "7.0.1")
    meetings = [each.result() for each in by_file(threads, run, [ranks[i] for i in order], PATIENCE_S)]
    meetings[0].store.set("greeting", "hello")
    assert all(meeting.store.get("greeting") == b"hello" for meeting in meetings)
    assert files(run) == ["7.0.1.filestore"]
    for meeting in meetings:
        meeting.close()
    assert files(run) == []


def test_the_file_of_a_killed_start_is_no_hindrance(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """A requeued job has another name for its start, so the file is another one."""
    left = [each.result() for each in by_file(threads, run, worlds(2, "7.0.0"), PATIENCE_S)]
    again = [each.result() for each in by_file(threads, run, worlds(2, "7.0.1"), PATIENCE_S)]
    assert files(run) == ["7.0.1.filestore"]
    assert len(left) == len(again) == 2


def test_ranks_that_are_missing_at_a_file_are_named(run: RunDir, threads: ThreadPoolExecutor) -> None:
    ranks = worlds(3, "7.0.0")
    host, guest = by_file(threads, run, ranks[:2], 1.0)
    with pytest.raises(RendezvousError, match=r"1 of 3 ranks did not arrive .*: rank 2"):
        host.result()
    with pytest.raises(RendezvousError, match=r"rank 1 .* but not all ranks arrived"):
        guest.result()


def test_without_rank_0_at_a_file_that_is_said(run: RunDir) -> None:
    with pytest.raises(RendezvousError, match=r"rank 1 .* found no .*7\.0\.0\.filestore: rank 0 did not"):
        meet(worlds(2, "7.0.0")[1], run.rendezvous("7.0.0"), SHORT_S, "file")


def test_a_launcher_that_may_use_a_name_again_gets_no_file(run: RunDir) -> None:
    world = replace(worlds(2, "torchrun-29500.0")[0], master_addr="127.0.0.1", master_port=29500)
    with pytest.raises(UserError, match=r"train.rendezvous is file, but a launcher has set MASTER_ADDR"):
        meet(world, run.rendezvous(world.nonce), SHORT_S, "file")
