"""A connection between two launchers: whole lines of JSON, and the news that the other side is gone."""

from __future__ import annotations

import json
import select
import socket
from contextlib import suppress
from types import TracebackType
from typing import Any

_SEND_S = 10.0
_CLOSE_S = 1.0
_CHUNK = 1 << 16
#: A failure with its traceback is the largest; a stranger's bytes must not fill the memory.
_LONGEST = 1 << 22

#: A machine that falls silent without a word is noticed after about so many seconds.
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class Lost(Exception):
    """The other side has closed the connection, cannot be reached any more, or does not speak JSON."""


class Wire:
    """One side of a connection. Use as a context manager."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._link.settimeout(_SEND_S)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                self._link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._buffer = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was sent still arrives."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
            # To close on unread bytes would take back what the other side has not read yet.
            self._link.settimeout(_CLOSE_S)
            while self._link.recv(_CHUNK):
                pass
        self._link.close()

    def fileno(self) -> int:
        """For select."""
        return self._link.fileno()

    def send(self, **message: Any) -> None:
        """Send one message. Raises Lost."""
        try:
            self._link.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Lost(str(error)) from error

    def receive(self, timeout_s: float = 0.0) -> dict[str, Any] | None:
        """The next message; None where none is whole after timeout_s seconds. Raises Lost."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST:
                raise Lost("it sends no lines")
            if not select.select([self._link], [], [], timeout_s)[0]:
                return None
            self._read()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return _message(line)

    def _read(self) -> None:
        try:
            chunk = self._link.recv(_CHUNK)
        except OSError as error:
            raise Lost(str(error)) from error
        if not chunk:
            raise Lost("it has closed the connection")
        self._buffer += chunk


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise Lost("it does not speak JSON") from error
    if not isinstance(message, dict):
        raise Lost("it does not speak JSON objects")
    return message
