"""Open a finished run for use: its best weights, and the encoder of its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from toolkit.analysis.prediction.load import with_best_weights
from toolkit.checkpoint.finished import best_checkpoint
from toolkit.config import load_to_run
from toolkit.config.schema import Evaluation, Experiment
from toolkit.data.order.token_budget import plan_evaluation_tokens
from toolkit.data.ragged import Array
from toolkit.data.sources.source_files import TEST
from toolkit.distributed.devices import choose_device
from toolkit.errors import DataError
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir
from toolkit.task import Task, task_class
from toolkit.training.numerics.arithmetic import autocast_dtype, guest_arithmetic
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.encoding import TextEncoder
from toolkit.workloads.spelling.data.samples.in_memory_set import TextsAtHand
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.inference.chunks import Passage, passages_of_characters, passages_of_words
from toolkit.workloads.spelling.repair_run import without_origin

#: Number of padded tokens that a model reads at once, unless another one is set.
BATCH_TOKENS = 16384
_ANY = "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A model on a device, with its best weights if `open_run` has opened it.

    experiment  the run's experiment, with the options of this use and the files in `encoding`
    encoding    folder of its tokenizers and dictionary
    settings    give the size of a batch
    """

    experiment: Experiment
    encoding: Path
    encoder: TextEncoder
    model: nn.Module
    device: torch.device
    settings: Evaluation

    @property
    def max_tokens(self) -> int:
        """Number of tokens that the model reads at most, special tokens included."""
        model = self.experiment.model
        own = getattr(model, "max_length", None) or getattr(model, "max_input_length", None)
        return int(min(own or self.experiment.data.max_length, self.experiment.data.max_length))

    def fits(self, text: str) -> bool:
        """Whether the model can read a text at once."""
        return len(self.encoder.lists(normalised(text))[layout.TOKENS]) <= self.max_tokens

    def answers(
        self, what: str, texts: Sequence[str], *, by_words: bool = False
    ) -> list[tuple[list[Passage], list[Any]]]:
        """Return the passages of each text, and the model's answer for each of them.

        A text that is too long has several passages; a text without words has none.

        what      name of the task's method that computes answers
        by_words  whether passages are cut between words even if the model reads characters
        """
        found = [self._read(text, by_words) for text in texts]
        read = [passage.text for each in found for passage, _ in each]
        samples = [lists for each in found for _, lists in each]
        answered = iter(self._computed(what, read, samples) if samples else ())
        return [([passage for passage, _ in each], [next(answered) for _ in each]) for each in found]

    def _read(self, text: str, by_words: bool) -> list[tuple[Passage, dict[str, Array]]]:
        text = normalised(text)
        if not text:
            return []
        lists = self.encoder.lists(text)
        if len(lists[layout.TOKENS]) <= self.max_tokens:
            whole = Passage(text=text, core=(0, len(text)), words=(0, len(text.split())))
            return [(whole, lists)]
        # Two special tokens are added.
        size = self.max_tokens - 2
        if self.encoder.tokenizer.reads_spaces and not by_words:
            passages = passages_of_characters(text, size)
        else:
            passages = passages_of_words(text.split(), size, self._tokens)
        return [(passage, self.encoder.lists(passage.text)) for passage in passages]

    def _tokens(self, word: str) -> int:
        tokenizer = self.encoder.tokenizer
        # A character is a token, and so is the space before the word.
        return len(word) + 1 if tokenizer.reads_spaces else len(tokenizer.encode_word(word)[0])

    @torch.no_grad()
    def _computed(self, what: str, texts: Sequence[str], samples: Sequence[Mapping[str, Array]]) -> list[Any]:
        """Return the model's answer for each text; texts of similar lengths are read together."""
        task = _task(self.experiment, self.encoding, self.encoder, texts, samples)
        lengths = task.splits[TEST].lengths
        found: dict[int, Any] = {}
        # Texts are as long as the model can read; evaluations leave out longer ones than the run's.
        budget = self.settings.batch_max_length or BATCH_TOKENS
        plan = plan_evaluation_tokens(lengths, budget, self.settings.batch_size)
        for number in range(plan.steps):
            indices = plan.step(number)
            with self._arithmetic():
                answered = getattr(task, what)(self.model, TEST, indices, self.device)
            found.update(zip(indices.tolist(), answered, strict=True))
        return [found[index] for index in range(len(lengths))]

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        """Compute on a GPU like the run, and on a CPU as the caller does, with the threads of this process.

        The one thread of most runs would only be slower there.
        """
        if self.device.type != "cuda":
            yield
            return
        precision = autocast_dtype(self.experiment.train.precision, self.device)
        with (
            guest_arithmetic(self.experiment),
            torch.autocast(self.device.type, precision, enabled=precision is not None),
        ):
            yield


def open_run(
    run: RunDir,
    device: str = "auto",
    *,
    batch_tokens: int = BATCH_TOKENS,
    options: Mapping[str, object] | None = None,
) -> OpenRun:
    """Open a finished run of spelling on a device: auto, cpu or cuda.

    options  keys of the task section to replace

    Raises UserError if the run has not finished, CheckpointError if its best checkpoint is lost or damaged,
    DataError if its tokenizers or its dictionary are lost or damaged.
    """
    prepared = prepared_run(run, options)
    model, where = with_best_weights(prepared.model, run), choose_device(device)
    settings = Evaluation(batch_max_length=batch_tokens)
    return replace(prepared, model=model.to(where), device=where, settings=settings)


def prepared_run(run: RunDir, options: Mapping[str, object] | None = None) -> OpenRun:
    """Open a run like `open_run`, but on the CPU, without its weights, with the batches of evaluations."""
    # Refuses a run that has not finished and therefore has no tokenizers.
    best_checkpoint(run)
    experiment = without_origin(run, load_to_run(run.config))
    experiment = replace(experiment, task=replace(experiment.task, **(options or {})))
    encoding = ExportedFiles(run).encoding
    if not (encoding / layout.TOKENIZER).exists():
        raise DataError(
            f"{encoding} has no {layout.TOKENIZER}, which a run writes when it finishes: "
            "without it, the encoding of texts is not known; train it again"
        )
    experiment = replace(experiment, data=layout.encoded_by(experiment.data, encoding))
    encoder = TextEncoder(experiment.data)
    # A task must have a text.
    model = _task(experiment, encoding, encoder, [_ANY], [encoder.lists(_ANY)]).model()
    return OpenRun(
        experiment=experiment,
        encoding=encoding,
        encoder=encoder,
        model=model,
        device=torch.device("cpu"),
        settings=experiment.evaluation,
    )


def _task(
    experiment: Experiment,
    encoding: Path,
    encoder: TextEncoder,
    texts: Sequence[str],
    samples: Sequence[Mapping[str, Array]],
) -> Task:
    kind = task_class(experiment)
    at_hand = TextsAtHand.of(encoding, encoder, texts, samples)
    # Tasks of spelling take their prepared set as an argument; other tasks do not.
    return kind(experiment, at_hand)  # type: ignore[call-arg]
