"""Entity disambiguation: the entity that a mention means, among the candidates of its alias."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from toolkit.checkpoint.verification import trained_on
from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.nlp.ratio import mean
from toolkit.nlp.token_masking import hide
from toolkit.nlp.weights_export import export_encoders, export_model
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation, Loss, Score, build_model
from toolkit.workload import Progress, silent
from toolkit.workloads.entity_disambiguation.artifacts import predicted_lines, write_slices
from toolkit.workloads.entity_disambiguation.config import WHOLE_SLICE, EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import write_lines
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.prepared import MentionSet, prepare
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.inference.kept import keep, kept, kept_base, without_origin
from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED, OUTSIDE, SliceScore
from toolkit.workloads.entity_disambiguation.models.bi_encoder import BiEncoder as BiEncoderModel
from toolkit.workloads.entity_disambiguation.models.co_mention import CoMention as CoMentionModel
from toolkit.workloads.entity_disambiguation.models.entity_vectors import (
    entity_vectors,
    fixed_encoder,
    fixed_pooling,
)
from toolkit.workloads.entity_disambiguation.models.mention_batch import (
    BatchMaker,
    MentionBatch,
    candidate_scores,
)

_COUNTS = tuple(SliceScore.__slots__)
_OUTPUT = "probabilities"


class EntityDisambiguationTask:
    """Cross-entropy over the candidates of each mention. Scores come from counts in every slice.

    Outputs are the probabilities of the candidates, in their order. Evaluations score only gold mentions.
    Weak labels and unknown golds have outputs, but no loss and no score. If its gold is not a candidate, a
    mention is wrong and has no loss.
    """

    train_sums = ("correct",)

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        prepared = prepare(experiment.data, progress)
        _fixed_vectors(experiment, prepared, experiment.model.path, progress)
        return prepared.summary()

    def __init__(
        self, experiment: Experiment, data: MentionSet | None = None, encoder: str | None = None
    ) -> None:
        """Open prepared data.

        encoder  folder of the frozen encoder of entities; None for the model's `path`
        """
        self._experiment = experiment
        self._data = data = data or prepare(experiment.data)
        self.prepared = data.path
        self.fingerprint = data.fingerprint
        self.summary = data.description()
        self.splits: Mapping[str, MentionSamples] = {name: data.split(name) for name in data.splits}
        self.slices = (WHOLE_SLICE, *data.slices)
        self.score_sums = ("loss", "count", *(f"{name}/{count}" for name in self.slices for count in _COUNTS))
        _check_metric(experiment.evaluation.metric, data)
        self._known = Known.of(data.meta)
        vectors = _fixed_vectors(experiment, data, encoder or experiment.model.path, None)
        self._batches = BatchMaker(model=experiment.model, known=self._known, vectors=vectors)

    def on(self, data: EntityMentions, progress: Progress | None = None) -> EntityDisambiguationTask:
        known = prepare(data, progress, base=self._data.base())
        return EntityDisambiguationTask(replace(self._experiment, data=data), known)

    @classmethod
    def of_kept(
        cls,
        run: RunDir,
        experiment: Experiment,
        data: EntityMentions,
        named: Collection[str],
        progress: Progress,
    ) -> EntityDisambiguationTask | None:
        """Return this task for another file, with the tokenizer and counts that a run has kept.

        The database is the kept one, unless `named` has its key: the user wants the folder as it is now.
        """
        fingerprint = trained_on(run)
        base = kept_base(run, fingerprint)
        if base is None:
            return None
        found = kept(run, experiment, fingerprint)
        database = data.entity_db if "data.entity_db" in named else str(found.entity_db)
        data = replace(data, tokenizer_path=found.tokenizer, entity_db=database)
        known = prepare(data, progress, base=base)
        return cls(replace(without_origin(run, experiment), data=data), known, found.encoder)

    def model(self) -> nn.Module:
        return build_model(self._experiment, **self._known.sizes())

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> MentionBatch:
        return self._batches.make(self.splits[split], indices, device)

    def loss(self, model: nn.Module, batch: MentionBatch) -> Loss:
        if model.training:
            batch = self._hidden(batch)
        scores = candidate_scores(model, batch)
        learnt = batch.labels >= 0
        total = _losses(scores.log_softmax(1), batch.labels).sum()
        correct = (learnt & (scores.argmax(1) == batch.labels)).sum()
        return Loss(total=total, count=batch.learnt, tokens=batch.real_tokens, sums=correct[None].double())

    def score(self, model: nn.Module, batch: MentionBatch) -> Score:
        log_probabilities = candidate_scores(model, batch).log_softmax(1)
        loss = _losses(log_probabilities, batch.labels).double().sum()
        count = (batch.labels >= 0).sum().double()
        counts = self._counts(batch, log_probabilities.argmax(1))
        sums = torch.cat([torch.stack([loss, count]), counts.flatten()])
        return Score(sums=sums, outputs={_OUTPUT: log_probabilities.exp()})

    def _counts(self, batch: MentionBatch, predictions: torch.Tensor) -> torch.Tensor:
        """Return the counts of SliceScore for every slice, [slices, counts]."""
        labels, first = batch.labels, int(self._data.no_candidate)
        scored = labels != NOT_SCORED
        inside = scored & (labels != (0 if self._data.no_candidate else OUTSIDE))
        correct = (labels == predictions) & (labels != OUTSIDE)
        popular = labels == first
        facts = [scored, inside, scored & correct, inside & correct, scored & popular, inside & popular]
        members = torch.cat([torch.ones_like(scored)[:, None], batch.members], dim=1)
        return members.double().T @ torch.stack(facts, dim=1).double()

    def _hidden(self, batch: MentionBatch) -> MentionBatch:
        """Hide tokens of the batch as the task is configured. Draws from torch's generator."""
        task, mask_id = self._experiment.task, int(self._data.meta["mask_id"])
        if task.mask_mention:
            batch = replace(batch, tokens=hide(batch.tokens, batch.spans, batch.masking, mask_id))
        if task.mask_title and batch.entity_tokens is not None:
            stop_ids = torch.tensor(self._data.meta["stop_ids"], dtype=torch.int64)
            spared = stop_ids.to(batch.tokens.device, non_blocking=True)
            hidden = hide(batch.entity_tokens, batch.titles, batch.entity_masking, mask_id, spared)
            batch = replace(batch, entity_tokens=hidden)
        return batch

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"accuracy": sums["correct"] / count}

    def slice_scores(self, evaluation: Evaluation) -> dict[str, SliceScore]:
        """Return the counts of every slice, including the slice of all mentions."""
        table = evaluation.sums[2:].reshape(len(self.slices), len(_COUNTS)).round().astype(int).tolist()
        return {
            name: SliceScore(**dict(zip(_COUNTS, counts, strict=True)))
            for name, counts in zip(self.slices, table, strict=True)
        }

    def metrics_need_outputs(self, split: str) -> bool:
        return False

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        total, count = evaluation.sums[:2].tolist()
        scores = self.slice_scores(evaluation)
        whole = scores.pop(WHOLE_SLICE)
        return {
            "loss": mean(total, count),
            "accuracy": whole.accuracy,
            "popularity": whole.popularity,
            **{f"accuracy/{name}": of.accuracy for name, of in scores.items()},
        }

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        data, scores = self._experiment.data, self.slice_scores(evaluation)
        dataset = Path(data.path or getattr(data, split)).stem
        write_slices(run, split, scores, dataset=dataset, no_candidate=self._data.no_candidate)
        lines = predicted_lines(self.splits[split], evaluation.outputs[_OUTPUT].rows)
        write_lines(DisambiguationFiles(run).dump(split), lines)

    def export(self, run: RunDir, model: nn.Module) -> None:
        assert isinstance(model, BiEncoderModel | CoMentionModel)
        export_model(run, model, self._root)
        export_encoders(run, model.encoders, self._data.tokenizer_files)
        section = self._experiment.model
        if section.needs_preparation:
            encoder = fixed_encoder(section, section.path, self._known)
            encoder.network.save_pretrained(DisambiguationFiles(run).entity_encoder)
        keep(run, self._experiment.data, self._data)

    @property
    def _root(self) -> str:
        """The beginning of some file names: the name of the data file without its ending."""
        data = self._experiment.data
        return Path(data.path or data.train).stem


def _check_metric(metric: str, data: MentionSet) -> None:
    """Raise DataError if the metric that selects the best weights is of a slice that nothing is in."""
    sizes = {f"accuracy/{name}": of.get("validation") for name, of in data.meta["slice_sizes"].items()}
    if sizes.get(name := metric.partition(":")[0]) == 0:
        raise DataError(
            f"evaluation.metric is {name}, but no scored mention of validation is in that slice: choose "
            "another metric, or other limits (data.torso_above, data.head_above)"
        )


def _losses(log_probabilities: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of each mention, [B]; zero if its gold is not a candidate or not scored."""
    return functional.nll_loss(log_probabilities, labels.clamp(min=-1), reduction="none", ignore_index=-1)


def _fixed_vectors(
    experiment: Experiment, data: MentionSet, path: str, progress: Progress | None
) -> Array | None:
    """The vectors of entities from the frozen encoder at `path`; None for a model that reads texts."""
    if not experiment.model.needs_preparation:
        return None
    encoder = fixed_encoder(experiment.model, path, Known.of(data.meta))
    return entity_vectors(encoder, fixed_pooling(experiment.model), data, progress or silent)
