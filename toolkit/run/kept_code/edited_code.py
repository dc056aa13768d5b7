"""Code that was edited since a run began: find the edited files, and copy them to the run."""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolkit.config.checking.validate import with_own_code
from toolkit.config.loading import load_resolved
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, UserError
from toolkit.files import crc32, fsync_path
from toolkit.registry import kept_files
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.events import Event, note_event, read_events
from toolkit.run.folder_trust import check_run
from toolkit.run.kept_code.code_snapshot import CORE, LostCode, check_kept, code_files, copy_code
from toolkit.run.new_settings import setting_messages
from toolkit.run.run_dir import RunDir, user_code_in
from toolkit.system.output.few import few

#: The event of a run that continues with new code; `files` have changed, `step` is its last saved step, and
#: `attempts` is the number of its attempts until then, which earlier versions did not record.
NEW_CODE = "new_code"

#: The name of the toolkit's own files, which are many, in messages and events.
_TOOLKIT = "slurm-toolkit itself"
#: After it, if the run has checkpoints.
_MAY_REFUSE = ", which may refuse the earlier checkpoints (`stk resume --force` uses them)"
#: Maximum number of files that a message names.
_NAMED = 5

#: Endings of files beside code that a run does not execute: data, results, logs, texts, experiments.
_NO_CODE = (
    *(".csv", ".err", ".ipynb", ".json", ".jsonl", ".log", ".md", ".out", ".pdf", ".png", ".rst", ".toml"),
    *(".tsv", ".txt", ".yaml", ".yml"),
)


@dataclass(frozen=True, slots=True)
class Edits:
    """Files that differ between a run's code and today's: changed, new and removed ones.

    own   the user's files, named as in the user's folder, and files of installed workloads
    core  files of the toolkit itself
    why_unknown   why today's code cannot be compared; empty if it can
    """

    own: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    why_unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.own or self.core)

    def __str__(self) -> str:
        """The user's files by name, such as `digits.py, model.py and slurm-toolkit itself`."""
        return " and ".join(filter(None, [few(self.own, _NAMED), _TOOLKIT if self.core else ""]))


def edits_since(run: RunDir, experiment: Experiment) -> Edits:
    """Return the edits since the run got its code; none if it has no code, or the user's code is gone."""
    if not run.code.exists():
        return Edits()
    try:
        files = list(kept_files(experiment))
        today = {place: file for file, place in code_files([experiment.task.kind], files)}
    except UserError as error:
        return Edits(why_unknown=str(error))
    kept = set(_names(run.code))
    code = str(run.code)
    names = {name for name in kept & today.keys() if not filecmp.cmp(today[name], os.path.join(code, name))}
    names |= kept ^ today.keys()
    core = tuple(sorted(name for name in names if name.partition("/")[0] in CORE))
    # A run keeps the user's files in its own folders, and the user does not know their names.
    folders = tuple({f"{place.partition('/')[0]}/" for _, place in files})
    own = (name.partition("/")[2] if name.startswith(folders) else name for name in names.difference(core))
    return Edits(tuple(sorted(own)), core)


def is_found(experiment: Experiment) -> bool:
    """Whether the user's code is where the experiment says. The folder may have been moved."""
    try:
        list(kept_files(experiment))
    except UserError:
        return False
    return True


def edit_warnings(
    run: RunDir, experiment: Experiment, *, new_code: bool, takes_settings: bool = True
) -> list[str]:
    """Return messages about edited code and settings before the run continues; none if nothing was edited."""
    if run.result.exists():
        found = of_elsewhere(run, experiment)
        if why := _why_lost(run):
            found.append(why)
        elif edits := edits_since(run, experiment):
            done = f"{run.run_id} has finished with other code, which differs in {edits}"
            found.append(f"{done} (stk submit FILE --fresh, or fresh=True in Python, starts anew)")
        return found
    return edit_warnings_of_many([(run, experiment)], new_code=new_code, takes_settings=takes_settings)


def edit_warnings_of_many(
    runs: Iterable[tuple[RunDir, Experiment]], *, new_code: bool, takes_settings: bool = True
) -> list[str]:
    """Return the messages of several runs that continue, also with new settings: one line for equal ones."""
    found: dict[tuple[str, bool, bool], list[str]] = {}
    of_one: list[str] = []
    copies: dict[object, Edits] = {}
    lost: dict[RunDir, str] = {}
    runs = list(runs)
    for run, experiment in runs:
        of_one += (elsewhere := of_elsewhere(run, experiment))
        of_one += _lost_links(run)
        is_new = _takes_new_code(run, elsewhere, asked=new_code)
        if not run.code.exists() and not begins_anew(run):
            of_one.append(f"{run.run_id} continues with today's code: {run.code} is gone")
        elif not is_new and (why := _why_lost(run)):
            lost[run] = why
            continue
        # The files of a copy are compared once, although the runs of an array share it by hard links.
        if (copy := _copy_id(run)) not in copies:
            copies[copy] = edits_since(run, experiment)
        edits = copies[copy]
        fits = new_code or not (is_new and edits) or _fits(run, experiment)
        if not fits and (why := _why_lost(run)):
            lost[run] = why
            continue
        is_new = is_new and fits
        if edits.why_unknown:
            of_one.append(
                f"{run.run_id} continues with its stored code, which cannot be compared with today's: "
                f"{edits.why_unknown}"
            )
        if edits:
            may_refuse = _MAY_REFUSE if is_new and edits.core and run.checkpoint_steps() else ""
            found.setdefault((f"{edits}{may_refuse}", is_new, fits), []).append(run.run_id)
            of_one += _not_taken(run, edits, is_new)
    of_code = [_continues(ids, *facts) for facts, ids in found.items()]
    of_one += _of_lost(lost, "cannot continue")
    continued = [each for each in runs if each[0] not in lost]
    return [*of_code, *of_one, *(setting_messages(continued) if takes_settings else ())]


def other_code_warnings(runs: Iterable[tuple[RunDir, Experiment]]) -> list[str]:
    """Messages about runs that stay as they are, where others of their sweep begin with today's code."""
    found: dict[str, list[str]] = {}
    copies: dict[object, Edits] = {}
    lost: dict[RunDir, str] = {}
    for run, experiment in runs:
        if why := _why_lost(run):
            lost[run] = why
            continue
        copy = _copy_id(run)
        if copy not in copies:
            copies[copy] = edits_since(run, experiment)
        if edits := copies[copy]:
            found.setdefault(str(edits), []).append(run.run_id)
    others = [
        f"{f'{ids[0]} has' if len(ids) == 1 else f'{len(ids)} runs have'} other code than those that begin "
        f"now, which differs in {edits}"
        for edits, ids in found.items()
    ]
    return [*others, *_of_lost(lost, "have lost files of their code")]


def _why_lost(run: RunDir) -> str:
    """The message of LostCode about a run; empty if its code has not lost files, or is gone as a whole."""
    try:
        if run.code.exists():
            check_kept(run)
    except LostCode as error:
        return str(error)
    return ""


def _of_lost(lost: Mapping[RunDir, str], what: str) -> list[str]:
    """One message about runs whose code has lost files, with the reason of the first; none without runs."""
    why, ids = next(iter(lost.values()), ""), few([run.run_id for run in lost], _NAMED)
    return [why if len(lost) == 1 else f"{len(lost)} runs {what} ({ids}): {why}"] if lost else []


def _copy_id(run: RunDir) -> object:
    """Equal for runs that share a copy of the code; a run without code has none."""
    try:
        found = os.stat(run.code / CORE[-1])
    except OSError:
        return run.path
    return found.st_dev, found.st_ino


def check_new_code(run: RunDir, experiment: Experiment) -> None:
    """Raise ConfigError if the code as it is now does not take the values of a run."""
    with_own_code(experiment, f"{run.run_id} with new code")


def _fits(run: RunDir, experiment: Experiment) -> bool:
    try:
        check_new_code(run, experiment)
    except ConfigError:
        return False
    return True


def _takes_new_code(run: RunDir, elsewhere: list[str], *, asked: bool) -> bool:
    return asked or (begins_anew(run) and not elsewhere)


def of_elsewhere(run: RunDir, experiment: Experiment) -> list[str]:
    """A message about a run that was begun in another folder of the user, if that folder still exists."""
    today = getattr(experiment.task, "folder", None)
    if today is None or not run.config.exists():
        return []
    began = getattr(load_resolved(run.config).task, "folder", None)
    if began is None or not os.path.isdir(began) or os.path.realpath(began) == os.path.realpath(today):
        return []
    return [
        f"{run.run_id} was begun in {began}, not in {today}: a run's identity does not include the folder. "
        "name=… gives this folder its own run"
    ]


def _lost_links(run: RunDir) -> list[str]:
    """A message about the user's folder if links of the work folder lead there and it is gone."""
    links = (each.readlink() for each in run.work.glob("*") if each.is_symlink())
    gone = [link for link in links if link.is_absolute() and not os.path.exists(link.parent)]
    # A program may make links of its own, such as to a folder of its job.
    folder = getattr(load_resolved(run.config).task, "folder", None) if gone and run.config.exists() else None
    if folder is None or os.path.isdir(folder) or not any(link.is_relative_to(folder) for link in gone):
        return []
    hint = "move it back, or start anew with --fresh"
    return [f"{run.run_id} has links to files in {folder}, which is gone: {hint}"]


def begins_anew(run: RunDir) -> bool:
    """Whether nothing was saved yet, so that no work depends on the code that the run was begun with."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(run.checkpoints) as entries:
        return all(entry.name.startswith(".") for entry in entries)
    return True


def _continues(ids: list[str], edits: str, new_code: bool, fits: bool) -> str:
    who, their = (f"{ids[0]} continues", "its") if len(ids) == 1 else (f"{len(ids)} runs continue", "their")
    if new_code:
        return f"{who} with new code; changed: {edits}"
    hint = "--new-code takes the new code" if fits else "--new-code says why the new code does not fit"
    return (
        f"{who} with {their} stored code, which differs in {edits} "
        f"({hint}, `stk submit FILE --fresh` starts anew)"
    )


def _not_taken(run: RunDir, edits: Edits, new_code: bool) -> list[str]:
    """A message about edited files that are not taken, because the run itself has written them."""
    own = [name for name in edits.own if new_code and _is_own_output(run, name, run.user_code / name)]
    if not own:
        return []
    return [
        f"{run.run_id} has written {few(own, _NAMED)} itself, so your changes there are not taken: "
        f"the run keeps its own version in {run.work} (`stk submit FILE --fresh` starts anew)"
    ]


def new_code_of(run: RunDir, step: int = 0) -> list[str]:
    """The edited code that a run took after a step, such as `digits.py, from step 41 on`."""
    attempts = read_attempts(run)
    events = ((each, _last_before(each, attempts)) for each in read_events(run, NEW_CODE))
    taken = ((each.facts.get("files", ()), last) for each, last in events if last >= step)
    return [f"{', '.join(files)}, from step {last + 1} on" for files, last in taken]


def _last_before(event: Event, attempts: Sequence[AttemptRecord]) -> int:
    """The step before the first one with new code; below the last saved step if checkpoints were damaged."""
    saved: int = event.facts.get("step", 0)
    if not isinstance(before := event.facts.get("attempts"), int):
        return saved
    # An attempt that made no step repeated none.
    steps = (each.first_step for each in attempts[before:] if each.first_step != each.last_step)
    return min((step for step in steps if step is not None), default=saved)


def own_code(run: RunDir) -> str:
    """A digest of the code that a run keeps besides the toolkit's; "" without any."""
    names = executed(run.code, CORE)
    found = repr([(name, crc32(run.code / name)) for name in names])
    return hashlib.sha256(found.encode()).hexdigest() if names else ""


def executed(folder: Path, without: Sequence[str] = ()) -> list[str]:
    """The files of a copy of code, relative to it, that a run executes: no data, logs or experiment files.

    without  names in the folder itself that are left out
    """
    return sorted(name for name in _names(folder, without) if not name.lower().endswith(_NO_CODE))


def take_new_code(run: RunDir, experiment: Experiment, *, asked: bool) -> None:
    """Give today's code to a run that begins anew, or to any run if `asked`, and record an event.

    Nothing happens if no code was edited, or if a run that begins anew has values that today's code does not
    take. The run must not be live.

    Raises UserError if the user's code is gone, LostCode if the run's own is, ConfigError if the code that
    was asked for does not take the values of the run, and UntrustedFolder.
    """
    if not _takes_new_code(run, of_elsewhere(run, experiment), asked=asked):
        if run.code.exists():
            check_kept(run)
        return
    check_run(run)
    edits = edits_since(run, experiment)
    if not edits:
        if asked:
            # Raised here if the code cannot be found.
            list(kept_files(experiment))
        return
    if asked:
        check_new_code(run, experiment)
    elif not _fits(run, experiment):
        check_kept(run)
        return
    unique = uuid.uuid4().hex
    new, old = (run.path / f".code.{unique}.{name}" for name in ("tmp", "old"))
    try:
        copy_code(new, [experiment.task.kind], kept_files(experiment))
        _renew_work(run, user_code_in(new))
        # A crash in between leaves a run without code, which then gets today's code.
        os.rename(run.code, old)
        os.rename(new, run.code)
        fsync_path(run.path)
    finally:
        if old.is_symlink():
            old.unlink()
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)
    files = [*edits.own, *([_TOOLKIT] if edits.core else [])]
    facts = {"step": max(run.checkpoint_steps(), default=0), "attempts": len(read_attempts(run))}
    note_event(run, NEW_CODE, files=files, **facts)


def _renew_work(run: RunDir, new: Path) -> None:
    """Copy the user's edits to the work folder; files that the program itself has written stay."""
    if not run.work.exists():
        return
    old = run.user_code
    for name in {*_names(old), *_names(new)}:
        before, after, target = old / name, new / name, run.work / name
        is_both = before.exists() and after.exists()
        if (is_both and filecmp.cmp(before, after)) or _is_own_output(run, name, before, after):
            continue
        # Writing through a link would change the user's own files.
        (_link_to(run.work, target) or target).unlink(missing_ok=True)
        if after.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(after, target)


def _is_own_output(run: RunDir, name: str, *copies: Path) -> bool:
    """Whether the program itself has written the file of this name: it equals none of these copies."""
    found = run.work / name
    if not os.path.lexists(found) or _link_to(run.work, found) is not None:
        return False
    return not any(each.is_file() and found.is_file() and filecmp.cmp(each, found) for each in copies)


def _link_to(work: Path, path: Path) -> Path | None:
    """The path, or a folder between it and `work`, that is a link to the user's folder; None without one."""
    between = [path, *path.parents]
    return next((each for each in between[: between.index(work)] if each.is_symlink()), None)


def _names(folder: Path, without: Sequence[str] = ()) -> Iterator[str]:
    """All files of a copy of code, relative to it, except compiled ones and the .dist-info of its version.

    without  names in the folder itself that are left out
    """
    left_out = {"__pycache__", *without}
    for around, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in left_out and not name.endswith(".dist-info")]
        names = [name for name in names if name not in left_out]
        left_out = {"__pycache__"}
        inside = os.path.relpath(around, folder)
        yield from (name if inside == "." else os.path.join(inside, name) for name in names)
