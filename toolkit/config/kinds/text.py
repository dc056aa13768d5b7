"""Sections of text classification: the table, the task, its models."""

from __future__ import annotations

from dataclasses import dataclass

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
    columns: tuple[str, ...] | None = option(None)
    """Names of the columns, for a file without a header; null: its first line names them."""
    encoding: str = option("utf-8")
    text_column: str = option("text")
    label_column: str = option("label")
    labels: tuple[str, ...] | None = option(None)
    """The labels in the order of their codes; null: those of the training split, sorted."""
    unknown_labels: str = option("skip", choices=("skip", "refuse"))
    """skip: leave rows with another label out, and say how many; refuse: each is a fault."""
    splits: dict[str, float] = option(  # noqa: RUF009 - makes a field, as everywhere here
        factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1}, rest=True
    )
    """Shares of the file, divided by their sum. One of them may be null: what the others leave of 1."""
    split_seed: int = option(0, minimum=0)
    stratify: bool = option(False)
    """Whether every split gets the same share of each label."""
    split_unit: str = option("text", choices=("text", "fragment"))
    """text: all fragments of a text go to one split; fragment: each by itself, which leaks texts into the
    test set."""
    tokenizer: str = option("words", choices=("words", "whitespace", "pretrained"))
    """words: runs of letters and digits, and each other character; whitespace: what stands between blanks;
    pretrained: the tokenizer of tokenizer_path, with its special tokens."""
    tokenizer_path: str | None = option(None, hub=True)
    """Folder of a Hugging Face model or tokenizer, or its name on the hub; for `tokenizer: pretrained`."""
    lowercase: bool = option(True)
    min_count: int = option(1, minimum=1)
    """Rarer tokens of the training split become the unknown token."""
    max_vocabulary: int | None = option(None, minimum=3)
    max_tokens: int = option(512, minimum=1)
    """Tokens of a sample, special tokens included."""
    fold: str = option("none", choices=("none", "wordpiece", "word", "sentence"))
    """A longer text is cut (none), or becomes several samples with its label: filled up token by token,
    or broken between words or between sentences."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared sets are kept; shared by all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClassification:
    """One label for each text."""

    kind: str = option("text_classification")
    pooling: str = option("mean", choices=("mean", "max"))
    """How the probabilities of a folded text's fragments become those of the text."""


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
    vectors: str | None = option(None, path=True)
    """Text file of word vectors to begin with: a token and embedding_dim numbers a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained:
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
