"""Detection of spelling errors: which words of a text are misspelt."""

from __future__ import annotations

from toolkit.metrics.spelling.detection import DetectionScore
from toolkit.tasks.detection import DetectionTask


class SedWordsTask(DetectionTask):
    """Right or wrong, for each word; a dictionary tells misspellings that are words from others."""

    of_texts = False
    accuracy = "word_accuracy"

    def further_metrics(self, score: DetectionScore) -> dict[str, float]:
        found = {self.accuracy: score.accuracy}
        if self._experiment.data.dictionary:
            found |= {"real_word_rate": score.real_word_rate, "non_word_rate": score.non_word_rate}
        return found
