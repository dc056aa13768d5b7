"""The roll call: the launchers of all machines meet at machine 0, before any rank is started.

Who does not come is named after train.rendezvous_timeout_s; machines that were told different things are
named at once, both of them. Nobody on any other network is asked for anything.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolkit.errors import RendezvousError, UserError
from toolkit.machines.layout import Machines
from toolkit.machines.wire import Lost, Wire

_POLL_S = 0.2
_CONNECT_S = 2.0
#: Machine 0 may have begun to wait a little later, and it is the one that knows who is missing.
_LATER_S = 5.0


@dataclass(frozen=True, slots=True)
class Peer:
    """Another machine's launcher: its number, its host's name, and the connection to it."""

    node: int
    host: str
    wire: Wire


def call_roll(machines: Machines, run_id: str, timeout_s: float) -> list[Peer]:
    """Machine 0 waits until all others have come; they, by number.

    Raises UserError where machines contradict each other, RendezvousError which names the machines that
    have not come after timeout_s seconds. Those that have come are told the same.
    """
    roll = _Roll(machines, run_id)
    deadline = time.monotonic() + timeout_s
    try:
        with _listen(machines) as listener:
            while len(roll.present) < len(machines.layout.counts) - 1:
                if time.monotonic() > deadline:
                    raise RendezvousError(roll.absentees(timeout_s))
                roll.look(listener)
        for peer in roll.present.values():
            peer.wire.send(welcome=_own(machines, run_id))
    except Lost as error:
        raise RendezvousError(f"a machine left while the others were being welcomed: {error}") from error
    except (UserError, RendezvousError) as error:
        roll.dismiss(error)
        raise
    finally:
        roll.close_strangers()
    return [roll.present[node] for node in sorted(roll.present)]


def answer_roll(machines: Machines, run_id: str, timeout_s: float) -> Peer:
    """Another machine joins machine 0 and waits until all have come; machine 0.

    Raises UserError or RendezvousError, which say whom this machine misses, or what machine 0 said.
    """
    assert machines.master_addr is not None
    deadline = time.monotonic() + timeout_s
    while True:
        wire = _connect(machines, deadline, timeout_s)
        try:
            wire.send(**_own(machines, run_id))
            return Peer(0, machines.master_addr, _welcomed(wire, machines, timeout_s))
        except Lost as error:
            wire.close()
            if time.monotonic() > deadline:
                raise RendezvousError(
                    f"what answers at {_place(machines)} is no `stk run` of node 0, or has ended: {error}"
                ) from error
            time.sleep(_POLL_S)
        except (UserError, RendezvousError):
            wire.close()
            raise


def _own(machines: Machines, run_id: str) -> dict[str, Any]:
    return {
        "stk": run_id,
        "node": machines.node,
        "counts": list(machines.layout.counts),
        "host": socket.gethostname(),
    }


def _place(machines: Machines) -> str:
    return f"{machines.master_addr or socket.gethostname()} port {machines.master_port}"


def _listen(machines: Machines) -> socket.socket:
    try:
        return socket.create_server(("", machines.master_port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = error.strerror or str(error)
            raise RendezvousError(f"cannot listen at port {machines.master_port}: {reason}") from error
        raise UserError(
            f"port {machines.master_port} of {socket.gethostname()} is in use: "
            "give another --master-port, the same on every machine"
        ) from None


class _Roll:
    """Who has come so far, and connections that have not said yet who they are."""

    def __init__(self, machines: Machines, run_id: str) -> None:
        self._machines = machines
        self._run_id = run_id
        self._strangers: list[Wire] = []
        self.present: dict[int, Peer] = {}

    def look(self, listener: socket.socket) -> None:
        """Take in who comes, who speaks and who leaves."""
        wires = [*self._strangers, *(peer.wire for peer in self.present.values())]
        watched: list[Any] = [listener, *wires]
        ready = select.select(watched, [], [], _POLL_S)[0]
        if listener in ready:
            self._strangers.append(Wire(listener.accept()[0]))
        for wire in [wire for wire in self._strangers if wire in ready]:
            self._hear(wire)
        for peer in [peer for peer in self.present.values() if peer.wire in ready]:
            self._is_still_there(peer)

    def _hear(self, wire: Wire) -> None:
        try:
            message = wire.receive()
            if message is None:
                return
            peer = Peer(int(message["node"]), str(message["host"]), wire)
        except (Lost, LookupError, TypeError, ValueError):
            # Whoever looks which ports are open.
            self._strangers.remove(wire)
            wire.close()
            return
        self._check(peer, message)
        self._strangers.remove(wire)
        self.present[peer.node] = peer

    def _check(self, peer: Peer, message: dict[str, Any]) -> None:
        own, here = self._machines, f"node {self._machines.node} ({socket.gethostname()})"
        there = f"node {peer.node} ({peer.host})"
        if message.get("counts") != list(own.layout.counts):
            raise UserError(
                f"the machines contradict each other: {here} was told of "
                f"{_counted(own.layout.counts)}, {there} of {_counted(message.get('counts'))}. "
                "Start all of them with the same --gpus-per-node, or the same resources.hosts."
            )
        if message.get("stk") != self._run_id:
            raise UserError(
                f"the machines work on different experiments: {here} on {self._run_id}, {there} on "
                f"{message.get('stk')}. Start all of them with the same file and the same key=value."
            )
        other = socket.gethostname() if peer.node == own.node else None
        if peer.node in self.present:
            other = self.present[peer.node].host
        if other is not None:
            raise UserError(
                f"{other} and {peer.host} both say that they are node {peer.node}: give each machine a "
                "--node-rank of its own"
            )

    def _is_still_there(self, peer: Peer) -> None:
        with suppress(Lost):
            peer.wire.receive()
            return
        peer.wire.close()
        del self.present[peer.node]

    def absentees(self, timeout_s: float) -> str:
        """Who has not come, in words."""
        counts = self._machines.layout.counts
        missing = [node for node in range(1, len(counts)) if node not in self.present]
        return (
            f"{len(missing)} of {len(counts)} machines did not come to {_place(self._machines)} within "
            f"{timeout_s:g} s: {', '.join(map(self._machines.tell, missing))}. Is `stk run` started there, "
            "with --master-addr of this machine? train.rendezvous_timeout_s sets how long to wait."
        )

    def dismiss(self, error: UserError | RendezvousError) -> None:
        """Tell everybody who is there why nothing comes of it."""
        for wire in [*self._strangers, *(peer.wire for peer in self.present.values())]:
            with suppress(Lost):
                wire.send(error=str(error), is_input=isinstance(error, UserError))
            wire.close()

    def close_strangers(self) -> None:
        """Let go of whoever never said a word."""
        for wire in self._strangers:
            wire.close()


def _counted(counts: Any) -> str:
    return f"{', '.join(map(str, counts))} processes" if isinstance(counts, list | tuple) else "no counts"


def _connect(machines: Machines, deadline: float, timeout_s: float) -> Wire:
    """A connection to machine 0, as soon as it listens. Raises RendezvousError, UserError for its name."""
    while True:
        try:
            return Wire(socket.create_connection((machines.master_addr, machines.master_port), _CONNECT_S))
        except socket.gaierror as error:
            reason = f"its name cannot be looked up ({error.strerror})"
            if error.errno == socket.EAI_NONAME:
                raise UserError(f"{machines.master_addr} is no host that is known here: {reason}") from None
        except OSError as error:
            reason = error.strerror or str(error)
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"node {machines.node} on {socket.gethostname()} could not reach node 0 at "
                f"{_place(machines)} within {timeout_s:g} s: {reason}. Is `stk run` with --node-rank 0 "
                "started there, is the address right, does a firewall stand between?"
            )
        time.sleep(_POLL_S)


def _welcomed(wire: Wire, machines: Machines, timeout_s: float) -> Wire:
    """Wait for machine 0's word. Raises Lost, or what it says is wrong."""
    message = wire.receive(timeout_s + _LATER_S)
    if message is None:
        raise RendezvousError(
            f"node {machines.node} on {socket.gethostname()} reached node 0 at {_place(machines)}, but not "
            f"all machines came within {timeout_s:g} s; node 0 names them"
        )
    if "error" in message:
        kind = UserError if message.get("is_input") else RendezvousError
        raise kind(f"node 0 at {_place(machines)} says: {message['error']}")
    if "welcome" not in message:
        raise Lost("it does not welcome")
    return wire
