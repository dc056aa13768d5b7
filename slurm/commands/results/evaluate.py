"""stk evaluate"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from slurm.commands import run_snapshot
from slurm.commands.results.report import render, written
from toolkit.checkpoint.finished import best_step
from toolkit.command import EvaluateMode
from toolkit.config import load_on_file
from toolkit.errors import RunFailed, UserError
from toolkit.files import temporary_folder
from toolkit.precheck.check_inputs import check_inputs
from toolkit.registry import evaluate_options, load_code, not_imported
from toolkit.run.run_dir import RunDir, find_run
from toolkit.system.output.json_text import json_text

_POLL_S = 0.05
#: Seconds that rank 0 gets to report its error, after another rank has failed.
_GRACE_S = 5.0
#: Names of the arguments for scoring a run.
_OF_A_RUN = ("run", "overrides", "data", "split", "output")


def run(arguments: Namespace) -> int:
    """Score a finished run again, or something that a workload scores, and show the tables."""
    if (mode := _mode_of(arguments)) is not None:
        try:
            return int(load_code(mode.run)(arguments, run_snapshot.SnapshotHost()))
        except ModuleNotFoundError as error:
            raise UserError(not_imported(mode.run, error)) from error
    target = find_run(arguments.run)
    answer = _score(target, _request(target, arguments), arguments.procs)
    evaluation = RunDir(Path(answer["folder"]))
    if not (answer["found"] and evaluation.report_html.exists()):
        from toolkit.report.rendering.writing import write_report

        written(lambda: write_report(evaluation))
    if arguments.json:
        print(json_text(answer))
        return 0
    render(evaluation)
    if answer["data"] is not None:
        print(answer["summary"])
    print(f"{'scored before' if answer['found'] else 'scored'}  {evaluation.path}")
    return 0


def _mode_of(arguments: Namespace) -> EvaluateMode | None:
    """Return the mode of an evaluation; None: a run. Raises UserError for an argument that does not fit."""
    added = evaluate_options()
    modes = [mode for each in added for mode in each.modes]
    found = next((mode for mode in modes if getattr(arguments, mode.option)), None)
    if found is None and not arguments.run:
        choices = " or ".join(["a RUN", *(_as_argument(mode.option) for mode in modes)])
        raise UserError(f"nothing to score: give {choices}; see --help")
    for_runs = {*_OF_A_RUN, *(name for each in added for name in each.run_options)}
    for_modes = {name for mode in modes for name in (mode.option, *mode.takes)}
    taken = for_runs if found is None else {found.option, *found.takes}
    given = sorted(name for name in (for_runs | for_modes) - taken if getattr(arguments, name))
    if given:
        what = _as_argument("run" if found is None else found.option)
        others = ", ".join(map(_as_argument, given))
        raise UserError(f"{what} does not go with {others}: leave one of them out")
    return found


def _as_argument(name: str) -> str:
    """Return an argument's name as written on the command line."""
    plain = {"run": "RUN", "overrides": "key=value"}
    return plain.get(name, f"--{name.replace('_', '-')}")


def _request(target: RunDir, arguments: Namespace) -> dict[str, Any]:
    """Return the request for the process that evaluates. Raises UserError, ConfigError, DataError."""
    if arguments.procs < 1:
        raise UserError(f"--procs is {arguments.procs}: it must be at least 1")
    best_step(target)
    overrides = [
        *arguments.overrides,
        *(key for each in evaluate_options() for key in each.overrides(arguments)),
    ]
    if arguments.data is None and overrides:
        raise UserError(f"keys set how the file of --data is read; without --data leave out {overrides[0]}")
    if arguments.data is not None and arguments.split is not None:
        raise UserError(
            "--split selects from the run's own data, but --data is scored as a whole: leave one of them out"
        )
    file, output = run_snapshot.absolute(arguments.data), run_snapshot.absolute(arguments.output)
    if file is not None:
        # Checked here, because this is quick: the process that scores imports torch first.
        check_inputs(load_on_file(target.config, Path(file), overrides), is_trained=True)
    return {"file": file, "overrides": overrides, "split": arguments.split, "output": output}


def _score(target: RunDir, request: Mapping[str, Any], procs: int) -> dict[str, Any]:
    """Run the evaluation in processes with torch, with the run's own code if possible; return its answer."""
    with temporary_folder() as scratch, ExitStack() as stack:
        asked = json.dumps({**request, "meeting": str(scratch)})
        wanted = run_snapshot.processes(target, "toolkit.analysis.reevaluate", asked, procs)
        answer = stack.enter_context((scratch / "answer.json").open("w+b"))
        errors = [stack.enter_context((scratch / f"{rank}.err").open("w+b")) for rank in range(1, procs)]
        ranks = [
            subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if rank else answer,
                stderr=errors[rank - 1] if rank else None,
            )
            for rank, (command, environment) in enumerate(wanted)
        ]
        _await(ranks, errors, target)
        answer.seek(0)
        found: dict[str, Any] = json.load(answer)
        return found


def _await(ranks: Sequence[subprocess.Popen[bytes]], errors: Sequence[IO[bytes]], target: RunDir) -> None:
    """Wait for all ranks; after the first failure, kill the others and raise RunFailed or SystemExit."""
    try:
        while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
            time.sleep(_POLL_S)
        if not any(rank.poll() for rank in ranks):
            return
        with suppress(subprocess.TimeoutExpired):
            ranks[0].wait(_GRACE_S)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    # Errors of other ranks are usually a result of rank 0's end, so they are shown only if it crashed.
    if ranks[0].returncode <= 0:
        for stream in errors:
            stream.seek(0)
            sys.stderr.write(stream.read().decode("utf-8", "replace"))
    if ranks[0].returncode > 1:
        raise SystemExit(ranks[0].returncode)
    raise RunFailed(f"{target.run_id} could not be scored (see above)")
