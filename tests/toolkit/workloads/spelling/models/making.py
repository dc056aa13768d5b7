"""Small batches and models of the spelling study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from toolkit.registry import load_code
from toolkit.workloads.spelling.config.models import TokenizationRepair
from toolkit.workloads.spelling.models.batches import (
    NONE,
    Batch,
    CorrectionBatch,
    DetectionBatch,
    RepairBatch,
    RepairPlusBatch,
    WordsCorrectionBatch,
)
from toolkit.workloads.spelling.workload import WORKLOAD

PAD, BEGIN, END = 0, 1, 2
VOCABULARY, OUTPUTS = 40, 30

#: A text: words of pieces of tokens.
Text = Sequence[Sequence[Sequence[int]]]

SHORT: Text = [[[5, 6], [7]], [[8]]]
LONG: Text = [[[9]], [[10, 11, 12], [13], [14, 15]], [[16, 17]], [[18], [19]]]
MIDDLE: Text = [[[20, 21, 22]], [[23]], [[24], [25, 26]]]
TEXTS = (SHORT, LONG, MIDDLE)

_MODELS = {kind: row for task in WORKLOAD.tasks for kind, row in task.models.items()}
_SIZES: dict[str, Any] = {"hidden_dim": 16, "num_heads": 2, "dropout": 0.0}
_TRANSLATION = {**_SIZES, "num_encoder_layers": 2, "num_decoder_layers": 2}
#: Keys of the sections of small models.
SMALL: dict[str, dict[str, Any]] = {
    "transformer": {**_SIZES, "num_layers": 2},
    "graph": {**_SIZES, "num_layers": 2},
    "nmt": _TRANSLATION,
    "words_nmt": _TRANSLATION,
    "tokenization_repair": {**_SIZES, "num_encoder_layers": 2},
    "tokenization_repair_plus": {
        "repair_run": "runs/repair", "num_word_layers": 2, "num_sec_layers": 2, "dropout": 0.0,
    },
}  # fmt: skip
REPAIR = TokenizationRepair(**SMALL["tokenization_repair"])


def padded(rows: Sequence[Sequence[Any]], fill: int) -> torch.Tensor:
    """Return rows of numbers as one tensor."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _pieces(text: Text) -> list[Sequence[int]]:
    return [piece for word in text for piece in word]


def _structure(texts: Sequence[Text]) -> dict[str, Any]:
    """Return tokens between begin and end token, with pieces and words."""
    tokens, pieces, words = [], [], []
    for text in texts:
        flat = [(piece, token) for piece, tokens_ in enumerate(_pieces(text)) for token in tokens_]
        tokens.append([BEGIN, *(token for _, token in flat), END])
        pieces.append([NONE, *(piece for piece, _ in flat), NONE])
        words.append([number for number, word in enumerate(text) for _ in word])
    return {
        "tokens": padded(tokens, PAD),
        "lengths": torch.tensor([len(each) for each in tokens]),
        "pieces": padded(pieces, NONE),
        "words": padded(words, NONE),
        "features": _features(texts, max(len(each) for each in words)),
        "word_count": max(len(text) for text in texts),
    }


def _features(texts: Sequence[Text], width: int) -> torch.Tensor:
    """Return features of pieces that depend only on their tokens."""
    found = torch.zeros(len(texts), width, 13)
    for row, text in enumerate(texts):
        for place, piece in enumerate(_pieces(text)):
            found[row, place] = torch.tensor([float((sum(piece) >> bit) & 1) for bit in range(13)])
    return found


def targets_of(texts: Sequence[Text]) -> dict[str, torch.Tensor]:
    """Return as target of each word its tokens, folded into the vocabulary of outputs."""
    read, numbers, labels = [], [], []
    for text in texts:
        golds = [[3 + token % (OUTPUTS - 3) for piece in word for token in piece] for word in text]
        read.append([token for gold in golds for token in (BEGIN, *gold)])
        numbers.append([number for number, gold in enumerate(golds) for _ in range(len(gold) + 1)])
        labels.append([token for gold in golds for token in (*gold, END)])
    return {
        "targets": padded(read, PAD),
        "target_words": padded(numbers, NONE),
        "labels": padded(labels, NONE),
    }


def detection_batch(texts: Sequence[Text]) -> DetectionBatch:
    labels = padded([[sum(map(sum, word)) % 2 for word in text] for text in texts], NONE)
    return DetectionBatch(**_structure(texts), labels=labels)


def correction_batch(texts: Sequence[Text]) -> CorrectionBatch:
    structure, targets = _structure(texts), targets_of([[_pieces(text)] for text in texts])
    return CorrectionBatch(
        tokens=structure["tokens"],
        lengths=structure["lengths"],
        targets=targets["targets"],
        labels=targets["labels"],
    )


def words_batch(texts: Sequence[Text]) -> WordsCorrectionBatch:
    batch = detection_batch(texts)
    return WordsCorrectionBatch(
        tokens=batch.tokens, lengths=batch.lengths, words=batch.words_of_tokens(), **targets_of(texts)
    )


def repair_batch(texts: Sequence[Text]) -> RepairBatch:
    batch = detection_batch(texts)
    labels = (batch.tokens % 3).masked_fill(~batch.real, NONE)
    return RepairBatch(tokens=batch.tokens, lengths=batch.lengths, labels=labels)


def plus_batch(texts: Sequence[Text]) -> RepairPlusBatch:
    targets = targets_of(texts)
    target_labels = targets.pop("labels")
    return RepairPlusBatch(
        **_structure(texts),
        labels=detection_batch(texts).labels,
        repair_labels=repair_batch(texts).labels,
        target_labels=target_labels,
        **targets,
    )


def built(kind: str, keys: Mapping[str, Any], **sizes: Any) -> Any:
    """Return a model with these keys in its section; sizes: its other arguments."""
    section, code = _MODELS[kind]
    return load_code(code)(section(**keys), **sizes)


def small(kind: str, *, of_texts: bool = False, **keys: Any) -> Any:
    """Return a small model for the batches of this file."""
    sizes = {"vocabulary_size": VOCABULARY, "output_vocabulary_size": OUTPUTS}
    return built(kind, SMALL[kind] | keys, **sizes, of_texts=of_texts, repair=REPAIR)


def scored(model: nn.Module, batch: Batch, *rows: int) -> Any:
    """Return a model's scores of some rows of a batch; default: all rows."""
    return model(torch.tensor(rows) if rows else torch.arange(len(batch.tokens)), batch)


@dataclass(frozen=True, slots=True)
class Case:
    """A small model, its batches, and the scores and labels that are compared.

    keys    other keys of its section
    part    name of the compared scores, if the model returns several
    wanted  name of their labels
    """

    kind: str
    batch_of: Callable[[Sequence[Text]], Any]
    keys: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""
    wanted: str = "labels"

    def make(self) -> Any:
        return small(self.kind, **self.keys)

    def scores(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        found = scored(model, batch)
        scores: torch.Tensor = getattr(found, self.part) if self.part else found
        return scores

    def labels(self, batch: Batch) -> torch.Tensor:
        labels: torch.Tensor = getattr(batch, self.wanted)
        return labels[:, 0] if "of_texts" in self.keys else labels


CASES = {
    "transformer": Case("transformer", detection_batch, {"word_features": False}),
    "transformer with features": Case("transformer", detection_batch),
    "transformer of texts": Case("transformer", detection_batch, {"of_texts": True}),
    "graph": Case("graph", detection_batch, {"word_features": False}),
    "graph with features": Case("graph", detection_batch),
    "graph of texts": Case("graph", detection_batch, {"of_texts": True, "token_fully_connected": True}),
    "nmt": Case("nmt", correction_batch),
    "words_nmt": Case("words_nmt", words_batch),
    "words_nmt with the text": Case("words_nmt", words_batch, {"use_sequence_context": True}),
    "repair": Case("tokenization_repair", repair_batch),
    "plus": Case("tokenization_repair_plus", plus_batch, {"num_sec_layers": 0}, part="words"),
    "plus with correction": Case(
        "tokenization_repair_plus", plus_batch, part="written", wanted="target_labels"
    ),
}
#: Those that write each word separately.
WRITES_WORDS = ("words_nmt", "words_nmt with the text", "plus with correction")
