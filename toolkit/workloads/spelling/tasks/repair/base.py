"""Common parts of the tasks that repair white space.

Texts are characters with a special token before and after them, as in prepared sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import numpy as np
import torch

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.task import Evaluation, Ragged
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.repairs import DELETE, INSERT, KEEP, repaired
from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.metrics.whitespace import WhitespaceScore
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.tasks.base import SpellingTask, on
from toolkit.workloads.spelling.tokenizers.tokenizer import characters_expected, load_tokenizer

#: Name of the output with the class of each character: keep, insert or delete.
CLASSES = "classes"


class RepairingTask(SpellingTask):
    """Reads texts as characters; the output `classes` has the class of each character (`classes_of`)."""

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        space = load_tokenizer(self._data.path / layout.TOKENIZER).space
        if space is None:
            problem = characters_expected(experiment.data.tokenizer_path, experiment.task.kind)
            raise DataError(f"data.tokenizer_path: {problem}")
        self._space = space

    def _repair_sums(self, scores: torch.Tensor, labels: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return the sums of REPAIR_SUMS from scores [B, L, 3]."""
        return repair_counts(scores.argmax(-1), labels, tokens == self._space)

    def repair_score(self, evaluation: Evaluation) -> WhitespaceScore:
        """Return the counts of a repair."""
        sums = self._sums(evaluation)
        found, wrong, missed, texts, f1, equal = (sums[name] for name in REPAIR_SUMS)
        return WhitespaceScore(
            counts=Counts.of_sums(found, wrong, missed), lines=round(texts), f1_sum=f1, equal=round(equal)
        )

    def _repair_facts(self, evaluation: Evaluation) -> dict[str, int]:
        """Return the counts of a repair, for a file."""
        score = self.repair_score(evaluation)
        return asdict(score.counts) | {"texts": score.lines, "equal_texts": score.equal}


def repaired_texts(samples: SpellingSamples, indices: Array, classes: Iterable[Array]) -> Iterator[str]:
    """Yield these texts with their white space repaired; classes: see `classes_of`."""
    for (text, _), own in zip(samples.texts(indices), classes, strict=True):
        yield repaired(text, own.tolist())


def known_labels(labels: Array, device: torch.device) -> torch.Tensor:
    """Return labels of prepared samples for a model: NONE if unknown."""
    return on(np.where(labels == layout.UNKNOWN, NONE, labels), device)


def classes_of(scores: torch.Tensor, lengths: torch.Tensor) -> Ragged:
    """Return the class of each character of texts.

    scores   [B, L, 3] of the tokens
    lengths  [B] number of tokens of each text, special tokens included
    """
    return Ragged(rows=scores[:, 1:].argmax(-1), lengths=lengths - 2)


#: Names of the counts of `repair_counts`.
REPAIR_SUMS = ("inserted_or_deleted", "too_many", "too_few", "repaired_texts", "f1_of_texts", "equal_texts")


def repair_counts(classes: torch.Tensor, labels: torch.Tensor, spaces: torch.Tensor) -> torch.Tensor:
    """Compare the operations on texts with the right ones by the resulting texts; [6] float64.

    Returns sums over the texts: true positives, false positives and false negatives of spaces, texts with
    known labels, their F1, texts without errors. Operations without effect, such as deleting a letter or
    doubling a space, do not count.

    classes  [B, L] operation on each token
    labels   [B, L] right operation; NONE for special tokens, and if it is unknown
    spaces   [B, L] which tokens are spaces
    """
    known = labels != NONE
    before = _space_before(torch.full_like(classes, KEEP), spaces)
    done = before ^ _space_before(classes, spaces)
    wanted = before ^ _space_before(labels, spaces)
    inner = known & ~spaces
    # A text does not begin with a space: the first token is special, and the second token begins the text.
    inner[:, :2] = False
    pairs = (done & wanted, done & ~wanted, wanted & ~done)
    found, wrong, missed = ((pair & inner).sum(1) for pair in pairs)
    texts, faults = known.any(1), wrong + missed
    # F1 is 1 if nothing had to be done and nothing was done.
    twice = 2 * found.double()
    f1 = torch.where(twice + faults == 0, 1.0, twice / (twice + faults).clamp(min=1))
    facts = [found, wrong, missed, texts, f1 * texts, texts & (faults == 0)]
    return torch.stack([fact.double().sum() for fact in facts])


def _space_before(classes: torch.Tensor, spaces: torch.Tensor) -> torch.Tensor:
    """Return whether a space precedes each token after these operations, [B, L]."""
    found = classes == INSERT
    found[:, 1:] |= (spaces & (classes != DELETE))[:, :-1]
    return found
