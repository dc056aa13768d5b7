"""The store behaves like torch's own stores, for authenticated ranks only."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from torch.distributed import HashStore, PrefixStore  # type: ignore[attr-defined]

from tests.support.patience import PATIENCE_S
from toolkit.distributed.secure.channel import Channel, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.distributed.secure.store import AuthenticatedStore
from toolkit.distributed.secure.store_server import StoreClient, StoreServer

SECRET = b"s" * 32
PATIENCE = timedelta(seconds=PATIENCE_S)
SHORT = timedelta(seconds=0.1)
Connect = Callable[[SecureListener], Channel]


def listener_for(handle: Callable[[Channel], None]) -> SecureListener:
    return SecureListener(listen(["127.0.0.1"]), SECRET, handle, Refusals(lambda event, **facts: None))


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connections that are closed in the end."""
    with ExitStack() as stack:

        def connected(listener: SecureListener) -> Channel:
            link = stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
            return authenticate_to_server(link, SECRET, 30.0)

        yield connected


@pytest.fixture(params=["torch's own", "rank 0", "another rank"])
def store(request: pytest.FixtureRequest, connect: Connect) -> Iterator[Any]:
    server = StoreServer()
    listener = listener_for(server.serve)
    stores: dict[str, Callable[[], Any]] = {
        "torch's own": HashStore,
        "rank 0": lambda: AuthenticatedStore(lambda: server.answer),
        "another rank": lambda: AuthenticatedStore(lambda: StoreClient(lambda: connect(listener))),
    }
    yield stores[request.param]()
    listener.close()


def test_values_may_be_any_bytes_or_text(store: Any) -> None:
    everything = bytes(range(256))
    # Through a prefix, torch itself calls the store, as its process groups do.
    PrefixStore("group", store).set(
        "bytes", everything.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape")
    )
    store.set("text", "wörd")
    assert PrefixStore("group", store).get("bytes") == everything
    assert store.get("group/bytes") == everything
    assert store.get("text") == "wörd".encode()


def test_keys_are_added_to_checked_compared_and_deleted(store: Any) -> None:
    assert [store.add("n", 2), store.add("n", 3)] == [2, 5]
    assert store.get("n") == b"5"
    assert (store.check(["n"]), store.check(["n", "m"])) == (True, False)
    assert store.compare_set("m", "", "first") == b"first"
    assert store.compare_set("m", "other", "second") == b"first"
    assert store.compare_set("m", "first", "second") == b"second"
    assert store.delete_key("m")
    assert not store.delete_key("m")


def test_wait_returns_when_the_key_is_set_and_times_out_otherwise(store: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.clone().wait, ["late"], PATIENCE)
        store.set("late", "x")
        waiting.result()
    with pytest.raises(RuntimeError):
        store.wait(["late", "never"], SHORT)


def test_get_times_out_after_the_timeout_of_the_store(store: Any) -> None:
    store.set_timeout(SHORT)
    with pytest.raises(RuntimeError):
        store.get("never")


def test_a_clone_made_by_torch_outlives_garbage_collection(store: Any) -> None:
    prefixed: Any = PrefixStore("group", store)
    copy = prefixed.clone()
    gc.collect()
    copy.set("key", "value")
    assert store.get("group/key") == b"value"


def test_the_store_raises_once_rank_0_is_gone(connect: Connect) -> None:
    listener = listener_for(Channel.close)
    store = AuthenticatedStore(lambda: StoreClient(lambda: connect(listener)))
    with pytest.raises(RuntimeError, match="rank 0's store is gone"):
        store.get("a")
    listener.close()
