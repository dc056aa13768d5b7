"""A connection between two processes that have proved to each other that they know the same secret.

The server, which listens, sends a random number. The client answers with another one and a proof:
HMAC-SHA256 over both numbers. The server answers with its own proof. No number is used twice, so a recorded
proof cannot be replayed. Every message after that, a JSON object, carries an HMAC of its content and its
position, with a key of this connection.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import select
import socket
import time
from contextlib import suppress
from typing import Any

_HELLO = b"stk1"
#: The roles, as the proofs name them.
_SERVER, _CLIENT = b"host", b"guest"
_NUMBER_BYTES = _MAC_BYTES = 32
_SEND_S = 10.0
_CLOSE_S = 1.0
_CHUNK = 1 << 16
#: Most bytes of a message. A failure with its traceback is the largest one.
_LONGEST = 1 << 22

#: Notice after about 20 seconds that a machine no longer answers.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class Lost(Exception):
    """The other side has closed the connection, can no longer be reached, or sends an invalid message."""


class NotAuthenticated(Lost):
    """The other side does not know the secret."""


class Channel:
    """One side of an authenticated connection for whole messages, JSON objects, in order."""

    def __init__(self, link: socket.socket, key: bytes, own_role: bytes, peer_role: bytes) -> None:
        self._link = link
        self._key = key
        self._own_role, self._peer_role = own_role, peer_role
        self._sent = self._received = 0
        self._buffer = bytearray()

    def close(self) -> None:
        """Close the connection; sent messages still arrive."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
            # Closing with unread bytes would reset the connection, and the other side would lose messages.
            self._link.settimeout(_CLOSE_S)
            while self._link.recv(_CHUNK):
                pass
        self._link.close()

    def send(self, **message: Any) -> None:
        """Send one message. Raises Lost."""
        content = json.dumps(message).encode()
        mac = self._mac(self._own_role, self._sent, content)
        self._sent += 1
        _send(self._link, len(content).to_bytes(4, "big") + mac + content)

    def receive(self, timeout_s: float = 0.0) -> dict[str, Any] | None:
        """Return the next message; None if none is complete after timeout_s seconds. Raises Lost."""
        deadline = time.monotonic() + timeout_s
        while not self._is_whole():
            if not _is_readable(self._link, deadline - time.monotonic()):
                return None
            self._buffer += _read(self._link, _CHUNK)
        start, end = 4 + _MAC_BYTES, 4 + _MAC_BYTES + self._length
        mac, content = bytes(self._buffer[4:start]), bytes(self._buffer[start:end])
        del self._buffer[:end]
        if not hmac.compare_digest(mac, self._mac(self._peer_role, self._received, content)):
            raise Lost("a message was altered on its way")
        self._received += 1
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Lost("its message is not JSON") from error
        if not isinstance(message, dict):
            raise Lost("its message is not a JSON object")
        return message

    @property
    def _length(self) -> int:
        return int.from_bytes(self._buffer[:4], "big")

    def _is_whole(self) -> bool:
        if len(self._buffer) < 4:
            return False
        if self._length > _LONGEST:
            raise Lost(f"it announces a message of {self._length} bytes")
        return len(self._buffer) >= 4 + _MAC_BYTES + self._length

    def _mac(self, sender: bytes, number: int, content: bytes) -> bytes:
        return hmac.digest(self._key, sender + number.to_bytes(8, "big") + content, hashlib.sha256)


def authenticate_client(link: socket.socket, secret: bytes, timeout_s: float) -> Channel:
    """On the server: authenticate the client, and this process to it. Raises NotAuthenticated, Lost."""
    deadline = time.monotonic() + timeout_s
    _prepare(link)
    own = secrets.token_bytes(_NUMBER_BYTES)
    _send(link, _HELLO + own)
    answer = _read_exactly(link, _NUMBER_BYTES + _MAC_BYTES, deadline)
    numbers = own + answer[:_NUMBER_BYTES]
    if not hmac.compare_digest(answer[_NUMBER_BYTES:], _proof(secret, _CLIENT, numbers)):
        raise NotAuthenticated("it does not know the secret of this attempt")
    _send(link, _proof(secret, _SERVER, numbers))
    return Channel(link, _proof(secret, b"key", numbers), _SERVER, _CLIENT)


def authenticate_to_server(link: socket.socket, secret: bytes, timeout_s: float) -> Channel:
    """On the client: authenticate the server, and this process to it. Raises NotAuthenticated, Lost."""
    deadline = time.monotonic() + timeout_s
    _prepare(link)
    hello = _read_exactly(link, len(_HELLO) + _NUMBER_BYTES, deadline)
    if not hello.startswith(_HELLO):
        raise NotAuthenticated("it does not use the protocol of a run's processes")
    own = secrets.token_bytes(_NUMBER_BYTES)
    numbers = hello[len(_HELLO) :] + own
    _send(link, own + _proof(secret, _CLIENT, numbers))
    try:
        answer = _read_exactly(link, _MAC_BYTES, deadline)
    except Lost as error:
        raise NotAuthenticated("it knows another secret than this process") from error
    if not hmac.compare_digest(answer, _proof(secret, _SERVER, numbers)):
        raise NotAuthenticated("it does not know the secret of this attempt")
    return Channel(link, _proof(secret, b"key", numbers), _CLIENT, _SERVER)


def _proof(secret: bytes, role: bytes, numbers: bytes) -> bytes:
    return hmac.digest(secret, role + b"|" + numbers, hashlib.sha256)


def _prepare(link: socket.socket) -> None:
    link.settimeout(_SEND_S)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        link.setsockopt(socket.IPPROTO_TCP, option, value)


def _send(link: socket.socket, content: bytes) -> None:
    try:
        link.sendall(content)
    except OSError as error:
        raise Lost(str(error)) from error


def _read_exactly(link: socket.socket, count: int, deadline: float) -> bytes:
    content = b""
    while len(content) < count:
        if not _is_readable(link, deadline - time.monotonic()):
            raise Lost("it did not send enough in time")
        content += _read(link, count - len(content))
    return content


def _is_readable(link: socket.socket, timeout_s: float) -> bool:
    # Not select.select, which fails for descriptors above 1023.
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))


def _read(link: socket.socket, most: int) -> bytes:
    try:
        content = link.recv(most)
    except OSError as error:
        raise Lost(str(error)) from error
    if not content:
        raise Lost("it has closed the connection")
    return content
