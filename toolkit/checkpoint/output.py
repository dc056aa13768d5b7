"""Writing a large file past the page cache where the file system lets us.

Through the cache a core copies every byte and looks for a page for each 4 KiB of them, which takes several
times as long as the checksum; the pages then displace the samples that training reads. Past it the disk
takes the bytes from where they are, and the core is free for training.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

#: What memory, place in the file and length must be a multiple of; enough for every disk.
BLOCK = 4096

#: Smaller files go through the cache: they cost little, and who reads them soon finds them there.
LEAST = 32 << 20

#: How file systems say that they do not do that, or not with this memory.
_REFUSALS = (errno.EINVAL, errno.EFAULT, errno.EOPNOTSUPP)

#: Not every system has it.
_DIRECT = getattr(os, "O_DIRECT", 0)


class Output:
    """A new file. Raises OSError, FileExistsError among them; as the calls below do."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._asked = self._direct = False

    def write(self, piece: memoryview) -> None:
        """Add a piece; any piece but the last is a multiple of BLOCK long, or all are small.

        The call lets other threads run. It goes past the cache where the first piece is a large one
        that begins at a multiple of BLOCK.
        """
        if not self._asked:
            self._asked, self._direct = True, len(piece) >= LEAST and self._set_direct(True)
        while piece:
            piece = piece[self._write(piece) :]

    def flush(self) -> None:
        """Return when all of it is on the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, piece: memoryview) -> int:
        """Bytes that were taken; none where the rest must go through the cache."""
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
        """Change the descriptor's way; whether it goes past the cache now."""
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & ~_DIRECT
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | (_DIRECT if wanted else 0))
        except OSError as error:
            if not wanted or error.errno not in _REFUSALS:
                raise
            return False
        return wanted and bool(_DIRECT)
