"""The plan is a value, and its text is the batch script.

Whole scripts stand in golden/; after a change that is meant, `STK_WRITE_GOLDEN=1 pytest
tests/slurm/submission/batch/test_job_plan.py` writes them anew, and the difference is what a reviewer reads.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slurm.config.resources import Resources
from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.golden import assert_golden
from tests.slurm.support.plans import PLANS, plan
from tests.slurm.support.user import User
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir

GOLDEN = Path(__file__).parents[1] / "golden"


def directives(script: JobPlan) -> dict[str, str]:
    """The options of the job's first component."""
    lines = str(script).partition("#SBATCH hetjob")[0].splitlines()
    found = [line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH --")]
    names = [line.partition("=")[0] for line in found]
    assert len(names) == len(set(names)), "an option stands twice"
    return {line.partition("=")[0]: line.partition("=")[2] for line in found}


@pytest.mark.parametrize("name", PLANS)
def test_script_equals_the_golden_file(experiment: Experiment, name: str) -> None:
    assert_golden(str(plan(experiment, *PLANS[name])), GOLDEN / f"{name}.sh")


def test_every_golden_file_has_a_plan() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_bash_accepts_every_script(experiment: Experiment, name: str) -> None:
    script = str(plan(experiment, *PLANS[name]))
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", PLANS)
def test_script_does_not_depend_on_the_folder_or_the_environment(
    experiment: Experiment, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(plan(experiment, *PLANS[name]))
    monkeypatch.chdir(tmp_path)
    for variable in ("SLURM_JOB_ID", "SBATCH_PARTITION", "STK_EXPERIMENT_DIR", "PYTHONPATH"):
        monkeypatch.setenv(variable, "99")
    assert str(plan(experiment, *PLANS[name])) == first
    assert list(tmp_path.iterdir()) == []


def test_srun_gets_no_cpus_of_its_own_beside_cpus_per_gpu(experiment: Experiment) -> None:
    script = str(plan(experiment, Resources(gres="gpu:2", sbatch={"cpus-per-gpu": 4})))
    (srun,) = (line for line in script.splitlines() if line.startswith("srun "))
    assert "--cpus-per-task" not in srun


@pytest.mark.parametrize(
    "time, signal_s, lead_s",
    [
        (None, 120, 120), ("4:00:00", 120, 120), ("4:00:00", 7200, 7200), ("10", 300, 300), ("5", 120, 120),
        ("3", 120, 60), ("2", 120, 20), ("1", 120, 10), ("1", 5, 5), ("0", 120, 120),
    ],
)  # fmt: skip
def test_short_job_is_warned_closer_to_its_end(
    experiment: Experiment, time: str | None, signal_s: int, lead_s: int
) -> None:
    """Slurm may be a minute early, and a rank that is only starting dies of the signal."""
    resources = Resources(time=time, signal_s=signal_s)
    assert directives(plan(experiment, resources))["signal"] == f"USR2@{lead_s}"


def test_next_job_has_neither_begin_time_nor_hold(experiment: Experiment) -> None:
    resources = Resources(sbatch={"begin": "20:00", "hold": True, "nice": 5})
    found = directives(replace(plan(experiment, resources), after="77_1"))
    assert (found["nice"], found.keys() & {"begin", "hold"}) == ("5", set())
    assert directives(plan(experiment, resources))["begin"] == "20:00"


def test_plan_of_an_elastic_job_shows_the_largest_world_and_the_range(user: User) -> None:
    overrides = ["resources.nodes=2-4", "resources.tasks_per_node=2"]
    facts = json.loads(user.stk("plan", user.config, *overrides, "--json").out)
    assert facts["world_size"] == 8
    assert facts["config"]["resources"]["nodes"] == "2-4"
    assert "#SBATCH --nodes=2-4" in facts["script"]
    assert "4 to 8 processes" in user.stk("plan", user.config, *overrides).out
    fixed = json.loads(user.stk("plan", user.config, "resources.nodes=2", "--json").out)
    assert fixed["config"]["resources"]["nodes"] == 2


@pytest.mark.parametrize("character, reason", [
    ("%", "pattern"), ("\\", "drops"), ("\n", "line by line"), (":", "PYTHONPATH"), ("\r", "line break"),
])  # fmt: skip
def test_folder_name_that_slurm_would_change_is_refused_with_the_reason(
    experiment: Experiment, character: str, reason: str
) -> None:
    run = RunDir(Path(f"/scratch/a{character}b/tiny-0123abcd"))
    with pytest.raises(UserError, match=reason) as refusal:
        str(plan(experiment, Resources(), run))
    assert repr(str(run.path)) in str(refusal.value)


def test_python_of_an_environment_that_uv_deletes_is_refused(experiment: Experiment) -> None:
    python = "/home/ada/.cache/uv/builds-v0/.tmpcOCbEw/bin/python"
    with pytest.raises(UserError, match="--with"):
        str(replace(plan(experiment, Resources()), python=python))
    assert str(replace(plan(experiment, Resources()), python="/scratch/.tmp/venv/bin/python"))
