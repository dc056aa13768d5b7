"""`stk.Run`, the handle of a run in Python, waiting for its end, and `stk.runs`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from slurm.runs.cancel_requeue import find_and_cancel
from slurm.status.rows import RunStatus, status
from slurm.status.submissions import last_submission
from toolkit.analysis.prediction.request import check_predicts
from toolkit.errors import RunCancelled, RunFailed, StkError, UserError
from toolkit.files import read_json, read_json_lines
from toolkit.run.failure.format import format_failure
from toolkit.run.records.epoch_metrics import merged
from toolkit.run.run_dir import RunDir, experiment_dir, find_run, find_runs
from toolkit.system.distributions import load_code
from toolkit.system.output.sanitize import clean

#: Seconds between two queries, at first and at most; long for Slurm, because its controller serves all users.
_HERE_S, _SLURM_S = (0.05, 1.0), (2.0, 30.0)
_GROWTH = 1.5
#: Seconds between two looks for result.json.
_FOLDER_S = 1.0
#: Seconds after which an ended state is checked again: the last files of the job may not be visible here yet,
#: or the next attempt may not be in the queue yet.
_SETTLED_HERE_S, _SETTLED_SLURM_S = 0.05, 5.0


class Run:
    """A run of an experiment file, a command or a function.

        run = stk.Run("digits-1a2b")

    run   its folder, its id, or a unique prefix of the id

    Each call reads the current state. Raises stk.UserError if there is no such run.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = find_run(os.fspath(run))

    @property
    def id(self) -> str:
        """The name of the run, which is that of its folder."""
        return self._run.run_id

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._run.path

    def status(self) -> dict[str, Any]:
        """Return the state of the run: `stk status --json` as a dictionary. Asks Slurm about its job.

        `state` is one of pending, running, requeued, held, finished, failed, cancelled, unknown;
        `reason` says why.
        """
        (row,) = status([self._run])
        return row.to_json()

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run has ended, also failed or cancelled, and return it.

        A run that goes back into the queue has not ended.

        timeout   seconds; None: no limit

        Raises TimeoutError.
        """
        wait_for_end(self._run, timeout)
        return self

    def result(self, timeout: float | None = None) -> Any:
        """Wait, and return what the function returned; for any other run `result.json` as a dictionary.

        timeout   seconds; None: no limit

        Raises stk.RunFailed if the run failed, with message, place and end of the traceback, or if the
        function returned what JSON cannot hold. Raises stk.RunCancelled if it was stopped before it
        finished, and TimeoutError.
        """
        row = wait_for_end(self._run, timeout)
        if row.state != "finished":
            raise _error(self._run, row)
        returned = read_json(self._run.returned)
        return read_json(self._run.result) if returned is None else returned["value"]

    def metrics(self) -> Any:
        """Return the lines of metrics.jsonl so far: step, epoch, split, and the metrics of each.

        A pandas DataFrame if pandas is installed, else a list of dictionaries.
        """
        lines = merged(read_json_lines(self._run.metrics))
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return lines
        return pandas.DataFrame(lines)

    def load_model(self) -> Any:
        """Return the torch.nn.Module of a finished run: best weights, on the CPU, in evaluation mode.

        The same as `stk.load(run.folder)`. Imports torch.

        Raises stk.UserError if the run has not finished or has no known model, and stk.CheckpointError
        if its best checkpoint is missing or damaged.
        """
        return load_code("toolkit.analysis.prediction.load:load_model")(self._run.path)

    def predict(self, samples: Iterable[Any], *, batch_size: int | None = None) -> Iterator[Any]:
        """Predict with the best weights: yield one prediction for each sample, in order.

        The same as `stk predict`, on a GPU if the run was trained on one, there without deterministic
        kernels. Each batch is computed with the run's precision and number of threads.

        samples     rows as in a file: a dictionary of texts for a row of a table, or the value of a JSON line
        batch_size  samples that are predicted together; None: as in an evaluation

        Raises stk.UserError if the run has not finished or predicts nothing, and, with its number, for a
        sample that cannot be used.
        """
        if isinstance(samples, str | bytes | Mapping):
            raise UserError(
                f"run.predict: found {samples!r:.100}, expected samples, such as a list. For a file there is "
                f"`stk predict {self.id} FILE`"
            )
        if batch_size is not None and batch_size < 1:
            raise UserError(f"run.predict(batch_size={batch_size}): expected at least 1")
        check_predicts(self._run)
        rows = load_code("toolkit.analysis.prediction.predict:predict_rows")
        predictions: Iterator[Any] = rows(self._run, samples, batch_size)
        return predictions

    def cancel(self) -> str:
        """Stop a live run, as `stk cancel` does, and return what was done.

        A run in processes of this machine saves and leaves; it ends some time after this call.

        Raises stk.UserError if only another terminal or host can stop it.
        """
        return find_and_cancel(self._run)

    def __repr__(self) -> str:
        """Return the id, and the state according to the folder, without a query of Slurm."""
        (row,) = status([self._run], ask=lambda job_ids: {})
        if row.state == "unknown" and (last := last_submission(self._run)) is not None:
            return f"<stk.Run {self.id}: submitted as job {last.job_id}>"
        return f"<stk.Run {self.id}: {in_words(row)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._run == other._run

    def __hash__(self) -> int:
        return hash(self._run)


def handle(run: RunDir) -> Run:
    """Return the Run of a folder that may not exist yet."""
    found = Run.__new__(Run)
    found._run = run
    return found


def runs(pattern: str = "*") -> list[Run]:
    """Return the runs whose id matches a pattern such as `digits-*`, sorted by id.

    Looks in ./experiments, or STK_EXPERIMENT_DIR, as all commands do.
    """
    if not isinstance(pattern, str):
        raise UserError(f"stk.runs: found {pattern!r:.100}, expected a pattern of ids, such as 'digits-*'")
    return [handle(run) for run in find_runs(experiment_dir()) if fnmatchcase(run.run_id, pattern)]


def wait_for_end(run: RunDir, timeout_s: float | None) -> RunStatus:
    """Wait for the end of a run; return its status. Raises TimeoutError with its current state.

    A run that is requeued, or continued by another job, has not ended. Neither has a run while Slurm does not
    answer.
    """
    deadline = float("inf") if timeout_s is None else monotonic() + timeout_s
    last = last_submission(run)
    is_slurm = last is not None and last.cluster == "slurm"
    pause_s, most_s = _SLURM_S if is_slurm else _HERE_S
    settled_s = _SETTLED_SLURM_S if is_slurm else _SETTLED_HERE_S
    had_ended = False
    while True:
        (row,) = status([run])
        has_ended = not row.may_live
        if row.state == "finished" or (has_ended and had_ended):
            return row
        if monotonic() >= deadline:
            raise TimeoutError(f"{run.run_id} has not ended after {timeout_s:g} s: {in_words(row)}")
        _sleep(run, min(settled_s if has_ended else pause_s, deadline - monotonic()))
        pause_s, had_ended = min(pause_s * _GROWTH, most_s), has_ended


def in_words(row: RunStatus) -> str:
    """Return the state of a run in a few words."""
    steps = f", step {row.step:,}" if row.step else ""
    of = f" of {row.total_steps:,}" if row.step and row.total_steps else ""
    return f"{row.doing or row.state}{steps}{of}"


def _sleep(run: RunDir, seconds: float) -> None:
    """Sleep, but only until result.json exists."""
    while seconds > 0 and not run.result.exists():
        part = min(seconds, _FOLDER_S)
        sleep(part)
        seconds -= part


def _error(run: RunDir, row: RunStatus) -> StkError:
    if row.state == "cancelled":
        why = f": {row.reason}" if row.reason else ""
        return RunCancelled(f"{run.run_id} was ended before it was done ({row.doing}){why}")
    failure = read_json(run.failure)
    if failure is None:
        return RunFailed(f"{run.run_id} has no result: {row.doing or row.state}. {row.reason}")
    said = format_failure(failure).removeprefix("error: ")
    trace = clean(str(failure.get("traceback") or ""))
    return RunFailed(f"{run.run_id} failed: {said}" + (f"\n\n{trace}" if "Traceback" in trace else ""))
