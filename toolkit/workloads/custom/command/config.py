"""The experiment of a command: the program, its parameters, its inputs and its code."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.fields import absent, option
from toolkit.config.schema import Checkpoint, Evaluation, Experiment, LrScheduler, Optimizer, Train
from toolkit.config.secrets import RECORDED, exposed, masked, reference, texts
from toolkit.config.serialize import to_plain
from toolkit.workload import NoData, NoModel, Violation, rule
from toolkit.workloads.custom.command.words import SCRIPTS, inside, launcher

#: Serves as the batch size, which otherwise limits the number of ranks.
_MOST_RANKS = 65_536
#: An option of torchrun that names more than one host.
_OTHER_HOSTS = re.compile(r"--nnodes?[ =](?!1(:1)?( |$))")
_PYTHON = re.compile(r"python[\d.]*")
_SHELL = re.compile(r"(ba|da|k|z)?sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command, run in as many processes as the job has."""

    kind: str = option("command", choices=("command",))
    """Your own command."""
    run: tuple[str, ...] = option()
    """The program and its arguments, such as [python, train.py]; ${run.dir} is the run's folder."""
    launch: str = option("each", choices=("each", "node"))
    """each: one process per rank; node: one per host, for a launcher such as torchrun."""
    folder: str = option(".", path=True, identity=False)
    """Folder in which you would type the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExperiment(Experiment):
    """A command, and where it runs."""

    model: Any = absent(NoModel())
    data: Any = absent(NoData())
    seed: int = absent(0)
    train: Train = absent(Train(batch_size=_MOST_RANKS))
    optimizer: Optimizer = absent(Optimizer())
    lr_scheduler: LrScheduler = absent(LrScheduler())
    checkpoint: Checkpoint = absent(Checkpoint())
    evaluation: Evaluation = absent(Evaluation())
    params: dict[str, Any] = option(factory=dict)
    """Options of the command: `lr: 0.001` gives --lr 0.001, `amp: true` gives --amp, a list several words,
    false and null nothing."""
    inputs: tuple[str, ...] = option((), path=True)
    """Files and folders that the command reads, which must exist."""
    code: tuple[str, ...] = option((".",), path=True, identity=False)
    """Folders whose code the run keeps: the files that git tracks, and new scripts beside them and in
    packages; without git all small files."""

    @property
    def each_rank_needs_a_gpu(self) -> bool:
        """False: the command chooses its device."""
        return False

    @property
    def warnings_of_several_ranks(self) -> Iterator[Violation]:
        """A launcher on each rank, if nothing tells it of other hosts: its processes know only each other."""
        words, name = self.task.run, launcher(self.task.run)
        environment = {**os.environ, **getattr(self.resources, "environment", {})}
        is_told = "PET_NNODES" in environment or _OTHER_HOSTS.search(" ".join(words)) is not None
        if self.task.launch == "each" and name.startswith(("torch", "deepspeed")) and not is_told:
            problem = f"each rank starts {name}: the ranks may train separately and write into one run"
            hint = "task.launch=node, which makes another run"
            if name.startswith("deepspeed"):
                hint += "; torchrun for several hosts"
            yield Violation(key=("task", "launch"), problem=problem, hint=hint)


@rule("task.run")
def command_is_not_empty(experiment: Any) -> Iterator[Violation]:
    """Find a command without words."""
    if not experiment.task.run or not experiment.task.run[0]:
        problem = "found no command, expected a program and its arguments"
        yield Violation(key=("task", "run"), problem=problem, hint="run: [python, train.py]")


@rule("params")
def params_are_values(experiment: Any) -> Iterator[Violation]:
    """Find parameters that cannot be written as options."""
    for name, value in experiment.params.items():
        if not name or name.startswith("-") or any(character.isspace() for character in name):
            problem = f"found {name!r}, expected the name of an option without its dashes"
            yield Violation(key=("params", name), problem=problem, hint="as in: lr: 0.001")
        elif any(isinstance(each, dict | list) for each in (value if isinstance(value, list) else [value])):
            problem = "found values within values, expected a number, a text, true, false or a list of these"
            yield Violation(key=("params", name), problem=problem)


@rule("task.run", "params", holds_for_stored=False)
def words_have_no_secrets(experiment: Any) -> Iterator[Violation]:
    """Find values that the shell has inserted, as in `--hub-token "$HF_TOKEN"`."""
    plain, values = to_plain(experiment), exposed()
    for key, text in texts({"task": {"run": plain["task"]["run"]}, "params": plain["params"]}):
        # The password of a URL has a fault of its own.
        if name := next((name for name, value in values.items() if value.search(masked(text))), ""):
            problem = f"found the value of the variable {name}, which has the name of a secret: {RECORDED}"
            hint = f"write '{reference(name)}'; `stk resume RUN` continues a run that has it already"
            yield Violation(key=key, problem=problem, hint=hint)


@rule("inputs", holds_for_stored=False)
def inputs_exist(experiment: Any) -> Iterator[Violation]:
    """Find inputs that are missing."""
    for index, name in enumerate(experiment.inputs):
        if not Path(name).exists():
            yield Violation(key=("inputs", str(index)), problem=f"there is no {name}")


@rule("code", "task.folder", holds_for_stored=False)
def code_is_in_the_folder(experiment: Any) -> Iterator[Violation]:
    """Find code that is missing, or outside of the command's folder."""
    folder = Path(experiment.task.folder)
    for index, name in enumerate(experiment.code):
        key = ("code", str(index))
        if not Path(name).exists():
            yield Violation(key=key, problem=f"there is no {name}")
        elif inside(folder, Path(name)) is None:
            problem = f"{name} is outside of {folder}, the folder of the command"
            yield Violation(key=key, problem=problem, hint="leave it out: then it is used in place")


RULES = (command_is_not_empty, params_are_values, words_have_no_secrets, inputs_exist, code_is_in_the_folder)


def missing_script(experiment: Any) -> Iterator[Violation]:
    """Find a script that is missing or cannot be started, and a command in one word."""
    words, folder = experiment.task.run, Path(experiment.task.folder)
    if right := _divided(words[0], folder):
        problem = f"found {words[0]!r} as the program, expected each argument as a word of its own"
        yield Violation(key=("task", "run", "0"), problem=problem, hint=right)
        return
    has_setup = bool(getattr(experiment.resources, "setup", ()))
    for place, word in enumerate(words[:2]):
        if not _is_script(words, place) or "$" in word:
            continue
        program = "python" if word.endswith(".py") else "bash"
        key = ("task", "run", str(place))
        right = f"run: [{program}, {Path(word).name}]"
        if os.path.normpath(word).startswith(".."):
            problem = f"{word} is outside of {folder}, the folder of the command, and is not copied"
            hint = f"start in a folder that contains it, or use it in place: {os.path.abspath(folder / word)}"
            yield Violation(key=key, problem=problem, hint=hint)
        elif not (folder / word).exists():
            yield Violation(key=key, problem=f"there is no {folder / word}", hint=f"as in {right}")
        elif place == 0 and "/" not in word:
            yield Violation(key=key, problem=f"found {word}, which is not a program", hint=right)
        elif place == 0 and (folder / word).is_dir():
            yield Violation(key=key, problem=f"{word} is a folder, expected a program")
        # The permission of any user counts: the job may run as another one. Its setup may also change
        # the permission.
        elif place == 0 and not ((folder / word).stat().st_mode & 0o111 or has_setup):
            hint = f"{program} {word}, or " if word.endswith(SCRIPTS) else ""
            yield Violation(key=key, problem=f"{word} is not executable", hint=f"{hint}chmod +x {word}")


def missing_program(experiment: Any) -> Iterator[Violation]:
    """Find a program that is not installed here. The hosts of a job may have it nevertheless."""
    words, folder = experiment.task.run, Path(experiment.task.folder)
    if _is_script(words, 0) or {"/", "$"} & {*words[0]} or _divided(words[0], folder):
        return
    if shutil.which(words[0]) is None:
        problem = f"there is no program {words[0]} in PATH here"
        hint = "the run fails where it is missing"
        yield Violation(key=("task", "run", "0"), problem=problem, hint=hint)


def _divided(word: str, folder: Path) -> str:
    """Return how a program or script with arguments is written; empty if this word is not one."""
    try:
        words = shlex.split(word)
    except ValueError:
        return ""
    # Unlike those of Path, these functions accept a word that is too long for a path.
    if len(words) < 2 or os.path.exists(folder / word) or shutil.which(word) is not None:
        return ""
    is_file = os.path.isfile(folder / words[0])
    if is_file and words[0].endswith(SCRIPTS):
        words = ["python" if words[0].endswith(".py") else "bash", *words]
    elif not is_file and shutil.which(words[0]) is None:
        return ""
    # Imported late: only needed for an error.
    import yaml

    listed = yaml.safe_dump(words, default_flow_style=True, allow_unicode=True, width=math.inf).strip()
    return f"run: {listed}, or -- {shlex.join(words)}"


def _is_script(words: Sequence[str], place: int) -> bool:
    """Whether a word is a script of the user. An absolute path may exist on the hosts of the job only."""
    word, program = words[place], Path(words[0]).name
    if place == 0:
        return word.endswith(".py") or ("/" in word and not Path(word).is_absolute())
    return any(
        kind.fullmatch(program) and word.endswith(ending)
        for kind, ending in ((_PYTHON, ".py"), (_SHELL, ".sh"))
    )
