"""One living process at a time may own the cluster of a name."""

import socket


class Claim:
    """A socket in the kernel's abstract name space: no file, and gone with its process, however that ends."""

    def __init__(self, cluster_name: str) -> None:
        self._address = f"\0stk-cluster-{cluster_name}"
        self._socket: socket.socket | None = None

    def take(self) -> bool:
        """Make this process the owner; return False if another process is."""
        if self._socket is None:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(self._address)
            except OSError:
                claim.close()
                return False
            self._socket = claim
        return True

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
