"""Texts corrected, or their white space repaired, by a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.rundir import RunDir
from toolkit.spelling.words import normalised
from toolkit.spelling_use.abilities import CORRECTORS, check_use
from toolkit.spelling_use.forms import Labels
from toolkit.spelling_use.joining import joined_corrections, only_marked
from toolkit.spelling_use.opening import BATCH_TOKENS, OpenRun, open_run


@dataclass(frozen=True, slots=True)
class Corrector:
    """Writes texts as they should be."""

    opened: OpenRun

    def correct(self, texts: Sequence[str], labels: Sequence[Labels] | None = None) -> list[str]:
        """Return what each text should say, its words one space apart.

        A text that is longer than the model reads is cut into passages with context; a word that is longer
        than a passage stays as it is.

        labels  of each text those of its words, or a single one: what is labelled 0 stays as it is
        """
        if labels is not None:
            return self._marked(texts, labels)
        return self._made("correct", texts)

    def repair(self, texts: Sequence[str]) -> list[str]:
        """Return texts with their white space repaired, of a run of a task that repairs it."""
        is_plus = self.opened.experiment.task.kind == "tokenization_repair_plus"
        return self._made("repair" if is_plus else "correct", texts)

    def _made(self, what: str, texts: Sequence[str]) -> list[str]:
        found, task = self.opened.read(texts)

        def ask(task: Any, *batch: Any) -> list[str]:
            said: list[str] = getattr(task, what)(*batch)
            return said

        made = iter(self.opened.asked(task, ask))
        return [joined_corrections(passages, [next(made) for _ in passages]) for passages in found]

    def _marked(self, texts: Sequence[str], labels: Sequence[Labels]) -> list[str]:
        wrong = [text for text, own in zip(texts, labels, strict=True) if any(own)]
        made = iter(self.correct(wrong))
        return [
            only_marked(text, next(made), own) if any(own) else normalised(text)
            for text, own in zip(texts, labels, strict=True)
        ]


def open_corrector(
    run: RunDir,
    device: str = "auto",
    *,
    batch_tokens: int = BATCH_TOKENS,
    options: Mapping[str, object] | None = None,
) -> Corrector:
    """Open a finished run that corrects. Raises as `open_run`, UserError for one of another task.

    options  of its task in place of its own: search, beam_width
    """
    check_use(run, CORRECTORS, "corrects no texts")
    return Corrector(open_run(run, device, batch_tokens=batch_tokens, options=options))
