"""The words of a command: its own, and its parameters as options."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolkit.config.composition.yaml_files import mapped
from toolkit.run.run_dir import RunDir

#: The module that calls a function of the user's in the job.
CALL = "toolkit.workloads.custom.calling.call"
#: Endings of scripts.
SCRIPTS = (".py", ".sh")
#: Placeholder for the run's folder, which depends on all that is written here.
_RUN_DIR = "${run.dir}"
#: A path that leads out of the folder of the command, alone or as the value of an option.
_OUTSIDE = re.compile(r"(-[^=\s]*=)?(\.\.(?:/.*)?)", re.DOTALL)


def words_of(experiment: Any, run: RunDir) -> list[str]:
    """The program, its arguments, and the parameters, for a start in the run's work folder.

    A script of the run's code is that of the run; a path that begins with `../` leads to where it does in the
    user's folder.
    """
    words = [_kept(word, Path(experiment.task.folder), run) for word in experiment.task.run]
    return [*_filled(words, experiment, run), *_options(_filled(experiment.params, experiment, run))]


def _kept(word: str, folder: Path, run: RunDir) -> str:
    """A word; of a script by its absolute path, the copy of it: the one of the folder may be edited."""
    name = inside(folder, Path(word)) if word.endswith(SCRIPTS) and os.path.isabs(word) else None
    return str(run.work / name) if name and (run.user_code / name).is_file() else word


def inside(folder: Path, path: Path) -> Path | None:
    """A path relative to a folder, which either may name by a link; None for one outside of it."""
    for below, above in ((path, folder), (path.resolve(), folder.resolve())):
        if below.is_relative_to(above):
            return below.relative_to(above)
    return None


def params_json(experiment: Any, run: RunDir) -> str:
    """The parameters as JSON."""
    return json.dumps(_filled(experiment.params, experiment, run), ensure_ascii=False)


def _filled(value: Any, experiment: Any, run: RunDir) -> Any:
    """A value with the run's folder where it is named, and paths out of the user's folder absolute."""

    def filled(each: Any) -> Any:
        if not isinstance(each, str):
            return each
        if match := _OUTSIDE.fullmatch(each):
            each = f"{match[1] or ''}{experiment.task.folder}/{match[2]}"
        return each.replace(_RUN_DIR, str(run.path))

    return mapped(value, filled)


def _options(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if value is not True:
            yield from map(_word, value if isinstance(value, list) else [value])


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
