"""Read lines of text, and find bytes that are invalid in the encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO, TextIO

from toolkit.data.sources.encoding_guess import guess
from toolkit.errors import DataError

_BLOCK = 1 << 20
#: The first bytes of some binary files, and the kind of the file.
_BINARY = {
    b"\x1f\x8b": "gzip, so that its name should end with .gz",
    b"PK\3\4": "a workbook or a ZIP archive; save it as CSV",
    b"PAR1": "Parquet; convert it to CSV",
}


def check_encoding(name: str) -> None:
    """Raise DataError if Python has no text encoding of this name."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise DataError(
            f"data.encoding is {name!r}, which is not a text encoding; common ones are utf-8, latin-1, "
            "cp1252 and utf-16"
        ) from None


def lines(path: Path, stream: TextIO) -> Iterator[str]:
    """Yield the lines of an open file without its byte-order mark. Raises DataError at a NUL."""
    for number, line in enumerate(stream, start=1):
        if "\0" in line:
            raise DataError(
                f"{path}:{number}: a NUL byte, expected text. The file is binary or damaged, or in another "
                "encoding than data.encoding says (utf-16?)"
            )
        yield line.removeprefix("\ufeff") if number == 1 else line


def undecodable(path: Path, stream: BinaryIO | GzipFile, encoding: str) -> DataError:
    """Return the error of an open file with invalid bytes; it names the first invalid byte.

    stream   the bytes of the file from the beginning, unpacked
    """
    start = stream.read(4)
    stream.seek(0)
    for beginning, what in _BINARY.items():
        if start.startswith(beginning):
            return DataError(f"{path}: not {encoding} or other text: it begins like {what}")
    line, offset, found = _first_fault(stream, encoding)
    return DataError(
        f"{path}:{line}: not {encoding}: found {found} at byte offset {offset}. "
        f"Set data.encoding to the file's encoding{guess(start)}, or convert the file"
    )


def _first_fault(stream: BinaryIO | GzipFile, encoding: str) -> tuple[int, int, str]:
    """Return line and offset of the first error, and the bytes there."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done, line = 0, 1
    while True:
        block = stream.read(_BLOCK)
        # Bytes that the decoder has not decoded yet are the beginning of its next input.
        held = len(decoder.getstate()[0])
        try:
            line += decoder.decode(block, final=not block).count("\n")
        except UnicodeDecodeError as error:
            shown = error.object[error.start : max(error.end, error.start + 1)][:4]
            line += decoder.decode(block[: max(error.start - held, 0)]).count("\n")
            return line, done - held + error.start, f"0x{shown.hex()}"
        except UnicodeError as error:
            return line, done, str(error)
        if not block:
            return line, done, "an unfinished character"
        done += len(block)
