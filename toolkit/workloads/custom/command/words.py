"""The words of a command: its own, and its parameters as options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.run.run_dir import RunDir

#: Stands for the run's folder, which depends on all that is written here.
_RUN_DIR = "${run.dir}"


def words_of(experiment: Any, run: RunDir) -> list[str]:
    """The program, its arguments, and the parameters."""
    own = [_filled(word, run) for word in experiment.task.run]
    return [*own, *_options(filled_params(experiment, run))]


def filled_params(experiment: Any, run: RunDir) -> Mapping[str, Any]:
    """The parameters, with the run's folder where it is named."""
    found: Mapping[str, Any] = _mapped(experiment.params, run)
    return found


def params_json(experiment: Any, run: RunDir) -> str:
    """The same as JSON."""
    return json.dumps(filled_params(experiment, run), ensure_ascii=False)


def _mapped(value: Any, run: RunDir) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(inner, run) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner, run) for inner in value]
    return _filled(value, run) if isinstance(value, str) else value


def _filled(text: str, run: RunDir) -> str:
    return text.replace(_RUN_DIR, str(run.path))


def _options(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if value is not True:
            yield from map(_word, value if isinstance(value, list) else [value])


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
