"""The handshake: the launchers of all machines connect to node 0 before any rank is started.

If nodes are missing after train.rendezvous_timeout_s, the error names them. If two nodes have different
arguments, it names both at once. Only these nodes are contacted.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any

from toolkit.config.sections import with_hint
from toolkit.distributed.secure.addresses import addresses_of, own_addresses
from toolkit.distributed.secure.channel import Channel, Lost, NotAuthenticated, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.distributed.secure.secret import HOW_TO_GIVE
from toolkit.errors import RendezvousError, UserError
from toolkit.launch.machines.layout import Machines

_POLL_S = 0.2
_CONNECT_S = 2.0
#: The others wait longer than node 0 by this: it may have started later, and only it knows who is missing.
_LATER_S = 5.0
#: Seconds for the authentication, and for the first message after it.
_PROOF_S = 5.0
#: Seconds for which a node tries again if node 0 does not accept its secret.
_REFUSED_S = 10.0
_WITHOUT_FOLDER = "Machines that share no folder of runs (STK_EXPERIMENT_DIR) need a secret."


@dataclass(frozen=True, slots=True)
class Peer:
    """Another machine's launcher: its number, its host's name, and the connection to it."""

    node: int
    host: str
    connection: Channel


def accept_nodes(
    machines: Machines,
    run_id: str,
    timeout_s: float,
    offered: AbstractContextManager[bytes],
    refusals: Refusals,
) -> list[Peer]:
    """On node 0: wait for all other nodes, which authenticate themselves; return them in order.

    offered  the secret; entered once the port is this node's, as it replaces the secret of an earlier node 0

    Raises UserError if nodes have different arguments, and RendezvousError with the nodes that are missing
    after timeout_s seconds. The connected nodes get the same error.
    """
    arrivals = _Arrivals(machines, run_id)
    deadline = time.monotonic() + timeout_s
    with ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in _listen(machines)]
        listener = SecureListener(sockets, stack.enter_context(offered), arrivals.receive_first, refusals)
        stack.callback(listener.close)
        try:
            while len(arrivals.present) < len(machines.counts) - 1:
                if time.monotonic() > deadline:
                    raise RendezvousError(arrivals.describe_missing(timeout_s, refusals))
                arrivals.poll()
            for peer in arrivals.present.values():
                peer.connection.send(welcome=run_id)
        except Lost as error:
            raise RendezvousError(
                f"a machine disconnected while the others were being accepted: {error}"
            ) from error
        except (UserError, RendezvousError) as error:
            arrivals.send_error(error)
            raise
    return [arrivals.present[node] for node in sorted(arrivals.present)]


def join_nodes(
    machines: Machines, run_id: str, timeout_s: float, secrets: Callable[[], Sequence[bytes]]
) -> Peer:
    """On another node: connect to node 0 and wait until all have connected; return node 0.

    secrets  returns the secrets known so far; node 0 may accept one of them
    Raises UserError or RendezvousError naming what is missing, or with the error of node 0.
    """
    assert machines.master_addr is not None
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection = _authenticated(machines, deadline, timeout_s, secrets())
            with ExitStack() as on_error:
                on_error.callback(connection.close)
                connection.send(
                    stk=run_id, node=machines.node, counts=list(machines.counts), host=socket.gethostname()
                )
                _await_welcome(connection, machines, timeout_s)
                on_error.pop_all()
            return Peer(0, machines.master_addr, connection)
        except NotAuthenticated as error:
            # A shared folder may show the secret a little later; waiting longer does not help.
            deadline = min(deadline, time.monotonic() + _REFUSED_S)
            complaint = f"{error}. {_WITHOUT_FOLDER} {HOW_TO_GIVE}."
        except Lost as error:
            complaint = f"the program there is not `stk run` of node 0, or has ended: {error}"
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"node {machines.node} on {socket.gethostname()} was refused at {_place(machines)}: "
                f"{complaint}"
            )
        time.sleep(_POLL_S)


def _authenticated(
    machines: Machines, deadline: float, timeout_s: float, secrets: Sequence[bytes]
) -> Channel:
    """An authenticated connection to node 0. Raises Lost, NotAuthenticated, RendezvousError, UserError."""
    failure: Lost = NotAuthenticated("this machine has no secret")
    if not secrets:
        _connect(machines, deadline, timeout_s).close()
    for secret in secrets:
        link = _connect(machines, deadline, timeout_s)
        try:
            return authenticate_to_server(link, secret, _PROOF_S)
        except Lost as error:
            link.close()
            failure = error
    raise failure


def _place(machines: Machines) -> str:
    return f"{machines.master_addr or socket.gethostname()} port {machines.master_port}"


def _listen(machines: Machines) -> list[socket.socket]:
    name, count = machines.master_addr or socket.gethostname(), len(machines.counts)
    addresses = addresses_of(name, count) or own_addresses(count)
    try:
        return listen(addresses, machines.master_port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = os.strerror(error.errno or 0)
            raise RendezvousError(f"cannot listen at port {machines.master_port}: {reason}") from error
        raise UserError(
            f"port {machines.master_port} of {socket.gethostname()} is in use: "
            "give another --master-port, the same on every machine"
        ) from None


class _Arrivals:
    """The accepted nodes, and authenticated connections that have not been checked yet."""

    def __init__(self, machines: Machines, run_id: str) -> None:
        self._machines = machines
        self._run_id = run_id
        self._unchecked: Queue[tuple[Channel, dict[str, Any]]] = Queue()
        self.present: dict[int, Peer] = {}

    def receive_first(self, connection: Channel) -> None:
        """Receive the first message of a connection. Runs in a separate thread."""
        try:
            message = connection.receive(_PROOF_S)
        except Lost:
            message = None
        if message is None:
            connection.close()
        else:
            self._unchecked.put((connection, message))

    def poll(self) -> None:
        """Accept new nodes, and drop those that have left."""
        with suppress(Empty):
            self._accept(*self._unchecked.get(timeout=_POLL_S))
        for peer in list(self.present.values()):
            try:
                peer.connection.receive()
            except Lost:
                peer.connection.close()
                del self.present[peer.node]

    def _accept(self, connection: Channel, message: dict[str, Any]) -> None:
        try:
            peer = Peer(int(message["node"]), str(message["host"]), connection)
            self._check(peer, message)
        except (UserError, LookupError, TypeError, ValueError, OverflowError) as error:
            self._unchecked.put((connection, message))
            if isinstance(error, UserError):
                raise
            raise UserError(f"a machine sent a message that cannot be understood: {message}") from None
        self.present[peer.node] = peer

    def _check(self, peer: Peer, message: dict[str, Any]) -> None:
        own, here = self._machines, f"node {self._machines.node} ({socket.gethostname()})"
        there = f"node {peer.node} ({peer.host})"
        if message.get("counts") != list(own.counts):
            raise UserError(
                f"the machines have different arguments: {here} has "
                f"{_counted(own.counts)}, {there} has {_counted(message.get('counts'))}. "
                + with_hint(
                    "Start all of them with the same --gpus-per-node, or the same map of hosts.", "hosts"
                )
            )
        if message.get("stk") != self._run_id:
            raise UserError(
                f"the machines work on different experiments: {here} on {self._run_id}, {there} on "
                f"{message.get('stk')}. Start all of them with the same file and the same key=value."
            )
        if not 0 <= peer.node < len(own.counts):
            raise UserError(f"{there} has a number that does not exist: there are {len(own.counts)} nodes")
        other = socket.gethostname() if peer.node == own.node else None
        if peer.node in self.present:
            other = self.present[peer.node].host
        if other is not None:
            raise UserError(
                f"{other} and {peer.host} are both node {peer.node}: give each machine another --node-rank"
            )

    def describe_missing(self, timeout_s: float, refusals: Refusals) -> str:
        """The missing nodes and the refused connections, for a message."""
        counts = self._machines.counts
        missing = [node for node in range(1, len(counts)) if node not in self.present]
        names = ", ".join(map(self._machines.describe, missing))
        refused = ""
        if refusals.count:
            refused = f" Refused, because they do not know the secret: {refusals}. {HOW_TO_GIVE}."
        return (
            f"{len(missing)} of {len(counts)} machines did not connect to {_place(self._machines)} within "
            f"{timeout_s:g} s: {names}. Is `stk run` started there, with --master-addr of this machine? "
            f"train.rendezvous_timeout_s sets how long to wait.{refused}"
        )

    def send_error(self, error: UserError | RendezvousError) -> None:
        connections = [peer.connection for peer in self.present.values()]
        with suppress(Empty):
            while True:
                connections.append(self._unchecked.get_nowait()[0])
        for connection in connections:
            with suppress(Lost):
                connection.send(error=str(error), is_input=isinstance(error, UserError))
            connection.close()


def _counted(counts: Any) -> str:
    return f"{', '.join(map(str, counts))} processes" if isinstance(counts, list | tuple) else "no counts"


def _connect(machines: Machines, deadline: float, timeout_s: float) -> socket.socket:
    """Connect to node 0 as soon as it listens. Raises RendezvousError, and UserError for an unknown host."""
    while True:
        try:
            return socket.create_connection((machines.master_addr, machines.master_port), _CONNECT_S)
        except socket.gaierror as error:
            reason = f"its name cannot be looked up ({error.strerror})"
            if error.errno == socket.EAI_NONAME:
                raise UserError(f"{machines.master_addr} is not a known host here: {reason}") from None
        except OSError as error:
            reason = error.strerror or str(error)
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"node {machines.node} on {socket.gethostname()} could not reach node 0 at "
                f"{_place(machines)} within {timeout_s:g} s: {reason}. Is `stk run` with --node-rank 0 "
                "started there? Is the address right? Does a firewall block the port?"
            )
        time.sleep(_POLL_S)


def _await_welcome(connection: Channel, machines: Machines, timeout_s: float) -> None:
    """Wait for the answer of node 0. Raises Lost, or the error that it sends."""
    message = connection.receive(timeout_s + _LATER_S)
    if message is None:
        raise RendezvousError(
            f"node {machines.node} on {socket.gethostname()} reached node 0 at {_place(machines)}, but not "
            f"all machines connected within {timeout_s:g} s; node 0 names them"
        )
    if "error" in message:
        kind = UserError if message.get("is_input") else RendezvousError
        raise kind(f"node 0 at {_place(machines)} says: {message['error']}")
    if "welcome" not in message:
        raise Lost("its answer is not that of node 0")
