"""Ranks that meet at MASTER_ADDR and MASTER_PORT."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.toolkit.distributed.rendezvous.starting import SHORT_S, start
from tests.toolkit.support.ranks import worlds
from toolkit.distributed.rendezvous import meet
from toolkit.errors import RendezvousError, UserError
from toolkit.run.attempts.refusal import write_refusal
from toolkit.run.run_dir import RunDir


@pytest.fixture
def place() -> dict[str, str]:
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}


def test_ranks_meet_at_the_address_in_the_environment(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    joined = [each.result() for each in start(threads, run, worlds(3), PATIENCE_S, "env", place)]
    assert {str(each.world.master_port) for each in joined} == {place["MASTER_PORT"]}
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)
    assert not run.rendezvous(joined[0].world.nonce).exists()


def test_a_port_can_be_used_by_consecutive_attempts(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    for nonce in ("first", "second"):
        for each in start(threads, run, worlds(2, nonce), PATIENCE_S, "env", place):
            assert each.result().world.master_addr == "127.0.0.1"
            each.result().close()


def test_an_unreachable_master_address_is_named(run: RunDir, place: dict[str, str]) -> None:
    expected = rf"\(rank 1\) cannot reach rank 0 on host 127.0.0.1 at 127.0.0.1 port {place['MASTER_PORT']}"
    with pytest.raises(RendezvousError, match=expected):
        meet(run, worlds(2)[1], SHORT_S, "env", place)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, b""], ids=["talks", "leaves"])
def test_a_port_used_by_another_program_fails_all_ranks_at_once(
    run: RunDir, threads: ThreadPoolExecutor, answer: bytes
) -> None:
    """Each rank names the port, and none waits for the other program to leave."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stranger = threading.Thread(target=_answer_all, args=(server, answer), daemon=True)
        stranger.start()
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = [
            replace(world, master_addr="127.0.0.1", master_port=port, nonce=f"torchrun-{port}.0")
            for world in worlds(3)
        ]
        started = start(threads, run, ranks, PATIENCE_S, "auto", place)
        for each in started:
            with pytest.raises(UserError, match=rf"port {port}: .*another MASTER_PORT") as told:
                each.result()
            # It is auto already.
            assert "train.rendezvous" not in str(told.value)
        server.shutdown(socket.SHUT_RDWR)
        stranger.join()


def _answer_all(server: socket.socket, answer: bytes) -> None:
    """Accept until the server is shut down, say something that no rank says, and leave."""
    with suppress(OSError):
        while True:
            link, _ = server.accept()
            link.sendall(answer)
            link.close()


def test_a_refusal_left_by_an_earlier_attempt_is_ignored(
    run: RunDir, threads: ThreadPoolExecutor, place: dict[str, str]
) -> None:
    ranks = [replace(world, master_addr="127.0.0.1", nonce="torchrun-1.0") for world in worlds(2)]
    write_refusal(run, "torchrun-1.0", "a port was not free then")
    later = start(threads, run, ranks[1:], PATIENCE_S, "auto", place)
    for each in start(threads, run, ranks[:1], PATIENCE_S, "auto", place) + later:
        assert each.result().world.size == 2


@pytest.mark.parametrize("environ", [{}, {"MASTER_ADDR": "a"}, {"MASTER_ADDR": "a", "MASTER_PORT": "x"}])
def test_missing_master_addr_or_port_is_reported(run: RunDir, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="needs MASTER_ADDR and MASTER_PORT, but they are"):
        meet(run, worlds(2)[0], SHORT_S, "env", environ)
