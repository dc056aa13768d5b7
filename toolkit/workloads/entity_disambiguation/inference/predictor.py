"""Predict with a run of entity disambiguation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn

from toolkit.analysis.prediction.predictor import RowFormat, UnfitRow
from toolkit.checkpoint.verification import trained_on
from toolkit.config.schema import Evaluation, Experiment
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.ragged import Array
from toolkit.nlp.characters import no_character
from toolkit.nlp.encoder import Encoder
from toolkit.run.run_dir import RunDir
from toolkit.task import build_model
from toolkit.workloads.entity_disambiguation.artifacts import Prediction, among
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import Line
from toolkit.workloads.entity_disambiguation.data.entities.sentences import UNKNOWN, Sentence, parse_sentence
from toolkit.workloads.entity_disambiguation.data.samples.entity_tables import EntityTables, Names
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples
from toolkit.workloads.entity_disambiguation.inference.kept import kept, without_origin
from toolkit.workloads.entity_disambiguation.inference.sentences_at_hand import samples_at_hand
from toolkit.workloads.entity_disambiguation.models.entity_vectors import (
    fixed_encoder,
    fixed_pooling,
    vectors_of,
)
from toolkit.workloads.entity_disambiguation.models.mention_batch import BatchMaker, candidate_scores


class DisambiguationPredictor:
    """Predicts the entity of each mention of a sentence, and the probability of each candidate.

    The prediction is null if the mention's alias is not in the database.
    """

    format = RowFormat(takes_tables=False)
    batches_at_once = 4

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        self._kept = kept(run, experiment, trained_on(run))
        self._experiment = without_origin(run, experiment)

    def model(self) -> nn.Module:
        return build_model(self._experiment, **self._kept.known.sizes())

    def sample(self, row: Any) -> Sentence:
        return sentence_of(row)

    def predict(
        self, model: nn.Module, samples: Sequence[Sentence], settings: Evaluation, device: torch.device
    ) -> list[Any]:
        found = samples_at_hand(samples, self._entities, self._tokenizer)
        mentions = found.samples
        probabilities = self._probabilities(model, mentions, settings, device)
        predictions: list[list[Prediction | None]] = [[None] * len(sentence.mentions) for sentence in samples]
        candidates = mentions.candidates(np.arange(len(mentions)))
        for (number, position), row, shares in zip(found.places, candidates, probabilities, strict=True):
            predictions[number][position] = among(row, shares, found.names)
        return [{"predictions": each} for each in predictions]

    @cached_property
    def _entities(self) -> EntityTables:
        return EntityTables(
            database=EntityDatabase.load(self._kept.entity_db),
            data=self._experiment.data,
            numbers={},
            types=Names.known(self._kept.known.types),
            relations=Names.known(self._kept.known.relations),
        )

    @cached_property
    def _tokenizer(self) -> MarkedTokenizer:
        data = self._experiment.data
        longest = max(data.max_tokens, data.max_entity_tokens)
        return MarkedTokenizer(self._kept.tokenizer, longest, self._kept.known.pad_id)

    def _probabilities(
        self, model: nn.Module, mentions: MentionSamples, settings: Evaluation, device: torch.device
    ) -> Array:
        """The probabilities of the candidates of each mention, [n, width], in batches of similar length."""
        found = np.zeros((len(mentions), mentions.tables.candidates.shape[1]), np.float32)
        if not len(mentions):
            return found
        batches = BatchMaker(
            model=self._experiment.model, known=self._kept.known, vectors=self._vectors(mentions, device)
        )
        plan = evaluation_plan(settings, mentions.lengths)
        for number in range(plan.steps):
            which = plan.step(number)
            scores = candidate_scores(model, batches.make(mentions, which, device))
            found[which] = scores.log_softmax(1).exp().cpu().numpy()
        return found

    def _vectors(self, mentions: MentionSamples, device: torch.device) -> Array | None:
        """The vectors of all candidates; None for a model that reads texts of entities."""
        model, known = self._experiment.model, self._kept.known
        if not model.needs_preparation:
            return None
        tokens = mentions.tables.tokens
        # In single precision, like the vectors of training.
        with torch.autocast(device.type, enabled=False):
            encoder = self._fixed_encoder.to(device)
            return vectors_of(
                encoder, fixed_pooling(model), tokens, np.arange(len(tokens)), known.pad_id, device
            )

    @cached_property
    def _fixed_encoder(self) -> Encoder:
        return fixed_encoder(self._experiment.model, self._kept.encoder, self._kept.known).eval()


def sentence_of(row: Any) -> Sentence:
    """The sentence of a row of JSON lines. Raises UnfitRow."""
    sentence = parse_sentence(_Row(row))
    if odd := no_character(sentence.text):
        raise UnfitRow(f"found {odd}, which is not a character of text")
    return sentence


class _Row(Line):
    """A row as a line of a file of sentences; golds and slices are ignored."""

    __slots__ = ()

    def __init__(self, row: Any) -> None:
        aliases = row.get("aliases") if isinstance(row, dict) else None
        count = len(aliases) if isinstance(aliases, list) else 0
        unknown = {"sent_idx_unq": 0, "qids": [UNKNOWN] * count, "gold": [True] * count, "slices": {}}
        super().__init__(Path(), 0, {**row, **unknown} if isinstance(row, dict) else row)

    def refuse(self, problem: str) -> NoReturn:
        raise UnfitRow(problem)
