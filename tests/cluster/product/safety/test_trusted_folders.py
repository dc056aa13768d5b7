"""What somebody else has put into a run's folder since it was submitted is not executed."""

from __future__ import annotations

import os

from tests.cluster.product.user import User

STRANGER = 65534


def test_job_fails_before_executing_code_owned_by_another_user(user: User) -> None:
    run, job_id = user.submit("quick", "resources.sbatch={hold: true}")
    for package in ("toolkit", "slurm"):
        planted = run.code / package / "__init__.py"
        planted.write_text(f"open({str(user.home / 'was-here')!r}, 'w')\n")
        os.chown(planted, STRANGER, STRANGER)
    user.run("scontrol", "release", job_id)
    assert user.wait_for_end(job_id) == "FAILED", user.story(run)
    assert not (user.home / "was-here").exists()
    log = run.job_log(job_id).read_text()
    assert str(run.path) in log
    assert "nobody" in log


def test_job_executes_code_of_another_user_in_a_trusted_folder(user: User) -> None:
    env = {"STK_TRUSTED_FOLDERS": str(user.runs)}
    run, job_id = user.submit("quick", "resources.sbatch={hold: true}", env=env)
    os.chown(run.code / "toolkit" / "__init__.py", STRANGER, STRANGER)
    user.run("scontrol", "release", job_id)
    user.wait_until_finished(run, job_id)
