"""Inputs of a run, and whether they are unchanged."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from toolkit.config import identity, load, load_resolved, run_id, to_plain
from toolkit.config.schema import Experiment
from toolkit.config.secrets import require_secrets
from toolkit.errors import ConfigError, UserError
from toolkit.files import read_json
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.system.sanitize import number
from toolkit.training.warm_start.find import find_weights
from toolkit.workload import silent

_META = "meta.json"
#: From here on a moment has no date: the year 5138.
_NO_DATE = 1e11
_FINGERPRINT = re.compile(r"[0-9a-f]{16,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts for a script that repeats a run.

    begun      when it was first started, seconds since the epoch; None where it never was
    torch      the version that it trained with; None where no checkpoint tells
    sources    its data files with their checksums (SHA-256)
    verified   whether these are known to be what the run was trained on
    """

    run: RunDir
    experiment: Experiment
    begun: float | None
    torch: str | None
    sources: tuple[tuple[Path, str], ...]
    verified: bool

    @property
    def identity(self) -> str:
        return identity(self.experiment)


def gather(run: RunDir, *, force: bool = False) -> Facts:
    """Find what a run was made of.

    force   also where a model was written to since the run began
    Raises DataError for what is gone, UserError for what has changed, or where the folder cannot be repeated.
    """
    experiment = load_resolved(run.config)
    _check_folder(run, experiment)
    check_inputs(experiment)
    begun = next(filter(None, (_moment(each.time_start) for each in read_attempts(run))), None)
    if begun is not None and not force:
        _check_models(run, experiment, begun)
    manifest = _manifest(run)
    sources = tuple(experiment.data.source_files(silent))
    recorded = _recorded(experiment.data.prepared_dir, manifest.get("data"))
    if recorded is not None:
        _check_sources(run, sources, recorded)
    return Facts(
        run=run,
        experiment=experiment,
        begun=begun,
        torch=_version(manifest.get("torch")),
        sources=sources,
        verified=recorded is not None,
    )


def _check_folder(run: RunDir, experiment: Experiment) -> None:
    """Raise UserError unless its config makes this very run, and its code is there."""
    if run_id(experiment) != run.run_id:
        raise UserError(f"the folder {run.path} holds the run {run_id(experiment)}: give it this name first")
    if not (run.code / "slurm").is_dir():
        raise UserError(f"{run.code} is gone: without its own code the run cannot be repeated")
    # The stored config holds texts literally; as an experiment file it is composed.
    require_secrets(to_plain(experiment))
    with suppress(ConfigError):
        if identity(load(run.config)) == identity(experiment):
            return
    raise UserError(
        f"{run.config} holds texts that mean something else in an experiment file (such as ${{…}}): a script "
        "cannot submit it"
    )


def _check_models(run: RunDir, experiment: Experiment, begun: float) -> None:
    """Raise UserError where a model that the run began with was written to since."""
    for key, file in _model_files(experiment):
        if file.stat().st_mtime > begun:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.stat().st_mtime))
            raise UserError(
                f"{key}: {file} was written to on {when}, after {run.run_id} had begun: it may be "
                "another model. --force repeats the run with it"
            )


def _model_files(experiment: Experiment) -> Iterator[tuple[str, Path]]:
    yield from experiment.model.files()
    key, name = "train.start_from_checkpoint", experiment.train.start_from_checkpoint
    if name is not None:
        yield key, find_weights(key, name).file


def _manifest(run: RunDir) -> dict[str, Any]:
    """Return the newest readable checkpoint's record of data and library; empty without one."""
    for step in reversed(run.checkpoint_steps()):
        with suppress(OSError, ValueError):
            manifest = read_json(run.checkpoint(step) / MANIFEST)
            if isinstance(manifest, dict):
                return manifest
    return {}


def _moment(found: object) -> float | None:
    """A point in time that has a date; None for anything else."""
    moment = number(found)
    return moment if moment is not None and 0 < moment < _NO_DATE else None


def _version(found: object) -> str | None:
    """A version that a manifest tells; None for what is none: it gets into a script."""
    with suppress(InvalidVersion, TypeError):
        if isinstance(found, str) and found.isascii():
            return str(Version(found))
    return None


def _recorded(prepared_dir: str, fingerprint: object) -> set[str] | None:
    """Checksums of the files that the run's prepared data were made of; None where that cannot be told."""
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        return None
    for file in sorted(Path(prepared_dir).expanduser().glob(f"*-{fingerprint[:16]}/{_META}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            meta = read_json(file)
            if meta["fingerprint"] == fingerprint:
                return {part for each in meta["sources"] for part in each["sha256"].split(" ")}
    return None


def _check_sources(run: RunDir, sources: tuple[tuple[Path, str], ...], recorded: set[str]) -> None:
    changed = [str(path) for path, sha256 in sources if sha256 not in recorded]
    if changed:
        raise UserError(f"{run.run_id} was trained on other contents of {', '.join(changed)}: put them back")
