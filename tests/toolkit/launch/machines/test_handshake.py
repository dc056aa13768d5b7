"""The launchers meet before anything is started; missing or differing machines are named."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.support.ports import free_port
from toolkit.distributed.secure.channel import Channel, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.errors import RendezvousError, UserError
from toolkit.launch.machines.handshake import Peer, accept_nodes, join_nodes
from toolkit.launch.machines.layout import Machines
from toolkit.launch.machines.secret import known_secrets, offered_secret

SHORT_S = 0.3
SECRET, OTHER = b"s" * 32, b"o" * 32


def unheard() -> Refusals:
    """Refusals that are not recorded."""
    return Refusals(lambda event, **facts: None)


def known() -> list[bytes]:
    """The secrets that a machine of this run knows."""
    return [SECRET]


class Meeting:
    """Launchers that meet at a port of this machine, each in a thread."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self.port = free_port()

    def machine(self, node: int, counts: Sequence[int], address: str = "127.0.0.1") -> Machines:
        return Machines(counts=tuple(counts), node=node, master_addr=address, master_port=self.port)

    def call(
        self, counts: Sequence[int], timeout_s: float = PATIENCE_S, refusals: Refusals | None = None
    ) -> Future[list[Peer]]:
        """Wait for the others, as node 0."""
        here, offered = self.machine(0, counts), nullcontext(SECRET)
        return self._threads.submit(accept_nodes, here, "run-1", timeout_s, offered, refusals or unheard())

    def answer(
        self,
        node: int,
        counts: Sequence[int],
        run: str = "run-1",
        timeout_s: float = PATIENCE_S,
        secrets: Sequence[bytes] = (SECRET,),
    ) -> Future[Peer]:
        """Join node 0, as another node."""
        here = self.machine(node, counts)
        return self._threads.submit(join_nodes, here, run, timeout_s, lambda: secrets)

    def stranger(self) -> socket.socket:
        """A connection to node 0, which may only be about to listen."""
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            except ConnectionRefusedError:
                continue


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with ThreadPoolExecutor(4) as threads:
        yield Meeting(threads)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_all_machines_meet_in_any_order_of_arrival(meeting: Meeting, order: list[int]) -> None:
    counts, host = [3, 1, 2], socket.gethostname()
    come: dict[int, Future[Any]] = {}
    for node in order:
        come[node] = meeting.answer(node, counts) if node else meeting.call(counts)
    peers = come[0].result()
    assert [(peer.node, peer.host) for peer in peers] == [(1, host), (2, host)]
    for peer in peers:
        leader = come[peer.node].result()
        peer.connection.send(start=f"to {peer.node}")
        assert leader.connection.receive(PATIENCE_S) == {"start": f"to {peer.node}"}
        leader.connection.close()
        peer.connection.close()


def test_missing_machines_are_named_on_every_connected_machine(meeting: Meeting) -> None:
    counts = [1, 1, 3, 1]
    leader, member = meeting.call(counts, 1.0), meeting.answer(1, counts)
    expected = r"2 of 4 machines did not connect .* within 1 s: node 2 \(ranks 2 to 4\), node 3 \(rank 5\)"
    with pytest.raises(RendezvousError, match=expected):
        leader.result()
    with pytest.raises(RendezvousError, match="says: " + expected):
        member.result()


def test_an_unreachable_node_0_is_named(meeting: Meeting) -> None:
    place = f"127.0.0.1 port {meeting.port}"
    expected = f"node 1 on {socket.gethostname()} could not reach node 0 at {place} within 0.3 s"
    with pytest.raises(RendezvousError, match=expected):
        join_nodes(meeting.machine(1, [1, 1]), "run-1", SHORT_S, known)


def test_an_unknown_host_name_is_named(meeting: Meeting) -> None:
    with pytest.raises((UserError, RendezvousError), match=r"node-x\.invalid"):
        join_nodes(meeting.machine(1, [1, 1], "node-x.invalid"), "run-1", SHORT_S, known)


@pytest.mark.parametrize(
    "counts, run, expected",
    [
        ([3, 2], "run-1", r"node 0 \(.*\) has 3, 1 processes, node 1 \(.*\) has 3, 2 processes"),
        ([3, 1], "run-2", r"node 0 \(.*\) on run-1, node 1 \(.*\) on run-2"),
    ],
    ids=["counts", "runs"],
)
def test_different_counts_or_runs_are_refused_and_both_machines_named(
    meeting: Meeting, counts: list[int], run: str, expected: str
) -> None:
    leader, member = meeting.call([3, 1]), meeting.answer(1, counts, run=run)
    for each in (leader, member):
        with pytest.raises(UserError, match=expected):
            each.result()


def test_machines_with_the_same_number_are_refused(meeting: Meeting) -> None:
    counts = [1, 1, 1]
    leader = meeting.call(counts)
    members = [meeting.answer(1, counts) for _ in range(2)]
    everyone: list[Future[Any]] = [leader, *members]
    for each in everyone:
        with pytest.raises(UserError, match="are both node 1"):
            each.result()


GARBAGE = (
    b"GET / HTTP/1.0\r\n\r\n",
    b"\x16\x03\x01\n",
    b'{"node": "one"}\n',
    b'{"node": 99, "stk": "run-1", "counts": [1, 1], "host": "a"}\n',
    b'{"node": Infinity, "host": "a"}\n' * 10,
    b"[" * 100_000,
    bytes(64),
    b"",
)


def test_garbage_from_strangers_is_recorded_and_ignored(meeting: Meeting) -> None:
    told: list[str] = []
    leader = meeting.call([1, 1], refusals=Refusals(lambda event, **facts: told.append(event)))
    for garbage in GARBAGE:
        with meeting.stranger() as stranger, suppress(ConnectionError):
            stranger.sendall(garbage)
    member = meeting.answer(1, [1, 1])
    (peer,) = leader.result()
    assert peer.node == 1
    until(lambda: told)
    assert told[0] == "connection_refused"
    assert len(told) <= 2
    member.result().connection.close()
    peer.connection.close()


def test_a_machine_with_another_secret_is_refused_with_the_variable_to_set(meeting: Meeting) -> None:
    leader = meeting.call([1, 1], 1.0)
    for secrets in ([OTHER], []):
        with pytest.raises(RendezvousError, match=r"node 1 .* was refused .*STK_SECRET_FILE"):
            meeting.answer(1, [1, 1], timeout_s=SHORT_S, secrets=secrets).result()
    with pytest.raises(RendezvousError, match=r"1 of 2 machines did not connect .* from 127\.0\.0\.1"):
        leader.result()


def test_the_right_one_of_several_secrets_is_found(meeting: Meeting) -> None:
    """Killed machines may have left other secret files."""
    leader = meeting.call([1, 1])
    member = meeting.answer(1, [1, 1], secrets=[OTHER, SECRET])
    member.result().connection.close()
    leader.result()[0].connection.close()


def test_a_node_0_without_the_secret_is_refused(meeting: Meeting) -> None:
    """It could name an attempt `../../x`, and the ranks would write there."""
    false = SecureListener(listen(["127.0.0.1"], meeting.port), OTHER, Channel.close, unheard())
    with pytest.raises(RendezvousError, match="was refused"):
        meeting.answer(1, [1, 1], timeout_s=SHORT_S).result()
    false.close()


@pytest.mark.parametrize(
    "message, problem",
    [
        ({"stk": "run-1", "node": 99, "counts": [1, 1], "host": "b"}, "does not exist"),
        ({"stk": "run-1", "node": -1, "counts": [1, 1], "host": "b"}, "does not exist"),
        ({"stk": "run-1", "node": 2, "counts": [1, 1], "host": "b"}, "does not exist"),
        ({}, "cannot be understood"),
        ({"node": 1}, "cannot be understood"),
        ({"node": float("inf"), "host": "b"}, "cannot be understood"),
        ({"node": [], "host": 1}, "cannot be understood"),
    ],
)
def test_a_wrong_message_ends_the_meeting_and_is_answered(
    meeting: Meeting, message: dict[str, Any], problem: str
) -> None:
    leader = meeting.call([1, 1])
    with closing(authenticate_to_server(meeting.stranger(), SECRET, PATIENCE_S)) as connection:
        connection.send(**message)
        with pytest.raises(UserError, match=problem):
            leader.result()
        assert problem in str(connection.receive(PATIENCE_S))


def test_a_machine_may_leave_and_reconnect_before_the_meeting_is_complete(meeting: Meeting) -> None:
    counts = [1, 1, 1]
    leader = meeting.call(counts)
    with pytest.raises(RendezvousError):
        # Its patience is over at once: it leaves.
        join_nodes(meeting.machine(1, counts), "run-1", -4.9, known)
    members = [meeting.answer(node, counts) for node in (1, 2)]
    assert [peer.node for peer in leader.result()] == [1, 2]
    for each in (*(member.result() for member in members), *leader.result()):
        each.connection.close()


def test_a_port_in_use_is_named_and_the_secret_of_its_owner_stays(meeting: Meeting, tmp_path: Path) -> None:
    port = meeting.port
    with socket.create_server(("", port)), offered_secret(tmp_path, port, {}) as first:
        second = offered_secret(tmp_path, port, {})
        with pytest.raises(UserError, match=rf"port {port} of .* is in use: give another --master-port"):
            accept_nodes(meeting.machine(0, [1, 1]), "run-1", SHORT_S, second, unheard())
        assert known_secrets(tmp_path, {}) == [first]
