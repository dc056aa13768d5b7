"""The words of a command line: an experiment from them, and the words that a run starts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any

from toolkit.config.composition.interpolation import literal
from toolkit.config.composition.yaml_files import mapped
from toolkit.run.run_dir import RunDir

#: The module that calls a user's function in the job.
CALL = "toolkit.workloads.custom.calling.call"
#: Endings of scripts.
SCRIPTS = (".py", ".sh")
#: Placeholder for the run's folder: its name depends on these very values.
RUN_DIR = "${run.dir}"
#: A path that begins with `..`, as a word or as the value of an option or key.
_OUTSIDE = re.compile(r"([^=\s]*=)?(\.\.(?:/.*)?)", re.DOTALL)
#: Programs and modules that start the processes of a host themselves.
_LAUNCHERS = frozenset(
    {
        "torchrun",
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate",
        "accelerate-launch",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
        "deepspeed",
        "deepspeed.launcher.runner",
    }
)
#: Options of a wrapper that no value follows. A word behind another option may be its value.
_FLAG = re.compile(r"--|-q|--(no-sync|no-dev|locked|frozen|offline|isolated|live-stream|no-capture-output)")
#: Programs that take the image of a container.
_OF_CONTAINERS = frozenset({"apptainer", "singularity", "docker", "podman", "enroot"})
_SCRIPT = re.compile(r"[^-].*\.(py|sh)")
_LONGEST_NAME = 64


def experiment_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the experiment of a command, as in an experiment file: named after its script or program."""
    launch = "node" if launcher(words) else "each"
    task = {"kind": "command", "run": literal(list(words)), "launch": launch}
    return {"name": _name(words), "task": task}


def launcher(words: Sequence[str]) -> str:
    """Return the launcher that is the program, also after `uv run` and its like; empty without one."""
    takes_image = False
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        name = PurePath(word).name
        is_program = _may_be_program(word, after, takes_image=takes_image)
        if name == "accelerate":
            is_program &= after == "launch"
        elif name == "deepspeed" and before.startswith("-"):
            # Behind another option it is the name of a package, an environment, an image or a strategy.
            is_program &= not takes_image and _FLAG.fullmatch(before) is not None
        if name in _LAUNCHERS and is_program:
            return name
        takes_image |= name in _OF_CONTAINERS
        # The words after a script or module are its arguments.
        if before == "-m" or _SCRIPT.fullmatch(word):
            break
    return ""


def _may_be_program(word: str, after: str, *, takes_image: bool) -> bool:
    """Whether a word is a name, or a path that is not the image of a container."""
    path = PurePath(word)
    if word == path.name or path.parent.name == "bin":
        return True
    # A program follows an image, such as /images/deepspeed.
    is_image = takes_image and not (after == "launch" or after.startswith("-") or _SCRIPT.fullmatch(after))
    return word.startswith(("/", ".", "~")) and not is_image


def _name(words: Sequence[str]) -> str:
    script = next((word for word in words if _SCRIPT.fullmatch(word)), None)
    if script is not None:
        found = PurePath(script).stem
    elif "-m" in words[1:-1]:
        found = words[words.index("-m") + 1].rpartition(".")[2]
    else:
        found = PurePath(words[0]).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", found).lstrip("._-")[:_LONGEST_NAME] or "command"


def words_of(experiment: Any, run: RunDir) -> list[str]:
    """Return the program, its arguments and the parameters, for a start in the run's work folder.

    A script that the run has copied is replaced by the copy. A path that begins with `../` becomes absolute,
    relative to the user's folder.
    """
    words = [_run_copy(word, Path(experiment.task.folder), run) for word in experiment.task.run]
    return [*_filled(words, experiment, run), *_options(_filled(experiment.params, experiment, run))]


def _run_copy(word: str, folder: Path, run: RunDir) -> str:
    """Return a word, or the run's copy of a script with an absolute path: the original may be edited."""
    name = inside(folder, Path(word)) if word.endswith(SCRIPTS) and os.path.isabs(word) else None
    return str(run.work / name) if name and (run.user_code / name).is_file() else word


def inside(folder: Path, path: Path) -> Path | None:
    """Return a path relative to a folder; None if it is outside. Links in either are followed if needed."""
    for below, above in ((path, folder), (path.resolve(), folder.resolve())):
        if below.is_relative_to(above):
            return below.relative_to(above)
    return None


def params_json(experiment: Any, run: RunDir) -> str:
    """The parameters as JSON."""
    return json.dumps(_filled(experiment.params, experiment, run), ensure_ascii=False)


def _filled(value: Any, experiment: Any, run: RunDir) -> Any:
    """Return a value with ${run.dir} replaced, and with paths that leave the user's folder made absolute."""

    def filled(each: Any) -> Any:
        if not isinstance(each, str):
            return each
        if match := _OUTSIDE.fullmatch(each):
            each = f"{match[1] or ''}{experiment.task.folder}/{match[2]}"
        return each.replace(RUN_DIR, str(run.path))

    return mapped(value, filled)


def _options(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if value is not True:
            for each in value if isinstance(value, list) else [value]:
                yield json.dumps(each) if isinstance(each, bool) else _number_or_text(each)


def _number_or_text(value: Any) -> str:
    """Return a value as a word; a negative number without exponent: for argparse -1e-05 is an option."""
    is_negative = isinstance(value, float) and value < 0
    return format(Decimal(repr(value)), "f") if is_negative else str(value)
