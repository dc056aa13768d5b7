"""Correct texts, or repair their white space, with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_

from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.inference.capabilities import CORRECTORS, check_use
from toolkit.workloads.spelling.inference.chunks import Passage
from toolkit.workloads.spelling.inference.load_run import BATCH_TOKENS, OpenRun, open_run
from toolkit.workloads.spelling.inference.merge_chunks import (
    joined_corrections,
    joined_words,
    only_marked,
    only_marked_words,
)
from toolkit.workloads.spelling.inference.output_formats import Labels

#: Merges the passages of a text, given the output for each.
Join = Callable[[Sequence[Passage], Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Corrector:
    """Corrects texts."""

    opened: OpenRun

    def correct(self, texts: Sequence[str], labels: Sequence[Labels] | None = None) -> list[str]:
        """Return the correction of each text, with single spaces.

        A text that is too long for the model is cut into passages with context. A word that is longer than a
        passage stays unchanged.

        labels  for each text, the labels of its words or a single label; words labelled 0 stay unchanged
        """
        if labels is not None:
            return self._marked(texts, labels)
        if self._is_plus and self.opened.encoder.output is not None:
            return self._repaired_and_written(texts)
        return self._made("correct", texts, joined_words if self._by_words else joined_corrections)

    def repair(self, texts: Sequence[str]) -> list[str]:
        """Return texts with their white space repaired; the run's task must repair white space."""
        return self._made("repair" if self._is_plus else "correct", texts, joined_corrections)

    @property
    def _is_plus(self) -> bool:
        return bool(self.opened.experiment.task.kind == "tokenization_repair_plus")

    @property
    def _by_words(self) -> bool:
        """Whether the model writes exactly one word for each word that it reads."""
        return bool(self.opened.experiment.task.kind == "sec_words_nmt")

    def _repaired_and_written(self, texts: Sequence[str]) -> list[str]:
        """Correct texts that fit in one step. Repair longer texts first, then correct passages of words.

        Passages of characters could begin within a word of the repaired text.
        """
        fits = [self.opened.fits(text) for text in texts]
        made = iter(self._made("correct", [*compress(texts, fits)], joined_corrections))
        repaired = self.repair([*compress(texts, map(not_, fits))])
        written = iter(self._made("correct_words", repaired, joined_words, by_words=True))
        return [next(made if own else written) for own in fits]

    def _made(self, what: str, texts: Sequence[str], join: Join, *, by_words: bool = False) -> list[str]:
        found = self.opened.answers(what, texts, by_words=by_words)
        return [join(passages, made) for passages, made in found]

    def _marked(self, texts: Sequence[str], labels: Sequence[Labels]) -> list[str]:
        wrong = [text for text, own in zip(texts, labels, strict=True) if any(own)]
        made, only = iter(self.correct(wrong)), only_marked_words if self._by_words else only_marked
        return [
            only(text, next(made), own) if any(own) else normalised(text)
            for text, own in zip(texts, labels, strict=True)
        ]


def open_corrector(
    run: RunDir,
    device: str = "auto",
    *,
    batch_tokens: int = BATCH_TOKENS,
    options: Mapping[str, object] | None = None,
) -> Corrector:
    """Open a finished run that corrects. Raises like `open_run`, and UserError for a run of another task.

    options  keys of the run's task section to replace: search, beam_width
    """
    check_use(run, CORRECTORS, "corrects no texts")
    return Corrector(open_run(run, device, batch_tokens=batch_tokens, options=options))
