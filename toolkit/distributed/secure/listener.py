"""A listener that accepts connections that prove the secret, and refuses all others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from toolkit.distributed.secure.channel import Channel, Lost, authenticate_client
from toolkit.distributed.secure.refusals import Refusals

#: Seconds that a client has to prove the secret; how many may do so at once, before the oldest is closed.
_PROOF_S = 5.0
_MOST_UNAUTHENTICATED = 64
_BACKLOG = 256
#: Seconds between two connections once all processes have connected, so that a flood does not slow training.
_PAUSE_S = 0.05


def listen(addresses: Sequence[str], port: int = 0) -> list[socket.socket]:
    """Listen at one port (0 for any free one) on those of the addresses that work. Raises OSError."""
    listeners: list[socket.socket] = []
    for address in addresses:
        try:
            listener = socket.create_server((address, port), backlog=_BACKLOG)
        except OSError:
            if not listeners and address == addresses[-1]:
                raise
            continue
        port = listener.getsockname()[1]
        listeners.append(listener)
    return listeners


class SecureListener:
    """Listens until it is closed. Each authenticated connection is handled in a separate thread.

    handle    called with each authenticated connection, which stays open when the listener closes
    refusals  records the refused connections
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        secret: bytes,
        handle: Callable[[Channel], None],
        refusals: Refusals,
    ) -> None:
        self.port: int = listeners[0].getsockname()[1]
        self._listeners = list(listeners)
        self._secret = secret
        self._handle = handle
        self._refusals = refusals
        self._lock = threading.Lock()
        self._unauthenticated: list[socket.socket] = []
        self._used: set[str] = set()
        self._pause_s = 0.0
        for listener in listeners:
            threading.Thread(target=self._accept, args=(listener,), name="listener", daemon=True).start()

    def slow_down(self) -> None:
        """Listen only on the addresses in use, and accept few connections a second.

        Called when all processes have connected: from then on only reconnections are expected.
        """
        self._pause_s = _PAUSE_S
        self._close([each for each in self._listeners if each.getsockname()[0] not in self._used])

    def close(self) -> None:
        self._close(self._listeners)
        with self._lock:
            for link in self._unauthenticated:
                _shut(link)
        self._refusals.close()

    def _close(self, listeners: Collection[socket.socket]) -> None:
        self._listeners = [each for each in self._listeners if each not in listeners]
        for listener in listeners:
            # Closing alone would not wake the thread that waits in accept.
            _shut(listener)

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while listener in self._listeners:
                try:
                    link, (address, _) = listener.accept()
                except OSError:
                    # Closed, or out of descriptors for the moment.
                    time.sleep(_PAUSE_S)
                    continue
                self._admit(link, address)
                time.sleep(self._pause_s)

    def _admit(self, link: socket.socket, address: str) -> None:
        with self._lock:
            if len(self._unauthenticated) >= _MOST_UNAUTHENTICATED:
                _shut(self._unauthenticated.pop(0))
            self._unauthenticated.append(link)
        try:
            threading.Thread(
                target=self._authenticate, args=(link, address), name="client", daemon=True
            ).start()
        except RuntimeError:
            self._forget(link)
            link.close()

    def _authenticate(self, link: socket.socket, address: str) -> None:
        try:
            channel = authenticate_client(link, self._secret, _PROOF_S)
            self._used.add(link.getsockname()[0])
        except (Lost, OSError) as error:
            link.close()
            self._refusals.add(address, str(error))
            return
        finally:
            self._forget(link)
        self._handle(channel)

    def _forget(self, link: socket.socket) -> None:
        with self._lock, suppress(ValueError):
            self._unauthenticated.remove(link)


def _shut(link: socket.socket) -> None:
    with suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
