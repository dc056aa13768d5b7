"""Sections of an experiment on points. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.config.fields import option
from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.named_files import missing_files
from toolkit.data.sources.source_files import SourceFile, set_place, with_fingerprint
from toolkit.workload import DataSection, ModelSection, Progress, Violation, rule

if TYPE_CHECKING:
    from stk_toy.points import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsTask:
    """A number for each point."""

    kind: str = option("toy_points")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsData(DataSection):
    """A file with two numbers a line: x and y."""

    path: str = option(path=True)
    """The file."""
    validation: float = option(0.25, above=0, maximum=0.5)
    """Share of the lines that are validated on; as many are tested on."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared points are kept."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        return missing_files(self, "data")

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        source = self._source(progress)
        yield source.path, source.sha256

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        source = self._source(progress)
        description = with_fingerprint({"sha256": source.sha256, "validation": self.validation})
        return set_place(self.prepared_dir, [source], description)

    def prepare(self, progress: Progress) -> Points:
        from stk_toy.points import prepare

        return prepare(self, progress)

    def open_prepared(self, path: Path) -> Points:
        from stk_toy.points import Points

        return Points.open(path)

    def _source(self, progress: Progress) -> SourceFile:
        return SourceFile.open(self.path, None, progress, memory_of(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(ModelSection):
    """A straight line, or one with a bend."""

    kind: str = option("line")
    hidden: int = option(0, minimum=0)
    """Units of a hidden layer; 0 for none."""
    dropout: float = option(0.0, minimum=0, maximum=0.9)
    """Share of these units that is dropped in training."""


@rule("model.hidden", "model.dropout")
def _dropout(experiment):
    if experiment.model.dropout and not experiment.model.hidden:
        problem = f"found {experiment.model.dropout}, but there is no hidden layer"
        yield Violation(key=("model", "dropout"), problem=problem, hint="0, or model.hidden above 0")


RULES = (_dropout,)
