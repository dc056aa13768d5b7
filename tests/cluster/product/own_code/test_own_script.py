"""Training scripts that ask for their run, on two hosts of the cluster: preempted, out of time, killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.cluster.product.user import User, Users, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.workloads.custom.script.interrupted import MOMENTS, STEP, TOTAL, logged_steps, weights
from tests.toolkit.workloads.custom.script.training_scripts import LIGHTNING, PLAIN, PRETRAINED, TRANSFORMERS
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

_HOSTS = 2


def submit(user: User, *words: str) -> tuple[RunDir, str]:
    """Submit the script on two hosts; return its run and job id."""
    options = ("--nodes", str(_HOSTS), *words, "code=[train.py,moments.py]")
    return user.submit_command(*options, "--", "python", "train.py")


def digest(run: RunDir) -> str:
    return weights("".join(path.read_text() for _, _, path in run.rank_logs()))


def write(user: User, script: str) -> None:
    (user.home / "train.py").write_text(script, encoding="utf-8")
    (user.home / "moments.py").write_text(MOMENTS, encoding="utf-8")


def prepare(user: User, script: str, what: str) -> Path:
    """Let the run of a script be interrupted; return the file that exists once that moment has come.

    what   hold: it waits until it is asked to leave; kill: its last rank is killed
    """
    write(user, script)
    folder = user.home / "work"
    folder.mkdir()
    (folder / what).touch()
    return folder / "started"


def check_whole(user: User, run: RunDir, expected: str) -> None:
    """It has ended with these weights, and each step is logged once."""
    assert digest(run) == expected, user.story(run)
    assert logged_steps(run) == list(range(1, TOTAL + 1))
    assert read_json(run.result)["step"] == TOTAL


#: A real encoder is trained where there is one.
_TRAINER = PRETRAINED if "STK_MINILM" in os.environ else TRANSFORMERS
_SCRIPTS = [("torch", PLAIN), ("accelerate", _TRAINER), ("lightning", LIGHTNING)]


@pytest.fixture(scope="module")
def undisturbed(users: Users) -> Callable[[str], str]:
    """Tells the weights with which a script ends when nothing happens to it; each is trained once."""

    @cache
    def weights_of(script: str) -> str:
        number = [each for _, each in _SCRIPTS].index(script)
        user = users.user(f"undisturbed{number}")
        write(user, script)
        run, job_id = submit(user)
        user.wait_until_finished(run, job_id)
        return digest(run)

    return weights_of


@pytest.mark.slow
@pytest.mark.parametrize("library, script", _SCRIPTS)
def test_preempted_script_resumes_to_the_same_weights(
    user: User, undisturbed: Callable[[str], str], library: str, script: str
) -> None:
    pytest.importorskip(library)
    expected, started = undisturbed(script), prepare(user, script, "hold")
    run, job_id = submit(user, "resources.partition=preemptible", "resources.gres=gpu:4")
    wait_until(started.exists, lambda: user.story(run))
    user.preempt(starts(run)[0]["hosts"][0])
    user.wait_until_finished(run, job_id)
    first, second = starts(run)
    found = (first["why"], first["last_step"], second["first_step"])
    assert found == ("preempted", STEP, STEP), user.story(run)
    assert len(set(second["hosts"])) == _HOSTS
    check_whole(user, run, expected)


@pytest.mark.slow
def test_a_killed_rank_costs_the_steps_since_the_last_save(
    user: User, undisturbed: Callable[[str], str]
) -> None:
    """A plain one: what the libraries' callbacks do then needs no cluster to be seen."""
    expected = undisturbed(PLAIN)
    prepare(user, PLAIN, "kill")
    run, job_id = submit(user)
    user.wait_until_finished(run, job_id)
    first, second = starts(run)
    assert (first["why"], second["first_step"]) == ("killed", 5), user.story(run)
    check_whole(user, run, expected)
