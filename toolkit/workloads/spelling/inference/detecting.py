"""Errors in texts, found by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.capabilities import DETECTORS, check_use
from toolkit.workloads.spelling.inference.chunks import Passage
from toolkit.workloads.spelling.inference.load_run import BATCH_TOKENS, OpenRun, open_run

#: Above it, an error is more likely than none.
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Detector:
    """Tells for each word of texts, or for each text, whether it has an error."""

    opened: OpenRun

    @property
    def of_texts(self) -> bool:
        """Whether a text gets one label, not each of its words."""
        return bool(self.opened.experiment.task.kind == "sed_sequence")

    def detect(self, texts: Sequence[str], threshold: float = THRESHOLD) -> list[list[int]]:
        """Return for each text a label for each of its words, or a single one: 1 for an error."""
        return [
            [int(each > threshold) for each in probabilities] for probabilities in self.probabilities(texts)
        ]

    def probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the same as probabilities of an error.

        A text that is longer than the model reads is cut into passages with context; as a whole it is as
        bad as the worst of them.
        """
        return [self._joined(*each) for each in self.opened.answers("detect", texts, by_words=True)]

    def _joined(self, passages: Sequence[Passage], said: Sequence[list[float]]) -> list[float]:
        if self.of_texts:
            return [max((each[0] for each in said), default=0.0)]
        cores = (slice(*passage.words) for passage in passages)
        return [label for core, labels in zip(cores, said, strict=True) for label in labels[core]]


def open_detector(run: RunDir, device: str = "auto", *, batch_tokens: int = BATCH_TOKENS) -> Detector:
    """Open a finished run that detects errors. Raises as `open_run`, UserError for one of another task."""
    check_use(run, DETECTORS, "detects no errors")
    return Detector(open_run(run, device, batch_tokens=batch_tokens))
