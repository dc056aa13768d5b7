"""Archived runs, unpacked where a test wants them."""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.old_runs import experiments
from toolkit.run.run_dir import TRAINING, WEIGHTS, RunDir

ARCHIVES = Path(__file__).parent
#: What interrupted the run of misspelt.
STOPPED = "term at=forward step=9"
#: Stored experiments of a version, one of each that it ships; named by the runs they make.
SHIPPED = "shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRuns:
    """Runs that one version left.

    finished     of text classification
    interrupted  of the detection of misspelt words, in the middle
    """

    finished: RunDir
    interrupted: RunDir


def archives() -> list[str]:
    """The versions of which there are runs."""
    return sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz"))


def unpack(version: str, folder: Path) -> OldRuns:
    """Unpack the runs of a version into a folder that is to be the working folder, with their data."""
    experiments.write(folder)
    with tarfile.open(ARCHIVES / f"{version}.tar.xz") as packed:
        # Our own archive; the filter came with Python 3.11.4.
        packed.extractall(folder)
    runs = folder / "experiments"
    (finished,), (interrupted,) = runs.glob("reviews-*"), runs.glob("misspelt-*")
    return OldRuns(finished=RunDir(finished), interrupted=RunDir(interrupted))


def digests(run: RunDir) -> dict[str, str]:
    """SHA-256 of the weights and the state of training at a run's end, and of its best weights."""
    files = {"weights": run.last / WEIGHTS, "training": run.last / TRAINING, "best": run.best / WEIGHTS}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
