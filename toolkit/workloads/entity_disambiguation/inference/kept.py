"""The data that a run keeps for new sentences: sizes, tokenizer, entities, encoders. Imports no torch."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.config.schema import Experiment
from toolkit.data.prepared.build_once import publish_once
from toolkit.errors import DataError
from toolkit.files import link_or_copy, read_json, write_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir
from toolkit.workload import silent
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import write_without_markers
from toolkit.workloads.entity_disambiguation.data.entities.contents import current_folder
from toolkit.workloads.entity_disambiguation.data.entities.write_folder import folder_fingerprint
from toolkit.workloads.entity_disambiguation.data.samples.build import Base
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.prepared import MentionSet
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles

_LOCK_TIMEOUT_S = 600.0
#: More layers than any model has.
_ALL = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The data that a model needs besides its weights.

    tokenizer  folder of the tokenizer without markers, or its name on the hub
    entity_db  folder of the database
    encoder    folder of the frozen encoder of entities, or its name on the hub
    """

    known: Known
    tokenizer: str
    entity_db: Path
    encoder: str


def keep(run: RunDir, data: Any, prepared: MentionSet) -> None:
    """Keep tokenizer and entities in a run's folder.

    A database that has changed since the set was prepared is not kept, because the model has not seen it.
    """
    files = DisambiguationFiles(run)
    write_without_markers(prepared.tokenizer_files, ExportedFiles(run).encoding)
    folder = Path(data.entity_db).expanduser()
    if current_folder(folder).is_dir() and folder_fingerprint(folder) == prepared.meta["entity_db"]:
        shutil.rmtree(files.entity_db, ignore_errors=True)
        _keep_database(current_folder(folder), prepared, files.entity_db)
    write_json(files.gold_counts, prepared.base().counts)
    write_json(files.known, asdict(Known.of(prepared.meta)))


def _keep_database(source: Path, prepared: MentionSet, target: Path) -> None:
    """Keep a database with a run.

    On the same file system, the run links to a copy next to the prepared set, which other runs link to, too.
    It never links to the database itself, because the user may change the database.
    """
    fingerprint, sets = prepared.meta["entity_db"], prepared.path.parent
    if os.stat(sets).st_dev == os.stat(target.parent).st_dev:
        shared = sets / f"entity_db-{fingerprint[:16]}"

        def fill(folder: Path) -> None:
            shutil.copytree(source, folder, dirs_exist_ok=True)

        # The folder of prepared sets may belong to another user.
        with suppress(DataError):
            publish_once(shared, fill, lambda: folder_fingerprint(shared) == fingerprint, _LOCK_TIMEOUT_S)
            shutil.copytree(shared, target, copy_function=link_or_copy)
            return
    shutil.copytree(source, target)


def kept(run: RunDir, experiment: Experiment, fingerprint: str) -> Kept:
    """Read the data that a run keeps. For runs of older versions, missing data are read from their origin.

    fingerprint  fingerprint of the run's training data
    Raises DataError if data are missing, or if the training data have changed.
    """
    files, data = DisambiguationFiles(run), experiment.data
    stored = read_json(files.known)
    known = _of_data(run, data, fingerprint) if stored is None else _read(files.known, stored)
    database, encoder = files.entity_db, files.entity_encoder
    if not database.is_dir():
        database = Path(data.entity_db).expanduser()
        if not current_folder(database).is_dir():
            raise DataError(
                f"{run.run_id} did not keep a database of entities, and {database} is not a folder: put the "
                "run's database there"
            )
    return Kept(
        known=known,
        tokenizer=data.tokenizer_path if stored is None else str(ExportedFiles(run).encoding),
        entity_db=database,
        encoder=str(encoder) if encoder.is_dir() else experiment.model.path,
    )


def kept_base(run: RunDir, fingerprint: str) -> Base | None:
    """Read the properties of training for scoring other files; None if the run does not keep them all.

    fingerprint  fingerprint of the run's training data
    Raises DataError for a damaged file.
    """
    files = DisambiguationFiles(run)
    stored, counts = read_json(files.known), read_json(files.gold_counts)
    if stored is None or counts is None or not files.entity_db.is_dir():
        return None
    return Base(fingerprint=fingerprint, counts=Counter(counts), known=_read(files.known, stored))


def without_origin(run: RunDir, experiment: Experiment) -> Experiment:
    """Return the experiment without its initial weights: the trained weights are loaded instead."""
    model, exported = experiment.model, ExportedFiles(run).model
    if not exported.is_dir():
        return experiment
    if not (exported / "config.json").is_file():
        # Two encoders were made from one initial model. The encoder with more layers can initialise both.
        exported /= "entity" if (model.context_layers or _ALL) < (model.entity_layers or _ALL) else "context"
    return replace(experiment, model=replace(model, path=str(exported)))


def _of_data(run: RunDir, data: Any, fingerprint: str) -> Known:
    prepared = data.prepare(silent)
    if prepared.fingerprint != fingerprint:
        raise DataError(
            f"{run.run_id} was trained with a version that did not keep the properties of the data, and its "
            "training data have changed since: restore the data that it was trained on"
        )
    return Known.of(prepared.meta)


def _read(path: Path, stored: Mapping[str, Any]) -> Known:
    try:
        return Known.of(stored)
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}") from error
