"""The files of a run in text classification."""

from __future__ import annotations

from pathlib import Path

from toolkit.run.artifact_files import ArtifactFiles, artifact, artifact_of


class ClassificationFiles(ArtifactFiles):
    """The paths of a run's artifacts.

    Methods take the beginning of the file names of a split, such as `test`, or `test_text` for whole texts.
    Those of the test set take the name of the data file without its suffix (such as .csv.gz).
    """

    classes = artifact_of("_classes.json")
    """Confusion matrix and scores per class; JSON."""
    curves = artifact_of("_curves.json")
    """ROC and precision over recall of two classes; JSON."""
    predictions = artifact_of("_predictions.tsv")
    """The prediction of each sample; TSV."""
    labels = artifact("labels.json")
    """Numbers of samples and texts of each label in each split; JSON."""
    encoding = artifact("encoding.json")
    """Labels, padding and number of tokens, for predictions; JSON."""
    train_test_stats = artifact_of("_train_test_stats.json")
    """Loss and accuracy of each epoch, and the scores of the test set; JSON."""

    def testset_predictions(self, root: str, *, whole_texts: bool = False) -> Path:
        """Predictions for the test set; CSV."""
        return self.run.artifact(f"{root}_testset_{'text_' if whole_texts else ''}predictions.csv")
