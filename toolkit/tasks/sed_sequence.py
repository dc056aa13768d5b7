"""Detection of spelling errors: whether a text has any."""

from __future__ import annotations

from toolkit.metrics.spelling.detection import DetectionScore
from toolkit.tasks.detection import DetectionTask


class SedSequenceTask(DetectionTask):
    """Right or wrong, for each text."""

    of_texts = True
    accuracy = "accuracy"

    def further_metrics(self, score: DetectionScore) -> dict[str, float]:
        return {self.accuracy: score.accuracy}
