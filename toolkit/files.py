"""Write files so that a reader finds the old bytes or the new ones, never a mix."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import stat
import tempfile
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

_CRC_BLOCK = 1 << 20
#: For lone surrogates, as in the name of a file that is not UTF-8: `\udce9` is an escape of JSON too.
_ESCAPE = "backslashreplace"
_DECODER = json.JSONDecoder()


def fsync_path(path: Path) -> None:
    """Make a file's content or a folder's names survive a crash of the machine. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_still(path: Path, found: os.stat_result) -> bool:
    """Whether a path leads to the file or folder of which `found` was read."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), found)
    return False


def make_like_parent(folder: Path) -> None:
    """Make a folder unless it exists, with the permissions of the folder around it. Raises OSError.

    The umask does not count. If the groups differ, this group gets the permissions of all others.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir()
        around = folder.parent.stat()
        mode = stat.S_IMODE(around.st_mode)
        if folder.stat().st_gid != around.st_gid:
            # Its group is then the user's own, whose members count as others in the parent.
            mode = mode & ~(stat.S_ISGID | stat.S_IRWXG) | (mode & stat.S_IRWXO) << 3
        folder.chmod(mode)


@contextmanager
def temporary_folder(prefix: str = "stk-", parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, and then remove it with what is in it, as far as possible. Raises OSError.

    TemporaryDirectory of Python 3.11 recurses without end if it may not delete a file.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_quickly(path: Path, data: bytes | str) -> None:
    """Write a new file without waiting for the disk: for files that can be rebuilt after a machine crash.

    Two flushes are the main cost of a file, and a sweep makes thousands of files. Raises OSError.
    """
    with _replacement(path, "wb", is_flushed=False) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file under a temporary name, flush it to disk and rename it into place.

    Raises OSError; an existing file then stays unchanged.
    """
    with _replacement(path, "wb") as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


def write_view(path: Path, value: Any) -> None:
    """Write a JSON document of one line that only views read, often: atomically, not flushed to disk.

    It is not needed after a crash of the machine. One writer at a time. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(value) + "\n", encoding="utf-8")
    os.replace(temporary, path)


@contextmanager
def open_atomic(path: Path) -> Iterator[TextIO]:
    """Open a text file (UTF-8) that is written piece by piece and appears only when complete.

    Raises OSError; an existing file stays unchanged after any error.
    """
    with _replacement(path, "w", encoding="utf-8", newline="") as stream:
        yield stream


@contextmanager
def _replacement(path: Path, mode: str, *, is_flushed: bool = True, **options: Any) -> Iterator[Any]:
    """Open a temporary file that takes the name of `path` at the end; options as those of `open`."""
    temporary = _beside(path)
    if path.is_dir():
        # At once, not when all has been written, and with a name that the caller knows.
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with open(temporary, mode, opener=_owner_writes, **options) as stream:
            yield stream
            if is_flushed:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            # The caller's name. Of a full disk, the writer knows only the descriptor.
            error.filename, error.filename2 = str(path), None
        raise
    if is_flushed:
        fsync_path(path.parent)


def _owner_writes(path: str, flags: int) -> int:
    """Open a file that is replaced as a whole: no other user writes it, even if the umask allows that."""
    return os.open(path, flags, 0o644)


def _beside(path: Path) -> Path:
    """A unique name in the same folder; hidden, so that listings stay clean."""
    # Not the process id, because two hosts may use the same one.
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def json_numbers(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers by name as JSON can hold them: None replaces numbers that are not finite."""
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def json_value(value: Any) -> Any:
    """A value as JSON can hold it: None for a number that is not finite, text for other objects."""
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically, indented for people."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(path, text.encode(errors=_ESCAPE))


def regular(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`. Raises OSError for a pipe or device, which may never end."""
    # Without O_NONBLOCK the opening of a pipe waits until someone writes to it.
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode) or stat.S_ISDIR(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is a pipe or a device, expected a regular file", path)


def read_json(path: Path) -> Any:
    """Read a JSON document; None if the file does not exist. Raises OSError, ValueError."""
    try:
        with open(path, encoding="utf-8", opener=regular) as stream:
            return json.loads(stream.read())
    except FileNotFoundError:
        return None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object. Return an empty one if the file is missing or cannot be read."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Read a whole file that an input names. A pipe or a device is refused: it might never end.

    Raises OSError, also for a file of more than most_bytes.
    """
    with open(path, "rb", opener=regular) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes", str(path))
    return data


def read_end(path: Path, most_bytes: int) -> bytes:
    """The last bytes of a file; none if it cannot be read."""
    try:
        with open(path, "rb", opener=regular) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - most_bytes))
            return stream.read(most_bytes)
    except OSError:
        return b""


def append_json_line(path: Path, record: dict[str, Any], *, durable: bool = False) -> None:
    """Append one record as one line in a single write, so that concurrent lines do not mix.

    durable   wait until it is on the disk

    A torn line of a killed writer becomes a separate line, which readers skip. They also skip the empty
    line that results if a line looks torn because another process is still writing it.
    """
    line = json.dumps(record, ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        append_whole(descriptor, ("\n" + line if torn else line).encode(errors=_ESCAPE))
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, data: bytes) -> None:
    """Append all data to a file, or nothing, unless another process appends meanwhile. Raises OSError."""
    size, written = os.fstat(descriptor).st_size, 0
    try:
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
    except OSError:
        # A full disk has accepted a part.
        if written and os.fstat(descriptor).st_size == size + written:
            os.ftruncate(descriptor, size)
        raise


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text; None if it is invalid, such as the torn line of a killed writer."""
    try:
        if isinstance(text, bytes):
            # json.loads would look for other encodings first. An editor may have written a byte order mark.
            text = text.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON-lines file; a torn last line (a killed writer) is left out."""
    if not path.exists():
        return
    with open(path, encoding="utf-8", errors="replace", opener=regular) as stream:
        for line in stream:
            if not line.endswith("\n"):
                return
            # A writer may have died between two lines of another one; the rest is still good.
            if isinstance(record := parsed(line), dict):
                yield record


def create_once(path: Path, data: str, *, mode: int = 0o666) -> bool:
    """Create a complete file if it does not exist yet; return whether this call created it.

    Of several racing writers exactly one wins, also on a network file system (hard link).
    """
    temporary = _beside(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "w", encoding="utf-8", errors=_ESCAPE) as stream:
            stream.write(data)
        os.link(temporary, path)
        return True
    except FileExistsError:
        # NFS may repeat the request after a lost answer: then the existing file is this one.
        return os.path.samefile(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def link_or_copy(source: str, target: str) -> None:
    """Make a hard link to a file, or a copy if the file system refuses. Neither file may be written later."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def crc32(path: Path) -> int:
    """CRC-32 of a file's bytes, read in blocks (about 2 GB/s)."""
    value = 0
    with open(path, "rb", opener=regular) as stream:
        while block := stream.read(_CRC_BLOCK):
            value = zlib.crc32(block, value)
    return value
