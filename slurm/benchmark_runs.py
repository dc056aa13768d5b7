"""Finished runs on benchmarks of spelling: their predictions, kept in the run until something changes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm import own_code
from toolkit.benchmarks.layout import Benchmark
from toolkit.create import experiment_dir
from toolkit.errors import RunFailed, UserError
from toolkit.files import crc32, read_json, write_json
from toolkit.rundir import MANIFEST, RunDir, find_run
from toolkit.spelling_use.abilities import ON_BENCHMARKS, check_use, task_of
from toolkit.spelling_use.requests import Job, Request

_MODULE = "toolkit.spelling_use"
#: By benchmark and the name of their row.
Files = Mapping[Benchmark, Mapping[str, Path]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Predictions of a run for a benchmark, and all that they depend on."""

    run: RunDir
    benchmark: Benchmark
    form: str

    @property
    def file(self) -> Path:
        of = self.benchmark
        return self.run.benchmark_predictions(of.kind, of.group, of.split)

    @property
    def _made_of(self) -> Path:
        return self.file.with_suffix(".json")

    def facts(self) -> dict[str, Any]:
        """Checksums of the weights and of the texts."""
        step = int(read_json(self.run.result)["best"]["step"])
        return {
            "weights": crc32(self.run.checkpoint(step) / MANIFEST),
            "texts": crc32(self.benchmark.corrupt),
            "form": self.form,
        }

    @property
    def is_there(self) -> bool:
        return self.file.exists() and read_json(self._made_of) == self.facts()

    def seal(self) -> None:
        """Say what the predictions are made of."""
        write_json(self._made_of, self.facts())


def predict(names: Sequence[str], benchmarks: Sequence[Benchmark], tell: Callable[[str], None]) -> Files:
    """Return the predictions of runs for benchmarks of what they can do; what is missing is made first.

    tell  gets a line for each run that is put to work

    Raises UserError for a run that can do none of them, RunFailed where it fails.
    """
    found: dict[Benchmark, dict[str, Path]] = {benchmark: {} for benchmark in benchmarks}
    for number, run in enumerate([find_run(name, experiment_dir()) for name in names], start=1):
        wanted = _wanted(run, benchmarks)
        missing = [each for each in wanted if not each.is_there]
        if missing:
            tell(f"run {number} of {len(names)}: {run.run_id} on {_told(missing)}")
            _make(run, missing)
        for each in wanted:
            found[each.benchmark][run.run_id] = each.file
    return found


def _wanted(run: RunDir, benchmarks: Sequence[Benchmark]) -> list[_Wanted]:
    check_use(run, tuple(ON_BENCHMARKS), "is for no benchmark of spelling")
    found = list(_possible(run, benchmarks))
    if not found:
        kinds = ", ".join(sorted({benchmark.kind for benchmark in benchmarks}))
        can = ", ".join(ON_BENCHMARKS[task_of(run)])
        raise UserError(
            f"{run.run_id} is a run of {task_of(run)}, which is for benchmarks of {can}: found {kinds}"
        )
    return found


def _possible(run: RunDir, benchmarks: Sequence[Benchmark]) -> Iterator[_Wanted]:
    forms = ON_BENCHMARKS[task_of(run)]
    for benchmark in benchmarks:
        # What is wrong with a benchmark is told where it is scored.
        if benchmark.kind in forms and benchmark.corrupt.is_file():
            yield _Wanted(run=run, benchmark=benchmark, form=forms[benchmark.kind])


def _told(wanted: Sequence[_Wanted]) -> str:
    return ", ".join(f"{each.benchmark.kind}/{each.benchmark.title}" for each in wanted)


def _make(run: RunDir, wanted: Sequence[_Wanted]) -> None:
    """Let one process of the run make these predictions."""
    jobs = tuple(
        Job(input=str(each.benchmark.corrupt.absolute()), output=str(each.file), form=each.form)
        for each in wanted
    )
    command = own_code.command(_MODULE, run, json.dumps(Request(jobs=jobs).to_json()))
    (environment,) = own_code.environments(_MODULE, run)
    code = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    if code > 1:
        raise SystemExit(code)
    if code:
        raise RunFailed(f"{run.run_id} could not be used (see above)")
    for each in wanted:
        each.seal()
