"""Predictions of finished runs for benchmarks; the run keeps them until weights or texts change."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.checkpoint.finished import best_step, unfinished
from toolkit.command import Host
from toolkit.errors import RunFailed, StkError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import crc32, read_json, write_json
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.workloads.spelling.benchmarks.layout import Benchmark
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.inference.capabilities import ON_BENCHMARKS, check_use
from toolkit.workloads.spelling.inference.requests import EARLIER_MODULE, MODULE, Job, Request

#: Files of predictions by benchmark and run.
Files = Mapping[Benchmark, Mapping[str, Path]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The predictions of a run for a benchmark; form: their output format."""

    run: RunDir
    benchmark: Benchmark
    form: str

    @property
    def file(self) -> Path:
        of = self.benchmark
        return SpellingFiles(self.run).benchmark_predictions(of.kind, of.group, of.split)

    @property
    def origin(self) -> Path:
        """The file with the facts of these predictions."""
        return self.file.with_suffix(".json")

    def facts(self) -> dict[str, Any]:
        """Everything that determines the predictions: checksums of weights and texts, the output format."""
        return {
            "weights": crc32(self.run.checkpoint(best_step(self.run)) / MANIFEST),
            "texts": crc32(self.benchmark.corrupt),
            "form": self.form,
        }

    @property
    def is_up_to_date(self) -> bool:
        return self.file.exists() and read_json(self.origin) == self.facts()


def predict(
    runs: Sequence[RunDir], benchmarks: Sequence[Benchmark], host: Host, report: Callable[[str], None]
) -> tuple[Files, list[StkError]]:
    """Return the predictions of runs for the benchmarks that they can predict, and the errors of other runs.

    report  called with a line for each run that computes predictions

    Missing predictions are computed first. A run that has not finished, or that fails, does not stop the
    others. Raises UserError for a run that can predict none of the benchmarks.
    """
    found: dict[Benchmark, dict[str, Path]] = {benchmark: {} for benchmark in benchmarks}
    unused: list[StkError] = [unfinished(run) for run in runs if not run.result.exists()]
    usable = [(run, _wanted(run, benchmarks)) for run in runs if run.result.exists()]
    for number, (run, wanted) in enumerate(usable, start=1):
        try:
            if missing := [each for each in wanted if not each.is_up_to_date]:
                titles = ", ".join(f"{each.benchmark.kind}/{each.benchmark.title}" for each in missing)
                report(f"run {number} of {len(usable)}: {run.run_id} on {titles}")
                _make(run, missing, host)
            for each in wanted:
                found[each.benchmark][run.run_id] = each.file
        except StkError as error:
            unused.append(error)
        except OSError as error:
            unused.append(RunFailed(f"{run.run_id} could not be used: {error}"))
    return found, unused


def _wanted(run: RunDir, benchmarks: Sequence[Benchmark]) -> list[_Wanted]:
    task = check_use(run, tuple(ON_BENCHMARKS), "predicts no benchmark of spelling")
    forms = ON_BENCHMARKS[task]
    # Errors in a benchmark are reported when it is scored.
    usable = (each for each in benchmarks if each.kind in forms and each.corrupt.is_file())
    found = [_Wanted(run=run, benchmark=each, form=forms[each.kind]) for each in usable]
    if not found:
        kinds = ", ".join(sorted({benchmark.kind for benchmark in benchmarks}))
        can = ", ".join(forms)
        raise UserError(f"{run.run_id} is a run of {task}, which is for benchmarks of {can}: found {kinds}")
    return found


def _make(run: RunDir, wanted: Sequence[_Wanted], host: Host) -> None:
    """Compute these predictions in one process, with the code of the run."""
    jobs = tuple(
        Job(input=str(each.benchmark.corrupt.absolute()), output=str(each.file), form=each.form)
        for each in wanted
    )
    for each in wanted:
        # After an interruption, some predictions may be for other texts.
        each.origin.unlink(missing_ok=True)
    command, environment = host.process(run.path, MODULE, Request(jobs=jobs).to_json(), EARLIER_MODULE)
    code = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise RunFailed(f"{run.run_id} could not be used (see above)")
    for each in wanted:
        write_json(each.origin, each.facts())
