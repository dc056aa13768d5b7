"""Sections of text classification: the table, the task, its models."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.config.fields import option
from toolkit.data.sources.named_files import missing_files
from toolkit.data.sources.source_files import set_place
from toolkit.nlp.encoder_config import check_encoder, encoder_difference
from toolkit.workload import DataSection, ModelSection, Progress, Violation

if TYPE_CHECKING:
    from toolkit.workloads.text_classification.data.prepared import Prepared

#: The value of task.class_weights that makes all classes count alike.
BALANCED = "balanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable(DataSection):
    """Texts with one label each, in one file or in three: delimited, or JSON lines.

    Either `path`, cut by `splits`, or `train` and `validation`, and `test` if there is one.
    """

    path: str | None = option(None, path=True)
    """File that is cut into splits; or samples.sqlite of a prepared set, whose texts keep their splits."""
    train: str | None = option(None, path=True)
    """File of the training set; with `validation`, instead of `path`."""
    validation: str | None = option(None, path=True)
    """File of the validation set."""
    test: str | None = option(None, path=True)
    """File of the test set; may be left out."""
    delimiter: str | None = option(None)
    """One character; null: comma for .csv, tab for .tsv. JSON lines have none."""
    quoted: bool | None = option(None)
    """Whether fields may be quoted; null: yes for .csv, no for .tsv."""
    columns: tuple[str, ...] | None = option(None)
    """Names of the columns, for a file without a header; null: its first line names them."""
    encoding: str = option("utf-8")
    """Encoding of the files."""
    text_column: str = option("text")
    """Column that holds the text."""
    label_column: str = option("label")
    """Column that holds the label."""
    labels: tuple[str, ...] | None = option(None)
    """The labels in the order of their codes; null: those of the training split, sorted."""
    unknown_labels: str = option("skip", choices=("skip", "refuse"))
    """skip: leave rows with another label out, and say how many; refuse: each is a fault."""
    splits: dict[str, float] = option(  # noqa: RUF009 - makes a field, as everywhere here
        factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1}, rest=True
    )
    """Shares of the file, divided by their sum. One of them may be null: what the others leave of 1."""
    split_seed: int = option(0, minimum=0)
    """Fixes which row goes into which split; `seed` has no part in it."""
    stratify: bool = option(False)
    """Whether every split gets the same share of each label."""
    split_unit: str = option("text", choices=("text", "fragment"))
    """text: all fragments of a text go to one split; fragment: each alone, which leaks texts into the test
    set."""
    tokenizer: str = option("words", choices=("words", "whitespace", "pretrained"))
    """words: runs of letters and digits, and each other character; whitespace: what is between blanks;
    pretrained: the tokenizer of tokenizer_path, with its special tokens."""
    tokenizer_path: str | None = option(None, hub=True)
    """Folder of a Hugging Face model or tokenizer, or its name on the hub; for `tokenizer: pretrained`."""
    lowercase: bool = option(True)
    """Whether tokens are made lower case."""
    min_count: int = option(1, minimum=1)
    """Rarer tokens of the training split become the unknown token."""
    max_vocabulary: int | None = option(None, minimum=3)
    """Most tokens, the two reserved ones included; null for all."""
    max_tokens: int = option(512, minimum=1)
    """Tokens of a sample, special tokens included."""
    fold: str = option("none", choices=("none", "wordpiece", "word", "sentence"))
    """A longer text is cut (none), or becomes several samples with its label: filled up token by token,
    or broken between words or between sentences."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared sets are kept; shared by all runs."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        from toolkit.workloads.text_classification.data.checks import table_violations

        return table_violations(self)

    def warnings(self) -> Iterator[Violation]:
        from toolkit.workloads.text_classification.data.checks import table_warnings

        return table_warnings(self)

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        from toolkit.workloads.text_classification.data.sources.source_files import find_sources

        return ((each.path, each.sha256) for each in find_sources(self, progress))

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        from toolkit.workloads.text_classification.data.sources.source_files import describe, find_sources

        found = find_sources(self, progress)
        return set_place(self.prepared_dir, found, describe(self, found))

    def prepare(self, progress: Progress) -> Prepared:
        from toolkit.workloads.text_classification.data.prepared import prepare

        return prepare(self, progress)

    def open_prepared(self, path: Path) -> Prepared:
        from toolkit.workloads.text_classification.data.prepared import Prepared

        return Prepared.open(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClassification:
    """One label for each text."""

    kind: str = option("text_classification")
    pooling: str = option("mean", choices=("mean", "max"))
    """How the probabilities of a folded text's fragments become those of the text."""
    class_weights: Any = option(None, added=True)  # noqa: RUF009 - makes a field, as everywhere here
    """What the loss of a training sample is multiplied by: a number for each label, such as {spam: 5}, 1 for
    those that are not named; or balanced, so that every class counts as much as any other. null: 1. Scores
    and the loss of evaluations are not weighted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocNN(ModelSection):
    """Convolutions over words, maximum over time (Kim 2014; PyText's DocNN)."""

    SHAPES: ClassVar[tuple[str, ...]] = ("embedding_dim", "kernels", "filters", "hidden")
    kind: str = option("docnn")
    embedding_dim: int = option(100, minimum=1)
    """Length of a word's vector."""
    kernels: tuple[int, ...] = option((3, 4))
    """Widths of the convolutions in words."""
    filters: int = option(100, minimum=1)
    """Filters of each width."""
    dropout: float = option(0.4, minimum=0, maximum=1)
    """Share of the pooled features that is dropped before the output layer."""
    embedding_dropout: float = option(0.0, minimum=0, maximum=1)
    """Share of whole tokens dropped from a text."""
    embedding_std: float = option(0.02, above=0)
    """Standard deviation of the initial word vectors."""
    pooling: str = option("max", choices=("max", "mean", "logsumexp"))
    """How the features of all places become one."""
    hidden: tuple[int, ...] = option(())
    """Sizes of hidden layers before the output."""
    vectors: str | None = option(None, path=True)
    """Text file of word vectors to begin with: a token and embedding_dim numbers a line."""

    def violations(
        self, experiment: Any, *, is_trained: bool = False, coming: Mapping[Path, Any] | None = None
    ) -> Iterator[Violation]:
        return iter(()) if is_trained else missing_files(self, "model")

    def sizes(self, data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        yield "filters (model.filters)", self.filters
        yield from _labels(data, meta)
        if "vocabulary_size" in meta:
            yield "tokens, which the data have", int(meta["vocabulary_size"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained(ModelSection):
    """A Hugging Face encoder with a head for classification (AutoModelForSequenceClassification)."""

    kind: str = option("pretrained")
    path: str = option(hub=True)
    """Folder of the model, or its name on the hub."""
    layers: int | None = option(None, minimum=1)
    """Layers of the encoder that are kept, from the first; null: all."""
    dropout: float | None = option(None, minimum=0, maximum=1)
    """Dropout of encoder and head; null: the model's own."""
    last_layer: str = option("all", choices=("all", "first_token"))
    """Tokens that the last layer computes: first_token, for BERT, is all that its head reads: much less work
    with few layers, the same scores within rounding, other random numbers of dropout."""

    def violations(
        self, experiment: Any, *, is_trained: bool = False, coming: Mapping[Path, Any] | None = None
    ) -> Iterator[Violation]:
        data = experiment.data
        more = "; data.fold makes several samples of a longer text" if data.fold == "none" else ""
        return check_encoder("model.path", self.path, data, ["max_tokens"], more)

    def difference(self, other: Any) -> str:
        if found := ModelSection.difference(self, other):
            return found
        return encoder_difference((self.path, self.layers), (other.path, other.layers))

    def sizes(self, data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        return _labels(data, meta)

    def files(self) -> Iterator[tuple[str, Path]]:
        if os.path.isdir(self.path):
            yield from (("model.path", path) for path in sorted(Path(self.path).iterdir()) if path.is_file())


def _labels(data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """How many labels a model tells apart, where that is known."""
    if labels := data.labels or meta.get("labels"):
        yield "labels, which the data have", len(labels)
