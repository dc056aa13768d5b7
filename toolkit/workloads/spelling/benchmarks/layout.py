"""Paths of the files of benchmarks.

ROOT/KIND/GROUP/SPLIT/corrupt.txt, correct.txt      texts with errors, and right answers
                      lowercase.txt                 if case is ignored in some lines
ROOT/KIND/GROUP/SPLIT/predictions/MODEL.txt         predictions; or in another folder:
ROOT/KIND/results/GROUP/SPLIT/MODEL.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UserError
from toolkit.workloads.spelling.benchmarks.kinds import KINDS
from toolkit.workloads.spelling.config.data import CORRECT, CORRUPT

_RESULTS = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A folder ROOT/KIND/GROUP/SPLIT."""

    root: Path
    kind: str
    group: str
    split: str

    @property
    def title(self) -> str:
        return f"{self.group}/{self.split}"

    @property
    def folder(self) -> Path:
        return self.root / self.kind / self.group / self.split

    @property
    def corrupt(self) -> Path:
        return self.folder / CORRUPT

    @property
    def correct(self) -> Path:
        return self.folder / CORRECT

    @property
    def lowercase(self) -> Path | None:
        path = self.folder / "lowercase.txt"
        return path if path.exists() else None

    @property
    def predictions(self) -> dict[str, Path]:
        """Return the files of predictions by model; files in the benchmark's folder take precedence."""
        results = self.root / self.kind / _RESULTS / self.group / self.split
        found = [*results.glob("*.txt"), *(self.folder / "predictions").glob("*.txt")]
        return {path.stem: path for path in sorted(found, key=lambda path: path.stem)}


def find_benchmarks(folder: Path) -> list[Benchmark]:
    """Return the benchmarks below a folder: a root, a kind, a group, or a single one.

    Raises UserError without any.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    # A link may lead into a root or out of it, and a folder above a root may have the name of a kind.
    for within in (folder.absolute(), folder.resolve()):
        for root in (within, *(each.parent for each in (within, *within.parents) if each.name in KINDS)):
            if found := [each for each in _below(root) if each.folder.is_relative_to(within)]:
                return found
    raise UserError(
        f"{folder.resolve()} has no benchmarks; expected KIND/GROUP/SPLIT/corrupt.txt and correct.txt, "
        f"KIND one of {', '.join(KINDS)}"
    )


def _below(root: Path) -> Iterator[Benchmark]:
    for kind in KINDS:
        for path in sorted((root / kind).glob("*/*/")):
            group, split = path.parts[-2:]
            if group != _RESULTS and any(path.iterdir()):
                yield Benchmark(root=root, kind=kind, group=group, split=split)
