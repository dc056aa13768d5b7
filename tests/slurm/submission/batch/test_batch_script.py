"""What bash makes of the batch script, with a pretend srun."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm.config.resources import Resources
from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.plans import PLANS, plan
from tests.support.patience import PATIENCE_S
from toolkit.config.schema import Experiment
from toolkit.run.run_dir import RunDir


def test_variables_reach_the_ranks_byte_for_byte(experiment: Experiment, tmp_path: Path) -> None:
    """The script itself runs here, with a pretend srun that shows its environment."""
    resources, _ = PLANS["hostile_values"]
    resources = replace(resources, setup=())
    code, shown = run_script(plan(experiment, resources, RunDir(tmp_path)), tmp_path, "env -0")
    assert code == 0
    pairs = (pair.partition("=") for pair in shown.split("\0"))
    environment = {name: value for name, _, value in pairs}
    assert {name: environment[name] for name in resources.environment} == resources.environment


def test_setup_lines_run_first_and_the_code_of_the_run_leads_pythonpath(
    experiment: Experiment, tmp_path: Path
) -> None:
    resources = Resources(setup=("export PYTHONPATH=/site", "greeting=hello"), environment={"A": "1"})
    shown = run_script(plan(experiment, resources, RunDir(tmp_path)), tmp_path, 'echo "$PYTHONPATH"')
    assert shown == (0, f"{tmp_path}/code:/site\n")


def test_script_copies_the_pickle_to_a_name_with_the_job_id(experiment: Experiment, tmp_path: Path) -> None:
    """As when the submitter died right after sbatch."""
    folder = tmp_path / "submitit"
    folder.mkdir()
    (folder / "job.pkl").write_bytes(b"the job")
    script = plan(experiment, Resources(), RunDir(tmp_path))
    for _ in range(2):  # a second start finds it there
        code, shown = run_script(script, tmp_path, 'printf "%s\\n" "$@"')
        assert code == 0
        assert (folder / "77_submitted.pkl").read_bytes() == b"the job"
        assert (folder / "job.pkl").read_bytes() == b"the job"
    assert shown.splitlines()[-5:] == [
        "/opt/my venv/bin/python", "-u", "-m", "slurm.job.start_task", "submitit",
    ]  # fmt: skip


def test_code_of_an_earlier_version_is_started_by_submitit(experiment: Experiment, tmp_path: Path) -> None:
    """It would not take back the signals that are held back today."""
    (tmp_path / "code" / "slurm" / "job").mkdir(parents=True)
    assert "-m submitit.core._submit submitit" in str(plan(experiment, Resources(), RunDir(tmp_path)))


def test_a_job_without_any_pickle_fails_at_once(experiment: Experiment, tmp_path: Path) -> None:
    script = plan(experiment, Resources(), RunDir(tmp_path))
    code, shown = run_script(script, tmp_path, "echo the step", pickle=False)
    assert code == 1
    assert "the step" not in shown


# -- the end of the step ---------------------------------------------------------------------------

#: Says that it was called, and how, to the file that the script's log would be.
_DECIDE_RESTART = 'echo "decide_restart $*"'


def deciding(
    experiment: Experiment, folder: Path, python: str = _DECIDE_RESTART, **resources: Any
) -> JobPlan:
    """A plan whose Python, which decides on restarts, is a shell script."""
    install(folder / "python", python)
    return replace(plan(experiment, Resources(**resources), RunDir(folder)), python=str(folder / "python"))


def test_finished_step_ends_the_script_with_0(experiment: Experiment, tmp_path: Path) -> None:
    assert run_script(deciding(experiment, tmp_path), tmp_path, "exit 0") == (0, "")


def test_setup_lines_may_change_the_folder_and_the_options_of_the_shell(
    experiment: Experiment, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    script = deciding(experiment, tmp_path, setup=("set -eu", "cd project"))
    code, output = run_script(script, tmp_path, "exit 7")
    assert code == 7
    # After the step had failed, the script asked how the run goes on.
    assert output.startswith("decide_restart")


@pytest.mark.parametrize("code", [1, 2, 75, 77, 137, 143])
@pytest.mark.parametrize("requeue, word", [("auto", " in-place"), ("same_job", ""), ("chain", "")])
def test_unfinished_step_calls_decide_restart_and_keeps_its_status(
    experiment: Experiment, tmp_path: Path, requeue: str, word: str, code: int
) -> None:
    script = deciding(experiment, tmp_path, requeue=requeue)
    expected = f"decide_restart -P -m slurm.job.decide_restart {tmp_path} {code}{word}\n"
    assert run_script(script, tmp_path, f"exit {code}") == (code, expected)


def test_step_is_restarted_in_place_while_decide_restart_asks_for_it(
    experiment: Experiment, tmp_path: Path
) -> None:
    """79 asks for it; here twice."""
    twice = 'echo "$*" >> asked\n[ "$(wc -l < asked)" -gt 2 ] || exit 79'
    script = deciding(experiment, tmp_path, python=twice)
    assert run_script(script, tmp_path, "echo step; exit 137") == (137, "step\n" * 3)
    assert (tmp_path / "asked").read_text() == f"-P -m slurm.job.decide_restart {tmp_path} 137 in-place\n" * 3


@pytest.mark.parametrize("code", [0, 75])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_no_signal_ends_the_script_before_its_step(
    experiment: Experiment, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """However many come, and however close together; the step's status is the script's."""
    srun = f"until [ -e {tmp_path}/saved ]; do sleep 0.02; done; exit {code}"
    process = start_script(deciding(experiment, tmp_path), tmp_path, f"echo started; {srun}")
    assert process.stdout.readline() == b"started\n"
    for _ in range(200):
        process.send_signal(number)
    (tmp_path / "saved").touch()
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert output.decode().startswith("decide_restart" if code else "")


def run_script(script: JobPlan, folder: Path, srun: str, *, pickle: bool = True) -> tuple[int, str]:
    """Exit status and output of a plan's script, with a pretend srun."""
    process = start_script(script, folder, srun, pickle=pickle)
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output.decode()


def start_script(script: JobPlan, folder: Path, srun: str, *, pickle: bool = True) -> subprocess.Popen[bytes]:
    """Start a plan's script with bash as job 77, with a pretend srun."""
    (folder / "bin").mkdir(exist_ok=True)
    install(folder / "bin" / "srun", srun)
    (folder / "submitit").mkdir(exist_ok=True)
    if pickle:
        (folder / "submitit" / "job.pkl").touch()
    (folder / "script.sh").write_text(str(script), encoding="utf-8", newline="")
    return subprocess.Popen(
        ["bash", "script.sh"],
        cwd=folder,
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "77"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def install(program: Path, body: str) -> None:
    program.write_text(f"#!/bin/bash\n{body}\n")
    program.chmod(0o755)
