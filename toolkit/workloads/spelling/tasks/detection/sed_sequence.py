"""Detection of spelling errors: whether a text has any."""

from __future__ import annotations

from toolkit.workloads.spelling.tasks.detection.base import DetectionTask


class SedSequenceTask(DetectionTask):
    """Right or wrong, for each text."""

    of_texts = True
    accuracy = "accuracy"
