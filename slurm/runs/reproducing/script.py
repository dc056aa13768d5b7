"""The script that repeats a run. Pure: facts in, text out."""

from __future__ import annotations

import re
import shlex
import sys
import time

from slurm.runs.reproducing.facts import Facts
from slurm.submission.batch.folder_guard import LINES

#: What stands between two @ is filled in, quoted for the shell.
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

fail() { echo "error: $1" >&2; exit 2; }
stk() { "$python" -P -m slurm "$@"; }

[ -f "$config" ] || fail "$config is gone: the run cannot be repeated without its folder"
command -v "$python" >/dev/null || fail "there is no Python $python: set STK_PYTHON"
(
cd "$run"
@GUARD@
) || exit
[ ! "$new" -ef "$run" ] || fail "STK_EXPERIMENT_DIR holds the run itself: choose another folder"
@DATA@@TORCH@
# The same experiment, to the last key that matters.
answer=$(stk plan "$config" --json)
identity=$("$python" -c 'import json, sys; print(json.loads(sys.argv[1])["identity"])' "$answer")
expected=@IDENTITY@
[ "$identity" = "$expected" ] || fail "$config makes $identity, expected $expected: it was edited"

action=${1:-submit}
[ "$#" = 0 ] || shift
stk "$action" "$config" "$@"
echo "compare when it has finished: stk diff $run $new" >&2
"""

_DATA = r"""
# The data, as they were when this was written.
sha256sum --check --quiet - <<'FILES' || fail "data have changed or are gone (see above)"
@FILES@
FILES
"""

_TORCH = r"""
torch=$("$python" -c 'from importlib.metadata import version; print(version("torch"))')
was=@VERSION@
[ "$torch" = "$was" ] || echo "warning: torch $torch here, it was $was: rounding may differ" >&2
"""


def script(facts: Facts, python: str = sys.executable) -> str:
    """A bash script that submits the run anew from its folder, if all it was made of is as it was."""
    run = facts.run
    quoted = {
        "RUN": str(run.path),
        "CONFIG": str(run.config),
        "CODE": str(run.code),
        "PYTHON": python,
        "NAME": run.run_id,
        "IDENTITY": facts.identity,
    }
    files = "\n".join(_check_line(str(path), sha256) for path, sha256 in facts.sources)
    values = {name: shlex.quote(value) for name, value in quoted.items()}
    # In a comment nothing is quoted, so nothing may end its line.
    values["TITLE"] = " ".join(f"{run.run_id}{_of(facts)}".split())
    values["GUARD"] = "\n".join(LINES)
    values["DATA"] = _fill(_DATA, {"FILES": files}) if files else ""
    values["TORCH"] = _fill(_TORCH, {"VERSION": shlex.quote(facts.torch)}) if facts.torch else ""
    return _fill(_SCRIPT, values)


def _fill(template: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], template)


def _of(facts: Facts) -> str:
    """When it was begun, and with which torch; in brackets."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.begun)) if facts.begun is not None else ""
    told = [f"begun on {began}" if began else "", f"torch {facts.torch}" if facts.torch else ""]
    words = ", ".join(filter(None, told))
    return f" ({words})" if words else ""


def _check_line(path: str, sha256: str) -> str:
    """A line for sha256sum, which marks names with odd characters by a backslash before the line."""
    escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == path else chr(92)}{sha256}  {escaped}"
