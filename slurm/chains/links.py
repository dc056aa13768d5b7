"""The runs of a chain: composed and checked together, before any of them is handed in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slurm.submission.checks.early_checks import check_before_queue
from slurm.submission.submit import check
from toolkit.config import load_with_origins
from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.run.create_run import run_of
from toolkit.run.run_dir import RunDir

#: While a file behind --then is composed: the folder of the run before it.
EARLIER_RUN = "STK_EARLIER_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One run of a chain.

    origins   where the keys of its experiment were written
    """

    experiment: Experiment
    run: RunDir
    origins: Origins | None = None


def read_links(files: Sequence[Sequence[str]], parent: Path) -> list[Link]:
    """Compose the experiments of a chain; each file may name the run before it as ${oc.env:STK_EARLIER_RUN}.

    files   each a file and the keys that are set in it, `key=value`
    Raises ConfigError, and UserError where two of them are the same run.
    """
    links: list[Link] = []
    for file, *overrides in files:
        with _earlier(links[-1].run if links else None):
            experiment, origins = load_with_origins(Path(file), overrides)
        run = run_of(experiment, parent)
        if run in [link.run for link in links]:
            raise UserError(f"{file} makes the run {run.run_id} a second time: a run cannot wait for itself")
        links.append(Link(experiment=experiment, run=run, origins=origins))
    return links


@contextmanager
def _earlier(run: RunDir | None) -> Iterator[None]:
    """Name the run before in the environment, for the composition of the next."""
    before = os.environ.get(EARLIER_RUN)
    if run is not None:
        os.environ[EARLIER_RUN] = str(run.path)
    try:
        yield
    finally:
        if run is not None:
            os.environ.pop(EARLIER_RUN)
            if before is not None:
                os.environ[EARLIER_RUN] = before


def check_links(links: Sequence[Link], cluster: str, *, fresh: bool) -> list[str]:
    """Raise where one of them could never run: ConfigError, DataError, SlurmRefused. Nothing is written.

    What a run takes from one before it in the chain is not there yet, and is not looked for.
    Returns a line for each warning.
    """
    coming: dict[Path, Experiment] = {}
    warnings: list[str] = []
    for link in links:
        if link.run.result.exists() and not fresh:
            continue
        warnings += check_before_queue(link.experiment, link.origins, cluster, coming)
        if cluster == "slurm":
            check(link.experiment, link.experiment.resources, link.run, "1" if coming else None)
        coming[link.run.path] = link.experiment
    return warnings
