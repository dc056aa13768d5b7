"""What sbatch would take from the shell is not used, and that is said."""

from __future__ import annotations

import pytest

from slurm.config.resources import Resources
from slurm.config.sbatch_options import unused_variables
from tests.slurm.support.user import User


@pytest.mark.parametrize(
    "variable, instead",
    [
        ("SBATCH_PARTITION", "resources.partition"),
        ("SBATCH_ACCOUNT", "resources.account"),
        ("SBATCH_TIMELIMIT", "resources.time"),
        ("SBATCH_MEM_PER_NODE", "resources.mem"),
        ("SBATCH_EXCLUSIVE", "resources.exclusive"),
        ("SBATCH_WCKEY", "resources.sbatch.wckey"),
        ("SBATCH_GET_USER_ENV", "resources.sbatch.get-user-env"),
        ("SBATCH_EXPORT", ""),
        ("SBATCH_CONTAINER", "a command of your own"),
        ("SBATCH_CONTAINER_IMAGE", "a command of your own"),
        ("SBATCH_CLUSTERS", ""),
        ("SLURM_CLUSTERS", ""),
    ],
)
def test_each_unused_variable_is_named_with_what_to_use(variable: str, instead: str) -> None:
    (line,) = unused_variables(Resources(), {variable: "long", "HOME": "/", "SBATCH_": ""})
    assert f"{variable} is 'long' and is not used" in line
    assert instead in line
    assert ("resources." in line) == instead.startswith("resources.")


def test_variable_is_not_reported_if_its_key_is_set() -> None:
    resources = Resources(partition="long", exclusive=True, sbatch={"wckey": "a"})
    environ = dict.fromkeys(("SBATCH_PARTITION", "SBATCH_EXCLUSIVE", "SBATCH_WCKEY"), "x")
    assert not list(unused_variables(resources, environ))
    resources = Resources(sbatch={"exclusive": "user"})
    assert not list(unused_variables(resources, {"SBATCH_EXCLUSIVE": "user"}))


def test_plan_warns_of_unused_variables(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "long")
    answer = user.stk("plan", user.config)
    assert answer.code == 0
    assert "SBATCH_PARTITION" in answer.err
    assert "SBATCH_PARTITION" not in answer.out
    assert user.stk("plan", user.config, "resources.partition=short").err == ""
