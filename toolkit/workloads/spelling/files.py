"""The files of a run of a spelling task."""

from __future__ import annotations

from pathlib import Path

from toolkit.run.artifact_files import ArtifactFiles, artifact, artifact_of

#: Name of the artifact with the experiment of the run that `model.repair_run` names.
REPAIR_EXPERIMENT = "repair_experiment.yaml"


class SpellingFiles(ArtifactFiles):
    """Paths of the artifacts of a run; methods take the name of a split.

    Files of texts and labels have one line per text, in input order.
    """

    detections = artifact_of("_predictions.txt")
    """Labels, 0 or 1, of the words of a split, or of its texts."""
    detection_counts = artifact_of("_detection.json")
    """Counts of the errors that were found in a split, JSON."""
    repairs = artifact_of("_repairs.txt")
    """The texts of a split with their white space repaired."""
    repair_counts = artifact_of("_repair.json")
    """Counts of the inserted and deleted spaces in the texts of a split, JSON."""
    corrections = artifact_of("_corrections.txt")
    """The corrected texts of a split."""
    correction_counts = artifact_of("_correction.json")
    """Counts of the restored and spoilt words in the texts of a split, JSON."""
    repair_experiment = artifact(REPAIR_EXPERIMENT)
    """The experiment of the run that `model.repair_run` names; it defines the repair model."""

    def benchmark_predictions(self, kind: str, group: str, split: str) -> Path:
        """The predictions of the best weights for a benchmark."""
        return self.run.artifact(f"benchmarks/{kind}/{group}/{split}.txt")
