"""The store for torch's process groups: only authenticated ranks can read and set its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from torch.distributed import DistStoreError, Store  # type: ignore[attr-defined]  # not in __all__

from toolkit.distributed.secure.channel import Lost
from toolkit.distributed.secure.store_server import Ask

#: Encodes any bytes as text.
_BYTES = "latin-1"
#: The default of torch's own stores.
_TIMEOUT = timedelta(minutes=5)


class AuthenticatedStore(Store):
    """A torch store that keeps its values in another object. Any thread may call it.

    make_ask  makes a connection to the values; each clone has its own
    """

    def __init__(self, make_ask: Callable[[], Ask]) -> None:
        super().__init__()
        self._timeout = _TIMEOUT
        self._make_ask = make_ask
        self._ask_values = make_ask()
        self._clones: list[AuthenticatedStore] = []

    def clone(self) -> AuthenticatedStore:
        """Return a store of the same values with its own connection, so that neither blocks the other."""
        # torch keeps clones only in C++: without this reference, they would lose the methods of this class.
        self._clones.append(AuthenticatedStore(self._make_ask))
        return self._clones[-1]

    def set_timeout(self, timeout: timedelta) -> None:
        super().set_timeout(timeout)
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key=key, value=_text(value))

    def compare_set(self, key: str, expected: str | bytes, value: str | bytes) -> bytes:
        answer = self._ask("compare_set", key=key, expected=_text(expected), value=_text(value))
        return str(answer).encode(_BYTES)

    def get(self, key: str) -> bytes:
        """Wait for a value and return it. Raises DistStoreError after the store's timeout."""
        self.wait([key])
        return str(self._ask("get", key=key)).encode(_BYTES)

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", key=key, amount=amount))

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("wait", keys=list(keys), timeout_s=0.0))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        timeout_s = (timeout or self._timeout).total_seconds()
        if not self._ask("wait", keys=list(keys), timeout_s=timeout_s):
            raise DistStoreError(f"{', '.join(keys)} was not set within {timeout_s:g} s")

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete", key=key))

    def _ask(self, do: str, **arguments: Any) -> Any:
        try:
            return self._ask_values(do, **arguments)
        except Lost as error:
            raise DistStoreError(f"rank 0's store is gone: {error}") from error


def _text(value: str | bytes) -> str:
    """Encode text as UTF-8 bytes, so that `get` returns the bytes of a text that was set."""
    return (value.encode() if isinstance(value, str) else bytes(value)).decode(_BYTES)
