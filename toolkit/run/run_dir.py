"""RunDir: all file names of a run. No other module builds a path inside a run folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Any, cast

from toolkit.errors import RunNotFound, UserError
from toolkit.files import make_like_parent

#: Files of a checkpoint; the manifest is written last.
MANIFEST = "MANIFEST.json"
WEIGHTS, TRAINING, PROGRESS = "model.safetensors", "training.safetensors", "progress.json"

#: The end of the name of a checkpoint while another one takes its name.
REPLACED = ".replaced"

#: Folder beside the runs, for runs that were moved away so that they can start again.
_OLD = "old"

_STEP = re.compile(r"step_(\d{8,})")
_RANK_LOG = re.compile(r"(.+)\.rank_(\d+)\.log")


def _listed(folder: Path) -> list[Path]:
    """The entries of a folder; none if it does not exist."""
    try:
        return [folder / name for name in os.listdir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def inside(folder: Path, name: str) -> Path:
    """The path of a file in a folder or below it. Raises ValueError for a name outside of the folder."""
    relative = Path(name)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts:
        raise ValueError(f"{name!r} does not name a file of {folder}")
    return folder / relative


def user_code_in(code: Path) -> Path:
    """Return the folder of the user's own code in a copy of the code."""
    # Not a valid package name, because PYTHONPATH contains the folder around it.
    return code / "user-code"


def named(name: str) -> Path:
    """Return a property: the path of this file or folder below the object's `path`."""
    return cast(Path, property(lambda folder: folder.path / name))


def _of_attempt(end: str) -> Callable[[Any, str], Path]:
    """Return a method: the file of one attempt, whose name is its nonce with this end."""
    return lambda run, nonce: run.path / "ranks" / f"{nonce}{end}"


#: The folder next to the runs that has a folder for each preparation.
PREPARATIONS = "preparations"


class ReportFiles:
    """File names of the report in a folder."""

    __slots__ = ()
    path: Path

    report = named("report")
    report_html = named("report/report.html")


@dataclass(frozen=True, slots=True)
class RunDir(ReportFiles):
    """A run's folder: self-contained and readable without this project.

    Properties name files; none of them creates anything.
    """

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    # -- the request -------------------------------------------------------------------------
    config = named("config.yaml")
    """The resolved experiment, YAML."""
    job = named("job.yaml")
    """Resources as submitted, YAML."""
    code = named("code")
    """The code that the run was submitted with."""

    @property
    def user_code(self) -> Path:
        """The user's own code, with the file names of the user's folder."""
        return user_code_in(self.code)

    work = named("work")
    """The folder in which the user's own program runs, in all attempts."""

    def has_code(self, module: str) -> bool:
        """Whether the run's code has a module that can be run, such as toolkit.training.worker."""
        path = self.code.joinpath(*module.split("."))
        return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()

    submissions = named("submissions.jsonl")
    """One line per submission."""
    intent = named("intent.json")
    """Exists from just before sbatch until its answer is recorded."""
    submitit = named("submitit")
    """submitit's own files: the pickle, which holds a path, and the script."""
    lock = named(".submit.lock")
    """Locked during a submission; rank 0 of a live run locks `alive`."""
    alive = named(".alive.lock")
    """Locked by rank 0 while it trains; the kernel releases the lock however rank 0 ends."""
    reserve = named(".reserve")
    """Room for the record of a failure when the disk is full (toolkit.run.disk_reserve)."""

    # -- progress and events -----------------------------------------------------------------
    attempts = named("attempts.jsonl")
    """One line per attempt."""
    events = named("events.jsonl")
    """Saves, signals, requeues, failures, with times."""
    metrics = named("metrics.jsonl")
    """One JSON object per line: step, epoch, split, loss, …"""
    step_records = named("receipts.jsonl")
    """One line per step: which samples it read, its loss, and the chain of all steps so far."""
    quarantine = named("quarantine.json")
    """Samples that are left out because they failed, and why; JSON."""
    fence = named("fence.json")
    """Names the newest attempt; processes of an earlier one leave as soon as they see it."""
    failure = named("failure.json")
    """The first failing rank's error."""
    result = named("result.json")
    """Written last: its existence means finished."""
    progress = named("progress.json")
    """Progress of a live run, rewritten every few seconds: for views only."""

    ranks = _of_attempt(".jsonl")
    """The ranks of one attempt: host, pid, device, rendezvous; JSON lines."""
    rendezvous = _of_attempt(".store.json")
    """The file in which rank 0 of one attempt publishes its store."""
    refusal = _of_attempt(".refused.json")
    """Why a process of one attempt cannot take part; JSON (toolkit.run.attempts.refusal)."""
    address = _of_attempt(".address.json")
    """Address of rank 0 of one attempt, for a worker that trains nothing itself; JSON."""
    stop_request = _of_attempt(".stop.json")
    """Exists once a rank of one attempt has been asked to stop; JSON."""
    secret = _of_attempt(".secret")
    """The secret with which the ranks of one attempt authenticate; only the run's owner may read it."""
    training = _of_attempt(".training.json")
    """The command line of the first training that a script of one attempt began; JSON."""

    def process(self, nonce: str, rank: int) -> Path:
        """The process that a rank of one attempt has started, and how it ended; JSON."""
        return self.path / "ranks" / f"{nonce}.process_{rank:05d}.json"

    def answer(self, attempt: str, process: int, number: int) -> Path:
        """Answer number `number` of rank 0's process number `process` in one attempt; JSON."""
        return self.path / "ranks" / f"{attempt}.answer_{process}_{number}.json"

    def answered(self, attempt: str, rank: int) -> Path:
        """The newest process of rank 0 that has answered a rank in one attempt; JSON."""
        return self.path / "ranks" / f"{attempt}.answered_{rank:05d}.json"

    def heartbeat(self, nonce: str, rank: int) -> Path:
        """The heartbeat of one rank of one attempt, rewritten every few seconds; JSON."""
        return self.path / "ranks" / f"{nonce}.rank_{rank:05d}.json"

    def usage(self, nonce: str, rank: int) -> Path:
        """Resource usage of one rank of one attempt, rewritten every few seconds; JSON."""
        return self.path / "ranks" / f"{nonce}.usage_{rank:05d}.json"

    def usages(self, nonce: str) -> list[Path]:
        """The usage files of all ranks of one attempt."""
        return sorted((self.path / "ranks").glob(f"{escape(nonce)}.usage_*.json"))

    # -- logs --------------------------------------------------------------------------------
    logs = named("logs")

    def log(self, nonce: str, rank: int) -> Path:
        """The log of one rank in one attempt."""
        return self.logs / f"{nonce}.rank_{rank:05d}.log"

    def rank_logs(self) -> Iterator[tuple[str, int, Path]]:
        """Nonce, rank and file of every existing rank log, unordered."""
        for path in _listed(self.logs):
            if match := _RANK_LOG.fullmatch(path.name):
                yield match[1], int(match[2]), path

    def launcher_log(self, name: str) -> Path:
        """The output of the launcher of one local submission."""
        return self.logs / f"{name}.launcher.log"

    def job_log(self, job: str) -> Path:
        """The output of the batch script of one job, over all its restarts."""
        return self.logs / f"{job}.batch.log"

    def job_logs(self) -> list[Path]:
        """The logs of the run's batch scripts and launchers, the most recently written last."""
        found = (path for path in _listed(self.logs) if path.name.endswith((".batch.log", ".launcher.log")))
        return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))

    # -- checkpoints -------------------------------------------------------------------------
    checkpoints = named("checkpoints")

    def checkpoint(self, step: int) -> Path:
        """The checkpoint of a step: complete or absent."""
        return self.checkpoints / f"step_{step:08d}"

    best = named("checkpoints/best")
    """Link to the best checkpoint."""

    def linked_best(self) -> int | None:
        """The step of the checkpoint that the link `best` names; None without such a checkpoint."""
        found = _STEP.fullmatch(self.best.resolve().name) if self.best.exists() else None
        return int(found[1]) if found else None

    last = named("checkpoints/last")
    """Link to the newest checkpoint, for people; loading scans instead."""

    def checkpoint_steps(self) -> list[int]:
        """Steps of the existing checkpoints, oldest first. They are not verified."""
        # `Path.is_dir` would hide an error of a network file system, and the run would start over.
        found = (_STEP.fullmatch(entry.name) for entry in _listed(self.checkpoints))
        return sorted(int(match[1]) for match in found if match)

    def checkpoint_leftovers(self) -> list[Path]:
        """Hidden folders beside the checkpoints: half written, half deleted, or set aside as damaged.

        A checkpoint that was set aside but never replaced is not included: the next attempt restores it.
        """
        found = []
        for folder in sorted(self.checkpoints.glob(".step_*")) if self.checkpoints.is_dir() else []:
            name = folder.name.removeprefix(".").removesuffix(REPLACED)
            if not folder.name.endswith(REPLACED) or (self.checkpoints / name).exists():
                found.append(folder)
        return found

    # -- results -----------------------------------------------------------------------------
    tensorboard = named("tensorboard")
    artifacts = named("artifacts")
    """Predictions, scores and exports."""

    def artifact(self, name: str) -> Path:
        """The path of a file or folder that a workload writes below `artifacts/`, named by a relative path.

        Raises ValueError for a path outside of `artifacts/`.
        """
        return inside(self.artifacts, name)

    returned = named("artifacts/returned.json")
    """Result of the user's function, in a run of a function; JSON."""

    # -- evaluations -------------------------------------------------------------------------
    def evaluation(self, name: str) -> RunDir:
        """The folder of an evaluation of the best weights: like a run's, with config, scores and report."""
        return RunDir(self.path / "evaluations" / name)

    scores = named("metrics.json")
    """In an evaluation's folder: its scores, their data and weights; written last, JSON."""


def archive_run(run: RunDir) -> Path:
    """Move a run's folder to `old/` beside it, so that the run can start again; return the new path."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    target = run.path.parent / _OLD / f"{run.run_id}.{stamp}"
    make_like_parent(target.parent)
    run.path.rename(target)
    with suppress(OSError):
        # `stk clean --older-than` counts from now. Fails for a link that leads nowhere from there.
        os.utime(target)
    return target


def archived_runs(experiment_dir: Path) -> list[RunDir]:
    """Folders that `archive_run` has moved, by name; symbolic links are skipped."""
    folder = experiment_dir / _OLD
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [RunDir(entry) for entry in sorted(folder.iterdir()) if entry.is_dir() and not entry.is_symlink()]


def experiment_dir() -> Path:
    """Return the folder of runs: STK_EXPERIMENT_DIR, or `experiments` in the working directory."""
    # A shell expands `~`, but not in a .env file.
    return Path(os.path.expanduser(os.environ.get("STK_EXPERIMENT_DIR") or "experiments")).resolve()


def find_runs(experiment_dir: Path, *, besides: Iterable[str] = ()) -> Iterator[RunDir]:
    """Every run folder directly under the experiment folder besides these, by name. Raises UserError."""
    try:
        # Plain strings: for ten thousand runs, Path objects would take half a second.
        names = sorted(set(os.listdir(experiment_dir)).difference(besides))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"the runs under {experiment_dir} cannot be read: {error.strerror}") from None
    config = RunDir(Path()).config.name
    for name in names:
        if os.path.isfile(f"{experiment_dir}/{name}/{config}"):
            yield RunDir(experiment_dir / name)


def runs_of_experiment(name: str) -> list[RunDir]:
    """Return the runs of experiments of this name, in any order: the folders NAME-HASH."""
    # A longer name may begin with this one. The name may be any word that a user has typed.
    return [RunDir(path) for path in experiment_dir().glob(f"{escape(name)}-{8 * '[0-9a-f]'}/")]


def find_run(name: str, parent: Path | None = None, *, hint: str = "") -> RunDir:
    """Find a run by its folder (also its path below `parent`), a file in it, or a unique prefix of its id.

    parent   the folder of runs; None: as `experiment_dir`
    hint     what to give instead if no run has this name

    Raises RunNotFound, which lists the candidates.
    """
    parent = parent or experiment_dir()
    given = Path(name)
    # Any file in a run's folder identifies the run, such as its predictions.
    for folder in (given, *given.resolve().parents) if given.is_file() else (given,):
        if (folder / "config.yaml").is_file():
            return RunDir(folder.resolve())
    if (exact := RunDir(parent / name)).config.is_file():
        return exact
    runs = list(find_runs(parent))
    matches = [run for run in runs if run.run_id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunNotFound(f"{name!r} names {len(matches)} runs: {_some(matches)}")
    if exact.logs.is_dir():
        raise RunNotFound(f"{exact.path} has logs, but no config.yaml any more: it is no longer a run")
    if given.suffix in (".yaml", ".yml") and given.is_file():
        raise RunNotFound(f"{name} is an experiment file, expected a run: `stk submit {name}` starts one")
    found = f"no run {name!r} under {parent}; runs there: {_some(runs) or 'none'}"
    raise RunNotFound(f"{found} ({hint})" if hint else found)


def _some(runs: Sequence[RunDir]) -> str:
    return ", ".join(run.run_id for run in runs[:10]) + (", …" if len(runs) > 10 else "")


def runs_named(names: Iterable[str]) -> list[RunDir]:
    """The runs of these names; without names, all in the folder of runs. Raises RunNotFound."""
    return [find_run(name) for name in names] or list(find_runs(experiment_dir()))
