"""The launchers of several machines as one: they start ranks together, end them together, and decide once.

Machine 0 leads: it names each start, learns how the ranks of all machines ended, and says whether all start
again or leave. It carries rank 0's publication to machines that do not share the run's folder, and failures
to whoever does not know them. A machine alone is a crew, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from toolkit.failure.records import PEER_LOST, failure_record, first_failure, write_first
from toolkit.files import read_json, write_json
from toolkit.machines.layout import Machines
from toolkit.machines.meeting import Peer, answer_roll, call_roll
from toolkit.machines.wire import Lost
from toolkit.rundir import RunDir

_POLL_S = 0.1
#: Seconds that the other machines' ranks get to end once rank 0's machine is done, then once asked again.
_REPORT_S = 40.0
#: As if its ranks had been killed: the status of a machine that cannot tell.
_LOST = -9
_NODE_FAILURE = "node_failure"


class Crew:
    """The machines of a run as the launcher of machine 0 sees them; here a machine alone.

    is_whole     whether no other machine is gone
    wants_stop   whether somebody has asked another machine to stop
    """

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.is_whole = True
        self.wants_stop = False

    def start(self, nonce: str) -> None:
        """Let the others start their ranks."""

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        """Whether ranks elsewhere have failed. Asked all the time: carries messages, waits for none."""
        return False

    def fail(self) -> None:
        """Say that ranks here have failed."""

    def reports(self, run: RunDir, nonce: str) -> list[int]:
        """How the ranks of the others ended; waits for it."""
        return []

    def leave(self, run: RunDir, code: int) -> None:
        """Say that all is over."""

    def close(self) -> None:
        """Let go of the connections."""


class Leader(Crew):
    """Machine 0, and its connections to the others."""

    def __init__(self, machines: Machines, peers: Sequence[Peer]) -> None:
        super().__init__(machines)
        self._peers = list(peers)
        self._gone: list[Peer] = []
        self._reports: dict[int, dict[str, Any]] = {}
        self._alarmed = False
        self._has_published = False

    def start(self, nonce: str) -> None:
        self._reports.clear()
        self._alarmed = self._has_published = False
        self._tell(start=nonce)

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        if not self._has_published and (place := read_json(run.rendezvous(nonce))) is not None:
            self._has_published = True
            self._tell(place=place)
        for peer in list(self._peers):
            self._hear(peer)
        return self._alarmed or not self.is_whole

    def _hear(self, peer: Peer) -> None:
        try:
            while (message := peer.wire.receive()) is not None:
                if "codes" in message:
                    self._reports[peer.node] = message
                    self.wants_stop |= bool(message.get("wants_stop"))
                if "failed" in message:
                    self.fail()
        except Lost:
            self._lose(peer)

    def _lose(self, peer: Peer) -> None:
        peer.wire.close()
        self._peers.remove(peer)
        self._gone.append(peer)
        self.is_whole = False
        self.fail()

    def _tell(self, **message: Any) -> None:
        for peer in list(self._peers):
            try:
                peer.wire.send(**message)
            except Lost:
                self._lose(peer)

    def fail(self) -> None:
        if not self._alarmed:
            self._alarmed = True
            self._tell(failed=True)

    def reports(self, run: RunDir, nonce: str) -> list[int]:
        self._await_reports(run, nonce)
        if any(peer.node not in self._reports for peer in self._peers):
            self._alarmed = False
            self.fail()
            self._await_reports(run, nonce)
        for peer in [peer for peer in self._peers if peer.node not in self._reports]:
            self._lose(peer)
        for report in self._reports.values():
            _learn(run, nonce, report.get("failure"))
        for peer in self._gone:
            if peer.node not in self._reports:
                _learn(run, nonce, _lost_record(self.machines, peer, nonce))
        return [code for node in self._nodes() for code in self._codes(node)]

    def _await_reports(self, run: RunDir, nonce: str) -> None:
        deadline = time.monotonic() + _REPORT_S
        while time.monotonic() < deadline and any(peer.node not in self._reports for peer in self._peers):
            self.has_failed(run, nonce)
            time.sleep(_POLL_S)

    def _nodes(self) -> range:
        return range(1, len(self.machines.layout.counts))

    def _codes(self, node: int) -> list[int]:
        return self._reports[node]["codes"] if node in self._reports else [_LOST]

    def leave(self, run: RunDir, code: int) -> None:
        self._tell(leave=code, failure=read_json(run.failure))

    def close(self) -> None:
        for peer in self._peers:
            peer.wire.close()

    @property
    def gone(self) -> str:
        """The machines that are gone, for a message."""
        return ", ".join(f"{self.machines.tell(peer.node)} on {peer.host}" for peer in self._gone)


class Member(Crew):
    """Another machine than the first, and its connection to that one."""

    def __init__(self, machines: Machines, leader: Peer) -> None:
        super().__init__(machines)
        self._leader = leader
        self._alarmed = False

    @property
    def leader(self) -> str:
        """Where machine 0 is."""
        return self._leader.host

    def order(self) -> dict[str, Any] | None:
        """What machine 0 wants next: a start, or to leave; None where it has not said so yet.

        Once it is gone, to leave: with the code of a run that failed.
        """
        if not self.is_whole:
            return {"leave": 4, "failure": None}
        try:
            message = self._leader.wire.receive(_POLL_S)
        except Lost:
            self.is_whole = False
            return None
        return message if message is not None and ("start" in message or "leave" in message) else None

    def start(self, nonce: str) -> None:
        self._alarmed = False

    def has_failed(self, run: RunDir, nonce: str) -> bool:
        try:
            while self.is_whole and (message := self._leader.wire.receive()) is not None:
                self._alarmed |= "failed" in message
                if "place" in message:
                    _publish(run, nonce, message["place"])
        except Lost:
            self.is_whole = False
        return self._alarmed or not self.is_whole

    def fail(self) -> None:
        if not self._alarmed:
            self._alarmed = True
            self._send(failed=True)

    def report(self, run: RunDir, nonce: str, codes: Sequence[int], *, wants_stop: bool) -> None:
        """Say how the ranks here ended."""
        self._send(codes=list(codes), failure=first_failure(run, nonce), wants_stop=wants_stop)

    def _send(self, **message: Any) -> None:
        try:
            self._leader.wire.send(**message)
        except Lost:
            self.is_whole = False

    def close(self) -> None:
        self._leader.wire.close()


@contextmanager
def join_crew(machines: Machines, run_id: str, timeout_s: float) -> Iterator[Leader | Member]:
    """Meet the other machines, and let go of them at the end. Raises UserError, RendezvousError."""
    crew: Leader | Member
    if machines.node == 0:
        crew = Leader(machines, call_roll(machines, run_id, timeout_s))
    else:
        crew = Member(machines, answer_roll(machines, run_id, timeout_s))
    try:
        yield crew
    finally:
        crew.close()


def _publish(run: RunDir, nonce: str, place: dict[str, Any]) -> None:
    """Put rank 0's publication where the ranks here look for it, unless they see it already."""
    path = run.rendezvous(nonce)
    with suppress(OSError):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, place)


def _learn(run: RunDir, nonce: str, failure: dict[str, Any] | None) -> None:
    """Take over a failure that another machine knows of, unless this folder knows of one as good."""
    if failure is None or failure.get("nonce") != nonce:
        return
    known = first_failure(run, nonce)
    if known is None or (known["class"] == PEER_LOST and failure.get("class") != PEER_LOST):
        write_first(run, failure)


def _lost_record(machines: Machines, peer: Peer, nonce: str) -> dict[str, Any]:
    message = (
        f"{machines.tell(peer.node)} on {peer.host} was lost: its launcher has ended or cannot be reached"
    )
    rank = machines.layout.first_ranks[peer.node]
    return failure_record(
        nonce, _NODE_FAILURE, message, rank=rank, host=peer.host, phase="unknown", step=None
    )
