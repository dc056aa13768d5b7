"""The files of a run of a spelling task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir

#: Name of the artifact with the experiment of the run that `model.repair_run` names.
REPAIR_EXPERIMENT = "repair_experiment.yaml"


@dataclass(frozen=True, slots=True)
class SpellingFiles:
    """Paths of the artifacts of a run. Files of texts and labels have one line per text, in input order."""

    run: RunDir

    def detections(self, split: str) -> Path:
        """Labels, 0 or 1, of the words of a split, or of its texts."""
        return self.run.artifact(f"{split}_predictions.txt")

    def detection_counts(self, split: str) -> Path:
        """Counts of the errors that were found in a split, JSON."""
        return self.run.artifact(f"{split}_detection.json")

    def repairs(self, split: str) -> Path:
        """The texts of a split with their white space repaired."""
        return self.run.artifact(f"{split}_repairs.txt")

    def repair_counts(self, split: str) -> Path:
        """Counts of the inserted and deleted spaces in the texts of a split, JSON."""
        return self.run.artifact(f"{split}_repair.json")

    def corrections(self, split: str) -> Path:
        """The corrected texts of a split."""
        return self.run.artifact(f"{split}_corrections.txt")

    def correction_counts(self, split: str) -> Path:
        """Counts of the restored and spoilt words in the texts of a split, JSON."""
        return self.run.artifact(f"{split}_correction.json")

    @property
    def repair_experiment(self) -> Path:
        """The experiment of the run that `model.repair_run` names; it defines the repair model."""
        return self.run.artifact(REPAIR_EXPERIMENT)

    def benchmark_predictions(self, kind: str, group: str, split: str) -> Path:
        """The predictions of the best weights for a benchmark."""
        return self.run.artifact(f"benchmarks/{kind}/{group}/{split}.txt")
