"""Two processes talk only after each has proved the secret to the other, and notice what is altered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.patience import PATIENCE_S
from toolkit.distributed.secure.channel import (
    Channel,
    Lost,
    NotAuthenticated,
    authenticate_client,
    authenticate_to_server,
)

SECRET = b"s" * 32
SHORT_S = 0.2


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The two ends of a connection: the server's and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with server, client:
        yield server, client


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def channels(ends, thread) -> tuple[Channel, Channel]:
    """The server's and the client's channel, after each has proved the secret."""
    server = thread.submit(authenticate_client, ends[0], SECRET, PATIENCE_S)
    client = authenticate_to_server(ends[1], SECRET, PATIENCE_S)
    return server.result(), client


def test_messages_arrive_whole_and_in_order_both_ways(channels) -> None:
    server, client = channels
    client.send(text="one")
    client.send()
    server.send(text="x" * 300_000)
    assert client.receive(PATIENCE_S) == {"text": "x" * 300_000}
    assert [server.receive(PATIENCE_S), server.receive(PATIENCE_S)] == [{"text": "one"}, {}]
    assert server.receive() is None


def test_a_server_that_echoes_the_proof_is_refused(ends, thread) -> None:
    """It answers with the bytes of the client's own proof."""

    def pretend() -> None:
        ends[0].sendall(b"stk1" + bytes(32))
        seen = ends[0].recv(1000)
        ends[0].sendall(seen[-32:])

    false = thread.submit(pretend)
    with pytest.raises(NotAuthenticated):
        authenticate_to_server(ends[1], SECRET, PATIENCE_S)
    false.result()


@pytest.mark.parametrize("said", [b"", b"x", b"\x80\x04."])
def test_a_client_that_sends_too_little_times_out(ends, said: bytes) -> None:
    ends[1].sendall(said)
    with pytest.raises(Lost):
        authenticate_client(ends[0], SECRET, SHORT_S)


@given(st.binary(min_size=64, max_size=200))
def test_random_bytes_never_authenticate(said: bytes) -> None:
    server, client = socket.socketpair()
    with server, client:
        client.sendall(said)
        server_end = _Tcp(server)
        with pytest.raises(NotAuthenticated):
            authenticate_client(server_end, SECRET, PATIENCE_S)


class _Tcp:
    """A socket that takes the options of a network connection."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def setsockopt(self, *arguments: Any) -> None:
        pass


@pytest.mark.parametrize("which", ["altered", "repeated", "sent back"])
def test_an_altered_repeated_or_reflected_message_is_refused(ends, channels, which: str) -> None:
    server, client = channels
    client.send(text="go")
    frame = ends[0].recv(1000)
    hears = client if which == "sent back" else server
    relay, end = socket.socketpair()
    with relay, end:
        hears._link = end
        relay.sendall(frame.replace(b"go", b"no") if which == "altered" else frame * 2)
        with pytest.raises(Lost, match="altered"):
            [hears.receive(PATIENCE_S) for _ in range(2)]


def test_a_message_that_announces_too_many_bytes_is_refused(ends, channels) -> None:
    ends[1].sendall(b"\xff\xff\xff\xff")
    with pytest.raises(Lost, match="announces"):
        channels[0].receive(PATIENCE_S)


def test_receive_raises_after_the_peer_has_closed(channels) -> None:
    server, client = channels
    client.send(text="bye")
    client.close()
    assert server.receive(PATIENCE_S) == {"text": "bye"}
    with pytest.raises(Lost):
        server.receive(PATIENCE_S)
