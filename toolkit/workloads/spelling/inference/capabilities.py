"""The uses of runs of each task. Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolkit.checkpoint.finished import finished_result
from toolkit.config import load_resolved
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir

DETECTORS = ("sed_words", "sed_sequence", "tokenization_repair_plus")
CORRECTORS = ("sec_nmt", "sec_words_nmt", "tokenization_repair", "tokenization_repair_plus")

_WRITES = {"sec": "text", "sed_words": "changed", "sed_sequence": "any_change"}
#: By task: the kinds of benchmarks that its runs can predict, with the output format for each kind.
ON_BENCHMARKS: Mapping[str, Mapping[str, str]] = {
    "sed_words": {"sed_words": "labels", "sed_sequence": "any"},
    "sed_sequence": {"sed_sequence": "labels"},
    "sec_nmt": _WRITES,
    "sec_words_nmt": _WRITES,
    "tokenization_repair": {"tokenization_repair": "repaired"},
    "tokenization_repair_plus": {
        "tokenization_repair": "repaired",
        "sed_words": "labels",
        "sed_sequence": "any",
    },
}


def check_use(run: RunDir, tasks: Collection[str], otherwise: str) -> str:
    """Return the name of a finished run's task, which must be one of these. Raises UserError.

    otherwise  why a run of another task cannot be used, as a part of the message
    """
    finished_result(run)
    kind = str(load_resolved(run.config).task.kind)
    if kind not in tasks:
        raise UserError(
            f"{run.run_id} is a run of {kind}, which {otherwise}: expected one of {', '.join(tasks)}"
        )
    return kind
