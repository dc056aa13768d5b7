"""Open the file of a table, compressed or not, and report why it cannot be read."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TextIO

from toolkit.data.sources.compressed import ENDING, is_compressed
from toolkit.errors import DataError
from toolkit.workloads.text_classification.data.sources.formats.charset import check_encoding, undecodable
from toolkit.workloads.text_classification.data.sources.formats.wording import shown


@contextmanager
def opened(path: Path, encoding: str, newline: str) -> Iterator[TextIO]:
    """Open a file as text; a compressed file is unpacked while it is read.

    newline   as in `open`
    Raises DataError for errors of the file, including errors within the block.
    """
    check_encoding(encoding)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A second read would find nothing, or wait forever.
            raise DataError(f"{path} is a pipe or a device, expected a file: it is read more than once")
        try:
            with io.TextIOWrapper(_unpacked(path), encoding=encoding, newline=newline) as stream:
                yield stream
        except UnicodeError:
            with _unpacked(path) as raw:
                raise undecodable(path, raw, encoding) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: not a complete gzip file: it is cut off, damaged, or not compressed. "
            f"Compress it again, or remove {ENDING} from its name"
        ) from error
    except OSError as error:
        raise open_problem(path, error) from error


def open_problem(path: Path, error: OSError) -> DataError:
    """Return the error of a data file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file. {_neighbours(path)}")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path} is a folder, expected a file; in it: {shown(_listing(path)) or 'nothing'}")
    if isinstance(error, PermissionError):
        return DataError(f"{path}: you may not read it (permission denied); ask its owner, or chmod +r")
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


def _unpacked(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path, "rb") if is_compressed(path) else open(path, "rb")


def _neighbours(path: Path) -> str:
    """Suggest existing files for a missing one."""
    folder = path.absolute().parent
    if not folder.is_dir():
        existing = next(parent for parent in folder.parents if parent.is_dir())
        return f"Its folder does not exist either, only {existing}"
    names = _listing(folder)
    near = get_close_matches(path.name, names, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if folder == folder.parent:
        return "Paths are relative to the working directory, unless they begin with /"
    return f"In {folder} there is: {shown(names)}" if names else f"{folder} is empty"


def _listing(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
