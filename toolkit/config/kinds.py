"""Which tasks and models there are: names, parameters, and where the code is.

The code is named, not imported, so that checking an experiment imports no torch. A new task is a
row here, a parameter dataclass, one module and one YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolkit.config.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Texts with one label each, in one delimited file or in three.

    Either `path`, cut by `splits`, or `train` and `validation`, and `test` if there is one.
    """

    path: str | None = option(None, path=True)
    """File that is cut into splits; relative to where the command is given."""
    train: str | None = option(None, path=True)
    validation: str | None = option(None, path=True)
    test: str | None = option(None, path=True)
    delimiter: str | None = option(None)
    """One character; null: comma for .csv, tab for .tsv."""
    quoted: bool | None = option(None)
    """Whether fields may be quoted; null: yes for .csv, no for .tsv."""
    encoding: str = option("utf-8")
    text_column: str = option("text")
    label_column: str = option("label")
    labels: tuple[str, ...] | None = option(None)
    """The labels in their order; null: those of the training split, sorted. Another label is a fault."""
    splits: dict[str, float] = field(default_factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1})
    """Shares of the file; they are divided by their sum."""
    split_seed: int = option(0, minimum=0)
    stratify: bool = option(False)
    """Whether every split gets the same share of each label."""
    tokenizer: str = option("words", choices=("words", "whitespace"))
    """words: runs of letters and digits, and each other character; whitespace: what stands between blanks."""
    lowercase: bool = option(True)
    min_count: int = option(1, minimum=1)
    """Rarer tokens of the training split become the unknown token."""
    max_vocabulary: int | None = option(None, minimum=3)
    max_tokens: int = option(512, minimum=1)
    """Longer texts are cut."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared sets are kept; shared by all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClassification:
    """One label for each text."""

    kind: str = option("text_classification")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocNN:
    """Convolutions over words, maximum over time (Kim 2014; PyText's DocNN)."""

    kind: str = option("docnn")
    embedding_dim: int = option(100, minimum=1)
    kernels: tuple[int, ...] = option((3, 4))
    """Widths of the convolutions in words."""
    filters: int = option(100, minimum=1)
    """Filters of each width."""
    dropout: float = option(0.4, minimum=0, maximum=1)
    embedding_dropout: float = option(0.0, minimum=0, maximum=1)
    """Share of whole tokens dropped from a text."""
    embedding_std: float = option(0.02, above=0)
    """Standard deviation of the initial word vectors."""
    pooling: str = option("max", choices=("max", "mean", "logsumexp"))
    hidden: tuple[int, ...] = option(())
    """Sizes of hidden layers before the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """One row of the table.

    parameters   dataclass of the `task` section
    data         dataclass of the `data` section
    models       model kinds that the task takes: name -> (dataclass of the `model` section, code)
    code         "module:attribute" of the task's class
    metrics      metrics of an evaluation, which `evaluation.metric` may name
    """

    parameters: type
    data: type
    models: Mapping[str, tuple[type, str]]
    code: str
    metrics: tuple[str, ...]


TASKS: Mapping[str, TaskKind] = {
    "text_classification": TaskKind(
        parameters=TextClassification,
        data=TextTable,
        models={"docnn": (DocNN, "toolkit.models.docnn:DocNN")},
        code="toolkit.tasks.text_classification:TextClassificationTask",
        metrics=("loss", "accuracy", "macro_precision", "macro_recall", "macro_f1"),
    ),
}


def kind_of(task: Any) -> TaskKind:
    """The table's row of a checked task section."""
    return TASKS[task.kind]
