"""Sections of an experiment on texts. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from toolkit.config.fields import option
from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.named_files import missing_files, violation_of
from toolkit.data.sources.source_files import SourceFile, set_place, with_fingerprint
from toolkit.data.sources.split_files import SPLITS, files_by_split, key_of_split, one_file_or_splits
from toolkit.errors import DataError
from toolkit.system.output.nearest import suggest
from toolkit.workload import DataSection, ModelSection, Progress, Violation, rule

if TYPE_CHECKING:
    from stk_toy.texts.prepared import Texts

#: Rows that are looked at before anything is started.
_CHECKED_ROWS = 2000
#: Settings that decide what a prepared set holds.
_SETTINGS = (
    "delimiter", "columns", "text_column", "label_column", "labels", "splits", "unknown_labels", "tokenizer",
    "min_count", "max_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsTask:
    """One label for each text."""

    kind: str = option("toy_texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsData(DataSection):
    """Tables of texts with their labels. The first line names the columns."""

    path: str | None = option(None, path=True)
    """One table, which is cut by `splits`."""
    train: str | None = option(None, path=True)
    """Table of the training set; with `validation`, instead of `path`."""
    validation: str | None = option(None, path=True)
    """Table of the validation set."""
    test: str | None = option(None, path=True)
    """Table of the test set; may be left out."""
    delimiter: str | None = option(None)
    """One character between columns; null: a tab."""
    columns: tuple[str, ...] | None = option(None)
    """Names of the columns, for tables without a first line that names them."""
    text_column: str = option("text")
    """Column of the text."""
    label_column: str = option("label")
    """Column of the label."""
    labels: tuple[str, ...] | None = option(None)
    """The labels in the order of their codes; null: those of the training set, sorted."""
    splits: dict[str, float] = option(  # noqa: RUF009 - makes a field
        factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1}, rest=True
    )
    """Shares of the lines of `path`, from its first on. One may be null: what the others leave of 1."""
    unknown_labels: str = option("skip", choices=("skip", "refuse"))
    """What becomes of lines whose label is none of `labels`."""
    tokenizer: str = option("words", choices=("words", "letters"))
    """What is read one by one."""
    min_count: int = option(1, minimum=1)
    """Rarer tokens of the training set become the unknown token."""
    max_tokens: int = option(512, minimum=1)
    """Longer texts are cut."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared texts are kept."""
    workers: int | None = option(None, minimum=1, identity=False)
    """Processes that may prepare; one does."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        yield from missing_files(self, "data")
        for split, path in files_by_split(self).items():
            yield from self._wrong_rows(key_of_split(split), path)

    def warnings(self) -> Iterator[Violation]:
        split, path = next(iter(files_by_split(self).items()))
        first_rows = islice(self.rows(path), _CHECKED_ROWS) if path.is_file() else ()
        labels = {label for _, _, label in first_rows}
        for one, other in pairwise(sorted(labels, key=lambda label: (label.lower(), label))):
            if one.lower() == other.lower():
                yield Violation(
                    key=("data", split or "path"), problem=f"the labels {one!r}, {other!r} look alike"
                )

    def with_workers(self, count: int) -> TextsData:
        return self if self.workers else replace(self, workers=count)

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        return ((each.path, each.sha256) for each in self.sources(progress))

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        sources = self.sources(progress)
        return set_place(self.prepared_dir, sources, self.description(sources))

    def prepare(self, progress: Progress) -> Texts:
        from stk_toy.texts.prepared import prepare

        return prepare(self, progress)

    def open_prepared(self, path: Path) -> Texts:
        from stk_toy.texts.prepared import Texts

        return Texts.open(path)

    def sources(self, progress: Progress) -> list[SourceFile]:
        """The tables, `path` without a split."""
        files, memory = files_by_split(self), memory_of(self)
        return [SourceFile.open(str(path), split, progress, memory) for split, path in files.items()]

    def description(self, sources: list[SourceFile], **further: object) -> dict[str, object]:
        """What decides the content of the prepared set, with its fingerprint."""
        settings = {name: getattr(self, name) for name in _SETTINGS} | further
        return with_fingerprint(
            {"settings": settings, "files": [(each.split, each.sha256) for each in sources]}
        )

    def rows(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Number of each line below the head, its text and its label. Raises DataError."""
        head = self.columns
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                fields = line.rstrip("\n").split(self.delimiter or "\t")
                if head is None:
                    head = fields
                    self._check_columns(path, head)
                elif len(fields) != len(head):
                    raise DataError(f"{path}:{number}: {len(fields)} fields, expected {len(head)}")
                else:
                    row = dict(zip(head, fields, strict=True))
                    self._check_label(f"{path}:{number}", row[self.label_column])
                    yield number, row[self.text_column], row[self.label_column]

    def _check_label(self, place: str, label: str) -> None:
        if self.unknown_labels == "refuse" and self.labels and label not in self.labels:
            raise DataError(f"{place}: the label {label!r} is none of {', '.join(self.labels)}")

    def _check_columns(self, path: Path, head: list[str]) -> None:
        for key in ("text_column", "label_column"):
            if (name := getattr(self, key)) not in head:
                raise DataError(f"{path}: no column {name!r}, found: {', '.join(head)}. Set data.{key}.")

    def _wrong_rows(self, key: str, path: Path) -> Iterator[Violation]:
        if path.is_file():
            yield from violation_of(key, lambda: list(islice(self.rows(path), _CHECKED_ROWS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolutions(ModelSection):
    """Convolutions over vectors of tokens, and the maximum over the text."""

    SHAPES: ClassVar[tuple[str, ...]] = ("embedding_dim", "kernels", "filters", "hidden")
    kind: str = option("convolutions")
    embedding_dim: int = option(100, minimum=1)
    """Length of a token's vector."""
    embedding_std: float = option(0.02, above=0)
    """Standard deviation of the initial vectors."""
    kernels: tuple[int, ...] = option((3, 4))
    """Widths of the convolutions in tokens."""
    filters: int = option(100, minimum=1)
    """Filters of each width."""
    dropout: float = option(0.4, minimum=0, maximum=1)
    """Share of the features that is dropped before the output."""
    hidden: tuple[int, ...] = option(())
    """Sizes of layers before the output."""
    embedding_dropout: float = option(0.0, minimum=0, maximum=1)
    """Share of the tokens that is dropped."""
    vectors: str | None = option(None, path=True)
    """File of vectors to begin with, as numpy.savetxt writes them: one for each token."""
    teacher: str | None = option(None, path=True, run=True, added=True)
    """Folder of an earlier run. Only kept from `stk clean`: nothing is learnt from it."""

    def violations(self, experiment, *, coming=None) -> Iterator[Violation]:
        return missing_files(self, "model")

    def sizes(self, data, meta) -> Iterator[tuple[str, int]]:
        yield "filters (model.filters)", self.filters
        if labels := data.labels or meta.get("labels"):
            yield "labels, which the data have", len(labels)
        if "vocabulary_size" in meta:
            yield "tokens, which the data have", int(meta["vocabulary_size"])


@rule("data.columns", "data.text_column", "data.label_column")
def _columns(experiment):
    data = experiment.data
    for name in ("text_column", "label_column"):
        column = getattr(data, name)
        if data.columns is not None and column not in data.columns:
            problem = f"found {column!r}, which is none of data.columns ({', '.join(data.columns)})"
            yield Violation(key=("data", name), problem=problem, hint=suggest(column, data.columns))


@rule("data.splits")
def _splits(experiment):
    for name, share in experiment.data.splits.items():
        if name not in SPLITS:
            hint = suggest(name, SPLITS)
            yield Violation(key=("data", "splits", name), problem="there is no such split", hint=hint)
        elif share < 0:
            yield Violation(
                key=("data", "splits", name), problem=f"found the share {share}, expected 0 or more"
            )
    for name in ("train", "validation"):
        if not experiment.data.splits.get(name):
            yield Violation(key=("data", "splits", name), problem="this split needs a share above 0")


@rule("data.delimiter")
def _delimiter(experiment):
    found = experiment.data.delimiter
    if found is not None and (len(found) != 1 or found in '\r\n"'):
        yield Violation(key=("data", "delimiter"), problem=f"found {found!r}, expected one character")


RULES = (one_file_or_splits, _splits, _columns, _delimiter)
