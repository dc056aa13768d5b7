"""The sections of an experiment in entity disambiguation: data, task and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from toolkit.config.fields import option
from toolkit.data.prepared.lookup import read_meta
from toolkit.data.prepared.section import PreparedSection
from toolkit.files import read_json
from toolkit.nlp.encoder_config import check_encoder, encoder_difference
from toolkit.run.run_dir import RunDir
from toolkit.workload import Metric, ModelSection, Violation, first_other, shares
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles

#: Allowed names of a slice, because they are part of metrics and of file names.
SLICE_NAME = r"[A-Za-z0-9_.-]+"
#: The slice of all scored mentions. It always exists, so data and config must not define it.
WHOLE_SLICE = "final_loss"
#: The names of the built slices begin with this (entities/slices.py). Other names must not.
BUILT_PREFIX = "unif_"
BUILT_SLICES = tuple(
    f"{BUILT_PREFIX}{kept}{seen}" for kept in ("", "NS_", "NPOP_") for seen in ("all", "HD", "TO", "TL", "TS")
)
TORSO_ABOVE = 10
HEAD_ABOVE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMentions(PreparedSection):
    """Sentences with mentions, as JSON lines, and the database of the entities that they may mean.

    Either `path`, cut by a hash, or `train` and `validation`, and `test` if there is one.
    """

    SOURCES: ClassVar[str] = "toolkit.workloads.entity_disambiguation.data.samples.source_files"
    SETS: ClassVar[str] = "toolkit.workloads.entity_disambiguation.data.samples.prepared:MentionSet"
    path: str | None = option(None, path=True)
    """File of sentences to split; relative to the working directory."""
    train: str | None = option(None, path=True)
    """File of the training set; with `validation`, instead of `path`."""
    validation: str | None = option(None, path=True)
    """File of the validation set."""
    test: str | None = option(None, path=True)
    """File of the test set, if there is one."""
    split: int = option(10, minimum=1, maximum=49)
    """Percentage of `path` for the test set, and for the validation set."""
    split_by: str = option("source", choices=("source", "sentence"))
    """source: sentences of one text stay together; sentence: each is split alone."""
    entity_db: str = option(path=True)
    """Folder of the database of aliases and entities."""
    use_weak_labels: bool = option(True)
    """Whether to train on weak labels too."""
    no_candidate: bool = option(False)
    """Whether each mention has the candidate `none of them`, the label if no candidate is the gold."""
    max_candidates: int = option(30, minimum=1)
    """Most popular candidates that a mention keeps."""
    max_tokens: int = option(128, minimum=8)
    """Tokens of a sample, markers and special tokens included."""
    window: int = option(64, minimum=0)
    """Tokens of text around a mention, on both sides together."""
    max_entity_tokens: int = option(128, minimum=4)
    """Tokens of an entity's text, special tokens included."""
    title: bool = option(True)
    """Whether an entity's text begins with its title, without parentheses."""
    types: bool = option(True)
    """Whether an entity's text names its types."""
    relations: bool = option(True)
    """Whether an entity's text names its relations and their objects."""
    description: bool = option(True)
    """Whether an entity's text ends with its description."""
    type_systems: tuple[str, ...] | None = option(None)
    """Systems of types to read; null: all."""
    max_type_words: int = option(20, minimum=1)
    """Words of types in an entity's text."""
    max_relation_words: int = option(60, minimum=1)
    """Words of relations in an entity's text."""
    eval_slices: tuple[str, ...] = option(())
    """Slices that each evaluation scores as `accuracy/<slice>`: built-in ones such as unif_NS_TL, those of
    the sentences, those of `slices`."""
    slices: dict[str, str] = field(default_factory=dict)
    """Slices by SQL condition on the table `mentions` of samples.sqlite, such as `crowded: candidates >
    5`."""
    torso_above: int = option(TORSO_ABOVE, minimum=0)
    """A gold that training has seen more often is torso, else tail."""
    head_above: int = option(HEAD_ABOVE, minimum=0)
    """A gold that training has seen more often is head."""
    count_weak: bool = option(True)
    """Whether weak labels count for torso_above and head_above."""
    tokenizer_path: str = option(hub=True)
    """Folder of a Hugging Face model or tokenizer, or its name on the hub; usually ${model.path}."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Folder of prepared sets, shared by all runs."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        from toolkit.workloads.entity_disambiguation.data.samples.checks import sentence_violations

        return sentence_violations(self, is_trained=is_trained)

    def warnings(self) -> Iterator[Violation]:
        for name in self.slices:
            if name not in self.eval_slices:
                problem = "is not scored, because data.eval_slices does not name it"
                yield Violation(key=("data", "slices", name), problem=problem)

    def other_meaning(self, prepared: Path | None, run: Path) -> str:
        # Imported here, because it imports the sections of all workloads.
        from toolkit.config import load_resolved

        known = read_json(DisambiguationFiles(RunDir(run)).known)
        if not (known and prepared and load_resolved(RunDir(run).config).model.kind == "co_mention"):
            # Other models have no vectors of types and relations.
            return ""
        here = read_meta(prepared)
        return first_other("type", known["types"], here.get("types")) or first_other(
            "relation", known["relations"], here.get("relations")
        )


(ACCURACY,) = shares("accuracy")


def slice_metrics(data: EntityMentions) -> tuple[Metric, ...]:
    """`accuracy/<slice>` for each of `data.eval_slices`."""
    return shares(*(f"accuracy/{name}" for name in dict.fromkeys(data.eval_slices or ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDisambiguation:
    """The entity that a mention means, among the candidates of its alias."""

    kind: str = option("entity_disambiguation")
    mask_mention: bool = option(False)
    """Whether training hides tokens of mentions, those of popular golds more often (0.5 to 0.95)."""
    mask_title: bool = option(False)
    """Whether training hides tokens of titles in entities' texts; not with `model.entity_vectors: cached`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfPretrained(ModelSection):
    """A model that reads texts with the pretrained encoder at `path`."""

    # Each model replaces it. Here it keeps `kind` before `path` in a config.
    kind: str = option("")
    path: str = option(hub=True)
    """Folder of the pretrained encoder, or its name on the hub."""
    context_layers: int | None = option(None, minimum=1)
    """First layers of the encoder of mentions to keep; null: all."""
    entity_layers: int | None = option(None, minimum=1)
    """First layers of the encoder of entities to keep; null: all."""

    def violations(self, experiment: Any, *, coming: Mapping[Path, Any] | None = None) -> Iterator[Violation]:
        keys = ["max_tokens", "max_entity_tokens"]
        layers = {f"model.{name}": getattr(self, name) for name in ("context_layers", "entity_layers")}
        return check_encoder(self.path, experiment.data, keys, layers, "tokenizer_path")

    def difference(self, other: Any) -> str:
        if found := ModelSection.difference(self, other):
            return found
        return encoder_difference((self.path, self.context_layers), (other.path, other.context_layers))

    def files(self) -> Iterator[tuple[str, Path]]:
        yield "model.path", Path(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class BiEncoder(_OfPretrained):
    """An encoder for the mention in its text, one for the texts of entities, and their dot product."""

    SHAPES: ClassVar[tuple[str, ...]] = ("hidden", "prior")
    kind: str = option("bi_encoder")
    share: bool = option(True)
    """Whether one encoder reads mentions and entities."""
    pooling: str = option("mean", choices=("mean", "cls", "mention"))
    """mean: of all tokens; cls: the first token; mention: the mean of the mention's tokens."""
    hidden: int | None = option(None, minimum=1)
    """Size of a linear layer with tanh after each encoder; null: none."""
    normalize: bool = option(True)
    """Whether vectors have length 1."""
    temperature: float = option(0.05, above=0)
    """The products are divided by it."""
    prior: bool = option(False)
    """Whether to add the log of the candidate's share of its alias, with a learnt weight."""
    entity_vectors: str = option("encode", choices=("encode", "cached"))
    """encode: train the encoder of entities too; cached: freeze it, and compute its vectors once for all
    runs."""
    dropout: float | None = option(None, minimum=0, maximum=1)
    """Dropout of the encoders; null: their own."""

    @property
    def needs_preparation(self) -> bool:
        """Whether vectors of all entities are computed before training."""
        return self.entity_vectors == "cached"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoMention(_OfPretrained):
    """Candidates as vectors of types, relations and text that attend to the words and to one another."""

    SHAPES: ClassVar[tuple[str, ...]] = (
        "hidden", "stages", "type_dim", "relation_dim", "entity_text", "prior",
    )  # fmt: skip
    kind: str = option("co_mention")
    context_layers: int | None = option(None, minimum=1)
    """First layers of the encoder that are kept; null: all."""
    hidden: int = option(128, minimum=2)
    """Size of the vectors of words and candidates."""
    heads: int = option(4, minimum=1)
    """Heads of each attention; must divide `hidden`."""
    stages: int = option(1, minimum=1)
    """Rounds of attention."""
    type_dim: int = option(64, minimum=1)
    """Size of a type's vector."""
    relation_dim: int = option(64, minimum=1)
    """Size of a relation's vector."""
    entity_text: bool = option(True)
    """Whether a candidate also has the vector of its text."""
    max_mentions: int = option(10, minimum=1)
    """Mentions of a sentence that are read, the nearest ones."""
    temperature: float = option(0.05, above=0)
    """The cosine of text and entity is divided by it."""
    prior: bool = option(False)
    """Whether to add the log of the candidate's share of its alias, with a learnt weight."""
    dropout: float = option(0.1, minimum=0, maximum=1)
    """Dropout of encoder and attention."""

    @property
    def needs_preparation(self) -> bool:
        """Whether vectors of all entities are computed before training."""
        return self.entity_text
