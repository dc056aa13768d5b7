"""The files of a run that hold its text model, for other programs. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class ExportedFiles:
    """Names of the artifacts of a run that hold its model."""

    run: RunDir

    @property
    def model(self) -> Path:
        """The best weights of a pretrained model, as the folder that its library loads."""
        return self.run.artifact("model")

    @property
    def encoding(self) -> Path:
        """A folder with the tokenizers and the dictionary that encode texts for the model."""
        return self.run.artifact("encoding")

    def state_dict(self, root: str) -> Path:
        """The best weights as a state dict of torch; `root` is the data file's name without its suffix."""
        return self.run.artifact(f"{root}_trained_model.sav")
