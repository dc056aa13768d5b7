"""The server of the store, on rank 0, which keeps the values; and its client, on the other ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolkit.distributed.secure.channel import Channel, Lost

#: Answers a request, as `StoreServer.answer` does.
Ask = Callable[..., Any]

#: Seconds to wait for the next request of a rank; the end of its connection is noticed at once.
_IDLE_S = 3600.0
#: Seconds that an answer may take in addition to the timeout of the request. One C call of rank 0's program
#: may delay the answer for minutes; the end of its host is noticed at once.
_ANSWER_S = 600.0


class StoreServer:
    """Text values by key, which many threads set and wait for."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._changed = threading.Condition()

    def answer(self, do: str, **arguments: Any) -> Any:
        """Answer a request. Raises LookupError for an unknown one."""
        return self._KNOWN[do](self, **arguments)

    def serve(self, channel: Channel) -> None:
        """Answer the requests of a connection until it is closed."""
        with suppress(Lost):
            while True:
                request = channel.receive(_IDLE_S)
                if request is not None:
                    channel.send(answer=self.answer(**request))
        channel.close()

    def _set(self, key: str, value: str) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def _compare_set(self, key: str, expected: str, value: str) -> str:
        """Set the value if it is as expected, or if expected is empty and the key unset; return the value."""
        with self._changed:
            if self._values.get(key, "") == expected:
                self._set(key, value)
            return self._values.get(key, expected)

    def _get(self, key: str) -> str | None:
        return self._values.get(key)

    def _add(self, key: str, amount: int) -> int:
        with self._changed:
            total = int(self._values.get(key, "0")) + amount
            self._set(key, str(total))
            return total

    def _wait(self, keys: Sequence[str], timeout_s: float) -> bool:
        """Wait for all keys; return whether they were set within timeout_s seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: all(key in self._values for key in keys), timeout_s)

    def _delete(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    _KNOWN: Mapping[str, Callable[..., Any]] = {
        "set": _set,
        "compare_set": _compare_set,
        "get": _get,
        "add": _add,
        "wait": _wait,
        "delete": _delete,
    }


class StoreClient:
    """Sends requests to the values of another process, one at a time.

    connect  makes the connection; called at the first request
    """

    def __init__(self, connect: Callable[[], Channel]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._channel: Channel | None = None

    def __call__(self, do: str, **arguments: Any) -> Any:
        """Send a request and return the answer. Raises Lost."""
        with self._lock:
            if self._channel is None:
                self._channel = self._connect()
            self._channel.send(do=do, **arguments)
            message = self._channel.receive(arguments.get("timeout_s", 0.0) + _ANSWER_S)
            if message is None:
                # A late answer would be taken for that of the next request.
                self._channel.close()
                raise Lost("it does not answer")
        return message["answer"]
