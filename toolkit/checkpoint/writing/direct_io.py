"""Writing a large file past the page cache (O_DIRECT) if the file system allows it.

With the cache, a core copies every byte, and the pages displace the samples that training reads. On a busy
machine with 2 cores, 803 MB took 26 s instead of 5.2 s to reach the disk beside training, and 8.8 s instead
of 1.5 s while training waited for it (medians of 4 pairs of runs); with a flush after each piece it was 22 s
and 4.5 s (3 pairs).
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

#: Address in memory, offset in the file and length must be multiples of this; it suits every disk.
BLOCK = 4096

#: Smaller files go through the cache: they cost little and are read again soon.
LEAST = 32 << 20

#: Errors of file systems that do not support direct I/O, or not with this memory.
_REFUSALS = (errno.EINVAL, errno.EFAULT, errno.EOPNOTSUPP)


class Output:
    """A new file. Raises OSError, as the methods do; FileExistsError if the file exists."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._is_decided = self._direct = False

    def write(self, piece: memoryview) -> None:
        """Append a piece. The length of every piece but the last is a multiple of BLOCK, or all are small.

        Releases the GIL. Bypasses the cache if the first piece is large and begins at a multiple of BLOCK.
        """
        if not self._is_decided:
            self._is_decided, self._direct = True, len(piece) >= LEAST and self._set_direct(True)
        while piece:
            piece = piece[self._write(piece) :]

    def flush(self) -> None:
        """Return when the whole file is on the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, piece: memoryview) -> int:
        """Write some bytes; return how many. 0 if the rest must go through the cache."""
        whole = len(piece) - len(piece) % BLOCK
        if self._direct and not whole:
            self._direct = self._set_direct(False)
        if not self._direct:
            return os.write(self._descriptor, piece)
        try:
            return os.write(self._descriptor, piece[:whole])
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            self._direct = self._set_direct(False)
            return 0

    def _set_direct(self, wanted: bool) -> bool:
        """Switch the descriptor to bypass the cache or not; return whether it now does."""
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & ~os.O_DIRECT
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | (os.O_DIRECT if wanted else 0))
        except OSError as error:
            if not wanted or error.errno not in _REFUSALS:
                raise
            return False
        return wanted
