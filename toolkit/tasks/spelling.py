"""What all tasks on texts with spelling errors have in common; no task itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import merge
from pathlib import Path
from typing import Self

from torch import nn

from toolkit.config.kinds import SpellingTexts
from toolkit.config.schema import Experiment
from toolkit.models.export import export_model
from toolkit.rundir import RunDir
from toolkit.spelling.words import words_of
from toolkit.spelling_samples.prepared import SpellingSet, prepare
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.spelling_samples.sources import data_sets
from toolkit.tasks.base import Report


class SpellingTask:
    """A prepared set of texts, opened; another file encoded as it was; lines in the order of the files."""

    @classmethod
    def prepare(cls, experiment: Experiment, report: Report | None = None) -> str:
        return prepare(experiment.data, report).summary()

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        self._experiment = experiment
        self._data = data = data or prepare(experiment.data)
        self.prepared = data.path
        self.fingerprint = data.fingerprint
        self.summary = data.summary()
        self.splits: Mapping[str, SpellingSamples] = {name: data.split(name) for name in data.splits}

    def on(self, data: SpellingTexts, report: Report | None = None) -> Self:
        known = prepare(data, report, base=self._data)
        return type(self)(replace(self._experiment, data=data), known)

    def export(self, run: RunDir, model: nn.Module) -> None:
        root = Path(data_sets(self._experiment.data)[0]).stem
        export_model(run, model, root, self._data.tokenizer_files)


def lines_of_files(
    samples: SpellingSamples, lines: Iterable[str], of_left_out: Callable[[str], str] = str
) -> Iterator[str]:
    """Yield what there is for each line of a split's files, in their order.

    lines        one for each sample
    of_left_out  what there is for a text that is no sample; by default itself
    """
    places = zip(samples.sources.tolist(), samples.lines.tolist(), strict=True)
    made = ((source, line, text) for (source, line), text in zip(places, lines, strict=True))
    left_out = ((source, line, of_left_out(text)) for source, line, text in samples.left_out_texts())
    for _, _, text in merge(made, left_out):
        yield text


def no_errors(text: str) -> str:
    """Labels of a text none of whose words has an error."""
    return " ".join("0" for _ in words_of(text))
