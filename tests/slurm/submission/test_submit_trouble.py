"""Whatever Slurm or the machine does meanwhile, a run is submitted once or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm.client import programs
from slurm.status import submissions
from slurm.status.submissions import intend, last_resources
from slurm.submission import submit
from tests.cluster.waiting import wait_until
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import CODE, User
from tests.support.patience import PATIENCE_S
from toolkit.config import load_resolved
from toolkit.errors import SlurmUnavailable
from toolkit.files import read_json_lines, read_object
from toolkit.run.run_dir import RunDir

# -- no answer -----------------------------------------------------------------------------------


def test_auto_without_slurm_trains_locally_and_says_so(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launcher is /bin/true, because no worker is needed here."""
    monkeypatch.setattr(sys, "executable", "/bin/true")
    fake.goes_away()
    answer = user.stk("submit", user.config, "--json")
    assert answer.code == 0
    assert "No Slurm controller answers here: training in local processes." in answer.err
    facts = json.loads(answer.out)
    assert facts["cluster"] == "local"
    assert facts["job_id"].startswith("local-")


def test_missing_sbatch_is_named_and_leaves_nothing_behind(user: User, fake: FakeSlurm) -> None:
    (fake.folder / "sbatch").unlink()
    assert "sbatch is not on PATH" in user.refused("submit", user.config, code=3)
    assert list(user.experiments.iterdir()) == []


def test_run_that_slurm_may_still_have_is_not_started_locally_by_default(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.stk("submit", user.config)
    fake.goes_away()
    for command in (["submit", user.config], ["resume", user.run().run_id]):
        assert "as job 101, and no controller answers" in user.refused(*command, code=3)
    assert user.job_ids == ["101"]
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert user.stk("submit", user.config, "--cluster", "local").code == 0


def test_hanging_sbatch_is_given_up_and_not_repeated_at_once(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_patience(monkeypatch)
    fake.submits("hang")
    said = user.refused("submit", user.config, code=3)
    assert "no answer in 0.5 s from: sbatch" in said
    assert "repeat the command. It looks for the job first" in said
    fake.submits("commit")
    for words in ((), ("--fresh",)):
        # A busy controller may still take what it was sent.
        answer = user.stk("submit", user.config, *words)
        assert (answer.code, len(fake.jobs)) == (3, 0)
        assert "it is not known whether Slurm has taken the job" in answer.err
    monkeypatch.setattr(submissions, "_LATE_S", 0.0)
    assert user.stk("submit", user.config).code == 0
    assert user.job_ids == ["101"]
    assert len(fake.jobs) == 1


@pytest.mark.parametrize("mode", ["late", "silent"])
def test_job_with_a_lost_id_is_found_at_once(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    if mode == "late":
        short_patience(monkeypatch)
    user.stk("submit", user.config)
    fake.change("101", state="CANCELLED")
    fake.submits(mode)
    assert json.loads(user.told("submit", user.config, "resources.time=3:00:00", "--json"))["job_id"] == "102"
    assert user.job_ids == ["101", "102"]
    assert len(fake.jobs) == 2
    assert last_resources(user.run()).time == "3:00:00"


def test_submission_that_is_interrupted_counts_as_one_with_a_lost_answer(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(programs, "sbatch", interrupt)
    assert user.stk("submit", user.config).code == 130
    assert "lost" in read_object(user.run().intent)


def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up after half a second on sbatch alone: the others need their time on a busy machine."""
    patient = programs.call

    def impatient(*command: str, **options: object) -> str:
        if command[0] == "sbatch":
            options["timeout_s"] = 0.5
        return patient(*command, **options)

    monkeypatch.setattr(programs, "call", impatient)


def test_a_lost_job_that_cannot_be_looked_for_is_found_by_the_next_submission(
    user: User, fake: FakeSlurm
) -> None:
    fake.submits("silent")
    fake.refuses("squeue", "squeue: error: Unable to contact slurm controller (connect failure)")
    assert "sbatch answered without a job id" in user.refused("submit", user.config, code=3)
    fake.comes_back()
    answer = user.stk("submit", user.config)
    assert "is pending, job 101" in answer.err
    assert user.job_ids == ["101"]
    assert len(fake.jobs) == 1


# -- killed --------------------------------------------------------------------------------------


def test_a_submitter_that_is_killed_after_sbatch_leaves_no_duplicate(user: User, fake: FakeSlurm) -> None:
    fake.submits("die")
    answer = user.call("submit", user.config)
    assert answer.code == -signal.SIGKILL
    run = user.run()
    assert run.intent.exists()
    assert user.job_ids == []
    fake.submits("commit")
    assert "is pending, job 101" in user.refused("submit", user.config)
    assert len(fake.jobs) == 1
    (line,) = read_json_lines(run.submissions)
    assert (line["job_id"], line["recovered"]) == ("101", True)
    assert not run.intent.exists()


def test_lost_job_is_found_to_be_cancelled_with_its_resources(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    fake.change("101", state="CANCELLED")
    fake.submits("die")
    user.call("submit", user.config, "resources.time=3:00:00")
    assert "job 102 cancelled" in user.stk("cancel", user.run().run_id).out
    assert fake.calls("scancel") == [["--", "102"]]
    assert last_resources(user.run()).time == "3:00:00"


def test_run_with_a_lost_job_is_not_submitted_while_no_controller_answers(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went away after the choice of the cluster."""
    fake.submits("die")
    user.call("submit", user.config)
    fake.submits("commit")
    monkeypatch.setattr("slurm.submission.submit.choose_cluster", lambda wanted: "slurm")
    monkeypatch.setattr("slurm.submission.submit.check", lambda *_: None)
    fake.goes_away()
    run = user.run()
    with pytest.raises(SlurmUnavailable):
        submit.submit(user.experiment(), run, "slurm")
    assert run.intent.exists()


def test_job_is_recorded_even_if_nothing_more_can_be_written(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("slurm.submission.submit_job.write_atomic", fail)
    answer = user.stk("submit", user.config)
    assert (answer.code, user.job_ids) == (2, ["101"])
    assert "No space left" in answer.err


def test_fresh_start_that_cannot_be_made_puts_the_run_back(
    user: User, run: RunDir, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.path / "kept").touch()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("toolkit.run.create_run.keep_code", fail)
    answer = user.stk("submit", user.config, "--fresh")
    assert (answer.code, f"{run.path}: No space" in answer.err) == (2, True)
    assert (run.path / "kept").exists()
    assert [*user.experiments.iterdir()] == [run.path]


def test_fresh_start_whose_folder_cannot_be_moved_puts_the_run_back(
    user: User, run: RunDir, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.path / "kept").touch()
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.parent.name.startswith(".new."):
            raise OSError(errno.EACCES, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    answer = user.stk("submit", user.config, "--fresh")
    assert (answer.code, f"{run.path}: Permission denied" in answer.err) == (2, True)
    assert (run.path / "kept").exists()
    assert [*(user.experiments / "old").iterdir()] == []


def test_a_fresh_start_first_looks_for_a_lost_job(user: User, fake: FakeSlurm) -> None:
    fake.submits("die")
    user.call("submit", user.config)
    fake.submits("commit")
    assert user.stk("submit", user.config, "--fresh").code == 2
    assert len(fake.jobs) == 1
    assert not (user.experiments / "old").exists()


@pytest.mark.parametrize("options", [[], ["--fresh"]])
def test_a_run_is_not_submitted_while_its_lost_job_cannot_be_looked_for(
    user: User, run: RunDir, fake: FakeSlurm, options: list[str]
) -> None:
    intend(run, f"{run.run_id}.0")
    fake.refuses("squeue", "squeue: error: Unable to contact slurm controller (connect failure)")
    assert user.stk("submit", user.config, *options, "--cluster", "slurm").code == 3
    assert run.intent.exists()
    assert fake.jobs == []


def test_somebody_elses_job_of_the_same_name_is_not_adopted(user: User, run: RunDir, fake: FakeSlurm) -> None:
    intend(run, f"{run.run_id}.0")
    fake.add("7", name=f"{run.run_id}.0", work_dir=f"/home/you/{run.run_id}")
    assert user.stk("submit", user.config).code == 0
    assert user.job_ids == ["102"]


def test_ended_job_of_a_replaced_folder_is_not_adopted(user: User, run: RunDir, fake: FakeSlurm) -> None:
    """As after `--fresh`, where the answer of sbatch is lost: names begin anew in the new folder."""
    intend(run, f"{run.run_id}.0")
    old = {"name": f"{run.run_id}.0", "work_dir": str(run.path)}
    fake.add("7", **old, state="COMPLETED", submitted="2020-01-01T00:00:00")
    assert user.stk("submit", user.config).code == 0
    assert user.job_ids == ["102"]


# -- at the same time ----------------------------------------------------------------------------


def test_one_of_two_submitters_wins_and_the_other_is_refused(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = fake.gate
    fake.submits("wait")
    first = user.start("submit", user.config)
    # Opening a pipe for writing waits until sbatch of the first one reads it.
    with open(gate, "w") as opened:
        monkeypatch.setattr(submissions, "_LOCK_S", 0.0)
        assert "is being submitted by another process right now" in user.refused("submit", user.config)
        opened.write("go")
    out, err = first.communicate(timeout=PATIENCE_S)
    assert (first.returncode, err) == (0, "")
    assert re.search(r"^job +101$", out, re.MULTILINE)
    assert user.job_ids == ["101"]
    assert len(fake.jobs) == 1


def test_one_of_many_submitters_makes_a_job_and_the_others_are_refused(user: User, fake: FakeSlurm) -> None:
    """All have come before the first one's sbatch answers."""
    many = 8
    fake.submits("wait")
    gate = fake.gate
    processes = [user.start("submit", user.config) for _ in range(many)]
    wait_until(lambda: len(fake.calls("sinfo")) == many, lambda: str(fake.calls("sinfo")))
    gate.write_text("go")
    answers = [(*process.communicate(timeout=PATIENCE_S), process.returncode) for process in processes]
    assert sorted(code for _, _, code in answers) == [0] + [2] * (many - 1)
    for out, err, code in answers:
        told = r"^job +101$" if code == 0 else r"^error: .*(is pending, job 101|right now)"
        assert re.search(told, err if code else out, re.MULTILINE)
        assert "Traceback" not in err
    assert len(fake.calls("sbatch")) == 1
    assert user.job_ids == ["101"]
    assert load_resolved(user.run().config) == user.experiment()
    assert [path.name for path in user.experiments.iterdir()] == [user.run().run_id]
    assert not user.run().intent.exists()


def test_folder_removed_by_a_refused_submitter_is_made_again(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next submitter waits for the lock in a folder that no longer exists."""
    honest = submissions.exclusively

    @contextmanager
    def exclusively_after_a_refusal(run: RunDir) -> Iterator[None]:
        shutil.rmtree(run.path)
        with honest(run):
            yield

    monkeypatch.setattr(submit, "exclusively", exclusively_after_a_refusal)
    assert user.stk("submit", user.config).code == 0
    assert load_resolved(user.run().config) == user.experiment()
    assert user.run().code.is_dir()
    assert user.job_ids == ["101"]


def test_a_run_whose_job_cannot_be_asked_about_is_not_submitted_again(user: User, fake: FakeSlurm) -> None:
    """A busy controller answers some questions and not others."""
    assert user.stk("submit", user.config).code == 0
    fake.refuses("squeue", "slurm_load_jobs error: Socket timed out on send/recv operation")
    for words in (["submit", user.config], ["submit", user.config, "--fresh"], ["resume", user.run().run_id]):
        answer = user.stk(*words)
        assert (answer.code, user.run().run_id in answer.err) == (3, True)
    assert len(fake.calls("sbatch")) == 1
    assert user.run().submissions.exists()


# -- the disk ------------------------------------------------------------------------------------


def test_full_disk_is_reported_and_leaves_nothing_behind(user: User, fake: FakeSlurm) -> None:
    """A limit on the size of files stands in for the full disk."""
    process = subprocess.run(
        [sys.executable, "-m", "slurm", "submit", str(user.config)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        env={"PATH": str(fake.folder), **CODE, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=user.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.startswith("error: cannot write the run folder ")
    assert "STK_EXPERIMENT_DIR" in process.stderr
    assert process.stderr.count("\n") == 1
    assert list((user.root / "experiments").iterdir()) == []
    assert fake.jobs == []


def test_file_system_without_locks_is_named(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    said = user.refused("submit", user.config, "--cluster", "local")
    assert f"{user.run().lock}: No locks available" in said
    assert "STK_EXPERIMENT_DIR" in said
