"""What must hold between the keys of the tasks that correct spelling errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.config.kinds.spelling import ChainedNoise, SpellingTexts, SwitchNoise, WhitespaceNoise
from toolkit.config.kinds.spelling_correction import Correction, SecWordsNmt
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment


@rule("task.kind", "data.output_tokenizer_path")
def _output(experiment: Experiment) -> Iterator[Broken]:
    if isinstance(experiment.task, Correction) and experiment.data.output_tokenizer_path is None:
        yield Broken(
            key=("data", "output_tokenizer_path"),
            problem=f"found none, but {experiment.task.kind} writes texts",
            hint="the tokenizer that writes, often the file of data.tokenizer_path",
        )


@rule("task.kind", "data.max_length", "model.max_input_length")
def _lengths(experiment: Experiment) -> Iterator[Broken]:
    data, most = experiment.data, getattr(experiment.model, "max_input_length", None)
    if isinstance(data, SpellingTexts) and most is not None and data.max_length > most:
        problem = f"found {data.max_length}, but the model reads {most} tokens (model.max_input_length)"
        yield Broken(key=("data", "max_length"), problem=problem)


@rule("task.kind", "data.noise")
def _words_stay(experiment: Experiment) -> Iterator[Broken]:
    if isinstance(experiment.task, SecWordsNmt) and _changes_spaces(experiment.data.noise):
        yield Broken(
            key=("data", "noise"),
            problem="found whitespace, but sec_words_nmt corrects each word by itself",
            hint="sec_nmt with a character tokenizer writes whole texts",
        )


def _changes_spaces(noise: Any) -> bool:
    if isinstance(noise, ChainedNoise | SwitchNoise):
        return any(map(_changes_spaces, noise.steps if isinstance(noise, ChainedNoise) else noise.choices))
    return isinstance(noise, WhitespaceNoise)
