"""The files of a run in entity disambiguation."""

from __future__ import annotations

from toolkit.run.artifact_files import ArtifactFiles, artifact, artifact_of


class DisambiguationFiles(ArtifactFiles):
    """The paths of a run's artifacts; methods take the name of a split."""

    slices = artifact_of("_slices.json")
    """Counts of each slice of a split; JSON."""
    disambig_metrics = artifact_of("_disambig_metrics.csv")
    """Accuracy and popularity of each slice of a split; CSV with Bootleg's columns."""
    dump = artifact_of("_predictions.jsonl")
    """Every input line of a split, with its predictions; JSON lines."""
    known = artifact("encoding.json")
    """Properties of the data that the model depends on: sizes, names of types and relations; JSON."""
    gold_counts = artifact("gold_counts.json")
    """How often training has seen each gold; JSON."""
    entity_db = artifact("entity_db")
    """The database of entities that the run was trained with: a folder."""
    entity_encoder = artifact("entity_encoder")
    """The frozen encoder of entities, if there is one: a folder that transformers loads."""
