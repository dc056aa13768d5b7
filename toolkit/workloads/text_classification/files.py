"""The files of a run of text classification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class ClassificationFiles:
    """Names of the artifacts of a run.

    name   beginning of the file names of a split: `test`, or `test_text` for whole texts that were folded
    root   the name of the data file without its ending, which may be .csv.gz
    """

    run: RunDir

    def classes(self, name: str) -> Path:
        """Confusion matrix and scores per class, JSON."""
        return self.run.artifact(f"{name}_classes.json")

    def curves(self, name: str) -> Path:
        """ROC and precision over recall, where there are two classes; JSON."""
        return self.run.artifact(f"{name}_curves.json")

    def predictions(self, name: str) -> Path:
        """One line per sample, TSV."""
        return self.run.artifact(f"{name}_predictions.tsv")

    @property
    def labels(self) -> Path:
        """Number of samples of each label in each split, JSON."""
        return self.run.artifact("labels.json")

    @property
    def encoding(self) -> Path:
        """Labels, padding and how many tokens there are, for the use of the model; JSON."""
        return self.run.artifact("encoding.json")

    def testset_predictions(self, root: str, *, whole_texts: bool = False) -> Path:
        """Predictions of the test set, CSV; of whole texts where they were folded."""
        return self.run.artifact(f"{root}_testset_{'text_' if whole_texts else ''}predictions.csv")

    def train_test_stats(self, root: str) -> Path:
        """Loss and accuracy by epoch, and the scores of the test set; JSON."""
        return self.run.artifact(f"{root}_train_test_stats.json")
