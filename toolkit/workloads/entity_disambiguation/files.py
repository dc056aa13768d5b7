"""The files of a run in entity disambiguation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class DisambiguationFiles:
    """The paths of a run's artifacts."""

    run: RunDir

    def slices(self, split: str) -> Path:
        """Counts of each slice of a split; JSON."""
        return self.run.artifact(f"{split}_slices.json")

    def disambig_metrics(self, split: str) -> Path:
        """Accuracy and popularity of each slice of a split; CSV with Bootleg's columns."""
        return self.run.artifact(f"{split}_disambig_metrics.csv")

    def dump(self, split: str) -> Path:
        """Every input line of a split, with its predictions; JSON lines."""
        return self.run.artifact(f"{split}_predictions.jsonl")

    @property
    def known(self) -> Path:
        """Properties of the data that the model depends on: sizes, names of types and relations; JSON."""
        return self.run.artifact("encoding.json")

    @property
    def gold_counts(self) -> Path:
        """How often training has seen each gold; JSON."""
        return self.run.artifact("gold_counts.json")

    @property
    def entity_db(self) -> Path:
        """The database of entities that the run was trained with: a folder."""
        return self.run.artifact("entity_db")

    @property
    def entity_encoder(self) -> Path:
        """The frozen encoder of entities, if there is one: a folder that transformers loads."""
        return self.run.artifact("entity_encoder")
