"""A listener accepts clients that prove the secret, even in a flood of others, and names those briefly."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from queue import Queue
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, until
from toolkit.distributed.secure.channel import Channel, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import EVENT, SUM_EVENT, Refusals

SECRET = b"s" * 32
Told = list[tuple[str, dict[str, Any]]]


class Opened:
    """An open listener, its clients and what it has recorded."""

    def __init__(self) -> None:
        self.told: Told = []
        self.clients: Queue[Channel] = Queue()
        self.refusals = Refusals(lambda event, **facts: self.told.append((event, facts)))
        self.listener = SecureListener(
            listen(["127.0.0.1", "127.0.0.2"]), SECRET, self.clients.put, self.refusals
        )
        self._links: list[socket.socket] = []

    def knock(self, address: str = "127.0.0.1") -> socket.socket:
        self._links.append(socket.create_connection((address, self.listener.port), PATIENCE_S))
        return self._links[-1]

    def close(self) -> None:
        self.listener.close()
        for link in self._links:
            link.close()
        while not self.clients.empty():
            self.clients.get().close()

    def enter(self, address: str = "127.0.0.1") -> Channel:
        return authenticate_to_server(self.knock(address), SECRET, PATIENCE_S)


@pytest.fixture
def opened() -> Iterator[Opened]:
    opened = Opened()
    yield opened
    opened.close()


def is_let_in(opened: Opened, address: str = "127.0.0.1") -> bool:
    channel = opened.enter(address)
    channel.send(text="hello")
    return opened.clients.get(timeout=PATIENCE_S).receive(PATIENCE_S) == {"text": "hello"}


def test_a_client_with_the_secret_is_accepted_at_every_address(opened: Opened) -> None:
    assert is_let_in(opened)
    assert is_let_in(opened, "127.0.0.2")
    assert opened.told == []


def test_a_flood_of_silent_connections_does_not_block_clients(opened: Opened) -> None:
    """More connections than this process has file descriptors for."""
    with ExitStack() as stack:
        for _ in range(1100):
            with suppress(OSError):
                stack.enter_context(opened.knock())
        assert is_let_in(opened)


def test_refusals_of_a_flood_are_recorded_in_two_lines_with_their_count(opened: Opened) -> None:
    for _ in range(200):
        with opened.knock() as stranger:
            stranger.sendall(bytes(64))
    until(lambda: opened.refusals.count == 200)
    opened.listener.close()
    assert [event for event, _ in opened.told] == [EVENT, SUM_EVENT]
    assert opened.told[1][1]["count"] == 200


def test_refusals_from_many_addresses_are_recorded_in_few_lines() -> None:
    told: Told = []
    refusals = Refusals(lambda event, **facts: told.append((event, facts)))
    for number in range(1000):
        refusals.add(f"10.0.{number // 250}.{number % 250}", "no proof")
    refusals.close()
    assert len(told) <= 17
    assert told[-1][1]["count"] == 1000
    assert len(told[-1][1]["addresses"]) <= 17


def test_a_settled_listener_keeps_only_the_addresses_with_clients(opened: Opened) -> None:
    assert is_let_in(opened)
    opened.listener.slow_down()
    assert is_let_in(opened)
    until(lambda: not is_open("127.0.0.2", opened.listener.port))


def test_a_closed_listener_accepts_nobody_and_keeps_its_clients(opened: Opened) -> None:
    channel = opened.enter()
    client = opened.clients.get(timeout=PATIENCE_S)
    opened.listener.close()
    until(lambda: not is_open("127.0.0.1", opened.listener.port))
    channel.send(text="still here")
    assert client.receive(PATIENCE_S) == {"text": "still here"}


def is_open(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    return True


def test_an_address_of_another_host_is_skipped() -> None:
    (listener,) = listen(["192.0.2.1", "127.0.0.1"])
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    with pytest.raises(OSError, match="assign"):
        listen(["192.0.2.1"])
