"""Training scripts that ask for their run, preempted on two hosts of the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.product.stopping.requeue_cases import Users
from tests.cluster.product.user import User, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.workloads.custom.script.interrupted import MOMENTS, STEP, TOTAL, logged_steps, weights
from tests.toolkit.workloads.custom.script.training_scripts import LIGHTNING, PLAIN
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

_HOSTS = 2


def submit(user: User, *words: str) -> tuple[RunDir, str]:
    """Submit the script on two hosts; return its run and job id."""
    command = ("stk", "submit", "--json", "--nodes", str(_HOSTS), *words, "code=[train.py,moments.py]")
    answer = json.loads(user.run(*command, "--", "python", "train.py").stdout)
    return RunDir(Path(answer["run_dir"])), answer["job_id"]


def digest(run: RunDir) -> str:
    return weights("".join(path.read_text() for _, _, path in run.rank_logs()))


def write(user: User, script: str) -> None:
    (user.home / "train.py").write_text(script, encoding="utf-8")
    (user.home / "moments.py").write_text(MOMENTS, encoding="utf-8")


def trained(user: User, script: str) -> str:
    """The weights with which a script ends when nothing happens to it."""
    write(user, script)
    run, job_id = submit(user)
    user.wait_until_finished(run, job_id)
    return digest(run)


#: Lightning looks for Slurm by itself; a Trainer of transformers finds its ranks as the plain script does.
_SCRIPTS = [("torch", PLAIN), ("lightning", LIGHTNING)]


@pytest.mark.slow
@pytest.mark.parametrize("library, script", _SCRIPTS)
def test_preempted_script_resumes_to_the_same_weights(
    user: User, users: Users, library: str, script: str
) -> None:
    pytest.importorskip(library)
    expected = trained(users.user(library), script)
    write(user, script)
    folder = user.home / "work"
    folder.mkdir()
    # It waits there until it is asked to leave.
    (folder / "hold").touch()
    run, job_id = submit(user, "resources.partition=preemptible", "resources.gres=gpu:4")
    wait_until((folder / "started").exists, lambda: user.story(run))
    host = starts(run)[0]["hosts"][0]
    user.sbatch("--partition=urgent", f"--nodelist={host}", "--gres=gpu:4", "--time=5", "--wrap=true")
    user.wait_until_finished(run, job_id)
    first, second = starts(run)
    found = (first["why"], first["last_step"], second["first_step"])
    assert found == ("preempted", STEP, STEP), user.story(run)
    assert len(set(second["hosts"])) == _HOSTS
    assert digest(run) == expected, user.story(run)
    assert logged_steps(run) == list(range(1, TOTAL + 1))
    assert read_json(run.result)["step"] == TOTAL
