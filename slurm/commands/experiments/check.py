"""stk check"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from slurm.client.topology import scrub
from slurm.commands.common import warn
from slurm.submission.checks.early_checks import check_before_queue
from toolkit.config import load_with_origins
from toolkit.config.schema import Experiment
from toolkit.errors import RunFailed, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import temporary_folder
from toolkit.registry import task_kinds
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.create_run import create_run
from toolkit.system.output.amounts import duration
from toolkit.system.output.json_text import json_text
from toolkit.system.output.sanitize import clean

_MODULE = "toolkit.testing.try_experiment"
_WORDS = {True: "ok", False: "FAILED", None: "left out"}
#: Factor of the advised memory to the measured memory.
_SPARE = 1.5


def run(arguments: Namespace) -> int:
    """Try an experiment in a folder that is removed afterwards; 1 if a check fails."""
    experiment, origins = load_with_origins(Path(arguments.config), arguments.overrides)
    if not task_kinds()[experiment.task.kind].task:
        raise UserError(
            f"a task of kind {experiment.task.kind} trains in its own program, which stk check cannot try: "
            "use `stk run`, few steps"
        )
    warn(check_before_queue(experiment, origins, "local"))
    interrupt_on_request(signal.SIGTERM, signal.SIGHUP)
    failed, answers = [], []
    # Closes the generator at once, even if a signal comes while a line is printed.
    with closing(_answers(experiment)) as found:
        for answer in found:
            answers.append(answer)
            if not arguments.json:
                print(_line(answer, experiment), flush=True)
            if answer.get("is_good") is False:
                failed.append(answer["check"])
    if arguments.json:
        costs = [answer for answer in answers if "check" not in answer]
        checks = [answer for answer in answers if "check" in answer]
        print(json_text({"checks": checks, "failed": failed, "cost": costs[0] if costs else None}))
    elif failed:
        print(f"\nfailed: {', '.join(failed)}")
    return ExitCode.DIFFERENT if failed else ExitCode.DONE


def _answers(experiment: Experiment) -> Generator[dict[str, Any]]:
    """Yield the output of a process with torch, line by line; remove its folder and end it in any case."""
    with temporary_folder("stk-check-") as folder:
        target = create_run(experiment, folder)
        # -P: otherwise Python would prefer code in the working directory.
        command = [sys.executable, "-P", "-m", _MODULE, str(target.path)]
        with subprocess.Popen(
            command,
            env=scrub(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C must not reach the process: its checks would mistake it for their own stop signal.
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            last: dict[str, Any] = {}
            try:
                for line in process.stdout:
                    last = json.loads(line)
                    yield last
            except BaseException:
                # The whole session, with the ranks of its checks.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if process.returncode:
            raise RunFailed(f"the check ended with exit status {process.returncode} (see above)")
        # The cost is the last answer, unless a check has failed.
        if last.get("is_good") is not False and "step_s" not in last:
            raise RunFailed(
                "your code ended the checks too early, with status 0, as sys.exit(0) or os._exit(0) does: "
                "let it return, or raise an exception"
            )


def _line(answer: dict[str, Any], experiment: Experiment) -> str:
    if "check" not in answer:
        return f"\n{_advice(answer, experiment)}"
    first, *rest = clean(answer["found"]).splitlines() or [""]
    text = f"{_WORDS[answer['is_good']]:<9} {answer['check']:<22} {first}".rstrip()
    return "\n".join([text, *(f"{'':<33}{line}".rstrip() for line in rest)])


def _advice(cost: dict[str, Any], experiment: Experiment) -> str:
    """Return advice on the resources of a job, from a few steps on this machine."""
    seconds = cost["steps"] * cost["step_s"]
    ranks = experiment.resources.tasks_per_node
    memory = f"{max(1, round(_SPARE * ranks * cost['memory_mb'] / 1024 + 0.5))}G"
    where = "GPU" if cost["device"] == "cuda" else "CPU"
    return (
        f"{cost['steps']:,} steps take about {duration(seconds)} with one process on this {where}, without "
        "evaluations.\n"
        f"Memory for a host with {ranks} {'process' if ranks == 1 else 'processes'}: resources.mem={memory}"
    )
