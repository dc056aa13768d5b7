"""An authenticated connection between two launchers; messages are JSON objects."""

from __future__ import annotations

import json
from typing import Any

from toolkit.distributed.secure.channel import Channel, Lost


class JsonSocket:
    """One side of a connection."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def close(self) -> None:
        """Close the connection; messages that were sent still arrive."""
        self._channel.close()

    def send(self, **message: Any) -> None:
        """Send one message. Raises Lost."""
        self._channel.send(json.dumps(message).encode())

    def receive(self, timeout_s: float = 0.0) -> dict[str, Any] | None:
        """The next message; None if none is complete after timeout_s seconds. Raises Lost."""
        content = self._channel.receive(timeout_s)
        if content is None:
            return None
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Lost("its message is not JSON") from error
        if not isinstance(message, dict):
            raise Lost("its message is not a JSON object")
        return message
