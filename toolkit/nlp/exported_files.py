"""The files of a run that hold its text model, for other programs. Imports no torch."""

from __future__ import annotations

from toolkit.run.artifact_files import ArtifactFiles, artifact, artifact_of


class ExportedFiles(ArtifactFiles):
    """Names of the artifacts of a run that hold its model."""

    model = artifact("model")
    """The best weights of a pretrained model, as the folder that its library loads."""
    encoding = artifact("encoding")
    """A folder with the tokenizers and the dictionary that encode texts for the model."""
    state_dict = artifact_of("_trained_model.sav")
    """The best weights as a state dict of torch; takes the data file's name without its suffix."""
