"""Find errors in texts with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.capabilities import DETECTORS, check_use
from toolkit.workloads.spelling.inference.chunks import Passage
from toolkit.workloads.spelling.inference.load_run import BATCH_TOKENS, OpenRun, open_run
from toolkit.workloads.spelling.tasks.detection import THRESHOLD


@dataclass(frozen=True, slots=True)
class Detector:
    """Detects errors in texts, for each word or for the whole text."""

    opened: OpenRun

    @property
    def of_texts(self) -> bool:
        """Whether a text gets a single label."""
        return bool(self.opened.experiment.task.kind == "sed_sequence")

    def detect(self, texts: Sequence[str], threshold: float = THRESHOLD) -> list[list[int]]:
        """Return for each text the labels of its words, or a single label: 1 for an error."""
        return [
            [int(each > threshold) for each in probabilities] for probabilities in self.probabilities(texts)
        ]

    def probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the probabilities of an error instead of labels.

        A text that is too long for the model is cut into passages with context. If a text has a single
        probability, it is the highest of its passages.
        """
        return [self._joined(*each) for each in self.opened.answers("detect", texts, by_words=True)]

    def _joined(self, passages: Sequence[Passage], said: Sequence[list[float]]) -> list[float]:
        if self.of_texts:
            return [max((each[0] for each in said), default=0.0)]
        cores = (slice(*passage.words) for passage in passages)
        return [label for core, labels in zip(cores, said, strict=True) for label in labels[core]]


def open_detector(run: RunDir, device: str = "auto", *, batch_tokens: int = BATCH_TOKENS) -> Detector:
    """Open a finished run that detects errors. Raises like `open_run`, and UserError for another task."""
    check_use(run, DETECTORS, "detects no errors")
    return Detector(open_run(run, device, batch_tokens=batch_tokens))
