"""The launchers meet before anything is started; who is missing or was told otherwise is named."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from toolkit.errors import RendezvousError, UserError
from toolkit.machines.layout import Machines, layout
from toolkit.machines.meeting import Peer, answer_roll, call_roll

PATIENCE_S = 30.0
SHORT_S = 0.3


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def machine(node: int, counts: Sequence[int], port: int, address: str = "127.0.0.1") -> Machines:
    return Machines(layout=layout(counts), node=node, master_addr=address, master_port=port)


def call(
    pool: ThreadPoolExecutor, counts: Sequence[int], port: int, timeout_s: float = PATIENCE_S
) -> Future[list[Peer]]:
    return pool.submit(call_roll, machine(0, counts, port), "run-1", timeout_s)


def answer(
    pool: ThreadPoolExecutor,
    node: int,
    counts: Sequence[int],
    port: int,
    run: str = "run-1",
    timeout_s: float = PATIENCE_S,
) -> Future[Peer]:
    return pool.submit(answer_roll, machine(node, counts, port), run, timeout_s)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_all_machines_meet_whoever_comes_first(
    threads: ThreadPoolExecutor, port: int, order: list[int]
) -> None:
    counts = [3, 1, 2]
    calls: dict[int, Future[list[Peer]]] = {}
    answers: dict[int, Future[Peer]] = {}
    for node in order:
        if node == 0:
            calls[0] = call(threads, counts, port)
        else:
            answers[node] = answer(threads, node, counts, port)
    peers = calls[0].result()
    assert [(peer.node, peer.host) for peer in peers] == [
        (1, socket.gethostname()),
        (2, socket.gethostname()),
    ]
    for peer in peers:
        leader = answers[peer.node].result()
        peer.wire.send(start=f"to {peer.node}")
        assert leader.wire.receive(PATIENCE_S) == {"start": f"to {peer.node}"}
        leader.wire.close()
        peer.wire.close()


def test_machines_that_do_not_come_are_named_to_all_who_came(threads: ThreadPoolExecutor, port: int) -> None:
    counts = [1, 1, 3, 1]
    leader, member = call(threads, counts, port, 1.0), answer(threads, 1, counts, port)
    expected = r"2 of 4 machines did not come .* within 1 s: node 2 \(ranks 2 to 4\), node 3 \(rank 5\)"
    with pytest.raises(RendezvousError, match=expected):
        leader.result()
    with pytest.raises(RendezvousError, match="says: " + expected):
        member.result()


def test_a_first_machine_that_does_not_listen_is_named(port: int) -> None:
    expected = (
        rf"node 1 on {socket.gethostname()} could not reach node 0 at 127.0.0.1 port {port} within 0.3 s"
    )
    with pytest.raises(RendezvousError, match=expected):
        answer_roll(machine(1, [1, 1], port), "run-1", SHORT_S)


def test_a_name_that_nobody_knows_is_the_users_fault(port: int) -> None:
    with pytest.raises((UserError, RendezvousError), match=r"node-x\.invalid"):
        answer_roll(machine(1, [1, 1], port, "node-x.invalid"), "run-1", SHORT_S)


def test_counts_that_contradict_each_other_name_both(threads: ThreadPoolExecutor, port: int) -> None:
    leader, member = call(threads, [3, 1], port), answer(threads, 1, [3, 2], port)
    expected = r"node 0 \(.*\) was told of 3, 1 processes, node 1 \(.*\) of 3, 2 processes"
    for each in (leader, member):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_two_experiments_are_not_mixed(threads: ThreadPoolExecutor, port: int) -> None:
    leader, member = call(threads, [1, 1], port), answer(threads, 1, [1, 1], port, run="run-2")
    for each in (leader, member):
        with pytest.raises(UserError, match=r"node 0 \(.*\) on run-1, node 1 \(.*\) on run-2"):
            each.result()


def test_two_machines_with_one_number_are_refused(threads: ThreadPoolExecutor, port: int) -> None:
    counts = [1, 1, 1]
    leader = call(threads, counts, port)
    members = [answer(threads, 1, counts, port) for _ in range(2)]
    everyone: list[Future[Any]] = [leader, *members]
    for each in everyone:
        with pytest.raises(UserError, match="both say that they are node 1"):
            each.result()


def test_strangers_who_try_ports_disturb_nobody(threads: ThreadPoolExecutor, port: int) -> None:
    leader = call(threads, [1, 1], port)
    member = None
    for garbage in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\n", b"[]\n", b'{"node": "one"}\n', b""):
        with _connected(port) as stranger:
            stranger.sendall(garbage)
    member = answer(threads, 1, [1, 1], port)
    (peer,) = leader.result()
    assert peer.node == 1
    member.result().wire.close()
    peer.wire.close()


def test_a_machine_may_leave_and_come_again_before_all_are_there(
    threads: ThreadPoolExecutor, port: int
) -> None:
    counts = [1, 1, 1]
    leader = call(threads, counts, port)
    with pytest.raises(RendezvousError):
        # Its patience is over at once: it leaves.
        answer_roll(machine(1, counts, port), "run-1", -4.9)
    members = [answer(threads, node, counts, port) for node in (1, 2)]
    assert [peer.node for peer in leader.result()] == [1, 2]
    for each in (*(member.result() for member in members), *leader.result()):
        each.wire.close()


def test_a_port_that_is_taken_is_named(port: int) -> None:
    with (
        socket.create_server(("", port)),
        pytest.raises(UserError, match=rf"port {port} of .* is in use: give another --master-port"),
    ):
        call_roll(machine(0, [1, 1], port), "run-1", SHORT_S)


def _connected(port: int) -> socket.socket:
    """A connection to who may only be about to listen."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        except ConnectionRefusedError:
            continue
