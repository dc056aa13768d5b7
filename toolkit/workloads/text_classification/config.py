"""The sections of an experiment in text classification: data, task and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from toolkit.config.fields import option
from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.data.prepared.section import PreparedSection
from toolkit.data.sources.named_files import missing_files
from toolkit.files import read_json
from toolkit.nlp.encoder_config import check_encoder, encoder_difference, settings_in
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir
from toolkit.workload import ModelSection, Violation, first_other
from toolkit.workloads.text_classification.data.layout import VOCABULARY
from toolkit.workloads.text_classification.files import ClassificationFiles

#: The value of task.class_weights that gives all classes the same total weight.
BALANCED = "balanced"
#: The end of the name of a model's class if it has a head for labels.
_CLASSIFIER = "ForSequenceClassification"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable(PreparedSection):
    """Texts with one label each, in one file or in three: delimited, or JSON lines.

    Either `path`, cut by `splits`, or `train` and `validation`, and `test` if there is one.
    """

    SOURCES: ClassVar[str] = "toolkit.workloads.text_classification.data.sources.source_files"
    SETS: ClassVar[str] = "toolkit.workloads.text_classification.data.prepared:Prepared"
    path: str | None = option(None, path=True)
    """File to split; or samples.sqlite of a prepared set, which keeps its splits."""
    train: str | None = option(None, path=True)
    """File of the training set; with `validation`, instead of `path`."""
    validation: str | None = option(None, path=True, known_as="val valid dev")
    """File of the validation set."""
    test: str | None = option(None, path=True)
    """File of the test set, if there is one."""
    delimiter: str | None = option(None, known_as="sep separator")
    """One character; null: comma for .csv, tab for .tsv."""
    quoted: bool | None = option(None)
    """Whether fields may be quoted; null: yes for .csv, no for .tsv."""
    columns: tuple[str, ...] | None = option(None)
    """Names of the columns; null: the first line has them."""
    encoding: str = option("utf-8")
    """Encoding of the files."""
    text_column: str = option("text", known_as="text")
    """Column that holds the text."""
    label_column: str = option("label", known_as="label target")
    """Column that holds the label."""
    labels: tuple[str, ...] | None = option(None)
    """Labels in the order of their codes; null: those of the training set, sorted."""
    unknown_labels: str = option("skip", choices=("skip", "refuse"))
    """skip: leave out rows with another label; refuse: each is an error."""
    splits: dict[str, float] = option(  # noqa: RUF009 - makes a field, as everywhere here
        factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1}, rest=True
    )
    """Shares of the file. One of them may be null: the rest."""
    split_seed: int = option(0, minimum=0)
    """Decides the split of each row, independently of `seed`."""
    stratify: bool = option(False)
    """Whether every split has the same share of each label."""
    split_unit: str = option("text", choices=("text", "fragment"))
    """text: all fragments of a text go into one split; fragment: each is split alone, which leaks texts."""
    tokenizer: str = option("words", choices=("words", "whitespace", "pretrained"))
    """words: runs of letters and digits, and each other character; whitespace: split at blanks; pretrained:
    that of tokenizer_path."""
    tokenizer_path: str | None = option(None, hub=True)
    """Folder of a Hugging Face model or tokenizer, or its name on the hub."""
    lowercase: bool = option(True)
    """Whether tokens are made lower case."""
    min_count: int = option(1, minimum=1)
    """Rarer tokens become the unknown token."""
    max_vocabulary: int | None = option(None, minimum=3)
    """Maximum size, two reserved tokens included; null: none."""
    max_tokens: int = option(512, minimum=1, known_as="max_length max_seq_length")
    """Tokens of a sample, special tokens included."""
    fold: str = option("none", choices=("none", "wordpiece", "word", "sentence"))
    """none: cut a longer text; else several samples: filled token by token (wordpiece), or broken between
    words or sentences."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Folder of prepared sets, shared by all runs."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        from toolkit.workloads.text_classification.data.checks import table_violations

        return table_violations(self, is_trained=is_trained)

    def warnings(self) -> Iterator[Violation]:
        from toolkit.workloads.text_classification.data.checks import table_warnings

        return table_warnings(self)

    def other_meaning(self, prepared: Path | None, run: Path) -> str:
        kept = read_json(ClassificationFiles(RunDir(run)).encoding) or {}
        labels = self.labels or (read_meta(prepared).get("labels") if prepared else None)
        folders = (ExportedFiles(RunDir(run)).encoding, prepared)
        there, here = ((each and read_json(each / VOCABULARY)) or {} for each in folders)
        words = first_other("word vector", there.get("tokens"), here.get("tokens"))
        return first_other("output", kept.get("labels"), labels) or words


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClassification:
    """One label for each text."""

    kind: str = option("text_classification")
    pooling: str = option("mean", choices=("mean", "max"))
    """How the probabilities of a text's fragments become those of the text."""
    class_weights: Any = option(None, added=True)  # noqa: RUF009 - makes a field, as everywhere here
    """Weights of the training loss by label, such as {spam: 5}, else 1; or balanced: all classes count the
    same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocNN(ModelSection):
    """Convolutions over words, maximum over time (Kim 2014; PyText's DocNN)."""

    SHAPES: ClassVar[tuple[str, ...]] = ("embedding_dim", "kernels", "filters", "hidden")
    kind: str = option("docnn")
    embedding_dim: int = option(100, minimum=1)
    """Size of a word's vector."""
    kernels: tuple[int, ...] = option((3, 4), minimum=1)
    """Widths of the convolutions, in words."""
    filters: int = option(100, minimum=1)
    """Filters of each width."""
    dropout: float = option(0.4, minimum=0, maximum=1)
    """Dropout before the output layer."""
    embedding_dropout: float = option(0.0, minimum=0, maximum=1)
    """Share of tokens that is dropped from a text."""
    embedding_std: float = option(0.02, above=0)
    """Standard deviation of the initial word vectors."""
    pooling: str = option("max", choices=("max", "mean", "logsumexp"))
    """How the features of all positions become one."""
    hidden: tuple[int, ...] = option((), minimum=1)
    """Sizes of hidden layers before the output."""
    vectors: str | None = option(None, path=True)
    """Text file of initial word vectors: a token and its numbers per line."""

    def violations(self, experiment: Any, *, coming: Mapping[Path, Any] | None = None) -> Iterator[Violation]:
        missing = [*missing_files(self, "model")]
        yield from missing
        if self.vectors is not None and not (missing or _has_vectors(self.vectors, self.embedding_dim)):
            problem = f"none of the first lines of {self.vectors} is a token and {self.embedding_dim} numbers"
            yield Violation(key=("model", "vectors"), problem=problem, hint="as in model.embedding_dim")

    def files(self) -> Iterator[tuple[str, Path]]:
        if self.vectors is not None:
            yield "model.vectors", Path(self.vectors)

    def sizes(self, data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        yield "filters (model.filters)", self.filters
        yield from _labels(data, meta)
        if "vocabulary_size" in meta:
            yield "tokens, which the data have", int(meta["vocabulary_size"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained(ModelSection):
    """A Hugging Face encoder with a head for classification (AutoModelForSequenceClassification)."""

    kind: str = option("pretrained")
    path: str = option(hub=True, known_as="model_name_or_path")
    """Folder of the model, or its name on the hub. Not XLNet, FNet, Nystromformer or YOSO: the padding
    of a batch changes their scores."""
    layers: int | None = option(None, minimum=1)
    """First layers of the encoder that are kept; null: all."""
    dropout: float | None = option(None, minimum=0, maximum=1)
    """Dropout of encoder and head; null: the model's own."""
    last_layer: str = option("all", choices=("all", "first_token"))
    """first_token: the last layer computes only the token that the head of BERT reads. Scores are equal
    within rounding, dropout differs."""

    def violations(self, experiment: Any, *, coming: Mapping[Path, Any] | None = None) -> Iterator[Violation]:
        data = experiment.data
        more = "; data.fold makes several samples of a longer text" if data.fold == "none" else ""
        layers = {"model.layers": self.layers}
        yield from check_encoder(self.path, data, ["max_tokens"], layers, "tokenizer_path", more)
        settings = settings_in(self.path)
        if problem := head_problem(settings, self.path):
            yield Violation(key=("model", "path"), problem=problem, hint="a model such as BERT")
        if (present := labels_of_head(settings)) is None:
            return
        prepared = find_prepared_set(data)
        for _, labels in _labels(data, read_meta(prepared) if prepared else {}):
            if labels != present:
                problem = f"the model in {self.path} has a head of {present} labels, the data have {labels}"
                yield Violation(key=("model", "path"), problem=problem, hint="a model without this head")

    def difference(self, other: Any) -> str:
        if found := ModelSection.difference(self, other):
            return found
        return encoder_difference((self.path, self.layers), (other.path, other.layers))

    def sizes(self, data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        return _labels(data, meta)

    def files(self) -> Iterator[tuple[str, Path]]:
        yield "model.path", Path(self.path)


def head_problem(settings: Mapping[str, Any], path: str) -> str:
    """Why a model with this config.json cannot classify texts in batches; empty if its head can."""
    reads = settings.get("model_type") == "xlnet" and settings.get("summary_type", "last") != "first"
    return f"the model in {path} is an XLNet, whose head reads the padding of a batch" if reads else ""


def labels_of_head(settings: Mapping[str, Any]) -> int | None:
    """Number of labels of the classifier with this config.json; None for another model."""
    if not any(str(name).endswith(_CLASSIFIER) for name in settings.get("architectures") or ()):
        return None
    names = settings.get("id2label")
    # transformers does not write the names of two labels that have none.
    unnamed: int = settings.get("num_labels", 2)
    return len(names) if isinstance(names, dict) else unnamed


def _has_vectors(path: str, size: int) -> bool:
    """Whether a line in the first million characters has as many fields as a token and its vector."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return any(len(line.split()) == size + 1 for line in stream.read(10**6).split("\n"))


def _labels(data: TextTable, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the number of labels, if it is known."""
    if labels := data.labels or meta.get("labels"):
        yield "labels, which the data have", len(labels)
