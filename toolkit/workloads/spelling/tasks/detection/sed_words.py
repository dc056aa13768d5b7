"""Detection of spelling errors: which words of a text are misspelt."""

from __future__ import annotations

from toolkit.workloads.spelling.tasks.detection.base import DetectionTask


class SedWordsTask(DetectionTask):
    """Right or wrong, for each word; with a dictionary, real-word errors are also counted separately."""

    of_texts = False
    accuracy = "word_accuracy"
