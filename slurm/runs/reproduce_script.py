"""Write a script that repeats a run, after checking that its data, models and code are unchanged."""

from __future__ import annotations

import filecmp
import hashlib
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from slurm.submission.batch.folder_guard import LINES
from toolkit.checkpoint.paths import newest_manifest
from toolkit.config import load_resolved, run_id, to_plain
from toolkit.config.checking.validate import check_into
from toolkit.config.composition import compose
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment
from toolkit.config.secrets import require_secrets
from toolkit.data.prepared.lookup import recorded_sources
from toolkit.errors import ConfigError, UserError
from toolkit.precheck.changes import replaced_models
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.attempts.records import read_attempts
from toolkit.run.kept_code.code_snapshot import check_kept
from toolkit.run.kept_code.edited_code import executed
from toolkit.run.run_dir import RunDir
from toolkit.system.output.few import few
from toolkit.system.output.sanitize import number
from toolkit.workload import silent

#: Later times (year 5138) have no date.
_NO_DATE = 1e11
#: Files that a message names.
_NAMED = 5
#: Words between two @ are replaced by values that are quoted for the shell.
_SCRIPT = r"""#!/usr/bin/env bash
# Repeat the run @TITLE@: its own code, config and seed.
#
#   bash repeat.sh                              a job, or local processes where there is no Slurm
#   bash repeat.sh submit resources.partition=gpu --cluster slurm
#   bash repeat.sh run --procs 2                here and now
#
# The new run is made in STK_EXPERIMENT_DIR, by default the folder `repeated`. STK_PYTHON is a Python with
# the same libraries. With train.reduction exact, a power of two of processes and the same kind of
# processor the weights come out the same, bit for bit.
set -euo pipefail

run=@RUN@
config=@CONFIG@
python=${STK_PYTHON:-@PYTHON@}
STK_EXPERIMENT_DIR=$(realpath -m "${STK_EXPERIMENT_DIR:-repeated}")
new=$STK_EXPERIMENT_DIR/@NAME@
export STK_EXPERIMENT_DIR PYTHONPATH=@CODE@
unset STK_CONFIG_DIR STK_FAULTS

fail() { echo "error: $*" >&2; exit 2; }
stk() { "$python" -P -m slurm "$@"; }

[ -f "$config" ] || fail "$config is gone: the run cannot be repeated without its folder"
command -v "$python" >/dev/null || fail "there is no Python $python: set STK_PYTHON"
(
cd "$run"
@GUARD@
) || exit
[ ! "$new" -ef "$run" ] || fail "STK_EXPERIMENT_DIR holds the run itself: choose another folder"
@DATA@@TORCH@
# Check that the config still makes the same experiment.
answer=$(stk plan "$config" --json)
identity=$("$python" -c 'import json, sys; print(json.loads(sys.argv[1])["identity"])' "$answer")
expected=@IDENTITY@
[ "$identity" = "$expected" ] || fail "$config makes $identity, expected $expected: it was edited, or" \
    "the version of stk that the run keeps cannot repeat it"

action=${1:-submit}
[ "$#" = 0 ] || shift
stk "$action" "$config" "$@"
echo "compare when it has finished: stk diff $run $new" >&2
"""

_DATA = r"""
# The data, as they were when this was written, and the code that the run copied from other folders.
sha256sum --check --quiet - <<'FILES' || fail "code or data have changed or are gone (see above)"
@FILES@
FILES
"""

_TORCH = r"""
torch=$("$python" -c 'from importlib.metadata import version; print(version("torch"))')
was=@VERSION@
[ "$torch" = "$was" ] || echo "warning: torch $torch here, it was $was: rounding may differ" >&2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts for a script that repeats a run.

    begun      time of the first start, seconds since the epoch; None if it was never started
    torch      version that it was trained with; None if no checkpoint has it
    sources    its data files and the user's code files with their checksums (SHA-256)
    verified   whether the run is known to be trained on these data files
    """

    run: RunDir
    experiment: Experiment
    begun: float | None
    torch: str | None
    sources: tuple[tuple[Path, str], ...]
    verified: bool


def gather(run: RunDir, *, force: bool = False) -> Facts:
    """Return the facts about a run, after checking that its inputs exist and are unchanged.

    force   accept a model that was modified after the start of the run, and edited code
    Raises DataError for missing files, UserError for changed files or if the folder cannot be repeated.
    """
    experiment = load_resolved(run.config)
    _check_folder(run, experiment)
    check_inputs(experiment)
    starts = (number(each.time_start) for each in read_attempts(run))
    for problem in () if force else replaced_models(run, experiment):
        raise UserError(f"{problem}. --force repeats the run with it")
    manifest = newest_manifest(run)
    sources = tuple(experiment.data.source_files(silent))
    recorded = recorded_sources(experiment.data, manifest.get("data"))
    if recorded is not None:
        changed = [str(path) for path, sha256 in sources if sha256 not in recorded]
        if changed:
            raise UserError(
                f"{run.run_id} was trained on other contents of {', '.join(changed)}: restore them"
            )
    return Facts(
        run=run,
        experiment=experiment,
        begun=next((start for start in starts if start is not None and 0 < start < _NO_DATE), None),
        torch=_version(manifest.get("torch")),
        sources=(*sources, *_code_files(run, experiment, force=force)),
        verified=recorded is not None or not sources,
    )


def _check_folder(run: RunDir, experiment: Experiment) -> None:
    """Raise UserError unless the folder's config makes this run, and its code is complete."""
    if run_id(experiment) != run.run_id:
        raise UserError(f"the folder {run.path} is of the run {run_id(experiment)}: rename it to this id")
    if not (run.code / "slurm").is_dir():
        raise UserError(f"{run.code} is gone: without its own code the run cannot be repeated")
    check_kept(run)
    # The stored config has literal texts, but an experiment file is composed: references are resolved.
    require_secrets(to_plain(experiment))
    with suppress(ConfigError):
        faults = compose.file_faults(run.config)
        # As stored: the user's file may be gone, and the run has its own copy.
        composed = check_into(compose.gather(run.config, (), None, faults), faults, is_stored=True)
        if identity(composed) == identity(experiment):
            return
    raise UserError(
        f"{run.config} has texts with another meaning in an experiment file (such as ${{…}}): a script "
        "cannot submit it"
    )


def _code_files(run: RunDir, experiment: Experiment, *, force: bool) -> Iterator[tuple[Path, str]]:
    """Yield the code that a new run copies from the user's folder, with the checksums of this run's copies.

    force   leave out edited files
    Raises UserError if files were edited or are gone.
    """
    copies = run.user_code
    files = {Path(experiment.task.folder) / name: copies / name for name in executed(copies)}
    edited = [file for file, copy in files.items() if not (file.is_file() and filecmp.cmp(file, copy))]
    if edited and not force:
        raise UserError(
            f"edited or gone since {run.run_id} began: {few(edited, _NAMED)}. A new run copies these files: "
            f"restore them, as they are in {copies}. --force repeats the run with today's code"
        )
    for file, copy in files.items():
        if file not in edited:
            yield file, hashlib.sha256(copy.read_bytes()).hexdigest()


def _version(found: object) -> str | None:
    """Return a version from a manifest; None if it is invalid, because it becomes part of a script."""
    with suppress(InvalidVersion, TypeError):
        if isinstance(found, str) and found.isascii():
            return str(Version(found))
    return None


def script(facts: Facts, python: str = sys.executable) -> str:
    """Return a bash script that submits the run again from its folder, and refuses changed data or config."""
    run = facts.run
    quoted = {
        "RUN": str(run.path),
        "CONFIG": str(run.config),
        "CODE": str(run.code),
        "PYTHON": python,
        "NAME": run.run_id,
        "IDENTITY": identity(facts.experiment),
    }
    files = "\n".join(_check_line(str(path), sha256) for path, sha256 in facts.sources)
    values = {name: shlex.quote(value) for name, value in quoted.items()}
    # The title is in a comment and cannot be quoted, so line breaks are removed.
    values["TITLE"] = " ".join(f"{run.run_id}{_start_and_torch(facts)}".split())
    values["GUARD"] = "\n".join(LINES)
    values["DATA"] = _fill(_DATA, {"FILES": files}) if files else ""
    values["TORCH"] = _fill(_TORCH, {"VERSION": shlex.quote(facts.torch)}) if facts.torch else ""
    return _fill(_SCRIPT, values)


def _fill(template: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], template)


def _start_and_torch(facts: Facts) -> str:
    """Return the time of the first start and the version of torch, in parentheses; empty if unknown."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.begun)) if facts.begun is not None else ""
    facts_known = [f"begun on {began}" if began else "", f"torch {facts.torch}" if facts.torch else ""]
    words = ", ".join(filter(None, facts_known))
    return f" ({words})" if words else ""


def _check_line(path: str, sha256: str) -> str:
    """Return a line for sha256sum, which escapes special names and marks them with a leading backslash."""
    escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == path else chr(92)}{sha256}  {escaped}"
