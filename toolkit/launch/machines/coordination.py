"""Coordination of the launchers of several machines, which start and end their ranks together.

Node 0 is the coordinator. It names each attempt, collects the exit statuses of all ranks, and decides whether
all start again or leave. It sends rank 0's address to machines that do not share the run's folder, and the
failure of the run to all nodes. With a single machine there are no other nodes, and nothing is sent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from toolkit.distributed.secure.channel import Lost
from toolkit.distributed.secure.refusals import Refusals
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, write_json
from toolkit.launch.machines.handshake import Peer, accept_nodes, join_nodes
from toolkit.launch.machines.layout import Machines
from toolkit.launch.machines.secret import known_secrets, offered_secret
from toolkit.run.events import note_event
from toolkit.run.failure.classes import PEER_LOST
from toolkit.run.failure.records import failure_record, first_failure, write_first
from toolkit.run.run_dir import RunDir

_POLL_S = 0.1
#: Seconds that other nodes have to report after the ranks of node 0 have ended, and again after a reminder.
_REPORT_S = 40.0
#: Status of the ranks of a node that is lost, as if they had been killed.
_LOST = -9
_NODE_FAILURE = "node_failure"
_NONCE = re.compile(r"\w[\w.-]{0,199}", re.ASCII)


class Nodes:
    """The nodes of a run, for the launcher of node 0. This class itself is for a single node.

    is_complete  whether no other node is lost
    wants_stop   whether another node was asked to stop
    """

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.is_complete = True
        self.wants_stop = False

    def note_refused(self, run: RunDir) -> None:
        """Record the connections that were refused."""

    def start(self, nonce: str) -> None:
        """Tell the other nodes to start their ranks."""

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        """Whether ranks on other nodes have failed. Polled: handles messages and never waits."""
        return False

    def fail(self) -> None:
        """Tell the other nodes that ranks on this one have failed."""

    def reports(self, run: RunDir, nonce: str) -> list[int]:
        """Wait for the exit statuses of the ranks on other nodes."""
        return []

    def leave(self, run: RunDir, code: int) -> None:
        """Tell the other nodes to leave."""

    def close(self) -> None:
        """Close the connections."""


class Coordinator(Nodes):
    """Node 0 and its connections to the others."""

    def __init__(
        self, machines: Machines, peers: Sequence[Peer], refused: Sequence[tuple[str, dict[str, Any]]] = ()
    ) -> None:
        super().__init__(machines)
        self._refused = refused
        self._peers = list(peers)
        self._lost_peers: list[Peer] = []
        self._reports: dict[int, dict[str, Any]] = {}
        self._failure_known = False
        self._has_published = False

    def note_refused(self, run: RunDir) -> None:
        for event, facts in self._refused:
            note_event(run, event, **facts)

    def start(self, nonce: str) -> None:
        self._reports.clear()
        self._failure_known = self._has_published = False
        self._send_all(start=nonce)

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        if not self._has_published and (place := read_json(run.rendezvous(nonce))) is not None:
            self._has_published = True
            self._send_all(place=place)
        for peer in list(self._peers):
            self._receive(peer)
        return self._failure_known or not self.is_complete

    def _receive(self, peer: Peer) -> None:
        try:
            while (message := peer.connection.receive()) is not None:
                if _is_report(message):
                    self._reports[peer.node] = message
                    self.wants_stop |= bool(message.get("wants_stop"))
                if "failed" in message:
                    self.fail()
        except Lost:
            self._lose(peer)

    def _lose(self, peer: Peer) -> None:
        peer.connection.close()
        self._peers.remove(peer)
        self._lost_peers.append(peer)
        self.is_complete = False
        self.fail()

    def _send_all(self, **message: Any) -> None:
        for peer in list(self._peers):
            try:
                peer.connection.send(**message)
            except Lost:
                self._lose(peer)

    def fail(self) -> None:
        if not self._failure_known:
            self._failure_known = True
            self._send_all(failed=True)

    def reports(self, run: RunDir, nonce: str) -> list[int]:
        self._await_reports(run, nonce)
        if any(peer.node not in self._reports for peer in self._peers):
            self._failure_known = False
            self.fail()
            self._await_reports(run, nonce)
        for peer in [peer for peer in self._peers if peer.node not in self._reports]:
            self._lose(peer)
        for report in self._reports.values():
            _record_failure(run, nonce, report.get("failure"))
        for peer in self._lost_peers:
            if peer.node not in self._reports:
                _record_failure(run, nonce, _lost_record(self.machines, peer, nonce))
        others = range(1, len(self.machines.counts))
        reported = {node: report["codes"] for node, report in self._reports.items()}
        return [code for node in others for code in reported.get(node, [_LOST])]

    def _await_reports(self, run: RunDir, nonce: str) -> None:
        deadline = time.monotonic() + _REPORT_S
        while time.monotonic() < deadline and any(peer.node not in self._reports for peer in self._peers):
            self.has_failed(run, nonce)
            time.sleep(_POLL_S)

    def leave(self, run: RunDir, code: int) -> None:
        self._send_all(leave=code, failure=read_json(run.failure))

    def close(self) -> None:
        for peer in self._peers:
            peer.connection.close()

    @property
    def gone(self) -> str:
        """The lost nodes, for a message."""
        return ", ".join(f"{self.machines.describe(peer.node)} on {peer.host}" for peer in self._lost_peers)


class Participant(Nodes):
    """A node other than node 0, and its connection to node 0."""

    def __init__(self, machines: Machines, leader: Peer) -> None:
        super().__init__(machines)
        self._leader = leader
        self._failure_known = False

    @property
    def leader(self) -> str:
        """The host of node 0."""
        return self._leader.host

    def order(self) -> dict[str, Any] | None:
        """The next order of node 0: start or leave; None if node 0 has given none yet.

        If node 0 is lost, the order is to leave with the exit code of a failed run.
        """
        if not self.is_complete:
            return {"leave": ExitCode.FAILED, "failure": None}
        try:
            message = self._leader.connection.receive(_POLL_S)
        except Lost:
            self.is_complete = False
            return None
        return message if message is not None and _is_order(message) else None

    def start(self, nonce: str) -> None:
        self._failure_known = False

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        try:
            while self.is_complete and (message := self._leader.connection.receive()) is not None:
                self._failure_known |= "failed" in message
                if "place" in message:
                    _publish(run, nonce, message["place"])
        except Lost:
            self.is_complete = False
        return self._failure_known or not self.is_complete

    def fail(self) -> None:
        if not self._failure_known:
            self._failure_known = True
            self._send(failed=True)

    def report(self, run: RunDir, nonce: str, codes: Sequence[int], *, wants_stop: bool) -> None:
        """Send the exit statuses of the ranks on this node."""
        self._send(codes=list(codes), failure=first_failure(run, nonce), wants_stop=wants_stop)

    def _send(self, **message: Any) -> None:
        try:
            self._leader.connection.send(**message)
        except Lost:
            self.is_complete = False

    def close(self) -> None:
        self._leader.connection.close()


@contextmanager
def meet_nodes(machines: Machines, run: RunDir, timeout_s: float) -> Iterator[Coordinator | Participant]:
    """Connect the nodes, and disconnect at the end. Raises UserError, RendezvousError.

    run  its folder need not exist yet; the parent folder may hold the secret of the nodes
    """
    nodes: Coordinator | Participant
    runs = run.path.parent
    if machines.node == 0:
        refused: list[tuple[str, dict[str, Any]]] = []
        refusals = Refusals(lambda event, **facts: refused.append((event, facts)))
        offered = offered_secret(runs, machines.master_port)
        peers = accept_nodes(machines, run.run_id, timeout_s, offered, refusals)
        nodes = Coordinator(machines, peers, refused)
    else:
        nodes = Participant(
            machines, join_nodes(machines, run.run_id, timeout_s, lambda: known_secrets(runs))
        )
    try:
        yield nodes
    finally:
        nodes.close()


def _publish(run: RunDir, nonce: str, place: dict[str, Any]) -> None:
    """Write rank 0's address where the ranks of this node look for it, unless the file exists."""
    path = run.rendezvous(nonce)
    with suppress(OSError):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, place)


def _is_order(message: dict[str, Any]) -> bool:
    """Whether a message is a valid order. The nonce of an attempt becomes part of file names."""
    match message:
        case {"start": str(nonce)}:
            return _NONCE.fullmatch(nonce) is not None
        case {"leave": int(), "failure": dict() | None}:
            return True
    return False


def _is_report(message: dict[str, Any]) -> bool:
    """Whether a message is a valid report of exit statuses."""
    match message:
        case {"codes": [*codes], "failure": dict() | None}:
            return all(isinstance(code, int) for code in codes)
    return False


def _record_failure(run: RunDir, nonce: str, failure: dict[str, Any] | None) -> None:
    """Record a failure of another node, unless there is a record; a record of a lost peer is replaced."""
    if failure is None or failure.get("nonce") != nonce:
        return
    known = first_failure(run, nonce)
    if known is None or (known["class"] == PEER_LOST and failure.get("class") != PEER_LOST):
        write_first(run, failure)


def _lost_record(machines: Machines, peer: Peer, nonce: str) -> dict[str, Any]:
    message = (
        f"{machines.describe(peer.node)} on {peer.host} was lost: its launcher has ended or cannot be reached"
    )
    rank = machines.ranks(peer.node).start
    return failure_record(
        nonce, _NODE_FAILURE, message, rank=rank, host=peer.host, phase="unknown", step=None
    )
