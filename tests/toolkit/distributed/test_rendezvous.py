"""The ranks of one start find each other, and no others; who does not come is named."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.toolkit.ranks import worlds
from tests.toolkit.tiny import events
from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.distributed.secure.channel import Channel
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.errors import RendezvousError, UserError
from toolkit.files import read_json, write_json
from toolkit.run.run_dir import RunDir
from toolkit.world import World

SHORT_S = 0.3


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    # Chosen by a rendezvous, unless it is set.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    return RunDir(tmp_path)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def start(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], timeout_s: float
) -> list[Future[Rendezvous]]:
    return [pool.submit(meet, run, world, timeout_s) for world in ranks]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_all_ranks_meet_at_one_store_whoever_comes_first(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(4)
    joined = [each.result() for each in start(threads, run, [ranks[i] for i in order], PATIENCE_S)]
    assert {each.world.master_port for each in joined} == {joined[0].world.master_port}
    assert {each.world.master_addr for each in joined} == {"127.0.0.1"}
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)


def test_two_starts_at_once_do_not_mix(run: RunDir, threads: ThreadPoolExecutor) -> None:
    first, second = worlds(2, "job.1"), worlds(2, "job.2")
    joined = [each.result() for each in start(threads, run, [*first, *second], PATIENCE_S)]
    ports = [each.world.master_port for each in joined]
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_publication_of_another_start_is_never_joined(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Though a store listens there: that of the start before, which is still ending."""
    old = [each.result() for each in start(threads, run, worlds(2, "job.1"), PATIENCE_S)]
    assert run.rendezvous("job.1").is_file()
    with pytest.raises(RendezvousError, match=r"rank 1 on .* found no .*job\.2.*rank 0 did not start"):
        meet(run, worlds(2, "job.2")[1], SHORT_S)
    assert old[0].world.master_port == read_json(run.rendezvous("job.1"))["port"]


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
            meet(run, world, SHORT_S)


def test_first_address_that_answers_is_taken(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Rank 0 lists all of its host's addresses; some may lead nowhere."""
    ranks = worlds(2)
    publication = run.rendezvous(ranks[0].nonce)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    while (place := read_json(publication)) is None:
        time.sleep(0.01)
    write_json(publication, {**place, "addresses": ["127.255.255.254", *place["addresses"]]})
    joined = meet(run, ranks[1], PATIENCE_S)
    assert joined.world.master_port == host.result().world.master_port


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
    expected = r"rank 3 on .* has a world of 5 ranks, rank 0 on .* of 4"
    for each in start(threads, run, ranks, PATIENCE_S):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_two_processes_with_one_rank_are_told_at_once_on_every_side(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    ranks = worlds(3, "typed")
    started = start(threads, run, [ranks[0], ranks[1], ranks[1]], PATIENCE_S)
    for each in started:
        with pytest.raises(UserError, match="two processes have the rank 1"):
            each.result()


# -- strangers


def place_of(run: RunDir, world: World) -> dict[str, Any]:
    """Where rank 0 listens, as soon as it has said so."""
    while (place := read_json(run.rendezvous(world.nonce))) is None:
        time.sleep(0.01)
    return place


def refused(run: RunDir) -> list[str]:
    """The addresses of those that were refused, as soon as there are some."""
    while not (lines := events(run, "connection_refused")):
        time.sleep(0.01)
    return [line["address"] for line in lines]


def test_a_stranger_who_joins_as_a_rank_does_not_count_and_is_named(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    ranks = worlds(2)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    stranger = World(rank=1, size=2, local_rank=1, local_size=2, nonce=ranks[0].nonce)
    place, secret = place_of(run, ranks[0]), run.secret(ranks[0].nonce)
    other = RunDir(run.path / "strangers")
    write_json_beside(other.rendezvous(stranger.nonce), place)
    with pytest.raises(RendezvousError, match=r"no rank 0 that shares its secret.*STK_SECRET_FILE"):
        meet(other, stranger, SHORT_S)
    assert secret.read_bytes() != other.secret(stranger.nonce).read_bytes()
    (guest,) = start(threads, run, ranks[1:], PATIENCE_S)
    assert host.result().store.get("claimed/1") == b"1"
    guest.result()
    assert {*refused(run)} == {"127.0.0.1"}


def test_torchs_own_store_gets_nothing_from_rank_0(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """As a stranger would speak to it who knows how torch's ranks meet."""
    ranks = worlds(2)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    port = place_of(run, ranks[0])["port"]
    with pytest.raises(RuntimeError):
        TCPStore("127.0.0.1", port, timeout=timedelta(seconds=1), wait_for_workers=False).set("joined/1", "x")
    (guest,) = start(threads, run, ranks[1:], PATIENCE_S)
    assert (host.result().world.size, guest.result().world.size) == (2, 2)


def test_a_false_rank_0_is_not_joined(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """Its publication lies in the run's folder, and it answers; the true one comes later."""
    ranks = worlds(2)
    told: list[Any] = []
    refusals = Refusals(lambda event, **facts: told.append(event))
    false = SecureListener(listen(["127.0.0.1"]), b"another secret", Channel.close, refusals)
    place = {"host": "node17", "addresses": ["127.0.0.1"], "port": false.port}
    write_json_beside(run.rendezvous(ranks[0].nonce), place)
    (guest,) = start(threads, run, ranks[1:], PATIENCE_S)
    while not refusals.count:
        time.sleep(0.01)
    (host,) = start(threads, run, ranks[:1], PATIENCE_S)
    assert guest.result().world.master_port == host.result().world.master_port != false.port
    false.close()


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "{}", '{"host": 1, "addresses": 2, "port": 1e999}'])
def test_a_publication_that_nobody_understands_counts_as_none(run: RunDir, text: str) -> None:
    world = worlds(2)[1]
    run.rendezvous(world.nonce).parent.mkdir()
    run.rendezvous(world.nonce).write_text(text)
    with pytest.raises(RendezvousError, match=r"found no .*rank 0 did not start"):
        meet(run, world, SHORT_S)


def test_one_machine_listens_where_no_other_machine_can_connect(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    for each in start(threads, run, worlds(2), PATIENCE_S):
        port = each.result().world.master_port
    assert {line.laddr.ip for line in psutil.net_connections("tcp") if line.laddr.port == port} == {
        "127.0.0.1"
    }


def write_json_beside(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, value)


# -- by the environment


# -- what the ranks tell each other before they are a group


def exchange(pool: ThreadPoolExecutor, joined: list[Rendezvous], timeout_s: float) -> list[Future[list[Any]]]:
    return [pool.submit(each.exchange, "device", {"rank": each.world.rank}, timeout_s) for each in joined]


@pytest.mark.parametrize("way", ["auto", "file"])
def test_every_rank_learns_what_the_others_tell(run: RunDir, threads: ThreadPoolExecutor, way: str) -> None:
    started = [threads.submit(meet, run, world, PATIENCE_S, way) for world in worlds(3)]
    joined = [each.result() for each in started]
    told = [{"rank": rank} for rank in range(3)]
    assert [each.result() for each in exchange(threads, joined, PATIENCE_S)] == [told] * 3


def test_a_rank_that_tells_nothing_is_named(run: RunDir, threads: ThreadPoolExecutor) -> None:
    joined = [each.result() for each in start(threads, run, worlds(3), PATIENCE_S)]
    for each in exchange(threads, joined[:2], SHORT_S):
        with pytest.raises(RendezvousError, match="rank 2 did not send their device"):
            each.result()


@pytest.fixture
def place() -> dict[str, str]:
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}


def by_environment(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], place: dict[str, str], timeout_s: float
) -> list[Future[Rendezvous]]:
    return [pool.submit(meet, run, world, timeout_s, "env", place) for world in ranks]


def test_ranks_meet_where_the_environment_says(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    joined = [each.result() for each in by_environment(threads, run, worlds(3), place, PATIENCE_S)]
    assert {str(each.world.master_port) for each in joined} == {place["MASTER_PORT"]}
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)
    assert not run.rendezvous(joined[0].world.nonce).exists()


def test_one_port_serves_one_start_after_another(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    for nonce in ("first", "second"):
        for each in by_environment(threads, run, worlds(2, nonce), place, PATIENCE_S):
            assert each.result().world.master_addr == "127.0.0.1"
            each.result().close()


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
        meet(run, worlds(2)[1], SHORT_S, "env", place)


@pytest.mark.parametrize("environ", [{}, {"MASTER_ADDR": "a"}, {"MASTER_ADDR": "a", "MASTER_PORT": "x"}])
def test_without_a_place_in_the_environment_that_is_said(run: RunDir, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="needs MASTER_ADDR and MASTER_PORT, but they are"):
        meet(run, worlds(2)[0], SHORT_S, "env", environ)


# -- beside torchrun


def beside_torchrun(
    pool: ThreadPoolExecutor, runs: list[RunDir], port: int, **environ: str
) -> list[Future[Rendezvous]]:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    ranks = worlds(len(runs), "torchrun-29500.0")
    return [
        pool.submit(meet, run, world, PATIENCE_S, "env", {**place, **environ})
        for run, world in zip(runs, ranks, strict=True)
    ]


@pytest.fixture
def agent() -> Any:
    """The store of torchrun's agent, which everybody may write."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def test_ranks_of_torchrun_meet_beside_its_store(
    run: RunDir, threads: ThreadPoolExecutor, agent: Any
) -> None:
    joined = [each.result() for each in beside_torchrun(threads, [run, run], agent.port)]
    joined[0].store.set("greeting", "hello")
    assert joined[1].store.get("greeting") == b"hello"
    assert {each.world.master_port for each in joined} == {agent.port}
    assert not agent.check(["greeting"])


def test_a_start_of_torchrun_may_have_the_name_of_one_that_was_killed(
    run: RunDir, threads: ThreadPoolExecutor, agent: Any
) -> None:
    """Its publication is still there, and nobody answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        place = {"host": "node17", "addresses": ["127.0.0.1"], "port": silent.getsockname()[1]}
        write_json_beside(run.rendezvous("torchrun-29500.0"), place)
        for each in beside_torchrun(threads, [run, run], agent.port):
            assert each.result().world.size == 2


def test_ranks_of_torchrun_without_a_common_folder_need_a_secret_of_the_user(
    tmp_path: Path, threads: ThreadPoolExecutor, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    runs = [RunDir(tmp_path / str(number)) for number in range(2)]
    given = tmp_path / "given"
    given.write_text("a secret that was copied by hand")
    given.chmod(0o600)
    # A stranger is faster: what it says is not signed.
    agent.set("stk/torchrun-29500.0/place", json.dumps({"place": '{"host": "evil"}', "proof": "0" * 64}))
    for each in beside_torchrun(threads, runs, agent.port, STK_SECRET_FILE=str(given)):
        assert each.result().world.size == 2
    world = replace(worlds(2, "torchrun-29500.0")[1], master_addr="127.0.0.1", master_port=agent.port)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    with pytest.raises(RendezvousError, match=r"found no .*STK_SECRET_FILE"):
        meet(RunDir(tmp_path / "2"), world, SHORT_S, "auto", place)


# -- through a file


def by_file(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], timeout_s: float
) -> list[Future[Rendezvous]]:
    return [pool.submit(meet, run, world, timeout_s, "file") for world in ranks]


def files(run: RunDir) -> list[str]:
    return [path.name for path in run.rendezvous("").parent.glob("*.filestore")]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_ranks_meet_through_a_file_that_is_gone_in_the_end(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(3, "7.0.1")
    joined = [each.result() for each in by_file(threads, run, [ranks[i] for i in order], PATIENCE_S)]
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)
    assert files(run) == ["7.0.1.filestore"]
    for each in joined:
        each.close()
    assert files(run) == []


def test_the_file_of_a_killed_start_is_no_hindrance(run: RunDir, threads: ThreadPoolExecutor) -> None:
    """A requeued job has another name for its start, so the file is another one."""
    left = [each.result() for each in by_file(threads, run, worlds(2, "7.0.0"), PATIENCE_S)]
    again = [each.result() for each in by_file(threads, run, worlds(2, "7.0.1"), PATIENCE_S)]
    assert files(run) == ["7.0.1.filestore"]
    assert len(left) == len(again) == 2


STRANGER = 65534


def plant(folder: Path, what: str) -> None:
    """What a stranger may put where the ranks will make their folder."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700, parents=True)
    match what:
        case "a folder of another user":
            folder.mkdir(mode=0o700)
            os.chown(folder, STRANGER, STRANGER)
        case "a folder that others may write":
            folder.mkdir()
            folder.chmod(0o777)
        case "a folder that the group may enter":
            folder.mkdir()
            folder.chmod(0o750)
        case "a link to a folder":
            folder.symlink_to(elsewhere)
        case "a link to nothing":
            folder.symlink_to(folder.parent / "nowhere")
        case "a file":
            folder.touch(0o600)


@pytest.mark.parametrize(
    "what, kind",
    [
        pytest.param(
            "a folder of another user",
            "drwx------",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away"),
        ),
        ("a folder that others may write", "drwxrwxrwx"),
        ("a folder that the group may enter", "drwxr-x---"),
        ("a link to a folder", "lrwxrwxrwx"),
        ("a link to nothing", "lrwxrwxrwx"),
        ("a file", "-rw-------"),
    ],
)
def test_what_a_stranger_has_planted_in_place_of_the_folder_is_refused_by_every_rank(
    run: RunDir, threads: ThreadPoolExecutor, what: str, kind: str
) -> None:
    ranks = worlds(2, "7.0.0")
    folder = run.rendezvous("7.0.0").with_name("7.0.0.filestore")
    plant(folder, what)
    before = sorted(os.listdir(folder.parent))
    owner = STRANGER if "another user" in what else os.geteuid()
    expected = (
        rf"7\.0\.0\.filestore must be a folder of this user .* found {kind} of user {owner}\. Remove it"
    )
    for each in by_file(threads, run, ranks, PATIENCE_S):
        with pytest.raises(UserError, match=expected):
            each.result()
    assert {*os.listdir(folder.parent)} - {"7.0.0.secret"} == {*before}
    assert os.listdir(folder.parent / "elsewhere") == []


def test_a_folder_of_the_user_alone_which_another_rank_has_made_is_used(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    run.rendezvous("7.0.0").with_name("7.0.0.filestore").mkdir(mode=0o700, parents=True)
    for each in by_file(threads, run, worlds(2, "7.0.0"), PATIENCE_S):
        assert each.result().world.size == 2


def test_ranks_that_are_missing_at_a_file_are_named(run: RunDir, threads: ThreadPoolExecutor) -> None:
    ranks = worlds(3, "7.0.0")
    host, guest = by_file(threads, run, ranks[:2], 1.0)
    with pytest.raises(RendezvousError, match=r"1 of 3 ranks did not arrive .*: rank 2"):
        host.result()
    with pytest.raises(RendezvousError, match=r"rank 1 .* but not all ranks arrived"):
        guest.result()


def test_without_rank_0_at_a_file_that_is_said(run: RunDir) -> None:
    with pytest.raises(RendezvousError, match=r"rank 1 .* found no .*7\.0\.0\.filestore: rank 0 did not"):
        meet(run, worlds(2, "7.0.0")[1], SHORT_S, "file")


def test_a_launcher_that_may_use_a_name_again_gets_no_file(run: RunDir) -> None:
    world = replace(worlds(2, "torchrun-29500.0")[0], master_addr="127.0.0.1", master_port=29500)
    with pytest.raises(UserError, match=r"train.rendezvous is file, but a launcher has set MASTER_ADDR"):
        meet(run, world, SHORT_S, "file")
