"""Shared code of the get_* scripts: fetch and check a package, and write its data atomically.

Needs the standard library, and pip, npm or apt-get.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

FETCH_TIMEOUT_S = 600


class Problem(Exception):
    """An error for the user: what went wrong and what to do, in one line."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package of a registry.

    manager  pip: a wheel; sdist: pip, but the source distribution; npm; apt: a package of Debian
    """

    manager: str
    name: str
    version: str
    sha256: str
    megabytes: float

    def __str__(self) -> str:
        return self.name + {"npm": "@", "apt": "="}.get(self.manager, "==") + self.version

    def archive(self, given: Path | None = None) -> bytes:
        """Return the archive, downloaded unless it is given. Raises Problem if its sha256 is wrong."""
        content = given.read_bytes() if given else self._fetch()
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise Problem(
                f"the archive of {self} has sha256 {found}, expected {self.sha256}; "
                "it is another file or damaged"
            )
        return content

    def _fetch(self) -> bytes:
        tool = {"npm": "npm", "apt": "apt-get"}.get(self.manager, "pip")
        print(f"fetching {self} ({self.megabytes:g} MB) with {tool}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    self._command(folder), cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S
                )
                message = done.stderr
            except subprocess.TimeoutExpired:
                message = f"no answer in {FETCH_TIMEOUT_S} s"
            except FileNotFoundError:
                message = f"{tool} is not installed"
            # apt-get writes the colon of an epoch as %3a.
            if archives := list(Path(folder).glob(f"*{self.version.replace(':', '%3a')}*")):
                return archives[0].read_bytes()
        reason = ([line for line in message.splitlines() if line.strip()] or [f"{tool} said nothing"])[-1]
        raise Problem(
            f"could not fetch {self} with {tool} ({reason.strip()}); "
            "with its archive from elsewhere, pass --archive FILE"
        )

    def _command(self, folder: str) -> list[str]:
        if self.manager == "npm":
            return ["npm", "pack", "--silent", f"--pack-destination={folder}", str(self)]
        if self.manager == "apt":
            return ["apt-get", "download", str(self)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        if self.manager == "sdist":
            # For this package only: the build requirements for its metadata may be wheels.
            command += ["--no-binary", self.name]
        return [*command, "--disable-pip-version-check", "--no-input", str(self)]


def main(script: str, work: Callable[[], None]) -> int:
    """Run a script's work; a problem is one line on standard error and exit status 1."""
    try:
        work()
    except (Problem, OSError) as problem:
        print(f"{script}: {problem}", file=sys.stderr)
        return 1
    return 0


def make_table(
    doc: str,
    output: str,
    package: Package,
    rows: Callable[[bytes], Iterable[tuple[str, str]]],
    expected: Mapping[str, int],
) -> None:
    """Make a table of text and label from a package, unless it exists. Raises Problem, OSError.

    doc       the script's docstring; its first line is the help
    output    file name; .tsv is written without quotes, anything else as CSV
    expected  rows of each label in a complete table
    """
    given = _arguments(doc, output, package)
    if _labels(given.output) == Counter(expected):
        print(f"{given.output} is there already, and whole")
        return
    found = Counter[str]()
    content = package.archive(given.archive)
    with _atomic(given.output) as stream:
        write = _writer(given.output, stream)
        write(("text", "label"))
        for row in rows(content):
            write(row)
            found[row[1]] += 1
        if found != Counter(expected):
            raise Problem(f"found {dict(found)} rows, expected {dict(expected)}")
    counts = ", ".join(f"{count} {label}" for label, count in found.items())
    print(f"wrote {given.output}: {found.total()} rows, {counts}")


def data_folder() -> Path:
    """Return STK_DATA_DIR, or the folder data of the repository."""
    return Path(os.environ.get("STK_DATA_DIR") or Path(__file__).resolve().parent.parent / "data")


def _arguments(doc: str, output: str, package: Package) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=data_folder() / output, help="default: %(default)s")
    parser.add_argument("--archive", type=Path, help=f"the archive of {package}, if at hand")
    return parser.parse_args()


def _labels(table: Path) -> Counter[str]:
    """Return the number of rows of each label; empty if the table does not exist."""
    if not table.exists():
        return Counter()
    with open(table, encoding="utf-8", newline="") as stream:
        if table.suffix == ".tsv":
            return Counter(line.rstrip("\n").rpartition("\t")[2] for line in stream) - Counter(["label"])
        csv.field_size_limit(1 << 30)
        return Counter(row[-1] for row in csv.reader(stream)) - Counter(["label"])


def _writer(path: Path, stream: TextIO) -> Callable[[tuple[str, str]], object]:
    if path.suffix == ".tsv":
        return lambda row: stream.write("\t".join(row) + "\n")
    return csv.writer(stream, lineterminator="\n").writerow


@contextmanager
def _atomic(path: Path) -> Iterator[TextIO]:
    """Open a temporary file that replaces `path` on success, and is removed on an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as stream:
            yield stream
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
