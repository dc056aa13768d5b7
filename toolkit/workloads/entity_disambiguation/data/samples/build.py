"""Write a prepared set of mentions into a folder."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.arrays import write_array
from toolkit.data.prepared.columns import token_dtype
from toolkit.data.prepared.database import DATABASE, commit, new_database
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.sources.split_files import SPLITS
from toolkit.errors import DataError
from toolkit.workload import Progress
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MARKERS, MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.division import TRAIN
from toolkit.workloads.entity_disambiguation.data.entities.read_folder import check_type_systems
from toolkit.workloads.entity_disambiguation.data.entities.slices import GoldCounts, built_slices
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.entity_tables import EntityTables, Names
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.rows import MentionRows
from toolkit.workloads.entity_disambiguation.data.samples.slice_members import members, slice_names
from toolkit.workloads.entity_disambiguation.data.samples.source_files import SentenceFile
from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED, OUTSIDE

#: Lower ends of the shares of rarer entities, for all probabilities but the first (Bootleg 1.1).
_FROM = (0.5, 0.65, 0.8, 0.95)
PROBABILITIES = (0.5, 0.62, 0.73, 0.84, 0.95)
_STEP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A trained model, for the preparation of files that are only scored.

    fingerprint  of the training data
    counts       how often training has seen each gold
    known        the properties of the training data that the model depends on
    """

    fingerprint: str
    counts: Counter[str]
    known: Known


def build(
    folder: Path,
    data: EntityMentions,
    files: Sequence[SentenceFile],
    database: EntityDatabase,
    description: dict[str, Any],
    base: Base | None,
    progress: Progress,
) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk, the manifest last.

    Raises DataError with file and line, and OSError or sqlite3.Error if writing fails.
    """
    if base is None:
        check_type_systems(Path(data.entity_db).expanduser(), data.type_systems or ())
    longest = max(data.max_tokens, data.max_entity_tokens)
    tokenizer = MarkedTokenizer(data.tokenizer_path, longest, base.known.pad_id if base else None)
    numbers = {qid: number for number, qid in enumerate(database.entity_ids, start=1)}
    types, relations = Names(), Names()
    if base is not None:
        types, relations = Names.known(base.known.types), Names.known(base.known.relations)
    entities = EntityTables(database=database, data=data, numbers=numbers, types=types, relations=relations)
    rows = MentionRows(
        data=data, database=database, entities=entities, tokenizer=tokenizer,
        counts=GoldCounts(entities=base.counts) if base else GoldCounts(),
    )  # fmt: skip
    with new_database(folder, layout.SCHEMA) as connection:
        rows.read(folder, connection, files, progress, counts=base is None)
        if base is None:
            _check_splits(rows, data)
        elif not len(rows):
            raise DataError(f"{data.path}: no sentence has a mention (aliases), so there is nothing to score")
        entities.write(folder, connection, tokenizer, progress)
        width = rows.write_candidates(folder, connection)
        counts = _write_counts(connection, rows)
        commit(connection, layout.INDICES)
        # Conditions are evaluated by another connection, which sees only committed rows.
        built = built_slices(
            counts, rows.column("width"), rows.column("popular"),
            torso_above=data.torso_above, head_above=data.head_above,
        )  # fmt: skip
        samples = np.arange(len(rows))
        labelled = {name: np.isin(samples, of) for name, of in rows.labelled.items()}
        bits = members(folder / DATABASE, data, labelled, built)
        sizes = _write_slices(connection, data, rows, bits)
    write_array(folder, layout.MEMBERS, bits)
    rows.write_arrays(folder)
    _write_masking(folder, rows, entities, counts)
    tokenizer.save(folder)
    facts_of_set = _summary(data, rows, entities, tokenizer)
    write_manifest(folder, description | facts_of_set | {"width": width, "slice_sizes": sizes})


def _check_splits(rows: MentionRows, data: EntityMentions) -> None:
    of_learnt = rows.column("split")[rows.column("labels") >= 0]
    for place, split in enumerate(SPLITS[:2]):
        if place not in of_learnt:
            where = data.path or getattr(data, split)
            raise DataError(
                f"{where}: no mention for {split} whose gold is known, not a weak label, and among the "
                "candidates; is it the right file, or does data.split leave nothing?"
            )


def _write_counts(connection: sqlite3.Connection, rows: MentionRows) -> npt.NDArray[np.int64]:
    """Write how often training has seen each gold; return it for the gold of each mention, [n]."""
    connection.executemany("INSERT INTO counts VALUES (?, ?)", rows.counts.entities.items())
    connection.execute(
        "UPDATE mentions SET count = "
        "coalesce((SELECT count FROM counts WHERE counts.gold = mentions.gold), 0)"
    )
    found = connection.execute("SELECT count FROM mentions ORDER BY sample_id")
    return np.fromiter((count for (count,) in found), np.int64)


def _write_slices(
    connection: sqlite3.Connection, data: EntityMentions, rows: MentionRows, bits: npt.NDArray[np.uint8]
) -> dict[str, dict[str, int]]:
    """Write the number of scored mentions of each slice; return it by slice and split."""
    scored, splits = rows.column("labels") != NOT_SCORED, rows.column("split")
    sizes: dict[str, dict[str, int]] = {}
    for column, name in enumerate(slice_names(data)):
        inside = (bits[:, column] > 0) & scored
        of = {split: int(np.count_nonzero(inside & (splits == place))) for place, split in enumerate(SPLITS)}
        sizes[name] = {split: of[split] for split in rows.split_sizes()}
        written = [(name, data.slices.get(name), split, size) for split, size in sizes[name].items()]
        connection.executemany("INSERT INTO slices VALUES (?, ?, ?, ?)", written)
    return sizes


def _write_masking(
    folder: Path, rows: MentionRows, entities: EntityTables, counts: npt.NDArray[np.int64]
) -> None:
    seen = np.fromiter(rows.counts.entities.values(), dtype=np.int64)
    of_entities = array("q", [0])
    of_entities.extend(rows.counts.entities[qid] for qid in entities.numbers)
    for column, values in ((layout.MASKING, counts), (layout.ENTITY_MASKING, np.asarray(of_entities))):
        write_array(folder, column, masking_probabilities(values, seen))


def _summary(
    data: EntityMentions, rows: MentionRows, entities: EntityTables, tokenizer: MarkedTokenizer
) -> dict[str, Any]:
    """Return the manifest's entries beyond the description."""
    labels, splits = rows.column("labels"), rows.column("split")
    scored = (labels != NOT_SCORED) & (splits != SPLITS.index(TRAIN))
    return {
        "sentences": rows.sentences,
        "samples": len(rows),
        "splits": rows.split_sizes(),
        "not_scored": int(np.count_nonzero(labels == NOT_SCORED)),
        "outside": int(np.count_nonzero(scored & (labels == OUTSIDE))),
        "left_out": rows.left_out,
        "entities": len(entities.numbers),
        "slices": list(slice_names(data)),
        "no_candidate": data.no_candidate,
        "types": list(entities.types.numbers),
        "relations": list(entities.relations.numbers),
        "token_dtype": token_dtype(tokenizer.size),
        "vocabulary_size": tokenizer.size,
        "pad_id": tokenizer.pad_id,
        "mask_id": tokenizer.mask_id,
        "specials_before": len(tokenizer.before),
        "stop_ids": tokenizer.stop_ids,
        "markers": {marker: tokenizer.markers[marker] for marker in MARKERS},
        "markers_like": tokenizer.like,
    }


def masking_probabilities(
    counts: npt.NDArray[np.integer], of: npt.NDArray[np.integer]
) -> npt.NDArray[np.float32]:
    """Return the probability for each count, [n], by its percentile among `of`, the counts of all entities.

    The percentile is the share of rarer entities among those that training has seen, in steps of 5 %. If
    training has seen no entity, all are rare.
    """
    seen = np.sort(of[of > 0])
    rarer = np.searchsorted(seen, counts, side="left") / max(len(seen), 1)
    # The small number corrects rounding: 0.8500000000000001 // 0.05 is 16.0
    stepped = np.floor(rarer / _STEP + 1e-9) * _STEP
    bucket = np.searchsorted(np.array(_FROM) - 1e-9, stepped, side="right")
    return np.array(PROBABILITIES, dtype=np.float32)[bucket]
