"""stk evaluate"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from slurm import own_code
from slurm.arguments.evaluate import check_one_way
from slurm.commands.benchmarking import score_folder, score_single
from slurm.commands.report import render
from toolkit.config import load_on_file
from toolkit.create import experiment_dir
from toolkit.data.glance import glance
from toolkit.errors import RunFailed, UserError
from toolkit.rundir import RunDir, find_run

_POLL_S = 0.05
#: Seconds that rank 0 gets to say what is wrong, after another rank has failed.
_GRACE_S = 5.0


def run(arguments: Namespace) -> int:
    """Score a finished run again, or predictions that lie in files, and show the tables of it."""
    check_one_way(arguments)
    if arguments.benchmark is not None:
        return score_folder(arguments)
    if arguments.kind is not None:
        return score_single(arguments)
    return _score_run(arguments)


def _score_run(arguments: Namespace) -> int:
    target = find_run(arguments.run, experiment_dir())
    request = _request(target, arguments)
    answer = _score(target, request, arguments.procs)
    evaluation = RunDir(Path(answer["folder"]))
    if not (answer["found"] and evaluation.report_html.exists()):
        from toolkit.report import write_report

        write_report(evaluation)
    if arguments.json:
        print(json.dumps(answer, ensure_ascii=False))
        return 0
    render([evaluation])
    if answer["data"] is not None:
        print(answer["summary"])
    print(f"{'scored before' if answer['found'] else 'scored'}  {evaluation.path}")
    return 0


def _request(target: RunDir, arguments: Namespace) -> dict[str, Any]:
    """What to score, for the process that does it. Raises UserError, ConfigError, DataError."""
    if arguments.procs < 1:
        raise UserError(f"--procs is {arguments.procs}: it must be at least 1")
    if not target.result.exists():
        raise UserError(
            f"{target.run_id} has not finished, so it has no best weights to score: see `stk status`"
        )
    overrides = list(arguments.overrides)
    if arguments.entity_db is not None:
        overrides.append(f"data.entity_db={json.dumps(os.path.abspath(arguments.entity_db))}")
    if arguments.data is None and overrides:
        raise UserError(f"{overrides[0]} says how another file is read: give it with --data")
    if arguments.data is not None and arguments.split is not None:
        raise UserError(
            "--split is of the run's own data; of another file all is scored: leave one of them out"
        )
    file = None if arguments.data is None else os.path.abspath(os.path.expanduser(arguments.data))
    if file is not None:
        # Here, where it takes a moment: the process that scores loads torch first.
        glance(load_on_file(target.config, Path(file), overrides), is_trained=True)
    output = None if arguments.output is None else os.path.abspath(arguments.output)
    return {"file": file, "overrides": overrides, "split": arguments.split, "output": output}


def _score(target: RunDir, request: Mapping[str, Any], procs: int) -> dict[str, Any]:
    """The answer of processes that have torch, with the run's own code if that can do it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)
        asked = json.dumps({**request, "meeting": folder})
        command = own_code.command("toolkit.rescore", target, asked)
        environments = own_code.environments("toolkit.rescore", target, procs)
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
            for rank, environment in enumerate(environments)
        ]
        _await(ranks, errors, target)
        answer.seek(0)
        found: dict[str, Any] = json.load(answer)
        return found


def _await(ranks: Sequence[subprocess.Popen[bytes]], errors: Sequence[IO[bytes]], target: RunDir) -> None:
    """Wait until all have done it; after the first failure end the others, and raise what it means."""
    try:
        while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
            time.sleep(_POLL_S)
        if not any(rank.poll() for rank in ranks):
            return
        if ranks[0].poll() is None:
            _wait(ranks[0])
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()
    # The others fail because rank 0 has gone; what they say matters where it has said nothing.
    if ranks[0].returncode <= 0:
        for stream in errors:
            stream.seek(0)
            sys.stderr.write(stream.read().decode("utf-8", "replace"))
    if ranks[0].returncode > 1:
        raise SystemExit(ranks[0].returncode)
    raise RunFailed(f"{target.run_id} could not be scored (see above)")


def _wait(rank: subprocess.Popen[bytes]) -> None:
    try:
        rank.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        rank.kill()
        rank.wait()
