"""Generated sentences and entities: rivers, towns and ships with the same names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.toolkit.support.bert import write_bert
from tests.toolkit.support.tiny import of_tokens
from tests.toolkit.workloads.entity_disambiguation.data.entities.files import write as write_lines
from toolkit.config import Experiment, load
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile

#: Mentions of each split: with steps of 8 samples training ends in an incomplete step.
SIZES = {"train": 61, "validation": 23, "test": 11}

_NAMES = ("arn", "bel", "cor", "dun", "esk", "fal")
_KINDS = ("river", "town", "ship")
_WORDS = {"river": ("flows", "water"), "town": ("lies", "houses"), "ship": ("sails", "deck")}

_EXPERIMENT = """\
name: tiny-entities
task: {{kind: entity_disambiguation, mask_mention: true}}
model: {{kind: bi_encoder, path: "{bert}", prior: true, dropout: 0.1, hidden: 8}}
data:
  train: {folder}/train.jsonl
  validation: {folder}/validation.jsonl
  test: {folder}/test.jsonl
  entity_db: {folder}/entity_db
  tokenizer_path: ${{model.path}}
  prepared_dir: {folder}/prepared
  max_tokens: 40
  max_entity_tokens: 32
  eval_slices: [unif_TL, unif_NS_all, crowded]
  slices: {{crowded: candidates > 2}}
  torso_above: 4
  head_above: 5
train: {{epochs: 2, batch_size: 8, bucket_batches: 3, log_per_epoch: 3, eval_per_epoch: 2, device: cpu}}
optimizer: {{lr: 0.01}}
lr_scheduler: {{warmup: 0.2}}
evaluation: {{batch_size: 5, metric: "accuracy/unif_NS_all:max"}}
"""


def database() -> EntityDatabase:
    """Every name is a river and a town, some also a ship. Rivers have a relation to their towns."""
    found = EntityDatabase()
    for place, name in enumerate(_NAMES):
        for rank, kind in enumerate(_KINDS[: 3 if place < 3 else 2]):
            found.add(
                Profile(
                    entity_id=f"{name}.{kind}",
                    title=f"{name} ({kind})",
                    description=f"a {kind} with {' '.join(_WORDS[kind])}",
                    mentions=((name, 10.0 - rank),),
                    types={"kinds": (kind,)},
                    relations=(("near", f"{name}.town"),) if kind == "river" else (),
                )
            )
    return found


def line(number: int, mentions: Sequence[tuple[str, str]], **keys: Any) -> dict[str, Any]:
    """A sentence with these mentions (name, kind), one after the other."""
    words: list[str] = []
    spans = []
    for name, kind in mentions:
        words += ["the", name]
        spans.append([len(words) - 1, len(words)])
        words += [*_WORDS[kind], "and"]
    record = {
        "sentence": " ".join([*words, f"no{number}"]),
        "sent_idx_unq": number,
        "aliases": [name for name, _ in mentions],
        "spans": spans,
        "qids": [f"{name}.{kind}" for name, kind in mentions],
        "gold": [True] * len(mentions),
    }
    return record | keys


def lines(split: str) -> Iterator[dict[str, Any]]:
    """Sentences of one to three mentions, in total as many as in SIZES."""
    left, number = SIZES[split], sorted(SIZES).index(split) * 1000
    while left:
        count = min(number % 3 + 1, left)
        chosen = [(number + 2 * place) % len(_NAMES) for place in range(count)]
        kinds = [_KINDS[(number + place) % (3 if at < 3 else 2)] for place, at in enumerate(chosen)]
        yield line(number, [(_NAMES[at], kind) for at, kind in zip(chosen, kinds, strict=True)])
        left -= count
        number += 1


def write_entity_experiment(folder: Path) -> Path:
    """Write sentences, database, a tiny BERT and the experiment file into a folder; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "bert").exists():
        write_bert(folder / "bert")
    database().save(folder / "entity_db")
    for split in SIZES:
        write_lines(folder / f"{split}.jsonl", list(lines(split)))
    path = folder / "tiny_entities.yaml"
    path.write_text(_EXPERIMENT.format(folder=folder, bert=folder / "bert"), encoding="utf-8")
    return path


def tiny_entities(folder: Path, *overrides: str) -> Experiment:
    """The tiny experiment with its data in a folder, with the bi-encoder."""
    return load(write_entity_experiment(folder), overrides)


def tiny_co_mention(folder: Path, *overrides: str) -> Experiment:
    """The same with the co-mention model."""
    path = json.dumps(str(folder / "bert"))
    model = f"model={{kind: co_mention, path: {path}, hidden: 16, heads: 2, type_dim: 8, relation_dim: 8}}"
    return tiny_entities(folder, model, *overrides)


def tiny_cached(folder: Path, *overrides: str) -> Experiment:
    """The same with cached vectors of entities, in steps of tokens."""
    cached = ("model.entity_vectors=cached", "model.share=false")
    return tiny_entities(folder, *cached, *of_tokens(320, 4), *overrides)
