"""The files of a run in text classification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class ClassificationFiles:
    """The paths of a run's artifacts.

    name   beginning of the file names of a split, such as `test`; `test_text` for whole texts
    root   name of the data file without its suffix (such as .csv.gz)
    """

    run: RunDir

    def classes(self, name: str) -> Path:
        """Confusion matrix and scores per class; JSON."""
        return self.run.artifact(f"{name}_classes.json")

    def curves(self, name: str) -> Path:
        """ROC and precision over recall of two classes; JSON."""
        return self.run.artifact(f"{name}_curves.json")

    def predictions(self, name: str) -> Path:
        """The prediction of each sample; TSV."""
        return self.run.artifact(f"{name}_predictions.tsv")

    @property
    def labels(self) -> Path:
        """Numbers of samples and texts of each label in each split; JSON."""
        return self.run.artifact("labels.json")

    @property
    def encoding(self) -> Path:
        """Labels, padding and number of tokens, for predictions; JSON."""
        return self.run.artifact("encoding.json")

    def testset_predictions(self, root: str, *, whole_texts: bool = False) -> Path:
        """Predictions for the test set; CSV."""
        return self.run.artifact(f"{root}_testset_{'text_' if whole_texts else ''}predictions.csv")

    def train_test_stats(self, root: str) -> Path:
        """Loss and accuracy of each epoch, and the scores of the test set; JSON."""
        return self.run.artifact(f"{root}_train_test_stats.json")
