"""The launchers meet before anything is started; missing or differing machines are named."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from toolkit.distributed.secure.channel import Channel, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.errors import RendezvousError, UserError
from toolkit.launch.machines.handshake import Peer, accept_nodes, join_nodes
from toolkit.launch.machines.json_socket import JsonSocket
from toolkit.launch.machines.layout import Machines, layout
from toolkit.launch.machines.secret import known_secrets, offered_secret

SHORT_S = 0.3
SECRET, OTHER = b"s" * 32, b"o" * 32


def unheard() -> Refusals:
    """Refusals that are not recorded."""
    return Refusals(lambda event, **facts: None)


def known() -> list[bytes]:
    """The secrets that a machine of this run knows."""
    return [SECRET]


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def port() -> int:
    return free_port()


def machine(node: int, counts: Sequence[int], port: int, address: str = "127.0.0.1") -> Machines:
    return Machines(layout=layout(counts), node=node, master_addr=address, master_port=port)


def call(
    pool: ThreadPoolExecutor,
    counts: Sequence[int],
    port: int,
    timeout_s: float = PATIENCE_S,
    refusals: Refusals | None = None,
) -> Future[list[Peer]]:
    return pool.submit(
        accept_nodes, machine(0, counts, port), "run-1", timeout_s, nullcontext(SECRET), refusals or unheard()
    )


def answer(
    pool: ThreadPoolExecutor,
    node: int,
    counts: Sequence[int],
    port: int,
    run: str = "run-1",
    timeout_s: float = PATIENCE_S,
    secrets: Sequence[bytes] = (SECRET,),
) -> Future[Peer]:
    return pool.submit(join_nodes, machine(node, counts, port), run, timeout_s, lambda: secrets)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_all_machines_meet_in_any_order_of_arrival(
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
        peer.connection.send(start=f"to {peer.node}")
        assert leader.connection.receive(PATIENCE_S) == {"start": f"to {peer.node}"}
        leader.connection.close()
        peer.connection.close()


def test_missing_machines_are_named_on_every_connected_machine(
    threads: ThreadPoolExecutor, port: int
) -> None:
    counts = [1, 1, 3, 1]
    leader, member = call(threads, counts, port, 1.0), answer(threads, 1, counts, port)
    expected = r"2 of 4 machines did not connect .* within 1 s: node 2 \(ranks 2 to 4\), node 3 \(rank 5\)"
    with pytest.raises(RendezvousError, match=expected):
        leader.result()
    with pytest.raises(RendezvousError, match="says: " + expected):
        member.result()


def test_an_unreachable_node_0_is_named(port: int) -> None:
    expected = (
        rf"node 1 on {socket.gethostname()} could not reach node 0 at 127.0.0.1 port {port} within 0.3 s"
    )
    with pytest.raises(RendezvousError, match=expected):
        join_nodes(machine(1, [1, 1], port), "run-1", SHORT_S, known)


def test_an_unknown_host_name_is_named(port: int) -> None:
    with pytest.raises((UserError, RendezvousError), match=r"node-x\.invalid"):
        join_nodes(machine(1, [1, 1], port, "node-x.invalid"), "run-1", SHORT_S, known)


@pytest.mark.parametrize(
    "counts, run, expected",
    [
        ([3, 2], "run-1", r"node 0 \(.*\) has 3, 1 processes, node 1 \(.*\) has 3, 2 processes"),
        ([3, 1], "run-2", r"node 0 \(.*\) on run-1, node 1 \(.*\) on run-2"),
    ],
    ids=["counts", "runs"],
)
def test_different_counts_or_runs_are_refused_and_both_machines_named(
    threads: ThreadPoolExecutor, port: int, counts: list[int], run: str, expected: str
) -> None:
    leader, member = call(threads, [3, 1], port), answer(threads, 1, counts, port, run=run)
    for each in (leader, member):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_machines_with_the_same_number_are_refused(threads: ThreadPoolExecutor, port: int) -> None:
    counts = [1, 1, 1]
    leader = call(threads, counts, port)
    members = [answer(threads, 1, counts, port) for _ in range(2)]
    everyone: list[Future[Any]] = [leader, *members]
    for each in everyone:
        with pytest.raises(UserError, match="are both node 1"):
            each.result()


DEEP = b"[" * 100_000
GARBAGE = (
    b"GET / HTTP/1.0\r\n\r\n",
    b"\x16\x03\x01\n",
    b'{"node": "one"}\n',
    b'{"node": 99, "stk": "run-1", "counts": [1, 1], "host": "a"}\n',
    b'{"node": Infinity, "host": "a"}\n' * 10,
    DEEP,
    bytes(64),
    b"",
)


def test_garbage_from_strangers_is_recorded_and_ignored(threads: ThreadPoolExecutor, port: int) -> None:
    told: list[str] = []
    leader = call(threads, [1, 1], port, refusals=Refusals(lambda event, **facts: told.append(event)))
    for garbage in GARBAGE:
        with _connected(port) as stranger, suppress(ConnectionError):
            stranger.sendall(garbage)
    member = answer(threads, 1, [1, 1], port)
    (peer,) = leader.result()
    assert peer.node == 1
    until(lambda: told)
    assert told[0] == "connection_refused"
    assert len(told) <= 2
    member.result().connection.close()
    peer.connection.close()


def test_a_machine_with_another_secret_is_refused_with_the_variable_to_set(
    threads: ThreadPoolExecutor, port: int
) -> None:
    leader = call(threads, [1, 1], port, 1.0)
    for secrets in ([OTHER], []):
        with pytest.raises(RendezvousError, match=r"node 1 .* was refused .*STK_SECRET_FILE"):
            answer(threads, 1, [1, 1], port, timeout_s=SHORT_S, secrets=secrets).result()
    with pytest.raises(RendezvousError, match=r"1 of 2 machines did not connect .* from 127\.0\.0\.1"):
        leader.result()


def test_the_right_one_of_several_secrets_is_found(threads: ThreadPoolExecutor, port: int) -> None:
    """Killed machines may have left other secret files."""
    leader = call(threads, [1, 1], port)
    member = answer(threads, 1, [1, 1], port, secrets=[OTHER, SECRET])
    member.result().connection.close()
    leader.result()[0].connection.close()


def test_a_node_0_without_the_secret_is_refused(threads: ThreadPoolExecutor, port: int) -> None:
    """It could name an attempt `../../x`, and the ranks would write there."""
    false = SecureListener(listen(["127.0.0.1"], port), OTHER, Channel.close, unheard())
    with pytest.raises(RendezvousError, match="was refused"):
        answer(threads, 1, [1, 1], port, timeout_s=SHORT_S).result()
    false.close()


@pytest.mark.parametrize(
    "message, problem",
    [
        *(
            ({"stk": "run-1", "node": node, "counts": [1, 1], "host": "b"}, "does not exist")
            for node in (99, -1, 2)
        ),
        ({}, "cannot be understood"),
        ({"node": 1}, "cannot be understood"),
        ({"node": float("inf"), "host": "b"}, "cannot be understood"),
        ({"node": [], "host": 1}, "cannot be understood"),
    ],
)
def test_a_wrong_message_ends_the_meeting_and_is_answered(
    threads: ThreadPoolExecutor, port: int, message: dict[str, Any], problem: str
) -> None:
    leader = call(threads, [1, 1], port)
    with closing(JsonSocket(authenticate_to_server(_connected(port), SECRET, PATIENCE_S))) as connection:
        connection.send(**message)
        with pytest.raises(UserError, match=problem):
            leader.result()
        assert problem in str(connection.receive(PATIENCE_S))


def test_a_machine_may_leave_and_reconnect_before_the_meeting_is_complete(
    threads: ThreadPoolExecutor, port: int
) -> None:
    counts = [1, 1, 1]
    leader = call(threads, counts, port)
    with pytest.raises(RendezvousError):
        # Its patience is over at once: it leaves.
        join_nodes(machine(1, counts, port), "run-1", -4.9, known)
    members = [answer(threads, node, counts, port) for node in (1, 2)]
    assert [peer.node for peer in leader.result()] == [1, 2]
    for each in (*(member.result() for member in members), *leader.result()):
        each.connection.close()


def test_a_port_in_use_is_named_and_the_secret_of_its_owner_stays(port: int, tmp_path: Path) -> None:
    with socket.create_server(("", port)), offered_secret(tmp_path, port, {}) as first:
        second = offered_secret(tmp_path, port, {})
        with pytest.raises(UserError, match=rf"port {port} of .* is in use: give another --master-port"):
            accept_nodes(machine(0, [1, 1], port), "run-1", SHORT_S, second, unheard())
        assert known_secrets(tmp_path, {}) == [first]


def _connected(port: int) -> socket.socket:
    """A connection to who may only be about to listen."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        except ConnectionRefusedError:
            continue
